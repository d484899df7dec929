"""Nemotron-NAS (DeciLM): Llama layers that a search thinned out, one by one.

Reference: the published ``modeling_decilm.py``; the width of a block is ``2 · ffn_mult · hidden / 3``, rounded up to
a multiple of 256.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Mlp, Part, Weight
from planner.blocks import embedding, gated_mlp, grouped_query_attention, linear, lm_head, norm
from planner.config import Count, Factor, FamilyConfig, Layers, Switch

MODEL_TYPES = ("nemotron-nas",)

MULTIPLE = 256


class AttentionChoice(FamilyConfig):
    """``block_configs[].attention``; ``replace_with_linear`` is one square matrix."""

    no_op: Switch = False
    replace_with_linear: Switch = False
    n_heads_in_group: Count | None = None
    window_length: Count | None = None
    num_sink_tokens: Count | None = None
    unshifted_sink: Switch = False
    use_prefill_window_in_sink_attention: Switch = False


class FeedForwardChoice(FamilyConfig):
    """``block_configs[].ffn``."""

    no_op: Switch = False
    replace_with_linear: Switch = False
    ffn_mult: Factor | None = Field(default=None, strict=True)
    intermediate_size: Count | None = None


class Config(FamilyConfig):
    """Keys that decide the counts; the numbers of kv heads and the widths stand in ``block_configs``."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "intermediate_size"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    head_dim: Count | None = None
    block_configs: list[dict[str, Any]]
    attention_bias: Switch = False
    mlp_bias: Switch = False
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """One layer per entry of ``block_configs``."""
    if len(config.block_configs) != config.num_hidden_layers:
        raise config.refusal(
            "block_configs", f"has {len(config.block_configs)} entries for {config.num_hidden_layers} layers"
        )
    return Architecture(
        family="nemotron_nas",
        model_type=config.model_type,
        hidden=config.hidden_size,
        vocabulary=config.vocab_size,
        layers=tuple(_layer(config, index, entry) for index, entry in enumerate(config.block_configs)),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=config.hidden_size),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=config.hidden_size, tied=config.tie_word_embeddings),
        outer=norm("model.norm", config.hidden_size),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _layer(config: Config, index: int, entry: Mapping[str, Any]) -> Layer:
    """A layer without attention or without a feed-forward block has no norm for it either."""
    path = f"block_configs[{index}]."
    attention = AttentionChoice.parse(entry.get("attention") or {}, source=config.source, prefix=f"{path}attention.")
    feed_forward = FeedForwardChoice.parse(entry.get("ffn") or {}, source=config.source, prefix=f"{path}ffn.")
    blocks: list[Attention | Mlp] = []
    norms: tuple[Weight, ...] = ()
    if not attention.no_op:
        blocks.append(_attention(config, attention))
        norms += norm("input_layernorm", config.hidden_size)
    if not feed_forward.no_op:
        blocks.append(_feed_forward(config, feed_forward))
        norms += norm("post_attention_layernorm", config.hidden_size)
    return Layer(tuple(blocks), norms)


def _square(config: Config, name: str, part: Part, *, bias: bool) -> Mlp:
    """One matrix in the place of a block. Whether it would take over the block's bias is not known."""
    if bias:
        raise config.refusal("block_configs", "replaces a block by a matrix, and the replaced block has biases")
    return Mlp(linear(name, inputs=config.hidden_size, outputs=config.hidden_size, part=part))


def _attention(config: Config, choice: AttentionChoice) -> Attention | Mlp:
    if choice.replace_with_linear:
        return _square(config, "self_attn.linear_attn", Part.ATTENTION, bias=config.attention_bias)
    heads, group = config.num_attention_heads, choice.n_heads_in_group
    if group is None:
        raise choice.refusal("n_heads_in_group", "is missing or null, and the block has attention")
    if heads % group:
        raise choice.refusal("n_heads_in_group", f"is {group} and does not divide the {heads} heads")
    if choice.num_sink_tokens is not None:
        raise choice.refusal("num_sink_tokens", "is set; which keys a query then attends is not known here")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=heads,
        kv_heads=heads // group,
        head_dim=config.head_dim or config.head_width(config.hidden_size, heads),
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        window=choice.window_length,
    )


def _feed_forward(config: Config, choice: FeedForwardChoice) -> Mlp:
    if choice.replace_with_linear:
        return _square(config, "mlp.linear_mlp", Part.MLP, bias=config.mlp_bias)
    return gated_mlp(hidden=config.hidden_size, width=_width(config, choice), bias=config.mlp_bias)


def _width(config: Config, choice: FeedForwardChoice) -> int:
    """The stated width, or the one that the multiplier gives."""
    if choice.intermediate_size is not None:
        return choice.intermediate_size
    if choice.ffn_mult is None:
        raise choice.refusal("ffn_mult", "is missing or null, and the block has a feed-forward block")
    exact = int(2 * choice.ffn_mult * config.hidden_size / 3)
    return -(-exact // MULTIPLE) * MULTIPLE
