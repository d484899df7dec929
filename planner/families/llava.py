"""LLaVA and its kin: a CLIP, SigLIP or Pixtral tower, a projector, and a text model of its own dialect.

Reference: ``LlavaForConditionalGeneration``, ``LlavaNextForConditionalGeneration``,
``LlavaOnevisionForConditionalGeneration`` and ``VipLlavaForConditionalGeneration`` of transformers. Pixtral-12B and
Granite Vision are published in these dialects.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Weight
from planner.config import Switch
from planner.families._multimodal import CLASS_DEFAULTS, Wrapper, around, feature_layers, text_model, vision_tower
from planner.vision_blocks import layer_norm, projector, table

MODEL_TYPES = ("llava", "llava_next", "llava_next_video", "llava_onevision", "vipllava")

CLIP_LARGE = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
}
SIGLIP_SO400M = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 26,
    "num_attention_heads": 16,
    "image_size": 384,
    "patch_size": 14,
    "vision_use_head": False,
}


class Config(Wrapper):
    """Keys of the LLaVA wrappers; the resolution keys of the later ones say how many tokens a picture takes."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"vocab_size", "use_image_newline_parameter"})

    text_config: dict[str, Any] = Field(default_factory=dict)
    vision_config: dict[str, Any] | None = None
    vision_feature_layer: int | list[int] | None = None
    vision_feature_layers: int | list[int] | None = None
    multimodal_projector_bias: Switch = True


def read(config: Config) -> Architecture:
    """Text model, tower, projector, and the learned line break of the models that cut a picture into tiles."""
    one_vision = config.model_type == "llava_onevision"
    text = text_model(
        config, model_type="qwen2" if one_vision else "llama", class_defaults=CLASS_DEFAULTS, tied_by_either=True
    )
    tower, component = vision_tower(
        config,
        config.vision_config,
        model_type="siglip_vision_model" if one_vision else "clip_vision_model",
        whole=SIGLIP_SO400M if one_vision else CLIP_LARGE,
        key="vision_config",
    )
    found = _projector(config, tower.hidden_size, text.hidden)
    if config.model_type not in ("llava", "vipllava"):
        found += table("image_newline", text.hidden)
    return around(
        config,
        text,
        family="llava",
        components=(component, Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _projector(config: Config, hidden: int, text_hidden: int) -> tuple[Weight, ...]:
    path = "multi_modal_projector"
    layers = config.vision_feature_layer
    if layers is None:
        layers = config.vision_feature_layers
    if config.model_type == "vipllava":
        inputs = hidden * (5 if layers is None else feature_layers(layers))
        found = layer_norm(f"{path}.projector_layernorm", inputs)
        return found + projector(path, widths=(inputs, text_hidden, text_hidden))
    inputs = hidden * (1 if layers is None else feature_layers(layers))
    return projector(path, widths=(inputs, text_hidden, text_hidden), bias=config.multimodal_projector_bias)
