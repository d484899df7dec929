"""DeepSeek-V3.2: V3 with a lightning indexer that picks the tokens which a query attends (DSA).

Reference: ``DeepseekV32ForCausalLM`` of transformers; the MTP modules as in the published files.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import pre_norm_layer
from planner.config import Count, CountOrZero
from planner.families._deepseek import (
    LatentConfig,
    check_layer_types,
    dense_of,
    experts_of,
    indexer,
    latent_of,
    layers_with_experts,
    prediction_modules,
    stack,
)

MODEL_TYPES = ("deepseek_v32",)

MTP_NOTE = "published files repeat the embedding and the head inside the MTP module; the copies are not counted"


class Config(LatentConfig):
    """Keys that decide the counts of a DeepSeek-V3.2; its queries come from a latent in any case."""

    q_lora_rank: Count = 1536
    index_topk: Count
    index_head_dim: Count
    index_n_heads: Count
    mlp_layer_types: list[str] | None = None
    layer_types: list[str] | None = None
    num_nextn_predict_layers: CountOrZero = 0


def read(config: Config) -> Architecture:
    """Every layer has an indexer; every MTP module holds a layer with experts."""
    check_layer_types(config, config.layer_types)
    hidden = config.hidden_size
    attention = latent_of(
        config,
        selected=config.index_topk,
        indexer_dim=config.index_head_dim,
        indexer_heads=config.index_n_heads,
        extra=indexer(
            hidden=hidden, query_rank=config.q_lora_rank, heads=config.index_n_heads, head_dim=config.index_head_dim
        ),
    )
    dense = pre_norm_layer(attention, dense_of(config), hidden=hidden)
    sparse = pre_norm_layer(attention, experts_of(config), hidden=hidden)
    modules = config.num_nextn_predict_layers
    return stack(
        config,
        tuple(sparse if has_experts else dense for has_experts in layers_with_experts(config, config.mlp_layer_types)),
        family="deepseek_v32",
        components=prediction_modules(sparse, count=modules, hidden=hidden, first=config.num_hidden_layers),
        notes=(MTP_NOTE,) if modules else (),
    )
