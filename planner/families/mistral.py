"""Mistral 7B to Mistral Large, and Ministral 8B: Llama's layout with a sliding window on all, some or no layers.

Reference: ``MistralConfig`` and ``MinistralConfig`` of transformers. An absent window is the classes' 4096, ``null``
is none. Transformers' Mistral leaves a ``layer_types`` to the Ministral class; here both follow it, as vLLM does.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import gated_mlp, grouped_query_attention, pre_norm_layer
from planner.config import Count, either
from planner.families._dense import DenseConfig, decoder, windows

MODEL_TYPES = ("mistral", "ministral")


class Config(DenseConfig):
    """Keys that decide the counts of a Mistral; early files spell the window ``sliding_window_size``."""

    # MLC's streaming cache keeps the first tokens beside the window; neither the reference nor the weights know it.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"attention_sink_size"})

    num_key_value_heads: Count | None = 8
    sliding_window: Count | None = Field(default=4096, validation_alias=either("sliding_window", "sliding_window_size"))
    layer_types: list[str] | None = None


def read(config: Config, family: str = "mistral") -> Architecture:
    """A stack of layers that differ in their window only."""
    hidden = config.hidden_size
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    attention = {
        window: grouped_query_attention(
            hidden=hidden,
            heads=config.num_attention_heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_size,
            window=window,
        )
        for window in (None, config.sliding_window)
    }
    by_layer = windows(
        config,
        config.layer_types,
        layers=config.num_hidden_layers,
        window=config.sliding_window,
        slides=lambda _: True,
    )
    layers = (pre_norm_layer(attention[window], mlp, hidden=hidden) for window in by_layer)
    return decoder(config, family=family, layers=layers)
