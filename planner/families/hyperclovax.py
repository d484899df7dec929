"""HyperCLOVA X: a Llama with multipliers and, unless switched off, a norm after each block too.

Reference: ``HyperCLOVAXForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, norms

MODEL_TYPES = ("hyperclovax",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    attention_bias: Switch = False
    mlp_bias: Switch = False
    use_post_norm: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, bias = config.hidden_size, config.attention_bias
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    after = ("post_norm1", "post_norm2") if config.use_post_norm else ()
    layer = Layer(
        (attention_of(config, bias=bias, output_bias=bias), mlp),
        norms(("input_layernorm", "post_attention_layernorm", *after), hidden),
    )
    return decoder(config, family="hyperclovax", layers=(layer,) * config.num_hidden_layers)
