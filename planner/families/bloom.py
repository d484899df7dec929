"""BLOOM: ALiBi instead of positions, a norm on the embedding, fused attention, biases, a tied head.

Reference: ``BloomConfig`` and ``BloomForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import embedding, lm_head, norm, plain_mlp, pre_norm_layer
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import fused_attention

MODEL_TYPES = ("bloom",)


class Config(FamilyConfig):
    """Keys that decide the counts of a BLOOM; the MLP is four times as wide as the model."""

    # Switches of the training framework (when a bias is added, not whether).
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"skip_bias_add", "skip_bias_add_qkv", "bias_dropout_fusion"})

    hidden_size: Count = Field(validation_alias=either("n_embed", "hidden_size"))
    num_hidden_layers: Layers = Field(validation_alias=either("n_layer", "num_hidden_layers"))
    num_attention_heads: Count = Field(validation_alias=either("n_head", "num_attention_heads"))
    vocab_size: Count
    tie_word_embeddings: Switch = True
    seq_length: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads, vocabulary = config.hidden_size, config.num_attention_heads, config.vocab_size
    attention = fused_attention(
        ("self_attention.query_key_value", "self_attention.dense"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        bias=True,
        output_bias=True,
    )
    mlp = plain_mlp(hidden=hidden, width=4 * hidden, bias=True, names=("dense_h_to_4h", "dense_4h_to_h"))
    return Architecture(
        family="bloom",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True),) * config.num_hidden_layers,
        embedding=embedding("transformer.word_embeddings", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("transformer.word_embeddings_layernorm", hidden, bias=True)
        + norm("transformer.ln_f", hidden, bias=True),
        max_context=config.seq_length,
        layer_names="transformer.h",
        dtype=config.dtype,
    )
