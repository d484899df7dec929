"""Command A+: Cohere 2 with experts, behind a few dense layers with a pattern of their own.

Reference: ``Cohere2MoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Mlp, Moe
from planner.blocks import gated_mlp, mixture_of_experts
from planner.config import Count, CountOrZero
from planner.families._cohere import CohereDecoder, attention_of, parallel
from planner.families._decoder import active_experts, decoder, sparse_layers, stack, windows
from planner.families._pattern import every

MODEL_TYPES = ("cohere2_moe",)


class Config(CohereDecoder):
    """Keys that decide the counts; where the lists of layers are there, the patterns say nothing."""

    head_dim: Count = 128
    prefix_dense_intermediate_size: Count | None = None
    num_experts: Count
    num_experts_per_tok: Count
    num_shared_experts: CountOrZero = 0
    first_k_dense_replace: CountOrZero = 0
    mlp_layer_types: list[str] | None = None
    sliding_window: Count | None = 4096
    sliding_window_pattern: Count = 4
    prefix_dense_sliding_window_pattern: Count = 1
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers by window and feed-forward block."""
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=config.first_k_dense_replace)
    sizes = windows(config, config.layer_types or _usual(config), config.sliding_window)
    layers = stack(zip(sizes, sparse, strict=True), lambda kind: _layer(config, *kind))
    return decoder(config, family="cohere2_moe", layers=layers)


def _usual(config: Config) -> list[str]:
    dense = config.first_k_dense_replace
    first = every(config.prefix_dense_sliding_window_pattern, dense)
    return first + every(config.sliding_window_pattern, config.num_hidden_layers - dense)


def _layer(config: Config, window: int | None, sparse: bool) -> Layer:
    feed_forward = _experts(config) if sparse else _dense(config)
    return parallel(attention_of(config, window=window), feed_forward, hidden=config.hidden_size)


def _dense(config: Config) -> Mlp:
    if config.prefix_dense_intermediate_size is None:
        raise config.refusal("prefix_dense_intermediate_size", "is missing or null, and there are dense layers")
    return gated_mlp(hidden=config.hidden_size, width=config.prefix_dense_intermediate_size)


def _experts(config: Config) -> Moe:
    """Shared experts are one gated MLP of their common width."""
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.intermediate_size * config.num_shared_experts,
    )
