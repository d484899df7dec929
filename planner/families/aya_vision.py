"""Aya Vision and Command A Vision: a SigLIP tower, a gated projector over merged patches, and a Cohere 2 text model.

Reference: ``AyaVisionForConditionalGeneration`` and ``Cohere2VisionForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Weight
from planner.config import Count
from planner.families._multimodal import Wrapper, around, text_model, vision_tower
from planner.vision_blocks import layer_norm, matrix

MODEL_TYPES = ("aya_vision", "cohere2_vision")


class Config(Wrapper):
    """Keys of the wrapper; the projector of Aya is as wide as its text model where the file gives no width."""

    vision_config: dict[str, Any]
    downsample_factor: Count = 2
    alignment_intermediate_size: Count | None = None


def read(config: Config) -> Architecture:
    """Text model, tower and projector."""
    text = text_model(config, model_type="cohere2")
    tower, component = vision_tower(
        config, config.vision_config, model_type="siglip_vision_model", whole={}, key="vision_config"
    )
    projector = Component("projector", _projector(config, tower.hidden_size, text.hidden))
    aya = config.model_type == "aya_vision"
    return around(
        config,
        text,
        family="aya_vision",
        components=(component, projector),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head") if aya else ("model.language_model", "lm_head"),
    )


def _projector(config: Config, hidden: int, text_hidden: int) -> tuple[Weight, ...]:
    """Half of the first matrix's outputs gate the other half."""
    aya, path = config.model_type == "aya_vision", "multi_modal_projector"
    merged, width = hidden * config.downsample_factor**2, config.alignment_intermediate_size
    if width is None:
        if not aya:
            raise config.refusal("alignment_intermediate_size", "is missing or null")
        width = text_hidden
    return (
        (layer_norm(f"{path}.layernorm", merged) if aya else ())
        + matrix(f"{path}.linear_1", inputs=merged, outputs=width)
        + matrix(f"{path}.linear_2", inputs=width // 2, outputs=text_hidden)
    )
