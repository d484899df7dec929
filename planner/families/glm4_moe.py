"""GLM-4.5, 4.6 and 4.7 (``glm4_moe``) and the text part of GLM-4.5V: dense first layers, then sigmoid-routed experts.

Reference: ``Glm4MoeForCausalLM`` of transformers. The output projection has no bias even where ``attention_bias`` is
set. Draft module: one sparse layer, a projection of 2 h² and three norms, as counted in the published checkpoints
(358,337,791,296 elements of GLM-4.5, 356,785,898,816 of GLM-4.6).
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Component, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, linear, mixture_of_experts, pre_norm_layer, vector
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import (
    SparseDecoder,
    active_experts,
    as_draft,
    attention_of,
    decoder,
    sparse_layers,
    stack,
)

MODEL_TYPES = ("glm4_moe", "glm4v_moe_text")

DRAFT_NOTE = "some checkpoints of this family (GLM-4.5) repeat the embedding and the head inside the MTP module"


class Config(SparseDecoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    n_shared_experts: CountOrZero = 1
    first_k_dense_replace: CountOrZero = 1
    attention_bias: Switch = False
    use_qk_norm: Switch = False
    num_nextn_predict_layers: CountOrZero = Field(
        default=0, validation_alias=either("num_nextn_predict_layers", "num_mtp_layers")
    )


def read(config: Config) -> Architecture:
    """Dense layers first, sparse ones after."""
    if config.model_type == "glm4v_moe_text" and config.use_qk_norm:
        raise config.refusal("use_qk_norm", "is true, and the text model of GLM-4.5V has no such norms")
    if config.model_type == "glm4v_moe_text" and "attention_bias" not in config.model_fields_set:
        config = config.model_copy(update={"attention_bias": True})
    return sparse_glm(config, family="glm4_moe")


def sparse_glm(config: Config, *, family: str) -> Architecture:
    """The whole model, with its draft modules beside it."""
    sparse = sparse_layers(config, None, dense_first=config.first_k_dense_replace)
    drafts = config.num_nextn_predict_layers
    return decoder(
        config,
        family=family,
        layers=stack(sparse, lambda has_experts: _layer(config, has_experts)),
        components=draft_modules(config, _layer(config, True), first=config.num_hidden_layers, count=drafts),
        notes=(DRAFT_NOTE,) if drafts else (),
    )


def draft_modules(config: SparseDecoder, layer: Layer, *, first: int, count: int) -> tuple[Component, ...]:
    """``count`` further layers that each predict one more token; files number them on after the model's own."""
    hidden = config.hidden_size
    weights = linear("eh_proj", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    for name in ("enorm", "hnorm", "shared_head.norm"):
        weights += vector(name, hidden, Part.MTP)
    weights += as_draft(layer)
    return tuple(
        Component(f"MTP module (model.layers.{number})", weights, counted=False)
        for number in range(first, first + count)
    )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden = config.hidden_size
    attention = attention_of(config, bias=config.attention_bias, head_norms=config.use_qk_norm)
    block: Mlp | Moe = _experts(config) if has_experts else gated_mlp(hidden=hidden, width=config.intermediate_size)
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    experts = config.n_routed_experts
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, experts),
        correction_buffer=True,
        shared_width=config.n_shared_experts * config.moe_intermediate_size,
    )
