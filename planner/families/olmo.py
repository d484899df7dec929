"""OLMo: a Llama whose norms have no weights.

Reference: ``OlmoForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("olmo",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    attention = attention_of(config, bias=config.attention_bias, output_bias=config.attention_bias)
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    return decoder(config, family="olmo", layers=(Layer((attention, mlp)),) * config.num_hidden_layers, outer=())
