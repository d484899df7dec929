"""Mistral 4 (the text of Mistral Small 4): latent attention and experts in every layer.

Reference: ``Mistral4ForCausalLM`` of transformers: DeepSeek-V3's layout without a correction bias of the router.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import (
    embedding,
    gated_mlp,
    latent_attention,
    lm_head,
    mixture_of_experts,
    norm,
    pre_norm_layer,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either

MODEL_TYPES = ("mistral4",)


class Config(FamilyConfig):
    """Keys that decide the counts; ``num_key_value_heads`` and ``head_dim`` say nothing beside the latent's."""

    HARMLESS = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    q_lora_rank: Count | None = 1024  # null: a full query projection
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    attention_bias: Switch = False
    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    num_experts_per_tok: Count
    n_shared_experts: CountOrZero
    first_k_dense_replace: CountOrZero = 0
    sliding_window: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Dense layers first, if any, then layers with experts."""
    if config.num_experts_per_tok > config.n_routed_experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {config.n_routed_experts} experts")
    if config.sliding_window is not None:
        raise config.refusal("sliding_window", "is set, and the reference's latent attention has no window")
    if config.first_k_dense_replace > config.num_hidden_layers:
        raise config.refusal("first_k_dense_replace", f"exceeds the {config.num_hidden_layers} layers")
    hidden, dense = config.hidden_size, config.first_k_dense_replace
    layers = (_layer(config, dense=True),) * dense
    layers += (_layer(config, dense=False),) * (config.num_hidden_layers - dense)
    return Architecture(
        family="mistral4",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=layers,
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _layer(config: Config, *, dense: bool) -> Layer:
    hidden = config.hidden_size
    attention = latent_attention(
        hidden=hidden,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
    )
    if dense:
        return pre_norm_layer(attention, gated_mlp(hidden=hidden, width=config.intermediate_size), hidden=hidden)
    experts = mixture_of_experts(
        hidden=hidden,
        width=config.moe_intermediate_size,
        experts=config.n_routed_experts,
        active=config.num_experts_per_tok,
        shared_width=config.moe_intermediate_size * config.n_shared_experts,
    )
    return pre_norm_layer(attention, experts, hidden=hidden)
