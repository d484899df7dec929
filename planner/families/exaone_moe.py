"""K-EXAONE: EXAONE 4's attention, dense first layers, then routed and shared experts.

Reference: ``ExaoneMoeForCausalLM`` of transformers, which leaves the checkpoint's MTP module (``mtp``) out; it is one
dense layer, a projection of 2 h² and three norms, as the published total (237,099,669,632 elements) shows.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, linear, mixture_of_experts, pre_norm_layer, vector
from planner.config import Count, CountOrZero, either
from planner.families._decoder import (
    SparseDecoder,
    active_experts,
    as_draft,
    attention_of,
    decoder,
    sparse_layers,
    stack,
    windows,
)
from planner.families.exaone4 import layer_kinds

MODEL_TYPES = ("exaone_moe",)


class Config(SparseDecoder):
    """Keys that decide the counts."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"is_moe_layer"})

    intermediate_size: Count
    moe_intermediate_size: Count
    num_experts: Count
    num_shared_experts: CountOrZero = 1
    first_k_dense_replace: CountOrZero = 1
    mlp_layer_types: list[str] | None = None
    sliding_window: Count | None = 4096
    sliding_window_pattern: CountOrZero | str | None = None
    layer_types: list[str] | None = None
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )


def read(config: Config) -> Architecture:
    """Layers by kind of block and window."""
    kinds = layer_kinds(config, config.layer_types, config.sliding_window, config.sliding_window_pattern)
    sizes = windows(config, kinds, config.sliding_window)
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=config.first_k_dense_replace)
    return decoder(
        config,
        family="exaone_moe",
        layers=stack(zip(sparse, sizes, strict=True), lambda kind: _layer(config, *kind)),
        components=(_draft(config, config.num_nextn_predict_layers),) if config.num_nextn_predict_layers else (),
    )


def _layer(config: Config, has_experts: bool, window: int | None) -> Layer:
    attention = attention_of(config, head_norms=True, window=window)
    dense = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    block: Mlp | Moe = _experts(config) if has_experts else dense
    return pre_norm_layer(attention, block, hidden=config.hidden_size)


def _draft(config: Config, layers: int) -> Component:
    """However many layers it has, the projection and the norms around them exist once."""
    hidden = config.hidden_size
    weights = linear("mtp.fc", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        weights += vector(f"mtp.{name}", hidden, Part.MTP)
    return Component("MTP module (mtp)", weights + as_draft(_layer(config, False, None)) * layers, counted=False)


def _experts(config: Config) -> Moe:
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        correction_buffer=True,
        shared_width=config.num_shared_experts * config.moe_intermediate_size,
    )
