"""The text model of Ministral 3 and Devstral 2: a Mistral without a window unless the file sets one.

Reference: ``Ministral3Config`` and ``Ministral3ForCausalLM`` of transformers.
"""

from __future__ import annotations

from planner.architecture import Architecture
from planner.config import Count
from planner.families import mistral

MODEL_TYPES = ("ministral3",)


class Config(mistral.Config):
    """Keys that decide the counts of a Ministral 3."""

    head_dim: Count = 128
    sliding_window: Count | None = None


def read(config: Config) -> Architecture:
    """The layers of a Mistral."""
    return mistral.read(config, family="ministral3")
