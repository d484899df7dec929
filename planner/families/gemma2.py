"""Gemma 2: norms on both sides of each block, every second layer slides, beginning with the first.

Reference: ``Gemma2ForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, either
from planner.families._decoder import decoder, stack, windows
from planner.families._gemma import GemmaDecoder, attention_of, causal, sandwich
from planner.families._pattern import every

MODEL_TYPES = ("gemma2",)


class Config(GemmaDecoder):
    """Keys that decide the counts; the window has a second spelling in the first published files."""

    sliding_window: Count | None = Field(default=4096, validation_alias=either("sliding_window", "sliding_window_size"))
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    causal(config)
    kinds = config.layer_types or every(2, config.num_hidden_layers)
    sizes = windows(config, kinds, config.sliding_window)
    return decoder(config, family="gemma2", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    return sandwich(attention_of(config, window=window), mlp, hidden=config.hidden_size)
