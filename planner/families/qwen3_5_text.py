"""The text model of Qwen 3.5: three layers of a gated delta net to one of gated attention, an MLP behind each.

Reference: ``Qwen3_5ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture, Attention, StateSpace
from planner.blocks import gated_mlp
from planner.config import Count
from planner.families._decoder import FULL, decoder, stack
from planner.families._qwen_hybrid import (
    RECURRENT,
    HybridConfig,
    delta_net,
    draft_module,
    gated_attention,
    hybrid_layer,
    mixer_kinds,
)

MODEL_TYPES = ("qwen3_5_text",)


class Config(HybridConfig):
    """Keys that decide the counts."""

    intermediate_size: Count


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    mlp = gated_mlp(hidden=config.hidden_size, width=config.intermediate_size)
    mixers: dict[str, Attention | StateSpace] = {
        FULL: gated_attention(config),
        RECURRENT: delta_net(config, joined=False),
    }
    layers = stack(mixer_kinds(config), lambda kind: hybrid_layer(config, mixers[kind], mlp))
    return decoder(config, family="qwen3_5_text", layers=layers, components=draft_module(config, mlp))
