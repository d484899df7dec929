"""Phi-3.5-MoE and Phi-mini-MoE: Mixtral's experts between LayerNorms, biases on attention and output head.

Reference: ``PhimoeConfig`` and ``PhimoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import grouped_query_attention, pre_norm_layer
from planner.config import Count, Switch
from planner.families._dense import DenseConfig, decoder, routed
from planner.families.mixtral import block_sparse_moe

MODEL_TYPES = ("phimoe",)


class Config(DenseConfig):
    """Keys that decide the counts; ``intermediate_size`` is the width of one expert."""

    num_key_value_heads: Count
    sliding_window: Count | None = None
    num_local_experts: Count
    num_experts_per_tok: Count
    attention_bias: Switch = False
    lm_head_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, experts = config.hidden_size, config.num_local_experts
    attention = grouped_query_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        window=config.sliding_window,
    )
    moe = block_sparse_moe(
        hidden=hidden,
        width=config.intermediate_size,
        experts=experts,
        active=routed(config, config.num_experts_per_tok, experts),
    )
    layer = pre_norm_layer(attention, moe, hidden=hidden, norm_bias=True)
    return decoder(
        config,
        family="phimoe",
        layers=(layer,) * config.num_hidden_layers,
        norm_bias=True,
        has_head_bias=config.lm_head_bias,
    )
