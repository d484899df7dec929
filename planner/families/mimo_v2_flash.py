"""MiMo-V2-Flash: keys wider than values, windowed layers with sinks and more kv heads, experts.

Reference: ``MiMoV2FlashForCausalLM`` of transformers. Published configs describe the windowed layers by keys of
their own (``swa_num_key_value_heads``), which the reference replaces by fixed rules.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Moe, Part
from planner.blocks import (
    embedding,
    gated_mlp,
    grouped_query_attention,
    lm_head,
    mixture_of_experts,
    norm,
    pre_norm_layer,
    vector,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._deepseek import listed

MODEL_TYPES = ("mimo_v2_flash", "mimo_v2")

WINDOWED = "sliding_attention"
PERIOD = 6


class Config(FamilyConfig):
    """Keys that decide the counts."""

    # A chunk length of the published code's prefill; no layer attends in chunks.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"attention_chunk_size"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count
    head_dim: Count
    v_head_dim: Count
    swa_num_attention_heads: Count | None = None
    swa_num_key_value_heads: Count | None = None
    swa_head_dim: Count | None = None
    swa_v_head_dim: Count | None = None
    attention_bias: Switch = False
    add_swa_attention_sink_bias: Switch = True
    add_full_attention_sink_bias: Switch = False
    sliding_window: Count | None = None
    sliding_window_size: Count | None = None
    layer_types: list[str] | None = None
    hybrid_layer_pattern: list[CountOrZero] | None = None
    intermediate_size: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    num_experts_per_tok: Count
    n_shared_experts: CountOrZero | None = None
    moe_layer_freq: list[CountOrZero] | None = None
    mlp_layer_types: list[str] | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their window and their feed-forward block."""
    hidden = config.hidden_size
    dense, experts = gated_mlp(hidden=hidden, width=config.intermediate_size), _experts(config)
    layers: list[Layer] = []
    for kind, has_experts in zip(_kinds(config), _layers_with_experts(config), strict=True):
        layers.append(pre_norm_layer(_attention(config, kind), experts if has_experts else dense, hidden=hidden))
    return Architecture(
        family="mimo_v2_flash",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(layers),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _kinds(config: Config) -> tuple[str, ...]:
    """By a list, or full in the first layer and in every sixth."""
    count, kinds = config.num_hidden_layers, config.layer_types
    if kinds is None and config.hybrid_layer_pattern is not None:
        kinds = [WINDOWED if entry else "full_attention" for entry in config.hybrid_layer_pattern]
    if kinds is None:
        kinds = ["full_attention" if not i or not (i + 1) % PERIOD else WINDOWED for i in range(count)]
    return listed(config, "layer_types", kinds, known=(WINDOWED, "full_attention"), count=count)


def _layers_with_experts(config: Config) -> tuple[bool, ...]:
    """By a list, or in all layers but the first."""
    count, kinds = config.num_hidden_layers, config.mlp_layer_types
    if kinds is None and config.moe_layer_freq is not None:
        kinds = ["sparse" if entry else "dense" for entry in config.moe_layer_freq]
    if kinds is None:
        kinds = ["dense"] + ["sparse"] * (count - 1)
    names = listed(config, "mlp_layer_types", kinds, known=("dense", "sparse"), count=count)
    return tuple(name == "sparse" for name in names)


def _window(config: Config) -> int:
    """``sliding_window_size`` counts the keys before the query's own, ``sliding_window`` counts that too."""
    if config.sliding_window_size is not None:
        return config.sliding_window_size + 1
    if config.sliding_window is None:
        raise config.refusal("sliding_window", "is missing, and there are windowed layers")
    return config.sliding_window


def _attention(config: Config, kind: str) -> Attention:
    windowed = kind == WINDOWED
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    head_dim, value_dim = config.head_dim, config.v_head_dim
    has_sinks = config.add_full_attention_sink_bias
    if windowed:
        heads = config.swa_num_attention_heads or heads
        kv_heads = config.swa_num_key_value_heads or 2 * kv_heads
        head_dim, value_dim = config.swa_head_dim or head_dim, config.swa_v_head_dim or value_dim
        has_sinks = config.add_swa_attention_sink_bias
    if heads % kv_heads:
        raise config.refusal(
            "num_key_value_heads", f"is {kv_heads} in a layer of {heads} heads and does not divide them"
        )
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=value_dim,
        bias=config.attention_bias,
        window=_window(config) if windowed else None,
        extra=vector("self_attn.attention_sink_bias", heads, Part.ATTENTION) if has_sinks else (),
    )


def _experts(config: Config) -> Moe:
    if config.num_experts_per_tok > config.n_routed_experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {config.n_routed_experts} experts")
    if config.n_shared_experts:
        raise config.refusal("n_shared_experts", f"is {config.n_shared_experts}, and the reference has none")
    return mixture_of_experts(
        hidden=config.hidden_size,
        width=config.moe_intermediate_size,
        experts=config.n_routed_experts,
        active=config.num_experts_per_tok,
        correction_buffer=True,
    )
