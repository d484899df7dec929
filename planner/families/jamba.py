"""Jamba: Mamba-1 mixers with attention every few layers, experts every few layers.

Reference: ``JambaForCausalLM`` of transformers, names as in the published files. ``num_experts`` 1 means dense layers.
"""

from __future__ import annotations

from typing import Literal

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, StateSpace
from planner.blocks import gated_mlp, mixture_of_experts, norm
from planner.config import Count, CountOrZero, Switch
from planner.families._decoder import Decoder, active_experts, attention_of, decoder, norms, stack
from planner.families._mamba import needed, stated, step_rank
from planner.state_space_blocks import mamba_1

MODEL_TYPES = ("jamba",)


class Config(Decoder):
    """Keys that decide the counts; ``intermediate_size`` is the width of a dense block and of an expert."""

    intermediate_size: Count
    attn_layer_period: Count
    attn_layer_offset: CountOrZero
    num_experts: Count
    num_experts_per_tok: Count | None = None
    expert_layer_period: Count
    expert_layer_offset: CountOrZero
    mamba_d_state: Count
    mamba_d_conv: Count
    mamba_expand: Count
    mamba_dt_rank: Count | Literal["auto"] = "auto"
    mamba_conv_bias: Switch = True
    mamba_proj_bias: Switch = False
    mamba_inner_layernorms: Switch = True
    sliding_window: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their mixer and their feed-forward block."""
    stated(config, "num_key_value_heads")
    if not config.mamba_inner_layernorms:
        raise config.refusal("mamba_inner_layernorms", "is false, and the reference always has these norms")
    if config.sliding_window is not None:
        raise config.refusal("sliding_window", f"is {config.sliding_window}, and the reference has no windows")
    for kind in ("attn", "expert"):
        offset, period = getattr(config, f"{kind}_layer_offset"), getattr(config, f"{kind}_layer_period")
        if offset >= period:
            raise config.refusal(f"{kind}_layer_offset", f"is {offset}; it must be less than the period, {period}")
    kinds = [
        (
            number % config.attn_layer_period == config.attn_layer_offset,
            config.num_experts > 1 and number % config.expert_layer_period == config.expert_layer_offset,
        )
        for number in range(config.num_hidden_layers)
    ]
    return decoder(
        config,
        family="jamba",
        layers=stack(kinds, lambda kind: _layer(config, *kind)),
        outer=norm("model.final_layernorm", config.hidden_size),
    )


def _layer(config: Config, attends: bool, has_experts: bool) -> Layer:
    mixer: Attention | StateSpace = attention_of(config) if attends else _mamba(config)
    feed_forward: Mlp | Moe
    if has_experts:
        feed_forward = _experts(config)
    else:
        feed_forward = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, prefix="feed_forward")
    return Layer((mixer, feed_forward), norms(("input_layernorm", "pre_ff_layernorm"), config.hidden_size))


def _mamba(config: Config) -> StateSpace:
    return mamba_1(
        hidden=config.hidden_size,
        inner=config.mamba_expand * config.hidden_size,
        state=config.mamba_d_state,
        step_rank=step_rank(config.hidden_size, config.mamba_dt_rank),
        kernel=config.mamba_d_conv,
        convolution_bias=config.mamba_conv_bias,
        bias=config.mamba_proj_bias,
        norms=True,
        prefix="mamba",
    )


def _experts(config: Config) -> Moe:
    active = needed(config, "num_experts_per_tok", "experts")
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", active, config.num_experts),
        prefix="feed_forward",
        router_name="router",
    )
