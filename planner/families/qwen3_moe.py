"""Qwen 3 with experts: Qwen 3's attention, routed experts without a shared one.

Reference: ``Qwen3MoeConfig`` and ``Qwen3MoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Mlp, Moe
from planner.blocks import gated_mlp, grouped_query_attention, mixture_of_experts, pre_norm_layer
from planner.config import Count, Switch, either
from planner.families._dense import decoder, routed, windows
from planner.families._qwen import MixtureConfig

MODEL_TYPES = ("qwen3_moe",)


class Config(MixtureConfig):
    """Keys that decide the counts of a Qwen 3 MoE."""

    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    attention_bias: Switch = False
    use_qk_norm: Switch = True


def read(config: Config) -> Architecture:
    """With windows on, every layer slides (there is no ``max_window_layers`` in the reference)."""
    if not config.use_qk_norm:
        raise config.refusal("use_qk_norm", "is false, and a Qwen 3 always has norms on queries and keys")
    hidden = config.hidden_size
    feed_forward: dict[bool, Mlp | Moe] = {
        False: gated_mlp(hidden=hidden, width=config.intermediate_size),
        True: _experts(config),
    }
    attention = {each: _attention(config, each) for each in (None, config.window)}
    by_layer = windows(
        config,
        config.layer_types,
        layers=config.num_hidden_layers,
        window=config.window,
        slides=lambda _: True,
    )
    layers = (
        pre_norm_layer(attention[each], feed_forward[config.is_sparse(index)], hidden=hidden)
        for index, each in enumerate(by_layer)
    )
    return decoder(config, family="qwen3_moe", layers=layers, notes=config.attention_notes)


def _attention(config: Config, window: int | None) -> Attention:
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(config.head_size, config.head_size),
        window=window,
    )


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=routed(config, config.num_experts_per_tok, config.num_experts),
    )
