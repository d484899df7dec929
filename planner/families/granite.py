"""Granite dense models: a Llama with multipliers (which cost nothing), with or without windows and sinks.

Reference: ``GraniteForCausalLM`` and ``GraniteSWAForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Attention, Layer, Part
from planner.blocks import gated_mlp, pre_norm_layer, vector
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder, stack, windows

MODEL_TYPES = ("granite", "granite_swa")


class GraniteConfig(Decoder):
    """Keys that all Granite transformers share; window and layer kinds belong to the ``_swa`` types."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"layer_rope_theta"})

    intermediate_size: Count
    attention_bias: Switch = False
    sliding_window: Count | None = 128
    layer_types: list[str] | None = None

    @property
    def has_windows(self) -> bool:
        """Whether the type has sliding layers (and an attention sink a head)."""
        return self.model_type.endswith("_swa")

    def window_sizes(self) -> tuple[int | None, ...]:
        """Each layer's window; without a list every fourth layer is full, the first one included."""
        if not self.has_windows:
            return (None,) * self.num_hidden_layers
        usual = ["sliding_attention" if number % 4 else "full_attention" for number in range(self.num_hidden_layers)]
        return windows(self, usual if self.layer_types is None else self.layer_types, self.sliding_window)

    def defaulted(self) -> tuple[str, ...]:
        """Without the window where the type has none."""
        return tuple(text for text in super().defaulted() if self.has_windows or "sliding_window" not in text)


class Config(GraniteConfig):
    """Keys that decide the counts of a dense one."""

    mlp_bias: Switch = False


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    if config.has_windows and config.num_key_value_heads is None:
        raise config.refusal("num_key_value_heads", "is missing or null, and this type does not derive it")
    layers = stack(config.window_sizes(), lambda window: _layer(config, window))
    return decoder(config, family="granite", layers=layers)


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size, bias=config.mlp_bias)
    return pre_norm_layer(granite_attention(config, window), mlp, hidden=config.hidden_size)


def granite_attention(config: GraniteConfig, window: int | None) -> Attention:
    """Grouped-query attention, with one learned sink a head in the ``_swa`` types."""
    sinks = vector("self_attn.sinks", config.num_attention_heads, Part.ATTENTION)
    return attention_of(
        config,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        window=window,
        extra=sinks if config.has_windows else (),
    )
