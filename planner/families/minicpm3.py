"""MiniCPM3: latent attention in a dense model.

Reference: ``MiniCPM3ForCausalLM`` of transformers; the scales of embedding, depth and logits have no parameters.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture
from planner.blocks import embedding, gated_mlp, latent_attention, lm_head, norm, pre_norm_layer
from planner.config import Count, FamilyConfig, Layers, Switch

MODEL_TYPES = ("minicpm3",)


class Config(FamilyConfig):
    """Keys that decide the counts; ``v_head_dim`` absent is the hidden size over the heads. Tied unless said."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "head_dim", "qk_head_dim", "dim_model_base"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    q_lora_rank: Count | None = 768
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count | None = None
    attention_bias: Switch = False
    intermediate_size: Count
    mlp_bias: Switch = False
    vocab_size: Count
    tie_word_embeddings: Switch = True
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    attention = latent_attention(
        hidden=hidden,
        heads=heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim or config.head_width(hidden, heads),
        bias=config.attention_bias,
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias)
    return Architecture(
        family="minicpm3",
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
