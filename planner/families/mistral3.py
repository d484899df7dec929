"""Mistral 3 with pictures: Pixtral's tower, a patch merger, and a Mistral or Ministral text model.

Reference: ``Mistral3ForConditionalGeneration`` of transformers, except for an absent tie flag: the class of
transformers 5 would tie the head, published files without the flag (Mistral-Small-3.1) hold a head of their own, so
the text's default decides. Ministral 3 3B states the flag inside its ``text_config``.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Switch
from planner.families._multimodal import Wrapper, around, feature_layers, text_model, vision_tower
from planner.vision_blocks import matrix, projector, scale_norm

MODEL_TYPES = ("mistral3",)


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]
    spatial_merge_size: Count = 2
    multimodal_projector_bias: Switch = False
    vision_feature_layer: int | list[int] = -1
    transformers_version: str | None = None


def read(config: Config) -> Architecture:
    """Text model, tower, and the projector with its patch merger."""
    text = text_model(config, model_type="mistral")
    tower, component = vision_tower(config, config.vision_config, model_type="pixtral", whole={}, key="vision_config")
    return around(
        config,
        text,
        family="mistral3",
        components=(component, Component("projector", _projector(config, tower.hidden_size, text.hidden))),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _projector(config: Config, hidden: int, text_hidden: int) -> tuple[Weight, ...]:
    path = "multi_modal_projector"
    merged = hidden * config.spatial_merge_size**2
    return (
        scale_norm(f"{path}.norm", hidden)
        + matrix(f"{path}.patch_merger.merging_layer", inputs=merged, outputs=hidden, bias=False)
        + projector(
            path,
            widths=(hidden * feature_layers(config.vision_feature_layer), text_hidden, text_hidden),
            bias=config.multimodal_projector_bias,
        )
    )
