"""Baichuan and Baichuan 2: multi-head attention with one fused matrix, no biases.

Reference: ``modeling_baichuan.py`` of the published checkpoints. The 13 B models use ALiBi instead of rotary
positions, and the second generation normalises its head; neither changes a shape.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, either
from planner.families._decoder import Decoder, decoder, fused_attention

MODEL_TYPES = ("baichuan",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    max_position_embeddings: Count | None = Field(
        default=None, validation_alias=either("max_position_embeddings", "model_max_length")
    )


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    if config.key_value_heads != heads:
        raise config.refusal(
            "num_key_value_heads", f"is {config.key_value_heads}, and there is one per query head here"
        )
    attention = fused_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        names=("self_attn.W_pack", "self_attn.o_proj"),
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    layers = (pre_norm_layer(attention, mlp, hidden=hidden),) * config.num_hidden_layers
    return decoder(config, family="baichuan", layers=layers)
