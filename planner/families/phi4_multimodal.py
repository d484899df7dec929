"""Phi-4-multimodal: Phi-4-mini with a vision tower, an audio tower and two adapters.

Reference: ``Phi4MultimodalForCausalLM`` of transformers and ``Phi4MMForCausalLM`` of the model's own repository. Only
the text model is counted; towers and adapters are named as unread.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture
from planner.families._multimodal import FlatWrapper, around, text_model

MODEL_TYPES = ("phi4_multimodal", "phi4mm")

UNREAD = {
    "vision_config": "vision tower",
    "img_processor": "vision tower",
    "embd_layer": "projections of picture and sound",
    "audio_config": "audio tower",
    "audio_processor": "audio tower",
    "vision_lora": "vision adapter",
    "speech_lora": "speech adapter",
}


class Config(FlatWrapper):
    """Keys of the towers, one set per form of the file; the rest is Phi-3's."""

    vision_config: dict[str, Any] | None = None
    audio_config: dict[str, Any] | None = None
    img_processor: dict[str, Any] | None = None
    audio_processor: dict[str, Any] | None = None
    embd_layer: dict[str, Any] | None = None
    vision_lora: dict[str, Any] | None = None
    speech_lora: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """A Phi-3 with the rest named."""
    text = text_model(config, model_type="phi3", read_as=dict.fromkeys(MODEL_TYPES, "phi3"))
    named = tuple(f"{what} ({key})" for key, what in UNREAD.items() if getattr(config, key) is not None)
    return around(
        config,
        text,
        family="phi4_multimodal",
        components=(),
        layout=("model", "lm_head"),
        unread=named or ("vision tower and audio tower",),
    )
