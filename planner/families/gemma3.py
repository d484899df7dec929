"""Gemma 3 with pictures: a SigLIP tower, its patches pooled and projected, and a Gemma 3 text model.

Reference: ``Gemma3ForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Part, Weight
from planner.families._multimodal import Wrapper, around, text_model, vision_tower
from planner.vision_blocks import scale_norm

MODEL_TYPES = ("gemma3",)


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]


def read(config: Config) -> Architecture:
    """Text model, tower, and a matrix between them, stored with its inputs first."""
    text = text_model(config, model_type="gemma3_text")
    tower, component = vision_tower(
        config, config.vision_config, model_type="siglip_vision_model", whole={}, key="vision_config"
    )
    path, width = "multi_modal_projector", tower.hidden_size
    matrix = Weight(f"{path}.mm_input_projection_weight", (width, text.hidden), Part.VISION)
    projector = (matrix, *scale_norm(f"{path}.mm_soft_emb_norm", width))
    return around(
        config,
        text,
        family="gemma3",
        components=(component, Component("projector", projector)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )
