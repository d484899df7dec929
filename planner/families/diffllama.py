"""DiffLlama: a Llama whose attention is the difference of two softmaxes, weighed by four learned vectors.

Reference: ``DiffLlamaForCausalLM`` of transformers; the group norm has no weights.
"""

from __future__ import annotations

from planner.architecture import Architecture, Part, Weight
from planner.blocks import gated_mlp, pre_norm_layer, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("diffllama",)


class Config(Decoder):
    """Keys that decide the counts."""

    intermediate_size: Count
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, bias = config.hidden_size, config.attention_bias
    if config.key_value_heads % 2:
        raise config.refusal("num_key_value_heads", f"is {config.key_value_heads}; values are split between two halves")
    learned: tuple[Weight, ...] = ()
    for name in ("lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"):
        learned += vector(f"self_attn.{name}", config.head_size, Part.ATTENTION)
    attention = attention_of(config, bias=bias, output_bias=bias, extra=learned)
    layer = pre_norm_layer(attention, gated_mlp(hidden=hidden, width=config.intermediate_size), hidden=hidden)
    return decoder(config, family="diffllama", layers=(layer,) * config.num_hidden_layers)
