"""SmolLM3: a tied Llama; some layers have no rotary positions, which changes no shape.

Reference: ``SmolLM3ForCausalLM`` of transformers. Windows apply only with ``use_sliding_window``.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, per_layer, stack, windows

MODEL_TYPES = ("smollm3",)


class Config(Decoder):
    """Keys that decide the counts. ``no_rope_layers``: 0 marks a layer without positions."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"no_rope_layer_interval", "sliding_window"})

    intermediate_size: Count
    tie_word_embeddings: Switch = True
    attention_bias: Switch = False
    mlp_bias: Switch = False
    use_sliding_window: Switch = False
    sliding_window: Count | None = None
    no_rope_layers: list[int] | None = None
    no_rope_layer_interval: Count = 4
    layer_types: list[str] | None = None

    def defaulted(self) -> tuple[str, ...]:
        """Without the interval, which matters only to windows."""
        return tuple(text for text in super().defaulted() if "interval" not in text or self.use_sliding_window)


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    return decoder(config, family="smollm3", layers=stack(_windows(config), lambda window: _layer(config, window)))


def _windows(config: Config) -> tuple[int | None, ...]:
    if not config.use_sliding_window or config.sliding_window is None:
        return (None,) * config.num_hidden_layers
    return windows(config, config.layer_types or _usual_kinds(config), config.sliding_window)


def _usual_kinds(config: Config) -> list[str]:
    """Layers without positions are the sliding ones."""
    count, interval = config.num_hidden_layers, config.no_rope_layer_interval
    rotated = config.no_rope_layers or [int((number + 1) % interval != 0) for number in range(count)]
    return [
        "full_attention" if has_positions else "sliding_attention"
        for has_positions in per_layer(config, "no_rope_layers", rotated)
    ]


def _layer(config: Config, window: int | None) -> Layer:
    attention = attention_of(config, bias=config.attention_bias, output_bias=config.attention_bias, window=window)
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, bias=config.mlp_bias)
    return pre_norm_layer(attention, mlp, hidden=config.hidden_size)
