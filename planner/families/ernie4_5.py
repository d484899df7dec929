"""ERNIE 4.5 dense: a Llama with one switch for all biases, a head width of its own and tied embeddings by default.

Reference: ``Ernie4_5ForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("ernie4_5",)


class Config(Decoder):
    """Keys that decide the counts."""

    # The factor by which positions are divided; 1 in every published file.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"compression_ratio"})

    head_dim: Count | None = 128
    intermediate_size: Count
    tie_word_embeddings: Switch = True
    use_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.hidden_size
    attention = attention_of(config, bias=config.use_bias, output_bias=config.use_bias)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.use_bias)
    layers = (pre_norm_layer(attention, mlp, hidden=hidden),) * config.num_hidden_layers
    return decoder(config, family="ernie4_5", layers=layers)
