"""Falcon 7B, 40B, 180B, 11B and RW: fused multi-query or grouped attention, a plain MLP, one to two LayerNorms.

Reference: ``FalconConfig`` and ``FalconForCausalLM`` of transformers; ``RefinedWeb`` (40B) and ``RefinedWebModel``
(7B, RW) are the names under which they were first published.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Layer, Weight
from planner.blocks import embedding, lm_head, norm, plain_mlp
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import fused_attention, grouped

MODEL_TYPES = ("falcon", "RefinedWeb", "RefinedWebModel")


class Config(FamilyConfig):
    """Keys that decide the counts of a Falcon."""

    # A switch of the training framework (when a bias is added, not whether).
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"skip_bias_add", "skip_bias_add_qkv", "bias_dropout_fusion"})

    hidden_size: Count = Field(validation_alias=either("n_embed", "hidden_size"))
    num_hidden_layers: Layers = Field(validation_alias=either("num_hidden_layers", "n_layer"))
    num_attention_heads: Count = Field(validation_alias=either("num_attention_heads", "n_head"))
    num_kv_heads: Count | None = Field(default=None, validation_alias=either("num_kv_heads", "n_head_kv"))
    ffn_hidden_size: Count | None = None
    vocab_size: Count
    new_decoder_architecture: Switch | None = None
    multi_query: Switch = True
    parallel_attn: Switch = True
    num_ln_in_parallel_attn: Count | None = None
    bias: Switch = False
    tie_word_embeddings: Switch = True
    max_position_embeddings: Count = 2048

    @property
    def is_new(self) -> bool:
        """Whether this is the layout of the 40B model; its first files (``RefinedWeb``) do not say so."""
        if self.new_decoder_architecture is None:
            return self.model_type == "RefinedWeb"
        return self.new_decoder_architecture

    @property
    def kv_heads(self) -> int:
        """Key and value heads; ``num_kv_heads`` means something in the new layout only."""
        heads, given = self.num_attention_heads, self.num_kv_heads
        if self.is_new:
            return grouped(self, heads, given or heads, "num_kv_heads")
        if self.multi_query:
            return 1
        if given not in (None, heads):
            raise self.refusal("num_kv_heads", f"is {given} where multi_query is off and there are {heads} heads")
        return heads


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, heads, vocabulary = config.hidden_size, config.num_attention_heads, config.vocab_size
    attention = fused_attention(
        ("self_attention.query_key_value", "self_attention.dense"),
        hidden=hidden,
        heads=heads,
        kv_heads=config.kv_heads,
        head_dim=config.head_width(hidden, heads),
        bias=config.bias,
        output_bias=config.bias,
    )
    width = config.ffn_hidden_size or 4 * hidden
    mlp = plain_mlp(hidden=hidden, width=width, bias=config.bias, names=("dense_h_to_4h", "dense_4h_to_h"))
    return Architecture(
        family="falcon",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(Layer((attention, mlp), _norms(config)),) * config.num_hidden_layers,
        embedding=embedding("transformer.word_embeddings", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("transformer.ln_f", hidden, bias=True),
        max_context=config.max_position_embeddings,
        layer_names="transformer.h",
        dtype=config.dtype,
    )


def _norms(config: Config) -> tuple[Weight, ...]:
    """Two norms one after the other, two side by side (40B), or one for both blocks (7B, 11B)."""
    names: tuple[str, ...] = ("input_layernorm",)
    if not config.parallel_attn:
        names = ("input_layernorm", "post_attention_layernorm")
    elif (config.num_ln_in_parallel_attn or (2 if config.is_new else 1)) == 2:
        names = ("ln_attn", "ln_mlp")
    return tuple(weight for name in names for weight in norm(name, config.hidden_size, bias=True))
