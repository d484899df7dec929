"""GPT-NeoX, Pythia, RedPajama-INCITE, Dolly 2: rotary positions, fused attention, LayerNorms, biases.

Reference: ``GPTNeoXConfig`` and ``GPTNeoXForCausalLM`` of transformers. Old checkpoints also hold causal masks and
rotary frequencies, which are no parameters and are not counted.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.blocks import embedding, lm_head, norm, plain_mlp, pre_norm_layer
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._dense import fused_attention

MODEL_TYPES = ("gpt_neox",)


class Config(FamilyConfig):
    """Keys that decide the counts of a GPT-NeoX."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    intermediate_size: Count
    vocab_size: Count
    tie_word_embeddings: Switch = False
    attention_bias: Switch = True
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """A stack of equal layers; the parallel residual keeps both norms."""
    hidden, heads, vocabulary = config.hidden_size, config.num_attention_heads, config.vocab_size
    attention = fused_attention(
        ("attention.query_key_value", "attention.dense"),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        bias=config.attention_bias,
        output_bias=config.attention_bias,
    )
    mlp = plain_mlp(hidden=hidden, width=config.intermediate_size, bias=True, names=("dense_h_to_4h", "dense_4h_to_h"))
    return Architecture(
        family="gpt_neox",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(pre_norm_layer(attention, mlp, hidden=hidden, norm_bias=True),) * config.num_hidden_layers,
        embedding=embedding("gpt_neox.embed_in", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings, name="embed_out"),
        outer=norm("gpt_neox.final_layer_norm", hidden, bias=True),
        max_context=config.max_position_embeddings,
        layer_names="gpt_neox.layers",
        dtype=config.dtype,
    )
