"""Mellum 2: windows and full layers, experts in most layers, norms of queries and keys.

Reference: ``MellumForCausalLM`` of transformers, which leaves the MTP module of the checkpoint (``mtp``) out.
"""

from __future__ import annotations

from typing import ClassVar

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

MODEL_TYPES = ("mellum",)


class Config(SparseDecoder):
    """Keys that decide the counts."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"mtp_layer_types", "mtp_mlp_layer_types"})

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    moe_intermediate_size: Count
    num_experts: Count = Field(validation_alias=either("num_experts", "num_local_experts"))
    layer_types: list[str] | None = None
    mlp_layer_types: list[str] | None = None
    sliding_window: Count | None = 1024
    attention_bias: Switch = False
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )


def read(config: Config) -> Architecture:
    """Layers by kind of block and window."""
    kinds = config.layer_types or ["full_attention"] * config.num_hidden_layers
    sizes = windows(config, kinds, config.sliding_window)
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=0)
    return decoder(
        config,
        family="mellum",
        layers=stack(zip(sparse, sizes, strict=True), lambda kind: _layer(config, *kind)),
        unread=("MTP module (num_nextn_predict_layers)",) if config.num_nextn_predict_layers else (),
    )


def _layer(config: Config, has_experts: bool, window: int | None) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    attention = attention_of(config, bias=bias, output_bias=bias, head_norms=True, window=window)
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
    )
