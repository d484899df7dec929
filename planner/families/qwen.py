"""Qwen, the first generation: fused attention with a bias, a gated MLP that is half as wide as the file says.

Reference: ``QWenLMHeadModel`` of the published repositories (remote code, no class in transformers).
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import embedding, gated_mlp, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import fused_attention

MODEL_TYPES = ("qwen",)


class Config(FamilyConfig):
    """Keys that decide the counts. ``intermediate_size`` is the sum of the two halves of the gated MLP."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    kv_channels: Count | None = None
    intermediate_size: Count
    vocab_size: Count
    no_bias: Switch = True
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("max_position_embeddings", "seq_length")
    )
    visual: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers; Qwen-VL's tower is named, not counted."""
    hidden = config.hidden_size
    return Architecture(
        family="qwen",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(_layer(config),) * config.num_hidden_layers,
        embedding=embedding("transformer.wte", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("transformer.ln_f", hidden),
        max_context=config.max_position_embeddings,
        unread=("vision tower (visual)",) if config.visual else (),
        layer_names="transformer.h",
        dtype=config.dtype,
    )


def _layer(config: Config) -> Layer:
    hidden, heads = config.hidden_size, config.num_attention_heads
    if config.intermediate_size % 2:
        raise config.refusal("intermediate_size", f"is {config.intermediate_size:,}; it is split into two halves")
    attention = fused_attention(
        ("attn.c_attn", "attn.c_proj"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.kv_channels or config.head_width(hidden, heads),
        bias=True,
        output_bias=not config.no_bias,
    )
    mlp = gated_mlp(
        hidden=hidden, width=config.intermediate_size // 2, bias=not config.no_bias, names=("w2", "w1", "c_proj")
    )
    return Layer((attention, mlp), norm("ln_1", hidden) + norm("ln_2", hidden))
