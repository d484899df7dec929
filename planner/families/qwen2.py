"""Qwen 2 and 2.5 (and 1.5): Llama's layout with biases on query, key and value that no key announces.

Reference: ``Qwen2Config`` and ``Qwen2ForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Component
from planner.blocks import gated_mlp, grouped_query_attention, pre_norm_layer
from planner.families._dense import decoder, windows
from planner.families._qwen import WindowedConfig

MODEL_TYPES = ("qwen2",)


class Config(WindowedConfig):
    """Keys that decide the counts of a Qwen 2."""

    # The class has the biases whatever these say.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"attention_bias", "qkv_bias"})


def read(config: Config, family: str = "qwen2", components: tuple[Component, ...] = ()) -> Architecture:
    """Layers from ``max_window_layers`` on slide, where windows are on."""
    hidden, window, first = config.hidden_size, config.window, config.window_layers
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    attention = {
        each: grouped_query_attention(
            hidden=hidden,
            heads=config.num_attention_heads,
            kv_heads=config.kv_heads,
            head_dim=config.head_size,
            bias=True,
            window=each,
        )
        for each in (None, window)
    }
    by_layer = windows(
        config,
        config.layer_types,
        layers=config.num_hidden_layers,
        window=window,
        slides=lambda index: index >= first,
    )
    layers = (pre_norm_layer(attention[each], mlp, hidden=hidden) for each in by_layer)
    return decoder(config, family=family, layers=layers, components=components, notes=config.attention_notes)
