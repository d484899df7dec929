"""Laguna: query heads counted per layer, a gate on the attention's output, windows, experts beside a shared one.

Reference: ``LagunaForCausalLM`` of transformers, where the routing correction is a parameter.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, grouped_query_attention, linear, mixture_of_experts, pre_norm_layer, vector
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, active_experts, decoder, per_layer, sparse_layers, stack, windows

MODEL_TYPES = ("laguna",)


class Config(Decoder):
    """Keys that decide the counts. ``gating``: true or 'per-head' is one gate a head, anything else one an element."""

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    moe_intermediate_size: Count
    shared_expert_intermediate_size: CountOrZero = 512
    num_experts: Count
    num_experts_per_tok: Count
    num_attention_heads_per_layer: list[Count] | None = None
    layer_types: list[str] | None = None
    mlp_layer_types: list[str] | None = None
    sliding_window: Count | None = 512
    attention_bias: Switch = False
    gating: Switch | str = True
    moe_apply_router_weight_on_input: Switch = False


def read(config: Config) -> Architecture:
    """Layers by kind of block, window and number of heads."""
    count = config.num_hidden_layers
    heads = config.num_attention_heads_per_layer or [config.num_attention_heads] * count
    sizes = windows(config, config.layer_types or ["full_attention"] * count, config.sliding_window)
    kinds = zip(
        sparse_layers(config, config.mlp_layer_types, dense_first=1),
        sizes,
        per_layer(config, "num_attention_heads_per_layer", heads),
        strict=True,
    )
    return decoder(config, family="laguna", layers=stack(kinds, lambda kind: _layer(config, *kind)))


def _layer(config: Config, has_experts: bool, window: int | None, heads: int) -> Layer:
    hidden = config.hidden_size
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return pre_norm_layer(_attention(config, window, heads), block, hidden=hidden)


def _attention(config: Config, window: int | None, heads: int) -> Attention:
    if heads % config.num_key_value_heads:
        raise config.refusal(
            "num_key_value_heads", f"is {config.num_key_value_heads} and does not divide {heads} heads"
        )
    hidden, width = config.hidden_size, config.head_size
    gates = heads if config.gating in (True, "per-head") else heads * width
    return grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=config.num_key_value_heads,
        head_dim=width,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(width, width),
        window=window,
        extra=linear("self_attn.g_proj", inputs=hidden, outputs=gates, part=Part.ATTENTION),
    )


def _experts(config: Config) -> Moe:
    correction = vector("mlp.experts.e_score_correction_bias", config.num_experts, Part.ROUTER, is_bias=True)
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.shared_expert_intermediate_size,
        shared_name="shared_expert",
        extra=correction,
    )
