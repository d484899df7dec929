"""OLMo 2, OLMo 3 and FlexOlmo: norms behind the blocks and over all heads' queries and keys together.

Reference: ``Olmo2ForCausalLM``, ``Olmo3ForCausalLM`` (three sliding layers to one full one) and
``FlexOlmoForCausalLM`` (experts for MLPs) of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe
from planner.blocks import gated_mlp, grouped_query_attention, mixture_of_experts
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder, active_experts, decoder, norms, stack, windows
from planner.families._pattern import every

MODEL_TYPES = ("olmo2", "olmo3", "flex_olmo")

BEHIND = ("post_attention_layernorm", "post_feedforward_layernorm")


class Config(Decoder):
    """Keys that decide the counts; OLMo 3 has windows, FlexOlmo experts, and none both."""

    intermediate_size: Count
    attention_bias: Switch = False
    sliding_window: Count | None = None
    layer_types: list[str] | None = None
    num_experts: Count | None = Field(default=None, validation_alias=either("num_experts", "num_local_experts"))
    num_experts_per_tok: Count | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    _refuse_others(config)
    sizes = _windows(config) if config.model_type == "olmo3" else (None,) * config.num_hidden_layers
    layers = stack(sizes, lambda window: _layer(config, window))
    return decoder(config, family="olmo2", layers=layers)


def _refuse_others(config: Config) -> None:
    """What the reference class of this type does not read."""
    keys = {"olmo3": ("sliding_window", "layer_types"), "flex_olmo": ("num_experts", "num_experts_per_tok")}
    for owner, names in keys.items():
        for name in names:
            if config.model_type != owner and getattr(config, name) is not None:
                raise config.refusal(name, f"is set, and {config.model_type} has no such part")


def _windows(config: Config) -> tuple[int | None, ...]:
    kinds = config.layer_types or every(4, config.num_hidden_layers)
    return windows(config, kinds, config.sliding_window)


def _layer(config: Config, window: int | None) -> Layer:
    feed_forward = _experts(config) if config.model_type == "flex_olmo" else _dense(config)
    return Layer(
        (olmo2_attention(config, window, bias=config.attention_bias), feed_forward), norms(BEHIND, config.hidden_size)
    )


def olmo2_attention(config: Decoder, window: int | None, *, bias: bool) -> Attention:
    """Grouped-query attention with one norm over all queries and one over all keys."""
    width, heads, kv_heads = config.head_size, config.num_attention_heads, config.key_value_heads
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=width,
        bias=bias,
        output_bias=bias,
        query_key_norm=(heads * width, kv_heads * width),
        window=window,
    )


def _dense(config: Config) -> Mlp:
    return gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)


def _experts(config: Config) -> Moe:
    for name in ("num_experts", "num_experts_per_tok"):
        if getattr(config, name) is None:
            raise config.refusal(name, "is missing or null")
    experts, active = config.num_experts or 0, config.num_experts_per_tok or 0
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.intermediate_size,
        experts=experts,
        active=active_experts(config, "num_experts_per_tok", active, experts),
    )
