"""T5, Flan-T5, mT5 and UMT5: encoder and decoder with relative positions, gated or plain MLPs, no biases.

Reference: ``T5ForConditionalGeneration`` and its kin in transformers, except for ``tie_word_embeddings: false``:
transformers 5 ties the head in an empty model whatever the file says, and unties it again when it loads a checkpoint
whose two matrices differ, as those of T5 1.1, Flan-T5 and mT5 do. Here the file's word counts.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Architecture, Attention, CrossAttention, Layer, Mlp, Part, Weight
from planner.blocks import embedding, gated_mlp, grouped_query_attention, linear, lm_head, norm, plain_mlp, vector
from planner.config import Count, FamilyConfig, Layers, Switch

MODEL_TYPES = ("t5", "mt5", "umt5")

_UNTIED = "the head is a matrix of its own, as the file says; transformers 5 counts it as tied in an empty model"


class Config(FamilyConfig):
    """Keys that decide the counts; T5 is plain and mT5 gated where ``feed_forward_proj`` is absent."""

    d_model: Count
    d_kv: Count
    d_ff: Count
    num_layers: Layers
    num_decoder_layers: Layers | None = None
    num_heads: Count
    vocab_size: Count
    relative_attention_num_buckets: Count = 32
    feed_forward_proj: str | None = None
    tie_word_embeddings: Switch = True

    @property
    def is_gated(self) -> bool:
        """Whether the MLP has two matrices before its activation."""
        given = self.feed_forward_proj
        return self.model_type != "t5" if given is None else given.startswith("gated-")


def read(config: Config) -> Architecture:
    """Two stacks of equal layers; relative positions set no limit to the context."""
    hidden, vocabulary = config.d_model, config.vocab_size
    decoders = config.num_decoder_layers or config.num_layers
    return Architecture(
        family="t5",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=tuple(_decoder_layer(config, index) for index in range(decoders)),
        embedding=embedding("shared", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("encoder.final_layer_norm", hidden) + norm("decoder.final_layer_norm", hidden),
        encoder=tuple(_encoder_layer(config, index) for index in range(config.num_layers)),
        layer_names="decoder.block",
        encoder_names="encoder.block",
        notes=() if config.tie_word_embeddings else (_UNTIED,),
        dtype=config.dtype,
    )


def _encoder_layer(config: Config, index: int) -> Layer:
    attention = replace(_self_attention(config, index), causal=False)
    norms = norm("layer.0.layer_norm", config.d_model) + norm("layer.1.layer_norm", config.d_model)
    return Layer((attention, _mlp(config, "layer.1.DenseReluDense")), norms)


def _decoder_layer(config: Config, index: int) -> Layer:
    norms: tuple[Weight, ...] = ()
    for part in range(3):
        norms += norm(f"layer.{part}.layer_norm", config.d_model)
    blocks = (_self_attention(config, index), _cross_attention(config), _mlp(config, "layer.2.DenseReluDense"))
    return Layer(blocks, norms)


def _self_attention(config: Config, index: int) -> Attention:
    """UMT5 has a table of relative positions in every layer, the others in the first of a stack."""
    table = (config.relative_attention_num_buckets, config.num_heads)
    has_table = index == 0 or config.model_type == "umt5"
    return grouped_query_attention(
        hidden=config.d_model,
        heads=config.num_heads,
        kv_heads=config.num_heads,
        head_dim=config.d_kv,
        prefix="layer.0.SelfAttention",
        names=("q", "k", "v", "o"),
        extra=vector("layer.0.SelfAttention.relative_attention_bias", table, Part.ATTENTION) if has_table else (),
    )


def _cross_attention(config: Config) -> CrossAttention:
    hidden, width, prefix = config.d_model, config.num_heads * config.d_kv, "layer.1.EncDecAttention"

    def matrix(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        return linear(f"{prefix}.{name}", inputs=inputs, outputs=outputs, part=Part.ATTENTION)

    return CrossAttention(
        heads=config.num_heads,
        kv_heads=config.num_heads,
        key_dim=config.d_kv,
        value_dim=config.d_kv,
        weights=matrix("q", hidden, width) + matrix("o", width, hidden),
        memory_weights=matrix("k", hidden, width) + matrix("v", hidden, width),
    )


def _mlp(config: Config, prefix: str) -> Mlp:
    if config.is_gated:
        return gated_mlp(hidden=config.d_model, width=config.d_ff, prefix=prefix, names=("wi_0", "wi_1", "wo"))
    return plain_mlp(hidden=config.d_model, width=config.d_ff, prefix=prefix, names=("wi", "wo"))
