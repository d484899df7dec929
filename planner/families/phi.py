"""Phi 1, 1.5 and 2: one norm before attention and MLP side by side, biases everywhere, on the output head too.

Reference: ``PhiConfig`` and ``PhiForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import grouped_query_attention, norm, plain_mlp
from planner.config import Switch
from planner.families._dense import DenseConfig, decoder

MODEL_TYPES = ("phi",)


class Config(DenseConfig):
    """Keys that decide the counts of a Phi."""

    qk_layernorm: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, head_dim = config.hidden_size, config.head_size
    norm_width = config.head_width(hidden, config.num_attention_heads)
    attention = grouped_query_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=head_dim,
        bias=True,
        output_bias=True,
        query_key_norm=(norm_width, norm_width) if config.qk_layernorm else None,
        norm_bias=True,
        names=("q_proj", "k_proj", "v_proj", "dense"),
        norm_names=("q_layernorm", "k_layernorm"),
    )
    mlp = plain_mlp(hidden=hidden, width=config.intermediate_size, bias=True, names=("fc1", "fc2"))
    return decoder(
        config,
        family="phi",
        layers=(Layer((attention, mlp), norm("input_layernorm", hidden, bias=True)),) * config.num_hidden_layers,
        final_norm="model.final_layernorm",
        norm_bias=True,
        has_head_bias=True,
    )
