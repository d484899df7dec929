"""Mixtral: Mistral's attention and a mixture of experts in every layer, each as wide as ``intermediate_size``.

Reference: ``MixtralConfig`` and ``MixtralForCausalLM`` of transformers.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from planner.architecture import Architecture, Moe
from planner.blocks import grouped_query_attention, mixture_of_experts, pre_norm_layer
from planner.config import Count, either
from planner.families._dense import DenseConfig, decoder, routed

MODEL_TYPES = ("mixtral",)

# Checkpoints number the matrices of an expert.
_MATRICES = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}


class Config(DenseConfig):
    """Keys that decide the counts of a Mixtral."""

    num_key_value_heads: Count | None = 8
    sliding_window: Count | None = None
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "num_experts"))
    num_experts_per_tok: Count


def block_sparse_moe(*, hidden: int, width: int, experts: int, active: int) -> Moe:
    """Mixtral's experts under the names of its checkpoints."""
    moe = mixture_of_experts(hidden=hidden, width=width, experts=experts, active=active, prefix="block_sparse_moe")
    weights = []
    for weight in moe.weights:
        path, _, name = weight.name.rpartition(".")
        weights.append(replace(weight, name=f"{path}.{_MATRICES.get(name, name)}"))
    return replace(moe, weights=tuple(weights))


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, experts = config.hidden_size, config.num_local_experts
    attention = grouped_query_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_size,
        window=config.sliding_window,
    )
    moe = block_sparse_moe(
        hidden=hidden,
        width=config.intermediate_size,
        experts=experts,
        active=routed(config, config.num_experts_per_tok, experts),
    )
    return decoder(
        config,
        family="mixtral",
        layers=(pre_norm_layer(attention, moe, hidden=hidden),) * config.num_hidden_layers,
    )
