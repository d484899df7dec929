"""BART, mBART, Pegasus and Marian: encoder and decoder with biases, LayerNorms and plain MLPs.

Reference: ``BartForConditionalGeneration`` and its kin in transformers. BART and mBART learn their positions (two rows
more than the context) and norm the embeddings; Pegasus and Marian compute them, so that a table in the file is no
parameter. mBART and Pegasus norm each stack's output. ``final_logits_bias`` is a buffer everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from planner.architecture import Architecture, Attention, CrossAttention, Layer, Part, Use, Weight
from planner.blocks import buffer, embedding, grouped_query_attention, linear, norm
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._dense import bare_mlp, positions

MODEL_TYPES = ("bart", "mbart", "pegasus", "marian")
_OFFSET = 2
_NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")


class Config(FamilyConfig):
    """Keys that decide the counts; each stack has its own depth, heads and width."""

    # Old spellings of what the class fixes, and a second name of ``encoder_layers``.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"num_hidden_layers", "encoder_layerdrop", "decoder_layerdrop", "add_bias_logits", "classif_dropout"}
    )

    d_model: Count
    encoder_layers: Layers
    encoder_attention_heads: Count
    encoder_ffn_dim: Count
    decoder_layers: Layers
    decoder_attention_heads: Count
    decoder_ffn_dim: Count
    vocab_size: Count
    decoder_vocab_size: Count | None = None
    share_encoder_decoder_embeddings: Switch = True
    max_position_embeddings: Count
    tie_word_embeddings: Switch = True

    @property
    def learned(self) -> bool:
        """Whether positions are learned and embeddings normed."""
        return self.model_type in ("bart", "mbart")

    @property
    def target_vocabulary(self) -> int:
        """Rows of the decoder's embedding."""
        target = self.decoder_vocab_size or self.vocab_size
        if target == self.vocab_size or (self.model_type == "marian" and not self.share_encoder_decoder_embeddings):
            return target
        raise self.refusal("decoder_vocab_size", f"is {target:,}, but both stacks share a table of {self.vocab_size:,}")


def read(config: Config) -> Architecture:
    """Two stacks of equal layers; the token embedding is shared unless a Marian says otherwise."""
    if not config.tie_word_embeddings:
        raise config.refusal("tie_word_embeddings", "is false; which of the four tables such a file holds is not known")
    hidden, target = config.d_model, config.target_vocabulary
    shared = config.share_encoder_decoder_embeddings or config.model_type != "marian"
    outer = _around(config, "encoder") + _around(config, "decoder")
    outer += buffer("final_logits_bias", target, Part.LM_HEAD)
    if not shared:
        outer += (embedding("model.encoder.embed_tokens", rows=config.vocab_size, width=hidden),)
    table = "model.shared" if shared else "model.decoder.embed_tokens"
    return Architecture(
        family="bart",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=target,
        layers=(_decoder_layer(config),) * config.decoder_layers,
        embedding=embedding(table, rows=target, width=hidden),
        lm_head=None,
        outer=outer,
        encoder=(_encoder_layer(config),) * config.encoder_layers,
        max_context=config.max_position_embeddings,
        layer_names="model.decoder.layers",
        encoder_names="model.encoder.layers",
        dtype=config.dtype,
    )


def _around(config: Config, stack: str) -> tuple[Weight, ...]:
    """What a stack has outside its layers."""
    hidden, rows, path = config.d_model, config.max_position_embeddings, f"model.{stack}"
    if config.learned:
        weights: tuple[Weight, ...] = (positions(f"{path}.embed_positions", rows=rows + _OFFSET, width=hidden),)
        weights += norm(f"{path}.layernorm_embedding", hidden, bias=True)
    else:
        weights = (Weight(f"{path}.embed_positions", (rows, hidden), Part.OTHER, Use.LOOKED_UP, buffer=True),)
    if config.model_type in ("mbart", "pegasus"):
        weights += norm(f"{path}.layer_norm", hidden, bias=True)
    return weights


def _encoder_layer(config: Config) -> Layer:
    attention = replace(_self_attention(config, config.encoder_attention_heads), causal=False)
    return Layer(
        (attention, bare_mlp(hidden=config.d_model, width=config.encoder_ffn_dim)), _norms(config, "self_attn", "final")
    )


def _decoder_layer(config: Config) -> Layer:
    heads = config.decoder_attention_heads
    mlp = bare_mlp(hidden=config.d_model, width=config.decoder_ffn_dim)
    blocks = (_self_attention(config, heads), _cross_attention(config, heads), mlp)
    return Layer(blocks, _norms(config, "self_attn", "encoder_attn", "final"))


def _norms(config: Config, *names: str) -> tuple[Weight, ...]:
    return tuple(w for name in names for w in norm(f"{name}_layer_norm", config.d_model, bias=True))


def _self_attention(config: Config, heads: int) -> Attention:
    return grouped_query_attention(
        hidden=config.d_model,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(config.d_model, heads),
        bias=True,
        output_bias=True,
        names=_NAMES,
    )


def _cross_attention(config: Config, heads: int) -> CrossAttention:
    head_dim = config.head_width(config.d_model, heads)

    def matrix(name: str) -> tuple[Weight, ...]:
        path, hidden = f"encoder_attn.{name}", config.d_model
        return linear(path, inputs=hidden, outputs=hidden, part=Part.ATTENTION, bias=True)

    query, key, value, output = (matrix(name) for name in _NAMES)
    return CrossAttention(heads, heads, head_dim, head_dim, weights=query + output, memory_weights=key + value)
