"""EXAONE 3 and 3.5: a Llama under GPT-2's names.

Reference: ``modeling_exaone.py`` of the published checkpoints; transformers reads it as a Llama.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp, norm
from planner.config import Count, Layers, Switch, either
from planner.families._decoder import Decoder, attention_of, decoder, norms

MODEL_TYPES = ("exaone",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_hidden_layers: Layers = Field(validation_alias=either("num_layers", "num_hidden_layers"))
    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, bias = config.hidden_size, config.attention_bias
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    attention = attention_of(config, bias=bias, output_bias=bias, prefix="attn.attention", names=names)
    mlp = gated_mlp(
        hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias, names=("c_fc_0", "c_fc_1", "c_proj")
    )
    return decoder(
        config,
        family="exaone",
        layers=(Layer((attention, mlp), norms(("ln_1", "ln_2"), hidden)),) * config.num_hidden_layers,
        outer=norm("transformer.ln_f", hidden),
        embedding_name="transformer.wte",
        layer_names="transformer.h",
    )
