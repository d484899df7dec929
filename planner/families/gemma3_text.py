"""Gemma 3's text model: norms on both sides of each block and on each head, every sixth layer full.

Reference: ``Gemma3ForCausalLM`` of transformers. Published multimodal files hold only the keys that differ from the
class's defaults, so heads, vocabulary, window and context of the class are part of them.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count, either
from planner.families._decoder import decoder, stack, windows
from planner.families._gemma import GemmaDecoder, attention_of, causal, sandwich
from planner.families._pattern import every

MODEL_TYPES = ("gemma3_text",)


class Config(GemmaDecoder):
    """Keys that decide the counts; where ``layer_types`` is there, the pattern says nothing."""

    num_attention_heads: Count = 8
    num_key_value_heads: Count = 4
    vocab_size: Count = 262_208
    max_position_embeddings: Count = 131_072
    sliding_window: Count | None = 4096
    sliding_window_pattern: Count = Field(
        default=6, validation_alias=either("sliding_window_pattern", "_sliding_window_pattern")
    )
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    causal(config)
    kinds = config.layer_types or every(config.sliding_window_pattern, config.num_hidden_layers)
    sizes = windows(config, kinds, config.sliding_window)
    return decoder(config, family="gemma3_text", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    return sandwich(attention_of(config, head_norms=True, window=window), mlp, hidden=config.hidden_size)
