"""Seed-OSS: a Llama with a head width of its own and separate switches for input and output biases.

Reference: ``SeedOssForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("seed_oss",)


class Config(Decoder):
    """Keys that decide the counts."""

    head_dim: Count | None = 128
    intermediate_size: Count
    attention_bias: Switch = True
    attention_out_bias: Switch = False
    mlp_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = attention_of(config, bias=config.attention_bias, output_bias=config.attention_out_bias)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    layers = (pre_norm_layer(attention, mlp, hidden=hidden),) * config.num_hidden_layers
    return decoder(config, family="seed_oss", layers=layers)
