"""Nemotron, Minitron, Jais 2 and Arcee: two-matrix MLPs with a squared ReLU; LayerNorms with biases except in Arcee.

Reference: ``NemotronForCausalLM`` (LayerNorm1P: stored as a LayerNorm), ``Jais2ForCausalLM`` and ``ArceeForCausalLM``
of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture
from planner.blocks import norm, plain_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("nemotron", "jais2", "arcee")


class Config(Decoder):
    """Keys that decide the counts; absent bias switches mean biases in Jais 2 and none in the others."""

    # A LayerNorm1P always has a bias, the last one too.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"final_layernorm_bias"})

    intermediate_size: Count
    attention_bias: Switch | None = None
    mlp_bias: Switch | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, usual, norm_bias = config.hidden_size, config.model_type == "jais2", config.model_type != "arcee"
    bias = usual if config.attention_bias is None else config.attention_bias
    mlp_bias = usual if config.mlp_bias is None else config.mlp_bias
    attention = attention_of(config, bias=bias, output_bias=bias)
    mlp = plain_mlp(hidden=hidden, width=config.intermediate_size, bias=mlp_bias)
    layer = pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=norm_bias)
    outer = norm("model.norm", hidden, bias=norm_bias)
    return decoder(config, family="nemotron", layers=(layer,) * config.num_hidden_layers, outer=outer)
