"""Idefics 2 and 3 and SmolVLM: a SigLIP-like tower, a connector, a Mistral or Llama text model.

Reference: ``Idefics2ForConditionalGeneration``, ``Idefics3ForConditionalGeneration`` and
``SmolVLMForConditionalGeneration`` of transformers. Idefics 2 resamples a picture to 64 tokens with a perceiver; the
others merge ``scale_factor``² patches into one token.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import (
    CLASS_DEFAULTS,
    Piece,
    Size,
    TowerConfig,
    Wrapper,
    around,
    pair,
    patches,
    text_model,
)
from planner.vision_blocks import matrix, scale_norm, separate_attention, siglip_tower, table, three_matrix_mlp

MODEL_TYPES = ("idefics2", "idefics3", "smolvlm")


class Tower2(TowerConfig):
    """``Idefics2VisionConfig``."""

    patch_size: Size = 32

    def weights(self, path: str) -> tuple[Weight, ...]:
        """SigLIP without its pooling head."""
        return siglip_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.num_hidden_layers,
            channels=self.num_channels,
            patch=pair(self.patch_size),
            positions=patches(self, self.image_size, self.patch_size),
            pooling_head=False,
        )


class Tower3(Tower2):
    """``Idefics3VisionConfig``."""

    hidden_size: Count = 1152
    num_attention_heads: Count = 16


class Perceiver(Piece):
    """``Idefics2PerceiverConfig``; its width is the text's."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"hidden_size"}

    resampler_n_latents: Count = 64
    resampler_depth: Layers = 3
    resampler_n_heads: Count = 16
    resampler_head_dim: Count = 96
    num_key_value_heads: Count = 4


class Config(Wrapper):
    """Keys of the wrappers; ``vocab_size`` at the top level repeats the text's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"vocab_size"})

    vision_config: dict[str, Any] = Field(default_factory=dict)
    perceiver_config: dict[str, Any] = Field(default_factory=dict)
    scale_factor: Count = 2


def read(config: Config) -> Architecture:
    """Text model, tower, connector."""
    second = config.model_type == "idefics2"
    text = text_model(config, model_type="mistral" if second else "llama", class_defaults=CLASS_DEFAULTS)
    model = Tower2 if second else Tower3
    tower = model.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    parts: tuple[Piece, ...] = (tower,)
    path = "model.connector.modality_projection"
    if second:
        perceiver = Perceiver.parse(
            config.perceiver_config, source=config.source, prefix=f"{config.prefix}perceiver_config."
        )
        parts += (perceiver,)
        width = _text_width(config)
        found = three_matrix_mlp(path, hidden=tower.hidden_size, width=width, outputs=text.hidden, copies=1)
        found += _resampler(perceiver, "model.connector.perceiver_resampler", text.hidden)
    else:
        merged = tower.hidden_size * config.scale_factor**2
        found = matrix(f"{path}.proj", inputs=merged, outputs=text.hidden, bias=False)
    return around(
        config,
        text,
        family="idefics",
        components=(Component("vision tower", tower.weights("model.vision_model")), Component("projector", found)),
        parts=parts,
        layout=("model.text_model", "lm_head"),
    )


def _text_width(config: Config) -> int:
    """The text's MLP width, which the projection of Idefics 2 has too."""
    width = config.text_config.get("intermediate_size", 14336)
    if not isinstance(width, int):
        raise config.refusal("text_config.intermediate_size", f"is {width!r}; expected a whole number")
    return width


def _resampler(config: Perceiver, path: str, hidden: int) -> tuple[Weight, ...]:
    layer, layers = f"{path}.layers.*", config.resampler_depth
    return (
        table(f"{path}.latents", config.resampler_n_latents, hidden)
        + scale_norm(f"{layer}.input_latents_norm", hidden, copies=layers)
        + scale_norm(f"{layer}.input_context_norm", hidden, copies=layers)
        + separate_attention(
            f"{layer}.self_attn",
            hidden=hidden,
            inner=config.resampler_n_heads * config.resampler_head_dim,
            kv_inner=config.num_key_value_heads * config.resampler_head_dim,
            copies=layers,
            bias=False,
            names=("q_proj", "k_proj", "v_proj", "o_proj"),
        )
        + scale_norm(f"{layer}.post_attention_layernorm", hidden, copies=layers)
        + three_matrix_mlp(f"{layer}.mlp", hidden=hidden, width=4 * hidden, copies=layers)
        + scale_norm(f"{path}.norm", hidden)
    )
