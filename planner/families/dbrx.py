"""DBRX: joined query, key and value projection, experts in every layer, all without biases.

Reference: ``DbrxForCausalLM`` of transformers, whose files stack an expert matrix over all experts
(``ffn.experts.mlp.w1``).
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Attention, Layer, Moe, Part, Use
from planner.blocks import embedding, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch

MODEL_TYPES = ("dbrx",)


class AttentionConfig(FamilyConfig):
    """``attn_config``."""

    kv_n_heads: Count


class ExpertsConfig(FamilyConfig):
    """``ffn_config``; the class takes its hidden size from the model."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"hidden_size", "ffn_act_fn", "moe_normalize_expert_weights"})

    ffn_hidden_size: Count
    moe_num_experts: Count
    moe_top_k: Count


class Config(FamilyConfig):
    """Keys that decide the counts."""

    d_model: Count
    n_heads: Count
    n_layers: Layers
    max_seq_len: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    num_key_value_heads: Count | None = None
    attn_config: dict[str, object]
    ffn_config: dict[str, object]


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden = config.d_model
    if config.tie_word_embeddings:
        raise config.refusal("tie_word_embeddings", "is true, and the reference cannot tie DBRX's head")
    norms = norm("norm_attn_norm.norm_1", hidden) + norm("norm_attn_norm.norm_2", hidden)
    return Architecture(
        family="dbrx",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(Layer((_attention(config), _experts(config)), norms),) * config.n_layers,
        embedding=embedding("transformer.wte", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=False),
        outer=norm("transformer.norm_f", hidden),
        max_context=config.max_seq_len,
        layer_names="transformer.blocks",
        dtype=config.dtype,
    )


def _attention(config: Config) -> Attention:
    inner = AttentionConfig.parse(config.attn_config, source=config.source, prefix="attn_config.")
    hidden, heads, kv_heads = config.d_model, config.n_heads, inner.kv_n_heads
    if heads % kv_heads:
        raise inner.refusal("kv_n_heads", f"is {kv_heads} and does not divide the {heads} heads")
    if config.num_key_value_heads not in (None, kv_heads):
        raise config.refusal("num_key_value_heads", f"is {config.num_key_value_heads}, and attn_config says {kv_heads}")
    head_dim = config.head_width(hidden, heads)
    path = "norm_attn_norm.attn"
    weights = linear(f"{path}.Wqkv", inputs=hidden, outputs=hidden + 2 * kv_heads * head_dim, part=Part.ATTENTION)
    weights += linear(f"{path}.out_proj", inputs=hidden, outputs=hidden, part=Part.ATTENTION)
    return Attention(heads, kv_heads, head_dim, head_dim, weights)


def _experts(config: Config) -> Moe:
    inner = ExpertsConfig.parse(config.ffn_config, source=config.source, prefix="ffn_config.")
    hidden, width, experts = config.d_model, inner.ffn_hidden_size, inner.moe_num_experts
    if inner.moe_top_k > experts:
        raise inner.refusal("moe_top_k", f"exceeds the {experts} experts")
    weights = linear("ffn.router.layer", inputs=hidden, outputs=experts, part=Part.ROUTER)
    for name, inputs, outputs in (("w1", hidden, width), ("v1", hidden, width), ("w2", width, hidden)):
        weights += linear(
            f"ffn.experts.mlp.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            use=Use.ROUTED,
            copies=experts,
        )
    return Moe(experts, inner.moe_top_k, weights)
