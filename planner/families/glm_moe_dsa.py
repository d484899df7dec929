"""GLM-5: DeepSeek-V3.2's layout; from 5.2 on, some layers attend the tokens that an earlier layer's indexer picked.

Reference: ``GlmMoeDsaForCausalLM`` of transformers; the MTP modules as in the published files, which hold no copies.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, LatentAttention
from planner.blocks import pre_norm_layer
from planner.config import Count, CountOrZero, either
from planner.families._deepseek import (
    LatentConfig,
    check_layer_types,
    dense_of,
    experts_of,
    indexer,
    latent_of,
    layers_with_experts,
    listed,
    prediction_modules,
    stack,
)

MODEL_TYPES = ("glm_moe_dsa",)

PATTERN = {"F": "full", "S": "shared"}


class Config(LatentConfig):
    """Keys that decide the counts of a GLM-5; the class lets ``num_experts`` override ``n_routed_experts``."""

    HARMLESS: ClassVar[frozenset[str]] = LatentConfig.HARMLESS | {"index_share_for_mtp_iteration"}

    q_lora_rank: Count = 2048
    n_routed_experts: Count = Field(validation_alias=either("num_experts", "n_routed_experts", "num_local_experts"))
    index_topk: Count
    index_head_dim: Count
    index_n_heads: Count
    index_topk_freq: CountOrZero | None = None
    index_skip_topk_offset: CountOrZero | None = None
    index_topk_pattern: str | list[str] | None = None
    indexer_types: list[str] | None = None
    mlp_layer_types: list[str] | None = None
    layer_types: list[str] | None = None
    num_nextn_predict_layers: CountOrZero = 0


def read(config: Config) -> Architecture:
    """Layers by their indexer and their feed-forward block; every MTP module has an indexer and experts."""
    check_layer_types(config, config.layer_types)
    hidden = config.hidden_size
    attentions = {"full": _full(config), "shared": latent_of(config, selected=config.index_topk)}
    dense, experts = dense_of(config), experts_of(config)
    layers = tuple(
        pre_norm_layer(attentions[kind], experts if has_experts else dense, hidden=hidden)
        for kind, has_experts in zip(
            _indexers(config), layers_with_experts(config, config.mlp_layer_types), strict=True
        )
    )
    return stack(
        config,
        layers,
        family="glm_moe_dsa",
        components=prediction_modules(
            pre_norm_layer(attentions["full"], experts, hidden=hidden),
            count=config.num_nextn_predict_layers,
            hidden=hidden,
            first=config.num_hidden_layers,
        ),
    )


def _full(config: Config) -> LatentAttention:
    return latent_of(
        config,
        selected=config.index_topk,
        indexer_dim=config.index_head_dim,
        indexer_heads=config.index_n_heads,
        extra=indexer(
            hidden=config.hidden_size,
            query_rank=config.q_lora_rank,
            heads=config.index_n_heads,
            head_dim=config.index_head_dim,
        ),
    )


def _indexers(config: Config) -> tuple[str, ...]:
    """Per layer ``full`` (runs its indexer) or ``shared``: by a list, a pattern, or every so many layers."""
    count, pattern = config.num_hidden_layers, config.index_topk_pattern
    key, kinds = "indexer_types", config.indexer_types
    if kinds is None and pattern is not None:
        key = "index_topk_pattern"
        kinds = [PATTERN.get(letter, letter) for letter in pattern] if isinstance(pattern, str) else pattern
    if kinds is None:
        frequency = config.index_topk_freq or 1
        offset = 2 if config.index_skip_topk_offset is None else config.index_skip_topk_offset
        kinds = ["shared" if max(i - offset + 1, 0) % frequency else "full" for i in range(count)]
    if kinds[:1] == ["shared"]:
        raise config.refusal(key, "starts with a shared layer, which has no earlier indexer to take tokens from")
    return listed(config, key, kinds, known=("full", "shared"), count=count)
