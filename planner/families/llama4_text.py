"""The text model of Llama 4: chunked attention, every fourth layer full and without positions, experts in some layers.

Reference: ``Llama4ForCausalLM`` of transformers. ``intermediate_size`` is the width of an expert and of the shared
one, ``intermediate_size_mlp`` that of the layers without experts. The norms of queries and keys have no parameters.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part
from planner.blocks import (
    embedding,
    gated_mlp,
    grouped_query_attention,
    lm_head,
    mixture_of_experts,
    norm,
    pre_norm_layer,
)
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch

MODEL_TYPES = ("llama4_text",)

KINDS = ("chunked_attention", "full_attention")


class Config(FamilyConfig):
    """Keys that decide the counts; ``attention_chunk_size`` null means full attention everywhere."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"use_qk_norm"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = 128
    attention_bias: Switch = False
    attention_chunk_size: Count | None = 8192
    layer_types: list[str] | None = None
    no_rope_layers: list[CountOrZero] | None = None
    no_rope_layer_interval: Count = 4
    intermediate_size: Count
    intermediate_size_mlp: Count
    num_local_experts: Count
    num_experts_per_tok: Count
    moe_layers: list[CountOrZero] | None = None
    interleave_moe_layer_step: Count = 1
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their attention and their feed-forward block."""
    hidden, with_experts = config.hidden_size, _layers_with_experts(config)
    attention = {kind: _attention(config, kind) for kind in KINDS}
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size_mlp, prefix="feed_forward")
    experts = _experts(config)

    def layer(index: int, kind: str) -> Layer:
        block: Mlp | Moe = experts if index in with_experts else dense
        return pre_norm_layer(attention[kind], block, hidden=hidden)

    return Architecture(
        family="llama4_text",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(layer(index, kind) for index, kind in enumerate(_kinds(config))),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _kinds(config: Config) -> list[str]:
    """Chunked where positions are rotated; ``no_rope_layers`` holds 1 for such layers, whatever its name says."""
    count, interval = config.num_hidden_layers, config.no_rope_layer_interval
    rotated = config.no_rope_layers or [int((index + 1) % interval != 0) for index in range(count)]
    if len(rotated) != count:
        raise config.refusal("no_rope_layers", f"has {len(rotated)} entries for {count} layers")
    if config.layer_types is None:
        return [KINDS[0] if has and config.attention_chunk_size is not None else KINDS[1] for has in rotated]
    if len(config.layer_types) != count:
        raise config.refusal("layer_types", f"has {len(config.layer_types)} entries for {count} layers")
    for kind in config.layer_types:
        if kind not in KINDS:
            raise config.refusal("layer_types", f"names {kind!r}; known are {', '.join(KINDS)}")
    return config.layer_types


def _layers_with_experts(config: Config) -> frozenset[int]:
    count, step = config.num_hidden_layers, config.interleave_moe_layer_step
    listed = config.moe_layers if config.moe_layers is not None else range(step - 1, count, step)
    for index in listed:
        if index >= count:
            raise config.refusal("moe_layers", f"names layer {index}, and there are {count}")
    return frozenset(listed)


def _attention(config: Config, kind: str) -> Attention:
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads or config.num_attention_heads
    if heads % kv_heads:
        raise config.refusal("num_key_value_heads", f"is {kv_heads} and does not divide the {heads} heads")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=config.head_dim or config.head_width(config.hidden_size, heads),
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        chunk=config.attention_chunk_size if kind == "chunked_attention" else None,
    )


def _experts(config: Config) -> Moe:
    if config.num_experts_per_tok > config.num_local_experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {config.num_local_experts} experts")
    hidden, width = config.hidden_size, config.intermediate_size
    routed = mixture_of_experts(
        hidden=hidden,
        width=width,
        experts=config.num_local_experts,
        active=config.num_experts_per_tok,
        prefix="feed_forward",
        router_name="router",
    )
    shared = gated_mlp(hidden=hidden, width=width, prefix="feed_forward.shared_expert", part=Part.SHARED_EXPERTS)
    return Moe(routed.experts, routed.active, routed.weights + shared.weights)
