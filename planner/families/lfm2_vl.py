"""LFM2-VL: a SigLIP 2 tower, a projector over merged patches, and an LFM2 text model.

Reference: ``Lfm2VlForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component
from planner.config import Count, Switch, either
from planner.families._multimodal import Wrapper, around, text_model, vision_tower
from planner.vision_blocks import layer_norm, projector

MODEL_TYPES = ("lfm2_vl",)


class Config(Wrapper):
    """Keys of the wrapper. The tiling keys say how many tokens a picture takes; the tie flag has two spellings."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"encoder_patch_size"})

    vision_config: dict[str, Any]
    tie_word_embeddings: Switch | None = Field(
        default=True, validation_alias=either("tie_embedding", "tie_word_embeddings")
    )
    downsample_factor: Count = 2
    projector_hidden_size: Count = 2560
    projector_bias: Switch = True
    projector_use_layernorm: Switch = True


def read(config: Config) -> Architecture:
    """Text model, tower, and a projector over ``downsample_factor``² patches side by side."""
    text = text_model(_without_inner_tie(config), model_type="lfm2")
    tower, component = vision_tower(
        config, config.vision_config, model_type="siglip2_vision_model", whole={}, key="vision_config"
    )
    path, merged = "model.multi_modal_projector", tower.hidden_size * config.downsample_factor**2
    found = layer_norm(f"{path}.layer_norm", merged) if config.projector_use_layernorm else ()
    found += projector(path, widths=(merged, config.projector_hidden_size, text.hidden), bias=config.projector_bias)
    return around(config, text, family="lfm2_vl", components=(component, Component("projector", found)), parts=(tower,))


def _without_inner_tie(config: Config) -> Config:
    """The wrapper's flag decides; LFM2 alone would give its own older spelling in the text config precedence."""
    inner = {key: value for key, value in config.text_config.items() if key != "tie_embedding"}
    return config.model_copy(update={"text_config": inner})
