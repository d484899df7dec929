"""Qwen 3.5, dense and with experts: a hybrid text model and Qwen3-VL's tower, which feeds the first layer only.

Reference: ``Qwen3_5ForConditionalGeneration`` and ``Qwen3_5MoeForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component
from planner.families._multimodal import Wrapper, around, text_model
from planner.families.qwen3_vl import Tower as DeepTower

MODEL_TYPES = ("qwen3_5", "qwen3_5_moe")


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]


class Tower(DeepTower):
    """``Qwen3_5VisionConfig``: Qwen3-VL's tower without mergers for early layers."""

    deepstack_visual_indexes: tuple[int, ...] = ()


def read(config: Config) -> Architecture:
    """The text model with a tower."""
    text = text_model(config, model_type=f"{config.model_type}_text")
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    if tower.deepstack_visual_indexes:
        raise tower.refusal("deepstack_visual_indexes", "is set, and this family's tower feeds the first layer only")
    return around(
        config,
        text,
        family="qwen3_5",
        components=(Component("vision tower", tower.weights("model.visual")),),
        parts=(tower,),
    )
