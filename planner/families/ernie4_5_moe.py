"""ERNIE 4.5 with experts: every n-th layer between two indices is sparse; the router's correction is a parameter.

Reference: ``Ernie4_5_MoeForCausalLM`` of transformers. The draft module is one dense layer, a projection of 2 h² and
two norms, as counted in the published checkpoint of ERNIE-4.5-21B-A3B (21,948,655,808 elements).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Layer, Mlp, Moe, Part
from planner.blocks import gated_mlp, linear, mixture_of_experts, norm, pre_norm_layer, vector
from planner.config import Count, CountOrZero, Switch, either
from planner.families._decoder import Decoder, active_experts, as_draft, attention_of, decoder, stack

MODEL_TYPES = ("ernie4_5_moe",)


class Config(Decoder):
    """Keys that decide the counts. ``moe_layer_end_index`` -1 is the last layer."""

    # How tokens are routed, not what they are routed to.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"moe_gate", "moe_use_aux_free", "moe_norm_min", "moe_group", "compression_ratio"}
    )

    intermediate_size: Count
    moe_intermediate_size: Count
    moe_num_experts: Count = Field(validation_alias=either("moe_num_experts", "num_experts"))
    moe_k: Count = Field(validation_alias=either("moe_k", "num_experts_per_tok"))
    moe_num_shared_experts: CountOrZero = 2
    moe_layer_start_index: CountOrZero = 1
    moe_layer_end_index: int = Field(default=-1, ge=-1)
    moe_layer_interval: Count = 1
    tie_word_embeddings: Switch = True
    use_bias: Switch = False
    num_nextn_predict_layers: CountOrZero = 0


def read(config: Config) -> Architecture:
    """Dense and sparse layers, and the draft modules beside them. The head has a bias of its own, even a tied one."""
    head_bias = vector("lm_head", config.vocab_size, Part.LM_HEAD, is_bias=True)
    return decoder(
        config,
        family="ernie4_5_moe",
        layers=stack(_sparse(config), lambda has_experts: _layer(config, has_experts)),
        outer=norm("model.norm", config.hidden_size) + (head_bias if config.use_bias else ()),
        components=tuple(_draft(config, number) for number in range(config.num_nextn_predict_layers)),
    )


def _sparse(config: Config) -> tuple[bool, ...]:
    last = config.num_hidden_layers - 1 if config.moe_layer_end_index == -1 else config.moe_layer_end_index
    return tuple(
        (number + 1) % config.moe_layer_interval == 0 and config.moe_layer_start_index <= number <= last
        for number in range(config.num_hidden_layers)
    )


def _layer(config: Config, has_experts: bool) -> Layer:
    hidden, bias = config.hidden_size, config.use_bias
    attention = attention_of(config, bias=bias, output_bias=bias)
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=bias)
    block: Mlp | Moe = _experts(config) if has_experts else dense
    return pre_norm_layer(attention, block, hidden=hidden)


def _experts(config: Config) -> Moe:
    """Biases, where there are any, are the shared expert's: routed experts have none."""
    hidden, experts = config.hidden_size, config.moe_num_experts
    extra = vector("mlp.moe_statics.e_score_correction_bias", (1, experts), Part.ROUTER, is_bias=True)
    if config.moe_num_shared_experts:
        extra += gated_mlp(
            hidden=hidden,
            width=config.moe_num_shared_experts * config.moe_intermediate_size,
            bias=config.use_bias,
            prefix="mlp.shared_experts",
            part=Part.SHARED_EXPERTS,
        ).weights
    return mixture_of_experts(
        hidden=hidden,
        width=config.moe_intermediate_size,
        experts=experts,
        active=active_experts(config, "moe_k", config.moe_k, experts),
        extra=extra,
    )


def _draft(config: Config, number: int) -> Component:
    hidden = config.hidden_size
    projection = f"model.mtp_linear_proj.{number}"
    weights = linear(projection, inputs=2 * hidden, outputs=hidden, part=Part.MTP, bias=config.use_bias)
    for name in ("mtp_emb_norm", "mtp_hidden_norm"):
        weights += vector(f"model.{name}.{number}", hidden, Part.MTP)
    weights += as_draft(_layer(config, False))
    return Component(f"MTP module (model.mtp_block.{number})", weights, counted=False)
