"""nanochat: a two-matrix MLP and norms without weights.

Reference: ``NanoChatForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import plain_mlp
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("nanochat",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    bias = config.attention_bias
    mlp = plain_mlp(hidden=config.hidden_size, width=config.intermediate_size, names=("fc1", "fc2"))
    layer = Layer((attention_of(config, bias=bias, output_bias=bias), mlp))
    return decoder(config, family="nanochat", layers=(layer,) * config.num_hidden_layers, outer=())
