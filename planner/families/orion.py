"""Orion: a Llama with LayerNorms that have biases.

Reference: ``modeling_orion.py`` of the published checkpoint (Orion-14B).
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, norm, pre_norm_layer
from planner.config import Count
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("orion",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = attention_of(config)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    layer = pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True)
    outer = norm("model.norm", hidden, bias=True)
    return decoder(config, family="orion", layers=(layer,) * config.num_hidden_layers, outer=outer)
