"""Command R7B and Command A: Cohere's layout with three sliding layers to one full one.

Reference: ``Cohere2ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count
from planner.families._cohere import CohereDecoder, attention_of, parallel
from planner.families._decoder import decoder, stack, windows
from planner.families._pattern import every

MODEL_TYPES = ("cohere2",)


class Config(CohereDecoder):
    """Keys that decide the counts; where ``layer_types`` is there, the pattern says nothing."""

    sliding_window: Count | None = 4096
    sliding_window_pattern: Count = 4
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    kinds = config.layer_types or every(config.sliding_window_pattern, config.num_hidden_layers)
    sizes = windows(config, kinds, config.sliding_window)
    return decoder(config, family="cohere2", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    return parallel(attention_of(config, window=window), mlp, hidden=config.hidden_size)
