"""The text model of Qwen 3.5 with experts, in every layer, beside a gated shared one.

Reference: ``Qwen3_5MoeForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import ClassVar

from planner.architecture import Architecture, Attention, StateSpace
from planner.families._decoder import FULL, decoder, stack
from planner.families._qwen_hybrid import (
    RECURRENT,
    ExpertKeys,
    HybridConfig,
    delta_net,
    draft_module,
    experts_of,
    gated_attention,
    hybrid_layer,
    mixer_kinds,
)

MODEL_TYPES = ("qwen3_5_moe_text",)


class Config(HybridConfig, ExpertKeys):
    """Keys that decide the counts. No layer is dense, so ``intermediate_size`` is the width of nothing."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"intermediate_size"})


def read(config: Config) -> Architecture:
    """Layers by their mixer."""
    experts = experts_of(config, hidden=config.hidden_size)
    mixers: dict[str, Attention | StateSpace] = {
        FULL: gated_attention(config),
        RECURRENT: delta_net(config, joined=False),
    }
    layers = stack(mixer_kinds(config), lambda kind: hybrid_layer(config, mixers[kind], experts))
    return decoder(config, family="qwen3_5_moe_text", layers=layers, components=draft_module(config, experts))
