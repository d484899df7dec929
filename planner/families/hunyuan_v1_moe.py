"""Hunyuan models with experts (Hunyuan-A13B): every layer sparse, per-layer lists for what other families state once.

Reference: ``HunYuanMoEV1ForCausalLM`` of transformers, which takes ``intermediate_size`` for experts and shared MLP
alike; files state it a second time as ``moe_intermediate_size``, and a file where the two differ is refused.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import mixture_of_experts, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import active_experts, decoder, per_layer, stack
from planner.families.hunyuan_v1_dense import UNUSED_KEYS, HunyuanConfig, hunyuan_attention

MODEL_TYPES = ("hunyuan_v1_moe",)


class Config(HunyuanConfig):
    """Keys that decide the counts; a list has one entry a layer."""

    HARMLESS: ClassVar[frozenset[str]] = UNUSED_KEYS | {"attention_head_dim"}

    num_experts: Count | list[Count] = Field(validation_alias=either("num_experts", "num_local_experts"))
    moe_topk: Count | list[Count] = Field(validation_alias=either("moe_topk", "num_experts_per_tok"))
    moe_intermediate_size: Count | list[Count] | None = None
    num_shared_expert: CountOrZero | list[CountOrZero] = Field(default=1)
    use_mixed_mlp_moe: Switch = True


def read(config: Config) -> Architecture:
    """Layers that differ where the lists do."""
    widths = _spread(config, "moe_intermediate_size", config.moe_intermediate_size or config.intermediate_size)
    if set(widths) != {config.intermediate_size}:
        raise config.refusal("moe_intermediate_size", f"differs from intermediate_size = {config.intermediate_size:,}")
    kinds = zip(
        _spread(config, "num_experts", config.num_experts),
        _spread(config, "moe_topk", config.moe_topk),
        _spread(config, "num_shared_expert", config.num_shared_expert if config.use_mixed_mlp_moe else 0),
        strict=True,
    )
    return decoder(config, family="hunyuan_v1_moe", layers=stack(kinds, lambda kind: _layer(config, *kind)))


def _spread(config: Config, key: str, value: int | list[int]) -> list[int]:
    return list(per_layer(config, key, value)) if isinstance(value, list) else [value] * config.num_hidden_layers


def _layer(config: Config, experts: int, active: int, shared: int) -> Layer:
    moe = mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=experts,
        active=active_experts(config, "moe_topk", active, experts),
        shared_width=shared * config.intermediate_size,
        router_name="gate.wg",
        shared_name="shared_mlp",
    )
    return pre_norm_layer(hunyuan_attention(config), moe, hidden=config.hidden_size)
