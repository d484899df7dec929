"""Sarvam and Ling (Bailing) models with experts: fused attention, dense first layers, routed and shared experts.

Reference: ``modeling_bailing_moe.py`` and ``modeling_bailing_moe_v2.py`` of the published checkpoints of Ling
(16,801,974,272 elements of Ling-lite, 16,255,643,392 of Ling-mini-2.0), and ``Glm4MoeForCausalLM`` under
``SarvamMoEConfig`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part, Weight
from planner.blocks import buffer, gated_mlp, mixture_of_experts, norm, pre_norm_layer
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import SparseDecoder, active_experts, decoder, fused_attention, sparse_layers, stack

MODEL_TYPES = ("sarvam_moe", "bailing_moe", "bailing_moe_v2")


class Config(SparseDecoder):
    """Keys that decide the counts. Ling 1 has neither norms of queries and keys nor a routing correction."""

    # Two normalise the head's rows at load time; the window is off wherever it is stated.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"norm_head", "norm_softmax", "multi_gate", "sliding_window"})

    num_key_value_heads: Count
    head_dim: Count | None = None
    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("num_experts", "n_routed_experts"))
    n_shared_experts: CountOrZero = Field(validation_alias=either("num_shared_experts", "n_shared_experts"))
    moe_shared_expert_intermediate_size: CountOrZero | None = None
    first_k_dense_replace: CountOrZero
    attention_bias: Switch = Field(default=False, validation_alias=either("use_qkv_bias", "attention_bias"))
    use_bias: Switch = False
    use_qk_norm: Switch | None = None
    use_sliding_window: Switch = False
    moe_router_enable_expert_bias: Switch | None = None
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )

    @property
    def is_second(self) -> bool:
        """Whether absent switches mean yes: always in Sarvam, and in what calls itself version 2."""
        names = " ".join(self.architectures or ())
        return self.model_type != "bailing_moe" or "V2" in names


def read(config: Config) -> Architecture:
    """Dense layers first, sparse ones after."""
    _refuse_unknown(config)
    sparse = sparse_layers(config, None, dense_first=config.first_k_dense_replace)
    return decoder(
        config,
        family="bailing_moe",
        layers=stack(sparse, lambda has_experts: _layer(config, has_experts)),
        embedding_name="model.word_embeddings",
        unread=("MTP module (num_nextn_predict_layers)",) if config.num_nextn_predict_layers else (),
    )


def _refuse_unknown(config: Config) -> None:
    if config.use_bias:
        raise config.refusal("use_bias", "is true, and no published model shows which matrices then have biases")
    if config.use_sliding_window:
        raise config.refusal("use_sliding_window", "is true, and no published model shows which layers then slide")
    shared, one = config.moe_shared_expert_intermediate_size, config.moe_intermediate_size
    if shared and shared not in (one, one * config.n_shared_experts):
        raise config.refusal(
            "moe_shared_expert_intermediate_size",
            f"is {shared:,} and does not follow from moe_intermediate_size = {one:,}",
        )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden = config.hidden_size
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return pre_norm_layer(_attention(config), block, hidden=hidden)


def _attention(config: Config) -> Attention:
    has_norms = config.is_second if config.use_qk_norm is None else config.use_qk_norm
    width = config.head_size
    extra: tuple[Weight, ...] = ()
    if has_norms:
        extra = norm("attention.query_layernorm", width) + norm("attention.key_layernorm", width)
    return fused_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=width,
        names=("attention.query_key_value", "attention.dense"),
        bias=config.attention_bias,
        extra=extra,
    )


def _experts(config: Config) -> Moe:
    experts = config.n_routed_experts
    stated = config.moe_router_enable_expert_bias
    is_corrected = config.is_second if stated is None else stated
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        shared_width=config.n_shared_experts * config.moe_intermediate_size,
        extra=buffer("mlp.gate.expert_bias", experts, Part.ROUTER) if is_corrected else (),
    )
