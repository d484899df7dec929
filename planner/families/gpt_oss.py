"""gpt-oss: experts in every layer with a bias on every matrix, attention sinks, every other layer windowed.

Reference: ``GptOssForCausalLM`` of transformers. The published files stack the experts and join their two input
matrices (``experts.gate_up_proj``).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Moe, Part, Use
from planner.blocks import embedding, grouped_query_attention, linear, lm_head, norm, pre_norm_layer, vector
from planner.config import Count, FamilyConfig, Layers, Switch, either

MODEL_TYPES = ("gpt_oss",)

KINDS = ("sliding_attention", "full_attention")


class Config(FamilyConfig):
    """Keys that decide the counts; ``experts_per_token`` repeats the one that the class reads."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"experts_per_token"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = 64
    attention_bias: Switch = True
    intermediate_size: Count
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "num_experts"))
    num_experts_per_tok: Count
    sliding_window: Count | None = 128
    layer_types: list[str] | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their window."""
    hidden, experts = config.hidden_size, _experts(config)
    by_kind: dict[str, Layer] = {
        "sliding_attention": pre_norm_layer(_attention(config, config.sliding_window), experts, hidden=hidden),
        "full_attention": pre_norm_layer(_attention(config, None), experts, hidden=hidden),
    }
    return Architecture(
        family="gpt_oss",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(by_kind[kind] for kind in _kinds(config)),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _kinds(config: Config) -> list[str]:
    """Windowed and full in turn, windowed first, unless a list says otherwise."""
    count = config.num_hidden_layers
    kinds = config.layer_types if config.layer_types is not None else [KINDS[index % 2] for index in range(count)]
    if len(kinds) != count:
        raise config.refusal("layer_types", f"has {len(kinds)} entries for {count} layers")
    for kind in kinds:
        if kind not in KINDS:
            raise config.refusal("layer_types", f"names {kind!r}; known are {', '.join(KINDS)}")
    return kinds


def _attention(config: Config, window: int | None) -> Attention:
    """A sink per head takes part in the softmax, with neither key nor value."""
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
        window=window,
        extra=vector("self_attn.sinks", heads, Part.ATTENTION),
    )


def _experts(config: Config) -> Moe:
    hidden, width, experts = config.hidden_size, config.intermediate_size, config.num_local_experts
    if config.num_experts_per_tok > experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {experts} experts")
    weights = linear("mlp.router", inputs=hidden, outputs=experts, part=Part.ROUTER, bias=True)
    for name, inputs, outputs in (("gate_up_proj", hidden, 2 * width), ("down_proj", width, hidden)):
        weights += linear(
            f"mlp.experts.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            bias=True,
            use=Use.ROUTED,
            copies=experts,
        )
    return Moe(experts, config.num_experts_per_tok, weights)
