"""Persimmon: one fused attention matrix, LayerNorms and biases everywhere, a two-matrix MLP.

Reference: ``PersimmonForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Weight
from planner.blocks import norm, plain_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, decoder, fused_attention

MODEL_TYPES = ("persimmon",)


class Config(Decoder):
    """Keys that decide the counts; every query head has its own keys and values."""

    intermediate_size: Count
    qk_layernorm: Switch = True


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    width = config.head_width(hidden, heads)
    if config.key_value_heads != heads:
        raise config.refusal(
            "num_key_value_heads", f"is {config.key_value_heads}, and there is one per query head here"
        )
    extra: tuple[Weight, ...] = ()
    if config.qk_layernorm:
        extra = norm("self_attn.q_layernorm", width, bias=True) + norm("self_attn.k_layernorm", width, bias=True)
    attention = fused_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=width,
        names=("self_attn.query_key_value", "self_attn.dense"),
        bias=True,
        output_bias=True,
        extra=extra,
    )
    names = ("dense_h_to_4h", "dense_4h_to_h")
    mlp = plain_mlp(hidden=hidden, width=config.intermediate_size, bias=True, names=names)
    layer = pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True)
    outer = norm("model.final_layernorm", hidden, bias=True)
    return decoder(config, family="persimmon", layers=(layer,) * config.num_hidden_layers, outer=outer)
