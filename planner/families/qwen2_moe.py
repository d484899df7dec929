"""Qwen 1.5 and 2 with experts: routed experts, one shared expert behind a gate, biases on query, key and value.

Reference: ``Qwen2MoeConfig`` and ``Qwen2MoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Mlp, Moe
from planner.blocks import gated_mlp, grouped_query_attention, mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._dense import decoder, routed, windows
from planner.families._qwen import MixtureConfig

MODEL_TYPES = ("qwen2_moe",)


class Config(MixtureConfig):
    """Keys that decide the counts of a Qwen 2 MoE."""

    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    shared_expert_intermediate_size: CountOrZero
    qkv_bias: Switch = True


def read(config: Config) -> Architecture:
    """With windows on, every second layer of the first ``max_window_layers`` slides."""
    hidden, window, last = config.hidden_size, config.window, config.window_layers
    feed_forward: dict[bool, Mlp | Moe] = {
        False: gated_mlp(hidden=hidden, width=config.intermediate_size),
        True: _experts(config),
    }
    attention = {each: _attention(config, each) for each in (None, window)}
    by_layer = windows(
        config,
        config.layer_types,
        layers=config.num_hidden_layers,
        window=window,
        slides=lambda index: index % 2 == 0 and index < last,
    )
    layers = (
        pre_norm_layer(attention[each], feed_forward[config.is_sparse(index)], hidden=hidden)
        for index, each in enumerate(by_layer)
    )
    return decoder(config, family="qwen2_moe", layers=layers, notes=config.attention_notes)


def _attention(config: Config, window: int | None) -> Attention:
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        bias=config.qkv_bias,
        window=window,
    )


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=routed(config, config.num_experts_per_tok, config.num_experts),
        shared_width=config.shared_expert_intermediate_size,
        shared_gate=True,
        shared_name="shared_expert",
    )
