"""PaliGemma and PaliGemma 2: a SigLIP tower, one linear layer, and a Gemma or Gemma 2 text model.

Reference: ``PaliGemmaForConditionalGeneration`` of transformers. Tokens of the prompt see each other, those of the
answer the earlier ones, so the text model's flag for two-way attention does not make it an encoder.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component
from planner.config import Count
from planner.families._multimodal import Wrapper, around, text_model, vision_tower
from planner.vision_blocks import projector

MODEL_TYPES = ("paligemma",)


class Config(Wrapper):
    """Keys of the wrapper; its own width and vocabulary repeat the text's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"hidden_size", "vocab_size"})

    vision_config: dict[str, Any]
    projection_dim: Count = 2048


def read(config: Config) -> Architecture:
    """Text model, tower, and the linear layer between them.

    Raises:
        PlanError: the linear layer does not end in the text model's width.
    """
    given = {key: value for key, value in config.text_config.items() if key != "use_bidirectional_attention"}
    text = text_model(config.model_copy(update={"text_config": given}), model_type="gemma")
    if config.projection_dim != text.hidden:
        raise config.refusal(
            "projection_dim", f"is {config.projection_dim}, and the text model takes vectors of {text.hidden}"
        )
    tower, component = vision_tower(
        config, config.vision_config, model_type="siglip_vision_model", whole={}, key="vision_config"
    )
    widths = (tower.hidden_size, config.projection_dim)
    linear = projector("multi_modal_projector", widths=widths, names=("linear",))
    return around(
        config,
        text,
        family="paligemma",
        components=(component, Component("projector", linear)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )
