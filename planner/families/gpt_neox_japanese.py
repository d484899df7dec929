"""GPT-NeoX Japanese: a GPT-NeoX without biases but for one on the last layer's attention output.

Reference: ``GPTNeoXJapaneseConfig`` and ``GPTNeoXJapaneseForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer, Part
from planner.blocks import embedding, lm_head, norm, plain_mlp, pre_norm_layer, vector
from planner.config import Count, Factor, FamilyConfig, Layers, Switch
from planner.families._dense import fused_attention

MODEL_TYPES = ("gpt_neox_japanese",)


class Config(FamilyConfig):
    """Keys that decide the counts; the MLP's width is a multiple of the hidden size."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    intermediate_multiple_size: Factor
    vocab_size: Count
    tie_word_embeddings: Switch = True
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Equal layers, and a last one with its bias."""
    hidden, vocabulary = config.hidden_size, config.vocab_size
    return Architecture(
        family="gpt_neox_japanese",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(_layer(config),) * (config.num_hidden_layers - 1) + (_layer(config, last=True),),
        embedding=embedding("gpt_neox_japanese.embed_in", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings, name="embed_out"),
        outer=norm("gpt_neox_japanese.final_layer_norm", hidden, bias=True),
        max_context=config.max_position_embeddings,
        layer_names="gpt_neox_japanese.layers",
        dtype=config.dtype,
    )


def _layer(config: Config, *, last: bool = False) -> Layer:
    hidden, heads = config.hidden_size, config.num_attention_heads
    attention = fused_attention(
        ("attention.query_key_value", "attention.dense"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        extra=vector("attention.dense_bias", hidden, Part.ATTENTION, is_bias=True) if last else (),
    )
    width = int(hidden * config.intermediate_multiple_size)
    mlp = plain_mlp(hidden=hidden, width=width, names=("dense_h_to_4h", "dense_4h_to_h"))
    return pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True)
