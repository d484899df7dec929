"""GLM-4.7-Flash, A.X-K1 and the larger Sarvam: latent attention, dense first layers, then experts.

Reference: ``Glm4MoeLiteForCausalLM``, ``AXK1ForCausalLM`` (one more norm in sparse layers) and
``DeepseekV3ForCausalLM`` under ``SarvamMLAConfig`` of transformers. The draft module of GLM-4.7-Flash follows
GLM-4.5's.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, LatentAttention, Layer, Mlp, Moe
from planner.blocks import gated_mlp, latent_attention, mixture_of_experts, norm
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import Decoder, SparseDecoder, active_experts, decoder, norms, sparse_layers, stack
from planner.families.glm4_moe import draft_modules

MODEL_TYPES = ("glm4_moe_lite", "axk1", "sarvam_mla")


class LatentConfig(Decoder):
    """Keys of latent attention; the cached heads and a head width say nothing beside the latent's.

    A null ``q_lora_rank`` is a full query projection; a missing one is an error.
    """

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim", "q_head_dim"})

    q_lora_rank: Count | None = None
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    intermediate_size: Count
    attention_bias: Switch = False


class Config(LatentConfig, SparseDecoder):
    """Keys that decide the counts of a model with experts."""

    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_experts", "num_local_experts"))
    n_shared_experts: CountOrZero = Field(default=1, validation_alias=either("n_shared_experts", "num_shared_experts"))
    first_k_dense_replace: CountOrZero = 1
    mlp_layer_types: list[str] | None = None
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )


def read(config: Config) -> Architecture:
    """Dense layers first, sparse ones after."""
    sparse = sparse_layers(config, config.mlp_layer_types, dense_first=config.first_k_dense_replace)
    drafts, own_draft = config.num_nextn_predict_layers, config.model_type == "glm4_moe_lite"
    components = draft_modules(config, _layer(config, True), first=config.num_hidden_layers, count=drafts)
    return decoder(
        config,
        family="glm4_moe_lite",
        layers=stack(sparse, lambda has_experts: _layer(config, has_experts)),
        components=components if own_draft else (),
        unread=("MTP module (num_nextn_predict_layers)",) if drafts and not own_draft else (),
    )


def attention_of_latent(config: LatentConfig) -> LatentAttention:
    """Latent attention of the config's widths.

    Raises:
        PlanError: the rank of the queries is missing (Sarvam's class takes that for a full projection).
    """
    if "q_lora_rank" not in config.model_fields_set and config.model_type != "sarvam_mla":
        raise config.refusal("q_lora_rank", "is missing; null would mean a full query projection")
    return latent_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        bias=config.attention_bias,
    )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden = config.hidden_size
    block: Mlp | Moe = (
        latent_experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    )
    weights = norms(("input_layernorm", "post_attention_layernorm"), hidden)
    if has_experts and config.model_type == "axk1":
        weights += norm("post_mlp_layernorm", hidden)
    return Layer((attention_of_latent(config), block), weights)


def latent_experts(config: Config) -> Moe:
    """Routed and shared experts with a routing correction."""
    experts = config.n_routed_experts
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        correction_buffer=True,
        shared_width=config.n_shared_experts * config.moe_intermediate_size,
    )
