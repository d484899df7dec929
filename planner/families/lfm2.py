"""LFM2: short convolutions, attention in some layers, and an MLP narrower than ``intermediate_size``.

Reference: ``Lfm2ForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import gated_mlp
from planner.config import Count, CountOrZero, Factor, Switch, either
from planner.families._decoder import FULL, stack
from planner.families._lfm2 import CONVOLUTION, MATRICES, Lfm2Config, lfm2_layer, lfm2_model, listed_kinds, mixers_of

MODEL_TYPES = ("lfm2",)


class Config(Lfm2Config):
    """Keys that decide the counts. ``block_ff_dim`` is what ``intermediate_size`` was; older files list attention."""

    # Liquid's own names for what hidden_size and num_attention_heads say; the reference looks at none of them.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {"block_dim", "conv_dim", "conv_dim_out", "conv_use_xavier_init", "num_heads"}
    )

    intermediate_size: Count = Field(validation_alias=either("block_ff_dim", "intermediate_size"))
    block_auto_adjust_ff_dim: Switch = True
    block_ffn_dim_multiplier: Factor | None = 1.0
    block_multiple_of: Count = 256
    full_attn_idxs: list[CountOrZero] | None = None


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    mixers = mixers_of(config)
    mlp = gated_mlp(hidden=config.hidden_size, width=_width(config), prefix="feed_forward", names=MATRICES)
    layers = stack(_kinds(config), lambda kind: lfm2_layer(config, mixers[kind], mlp))
    return lfm2_model(config, family="lfm2", layers=layers)


def _width(config: Config) -> int:
    """The MLP's width: adjusted, two thirds of the file's, times a factor, up to a whole multiple."""
    width = config.intermediate_size
    if not config.block_auto_adjust_ff_dim:
        return width
    width = 2 * width // 3
    if config.block_ffn_dim_multiplier is None:
        return width
    multiple = config.block_multiple_of
    return -(-int(config.block_ffn_dim_multiplier * width) // multiple) * multiple


def _kinds(config: Config) -> tuple[str, ...]:
    if config.layer_types is not None:
        return listed_kinds(config, config.layer_types)
    attention = config.full_attn_idxs
    if attention is None:
        raise config.refusal("layer_types", "is missing or null, and so is full_attn_idxs")
    if any(index >= config.num_hidden_layers for index in attention):
        raise config.refusal("full_attn_idxs", f"names a layer beyond the {config.num_hidden_layers} layers")
    return tuple(FULL if index in attention else CONVOLUTION for index in range(config.num_hidden_layers))
