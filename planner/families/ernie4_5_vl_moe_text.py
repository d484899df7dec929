"""The text model of ERNIE 4.5 VL: each sparse layer has experts for text and, unused by it, experts for pictures.

Reference: ``Ernie4_5_VLMoeTextModel`` of transformers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Layer, Mlp, Moe, Part, Use, Weight
from planner.blocks import gated_mlp, mixture_of_experts, pre_norm_layer, vector
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, per_layer, sparse_layers, stack

MODEL_TYPES = ("ernie4_5_vl_moe_text",)


class Config(Decoder):
    """Keys that decide the counts; lists hold the text's value and the pictures'."""

    # How tokens are routed, spread over devices and mixed in training.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {
            "compression_ratio",
            "moe_dense_experts_token_type_id",
            "moe_gate",
            "moe_group",
            "moe_layer_feed_fake_token",
            "moe_multimodal_dispatch_use_allgather",
            "moe_norm_min",
            "moe_use_aux_free",
            "moe_use_hard_gate",
            "moe_use_token_type_bias",
            "use_moe",
        }
    )

    num_key_value_heads: Count
    intermediate_size: Count
    moe_intermediate_size: list[Count] = Field(min_length=2, max_length=2)
    moe_num_experts: Count | list[Count] = Field(validation_alias=either("moe_num_experts", "num_experts"))
    moe_k: Count = Field(validation_alias=either("moe_k", "num_experts_per_tok"))
    moe_num_shared_experts: CountOrZero = 2
    moe_layer_start_index: CountOrZero | list[CountOrZero] | None = None
    moe_layer_end_index: CountOrZero | list[CountOrZero] | None = None
    moe_layer_interval: Count = 1
    mlp_layer_types: list[str] | None = None
    tie_word_embeddings: Switch = True
    use_bias: Switch = False
    num_nextn_predict_layers: CountOrZero = 0


def read(config: Config) -> Architecture:
    """Dense and sparse layers."""
    layers = stack(_sparse(config), lambda has_experts: _layer(config, has_experts))
    unread = ("MTP module (num_nextn_predict_layers)",) if config.num_nextn_predict_layers else ()
    return decoder(config, family="ernie4_5_vl_moe_text", layers=layers, unread=unread)


def _sparse(config: Config) -> tuple[bool, ...]:
    """By ``mlp_layer_types``, or as published: from the first index to the last, which may lie behind the model."""
    if config.mlp_layer_types is not None:
        return sparse_layers(config, per_layer(config, "mlp_layer_types", config.mlp_layer_types), dense_first=0)
    if config.moe_layer_interval != 1:
        raise config.refusal("moe_layer_interval", f"is {config.moe_layer_interval}; a published model has 1")
    count = config.num_hidden_layers
    first = _common(config, "moe_layer_start_index", config.moe_layer_start_index, 1)
    ends = config.moe_layer_end_index
    for end in ends if isinstance(ends, list) else [count if ends is None else ends]:
        if end < count - 1:
            raise config.refusal("moe_layer_end_index", f"is {end}; a published model has experts to its last layer")
    return sparse_layers(config, None, dense_first=first)


def _common(config: Config, key: str, value: int | list[int] | None, default: int) -> int:
    if isinstance(value, list):
        if len(set(value)) != 1:
            raise config.refusal(key, f"is {value}, and text and pictures share their sparse layers here")
        return value[0]
    return default if value is None else value


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden, bias = config.hidden_size, config.use_bias
    attention = attention_of(config, bias=bias, output_bias=bias)
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=bias)
    block: Mlp | Moe = _experts(config) if has_experts else dense
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    experts = _common(config, "moe_num_experts", config.moe_num_experts, 0)
    extra = _of_pictures(config, experts)
    if config.moe_num_shared_experts:
        extra += gated_mlp(
            hidden=config.hidden_size,
            width=config.moe_num_shared_experts * config.moe_intermediate_size[0],
            bias=config.use_bias,
            prefix="mlp.shared_experts",
            part=Part.SHARED_EXPERTS,
        ).weights
    return _one_set(config, experts, config.moe_intermediate_size[0], extra)


def _one_set(config: Config, experts: int, width: int, extra: tuple[Weight, ...] = ()) -> Moe:
    correction = vector("mlp.moe_statics.e_score_correction_bias", (1, experts), Part.ROUTER, is_bias=True)
    active = active_experts(config, "moe_k", config.moe_k, experts)
    return mixture_of_experts(
        hidden=config.hidden_size, width=width, experts=experts, active=active, extra=correction + extra
    )


def _of_pictures(config: Config, experts: int) -> tuple[Weight, ...]:
    """The pictures' router and experts: stored, and not touched by a token of text."""
    weights = _one_set(config, experts, config.moe_intermediate_size[1]).weights
    return tuple(replace(weight, use=Use.UNUSED) for weight in weights)
