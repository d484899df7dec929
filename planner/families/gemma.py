"""Gemma: a Llama with wide heads, a head tied to the embedding, and a norm that adds one to its weight.

Reference: ``GemmaForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.families._decoder import decoder
from planner.families._gemma import GemmaDecoder, attention_of, causal

MODEL_TYPES = ("gemma",)


class Config(GemmaDecoder):
    """Keys that decide the counts."""


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    causal(config)
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    layer = pre_norm_layer(attention_of(config), mlp, hidden=config.hidden_size)
    return decoder(config, family="gemma", layers=(layer,) * config.num_hidden_layers)
