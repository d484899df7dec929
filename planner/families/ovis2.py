"""Ovis2: AIMv2 turns patches into a distribution over visual words, a table turns words into embeddings.

Reference: ``Ovis2ForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers, Switch
from planner.families._multimodal import CLASS_DEFAULTS, Piece, Size, Wrapper, around, pair, patches, text_model
from planner.vision_blocks import (
    convolution,
    layer_norm,
    matrix,
    scale_norm,
    separate_attention,
    table,
    three_matrix_mlp,
)

MODEL_TYPES = ("ovis2",)


class Tower(Piece):
    """``Ovis2VisionConfig``; ``vocab_size`` is that of the visual words."""

    hidden_size: Count = 1024
    intermediate_size: Count = 2816
    num_hidden_layers: Layers = 24
    num_attention_heads: Count = 8
    num_channels: Count = 3
    image_size: Size = 224
    patch_size: Size = 14
    qkv_bias: Switch = False
    mlp_bias: Switch = False
    vocab_size: Count = 16384
    hidden_stride: Count = 1
    num_visual_indicator_tokens: Count = 5


class Config(Wrapper):
    """Keys of the wrapper; its own vocabulary and width repeat the text's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"vocab_size"})

    vision_config: dict[str, Any]
    hidden_size: Count | None = None


def read(config: Config) -> Architecture:
    """Text model, tower with its head, table of visual words."""
    text = text_model(config, model_type="qwen2", class_defaults=CLASS_DEFAULTS)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    if config.hidden_size not in (None, text.hidden):
        raise config.refusal("hidden_size", f"is {config.hidden_size:,} and the text's is {text.hidden:,}")
    words = table("model.visual_embeddings_table", tower.vocab_size, text.hidden)
    return around(
        config,
        text,
        family="ovis2",
        components=(Component("vision tower", _tower(tower)), Component("visual words", words)),
        parts=(tower,),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "model.vision_tower.transformer", config.hidden_size, config.num_hidden_layers
    layer, embeddings = f"{path}.encoder.layers.*", f"{path}.embeddings"
    words = config.vocab_size - config.num_visual_indicator_tokens
    if words <= 0:
        raise config.refusal("num_visual_indicator_tokens", f"leaves nothing of the {config.vocab_size:,} visual words")
    return (
        convolution(
            f"{embeddings}.patch_embedding",
            channels=config.num_channels,
            kernel=pair(config.patch_size),
            outputs=hidden,
        )
        + table(f"{embeddings}.position_embedding", patches(config, config.image_size, config.patch_size), hidden)
        + scale_norm(f"{embeddings}.rms_norm", hidden)
        + separate_attention(f"{layer}.attention", hidden=hidden, copies=layers, bias=config.qkv_bias)
        + three_matrix_mlp(
            f"{layer}.ffn", hidden=hidden, width=config.intermediate_size, copies=layers, bias=config.mlp_bias
        )
        + scale_norm(f"{layer}.rms_norm1", hidden, copies=layers)
        + scale_norm(f"{layer}.rms_norm2", hidden, copies=layers)
        + scale_norm(f"{path}.rms_norm", hidden)
        + matrix("model.vision_tower.head_linear", inputs=hidden * config.hidden_stride**2, outputs=words, bias=False)
        + layer_norm("model.vision_tower.head_norm", words)
    )
