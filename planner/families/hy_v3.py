"""Hunyuan 3 (Hy3): dense first layers, then routed and shared experts; norms of queries and keys.

Reference: ``HYV3ForCausalLM`` of transformers, which leaves the checkpoint's MTP layer out; that layer is built like
GLM-4.5's, as the published total (298,786,155,776 elements) shows.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Mlp, Moe, Part
from planner.blocks import buffer, gated_mlp, mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import SparseDecoder, active_experts, attention_of, decoder, sparse_layers, stack
from planner.families.glm4_moe import draft_modules

MODEL_TYPES = ("hy_v3",)


class Config(SparseDecoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    moe_intermediate_size: Count
    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    num_shared_experts: CountOrZero = 1
    first_k_dense_replace: CountOrZero = 1
    mlp_layer_types: list[str] | None = None
    attention_bias: Switch = False
    mlp_bias: Switch = False
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )


def read(config: Config) -> Architecture:
    """Dense layers first, sparse ones after."""
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=config.first_k_dense_replace)
    return decoder(
        config,
        family="hy_v3",
        layers=stack(sparse, lambda has_experts: _layer(config, has_experts)),
        components=draft_modules(
            config, _layer(config, True), first=config.num_hidden_layers, count=config.num_nextn_predict_layers
        ),
    )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    attention = attention_of(config, bias=bias, output_bias=bias, head_norms=True)
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    block: Mlp | Moe = _experts(config) if has_experts else dense
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    """Biases, where there are any, are the shared expert's: routed experts have none."""
    experts, hidden = config.num_experts, config.hidden_size
    extra = buffer("mlp.expert_bias", experts, Part.ROUTER)
    if config.num_shared_experts:
        extra += gated_mlp(
            hidden=hidden,
            width=config.num_shared_experts * config.moe_intermediate_size,
            bias=config.mlp_bias,
            prefix="mlp.shared_mlp",
            part=Part.SHARED_EXPERTS,
        ).weights
    return mixture_of_experts(
        hidden=hidden,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        router_name="router.gate",
        extra=extra,
    )
