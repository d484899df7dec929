"""ERNIE 4.5 VL: one set of experts for text and a narrower one for pictures, a tower, and a resampler over time.

Reference: ``Ernie4_5_VLMoeForConditionalGeneration`` of transformers, and ``configuration_ernie4_5_vl.py`` of the
published checkpoints, which keep the text's keys at the top level and call themselves ``ernie4_5_moe_vl``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers, either
from planner.families._multimodal import FlatWrapper, Piece, around, text_model
from planner.vision_blocks import fused_attention, layer_norm, matrix, scale_norm, two_layer_mlp

MODEL_TYPES = ("ernie4_5_vl_moe", "ernie4_5_moe_vl")

TEXT_TYPE = "ernie4_5_vl_moe_text"


class Tower(Piece):
    """``Ernie4_5_VLMoeVisionConfig``; published files give the width of the MLP as a ratio."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"embed_dim", "vit_num_recompute_layers"}

    depth: Layers = 32
    hidden_size: Count = 1280
    num_heads: Count = 16
    in_channels: Count = Field(default=3, validation_alias=either("in_channels", "in_chans"))
    patch_size: Count = 14
    spatial_merge_size: Count = 2
    temporal_merge_size: Count = 2
    intermediate_size: Count | None = None
    mlp_ratio: Count = 4

    @property
    def width(self) -> int:
        """Width of a layer's MLP; the class's own default is four times the width."""
        return self.intermediate_size or self.mlp_ratio * self.hidden_size


class Config(FlatWrapper):
    """Keys of the wrapper; published files say here how many patches the resampler joins."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"pixel_hidden_size"})

    vision_config: dict[str, Any]
    spatial_conv_size: Count | None = None
    temporal_conv_size: Count | None = None


def read(config: Config) -> Architecture:
    """Text model, tower and resampler."""
    text = text_model(config, model_type=TEXT_TYPE, read_as={config.model_type: TEXT_TYPE})
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    return around(
        config,
        text,
        family="ernie4_5_vl_moe",
        components=(
            Component("vision tower", _tower(tower)),
            Component("resampler", _resampler(config, tower, text.hidden)),
        ),
        parts=(tower,),
        layout=("model", "lm_head"),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "vision_model", config.hidden_size, config.depth
    layer = f"{path}.blocks.*"
    patch = config.in_channels * config.patch_size**2
    return (
        matrix(f"{path}.patch_embed.proj", inputs=patch, outputs=hidden, bias=False)
        + layer_norm(f"{layer}.norm1", hidden, copies=layers)
        + layer_norm(f"{layer}.norm2", hidden, copies=layers)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=config.width, copies=layers)
        + layer_norm(f"{path}.ln", hidden)
    )


def _resampler(config: Config, tower: Tower, text_width: int) -> tuple[Weight, ...]:
    """Neighbouring patches are joined in space, then in time, then projected to the text's width."""
    path = "model.resampler_model"
    space = tower.hidden_size * (config.spatial_conv_size or tower.spatial_merge_size) ** 2
    time = space * (config.temporal_conv_size or tower.temporal_merge_size)
    return (
        _joined(f"{path}.spatial_linear", space, space)
        + _joined(f"{path}.temporal_linear", time, space)
        + matrix(f"{path}.mlp", inputs=space, outputs=text_width)
        + scale_norm(f"{path}.after_norm", text_width)
    )


def _joined(path: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
    return (
        matrix(f"{path}.0", inputs=inputs, outputs=outputs)
        + matrix(f"{path}.2", inputs=outputs, outputs=outputs)
        + layer_norm(f"{path}.3", outputs)
    )
