"""MiMo-7B: a Qwen 2 with multi-token-prediction layers beside it.

Reference: ``MiMoForCausalLM`` of the published repositories (remote code) on top of transformers' Qwen 2.
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Architecture, Component, Part, Weight, layer_weights
from planner.blocks import linear, norm
from planner.config import CountOrZero
from planner.families import qwen2

MODEL_TYPES = ("mimo",)


class Config(qwen2.Config):
    """Keys that decide the counts of a MiMo."""

    num_nextn_predict_layers: CountOrZero = 0


def read(config: Config) -> Architecture:
    """The stack of a Qwen 2; one more layer of the same kind per prediction step."""
    text = qwen2.read(config, family="mimo")
    modules = tuple(
        Component(f"MTP layer {index}", _module(config, text, f"model.mtp_layers.{index}"), counted=False)
        for index in range(config.num_nextn_predict_layers)
    )
    return replace(text, components=modules)


def _module(config: Config, text: Architecture, path: str) -> tuple[Weight, ...]:
    """A layer, the projection of hidden state and embedding, and three norms."""
    hidden = config.hidden_size
    weights = layer_weights(text.layers[-1])
    weights += linear("input_proj", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    for name in ("token_layernorm", "hidden_layernorm", "final_layernorm"):
        weights += norm(name, hidden)
    return tuple(replace(weight, name=f"{path}.{weight.name}", part=Part.MTP) for weight in weights)
