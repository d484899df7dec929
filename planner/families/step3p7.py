"""Step 3.7: a vision tower with two downsampling convolutions in front of the Step 3.5 text model.

Reference: ``Step3p7ForConditionalGeneration`` of transformers, names as in the published files. Published configs
can hold the text's keys at the top level.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Factor, Layers, Switch, either
from planner.families._multimodal import FlatWrapper, Piece, Size, around, pair, patches, text_model
from planner.vision_blocks import convolution, fused_attention, layer_norm, matrix, table, two_layer_mlp

MODEL_TYPES = ("step3p7",)


class Tower(Piece):
    """Keys of ``step3p5_vision``; the width of its MLP is the ratio's, whatever ``intermediate_size`` says."""

    HARMLESS = Piece.HARMLESS | {"intermediate_size", "max_position_embeddings"}

    hidden_size: Count = Field(default=1536, validation_alias=either("width", "hidden_size"))
    num_hidden_layers: Layers = Field(default=47, validation_alias=either("layers", "num_hidden_layers"))
    num_attention_heads: Count = Field(default=16, validation_alias=either("heads", "num_attention_heads"))
    mlp_ratio: Factor = 8960 / 1536
    num_channels: Count = 3
    image_size: Size = 728
    patch_size: Size = 14


class Config(FlatWrapper):
    """Keys of the wrapper. A file without a ``vision_config`` has the class's tower, as in the published model."""

    vision_config: dict[str, Any] | None = None
    projector_bias: Switch = False


def read(config: Config) -> Architecture:
    """Text model, tower, projector over four neighbouring patches."""
    text = text_model(config, model_type="step3p5", read_as={"step3p7": "step3p5", "step3p7_text": "step3p5"})
    tower = Tower.parse(config.vision_config or {}, source=config.source, prefix=f"{config.prefix}vision_config.")
    found = matrix("vit_large_projector", inputs=4 * tower.hidden_size, outputs=text.hidden, bias=config.projector_bias)
    return around(
        config,
        text,
        family="step3p7",
        components=(Component("vision tower", _tower(tower)), Component("projector", found)),
        parts=(tower,),
        layout=("model", "lm_head"),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "vision_model", config.hidden_size, config.num_hidden_layers
    layer = f"{path}.transformer.resblocks.*"
    return (
        convolution(
            f"{path}.conv1", channels=config.num_channels, kernel=pair(config.patch_size), outputs=hidden, bias=False
        )
        + table(f"{path}.positional_embedding", patches(config, config.image_size, config.patch_size), hidden)
        + layer_norm(f"{path}.ln_pre", hidden)
        + layer_norm(f"{layer}.ln_1", hidden, copies=layers)
        + layer_norm(f"{layer}.ln_2", hidden, copies=layers)
        + table(f"{layer}.ls_1.gamma", hidden, copies=layers)
        + table(f"{layer}.ls_2.gamma", hidden, copies=layers)
        + fused_attention(layer, hidden=hidden, copies=layers, names=("attn.in_proj", "attn.out_proj"))
        + two_layer_mlp(
            f"{layer}.mlp",
            hidden=hidden,
            width=int(hidden * config.mlp_ratio),
            copies=layers,
            names=("c_fc", "c_proj"),
        )
        + convolution(f"{path}.vit_downsampler1", channels=hidden, kernel=(3, 3), outputs=2 * hidden)
        + convolution(f"{path}.vit_downsampler2", channels=2 * hidden, kernel=(3, 3), outputs=4 * hidden)
    )
