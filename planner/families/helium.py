"""Helium: a Llama whose output projection is square and has no bias.

Reference: ``HeliumForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("helium",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    if heads * config.head_size != hidden:
        raise config.refusal("head_dim", f"is {config.head_size}, and {heads} such heads are not {hidden:,} wide")
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    layer = pre_norm_layer(attention_of(config, bias=config.attention_bias), mlp, hidden=hidden)
    return decoder(config, family="helium", layers=(layer,) * config.num_hidden_layers)
