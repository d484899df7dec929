"""Llama and the many models that keep its layout: pre-norm, grouped-query attention, gated MLP, no surprises.

Reference: ``LlamaConfig`` and ``LlamaForCausalLM`` of transformers; the same layout under other names.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import embedding, gated_mlp, grouped_query_attention, lm_head, norm, pre_norm_layer
from planner.config import Count, FamilyConfig, Layers, Switch

MODEL_TYPES = ("llama",)


class Config(FamilyConfig):
    """Keys that decide the counts of a Llama."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    intermediate_size: Count
    vocab_size: Count
    tie_word_embeddings: Switch = False
    attention_bias: Switch = False
    mlp_bias: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=config.num_key_value_heads or heads,
        head_dim=config.head_dim or config.head_width(hidden, heads),
        bias=config.attention_bias,
        output_bias=config.attention_bias,
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    return Architecture(
        family="llama",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(pre_norm_layer(attention, mlp, hidden=hidden),) * config.num_hidden_layers,
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )
