"""dots.llm1: dense first layers, then routed and shared experts; norms of queries and keys.

Reference: ``Dots1ForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer, Mlp, Moe
from planner.blocks import gated_mlp, mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import (
    SparseDecoder,
    active_experts,
    attention_of,
    decoder,
    sparse_layers,
    stack,
    windows,
)

MODEL_TYPES = ("dots1",)


class Config(SparseDecoder):
    """Keys that decide the counts. Layers from ``max_window_layers`` on slide where there is a window."""

    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    n_shared_experts: CountOrZero
    first_k_dense_replace: CountOrZero = 0
    attention_bias: Switch = False
    sliding_window: Count | None = None
    max_window_layers: CountOrZero | None = None
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers by kind of block and window."""
    sizes = windows(config, config.layer_types or _usual_kinds(config), config.sliding_window)
    kinds = zip(sparse_layers(config, None, dense_first=config.first_k_dense_replace), sizes, strict=True)
    return decoder(config, family="dots1", layers=stack(kinds, lambda kind: _layer(config, *kind)))


def _usual_kinds(config: Config) -> list[str]:
    if config.sliding_window is not None and config.max_window_layers is None:
        raise config.refusal("max_window_layers", "is missing, and it says which layers the sliding_window applies to")
    first = config.num_hidden_layers if config.max_window_layers is None else config.max_window_layers
    slides = [config.sliding_window is not None and n >= first for n in range(config.num_hidden_layers)]
    return ["sliding_attention" if is_sliding else "full_attention" for is_sliding in slides]


def _layer(config: Config, has_experts: bool, window: int | None) -> Layer:
    attention = attention_of(
        config, bias=config.attention_bias, output_bias=config.attention_bias, head_norms=True, window=window
    )
    dense = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    block: Mlp | Moe = _experts(config) if has_experts else dense
    return pre_norm_layer(attention, block, hidden=config.hidden_size)


def _experts(config: Config) -> Moe:
    experts = config.n_routed_experts
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        correction_buffer=True,
        shared_width=config.n_shared_experts * config.moe_intermediate_size,
    )
