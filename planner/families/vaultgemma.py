"""VaultGemma: Gemma 2 without the norms after the blocks.

Reference: ``VaultGemmaForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp
from planner.config import Count
from planner.families._decoder import decoder, norms, stack, windows
from planner.families._gemma import GemmaDecoder, attention_of
from planner.families._pattern import every

MODEL_TYPES = ("vaultgemma",)


class Config(GemmaDecoder):
    """Keys that decide the counts."""

    sliding_window: Count | None = 4096
    layer_types: list[str] | None = None


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    kinds = config.layer_types or every(2, config.num_hidden_layers)
    sizes = windows(config, kinds, config.sliding_window)
    return decoder(config, family="vaultgemma", layers=stack(sizes, lambda window: _layer(config, window)))


def _layer(config: Config, window: int | None) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    names = ("input_layernorm", "pre_feedforward_layernorm")
    return Layer((attention_of(config, window=window), mlp), norms(names, config.hidden_size))
