"""The text model of Muse Glimmer: a gate on the attention's output, four norms, windows and full layers.

Reference: ``MuseGlimmerTextModel`` of transformers. Norms of queries, keys and embeddings have no weights.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Layer, Part
from planner.blocks import gated_mlp, linear
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, norms, stack, windows

MODEL_TYPES = ("muse_glimmer_text",)

NORMS = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


class Config(Decoder):
    """Keys that decide the counts. Without ``layer_types`` every fourth layer is full, counted from the last."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"layer_rope_theta"})

    num_key_value_heads: Count
    head_dim: Count | None = 128
    intermediate_size: Count
    attention_bias: Switch = False
    sliding_window: Count | None = 2048
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    last = config.num_hidden_layers - 1
    usual = ["sliding_attention" if (last - number) % 4 else "full_attention" for number in range(last + 1)]
    sizes = windows(config, config.layer_types or usual, config.sliding_window)
    return decoder(config, family="muse_glimmer_text", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    hidden, bias = config.hidden_size, config.attention_bias
    width = config.num_attention_heads * config.head_size
    gate = linear("self_attn.gate_proj", inputs=hidden, outputs=width, part=Part.ATTENTION)
    attention = attention_of(config, bias=bias, output_bias=bias, window=window, extra=gate)
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    return Layer((attention, mlp), norms(NORMS, hidden))
