"""T5Gemma: Gemma 2 as an encoder and, with cross-attention in every layer, as a decoder, each with its own embedding.

Reference: ``T5GemmaForConditionalGeneration`` of transformers. The head is tied to the decoder's embedding.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from planner.architecture import Architecture, Attention, CrossAttention, Layer, Mlp, Part, Weight
from planner.blocks import embedding, gated_mlp, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Switch
from planner.families._decoder import norms, stack, windows
from planner.families._gemma import GemmaDecoder, attention_of
from planner.families._pattern import every

MODEL_TYPES = ("t5gemma",)

AROUND = (
    "pre_self_attn_layernorm",
    "post_self_attn_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
AROUND_CROSS = ("pre_cross_attn_layernorm", "post_cross_attn_layernorm")


class Stack(GemmaDecoder):
    """Keys of the encoder or of the decoder; both hold a tie flag, the whole model's decides."""

    sliding_window: Count | None = 4096
    layer_types: list[str] | None = None


class Config(FamilyConfig):
    """Keys of the whole; the vocabulary is the decoder's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"vocab_size"})

    encoder: dict[str, Any]
    decoder: dict[str, Any]
    tie_word_embeddings: Switch = True


def read(config: Config) -> Architecture:
    """Two stacks of layers that differ in their window only."""
    encoder = Stack.parse(config.encoder, source=config.source, prefix=f"{config.prefix}encoder.")
    decoder = Stack.parse(config.decoder, source=config.source, prefix=f"{config.prefix}decoder.")
    hidden, vocabulary = decoder.hidden_size, decoder.vocab_size
    own = embedding("model.encoder.embed_tokens", rows=encoder.vocab_size, width=encoder.hidden_size)
    return Architecture(
        family="t5gemma",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=stack(_windows(decoder), lambda window: _decoder_layer(decoder, window, encoder.hidden_size)),
        embedding=embedding("model.decoder.embed_tokens", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings, name="lm_head.out_proj"),
        outer=(own, *norm("model.encoder.norm", encoder.hidden_size), *norm("model.decoder.norm", hidden)),
        encoder=stack(_windows(encoder), lambda window: _encoder_layer(encoder, window)),
        max_context=decoder.max_position_embeddings,
        layer_names="model.decoder.layers",
        encoder_names="model.encoder.layers",
        assumed=tuple(
            f"{part.prefix}{text} (absent in the config, the family's default)"
            for part in (encoder, decoder)
            for text in part.defaulted()
        ),
        dtype=config.dtype or decoder.dtype,
    )


def _windows(config: Stack) -> tuple[int | None, ...]:
    return windows(config, config.layer_types or every(2, config.num_hidden_layers), config.sliding_window)


def _mlp(config: Stack) -> Mlp:
    return gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)


def _encoder_layer(config: Stack, window: int | None) -> Layer:
    """An encoder's window reaches as far ahead as back."""
    reach = None if window is None else 2 * window + 1
    attention: Attention = replace(attention_of(config, window=reach), causal=False)
    return Layer((attention, _mlp(config)), norms(AROUND, config.hidden_size))


def _decoder_layer(config: Stack, window: int | None, memory: int) -> Layer:
    blocks = (attention_of(config, window=window), _cross_attention(config, memory), _mlp(config))
    return Layer(blocks, norms(AROUND + AROUND_CROSS, config.hidden_size))


def _cross_attention(config: Stack, memory: int) -> CrossAttention:
    """Queries and outputs of the decoder's width, keys and values from vectors of the encoder's."""
    width, hidden = config.head_dim, config.hidden_size
    queries, keys = config.num_attention_heads * width, config.key_value_heads * width

    def matrix(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        bias = config.attention_bias
        return linear(f"cross_attn.{name}", inputs=inputs, outputs=outputs, part=Part.ATTENTION, bias=bias)

    return CrossAttention(
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        key_dim=width,
        value_dim=width,
        weights=matrix("q_proj", hidden, queries) + matrix("o_proj", queries, hidden),
        memory_weights=matrix("k_proj", memory, keys) + matrix("v_proj", memory, keys),
    )
