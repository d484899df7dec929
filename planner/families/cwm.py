"""CWM (Code World Model): a Llama where three of four layers slide.

Reference: ``CwmForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, stack, windows

MODEL_TYPES = ("cwm",)


class Config(Decoder):
    """Keys that decide the counts. Without ``layer_types`` every fourth layer is full, the first one included."""

    head_dim: Count | None = 128
    intermediate_size: Count
    mlp_bias: Switch = False
    sliding_window: Count | None = 8192
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    usual = ["sliding_attention" if number % 4 else "full_attention" for number in range(config.num_hidden_layers)]
    sizes = windows(config, config.layer_types or usual, config.sliding_window)
    return decoder(config, family="cwm", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, bias=config.mlp_bias)
    return pre_norm_layer(attention_of(config, window=window), mlp, hidden=config.hidden_size)
