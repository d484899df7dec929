"""Qwen2-Audio, Voxtral, Audio Flamingo 3 and Music Flamingo: Whisper's encoder in front of a text model.

Reference: ``Qwen2AudioForConditionalGeneration``, ``VoxtralForConditionalGeneration``,
``AudioFlamingo3ForConditionalGeneration`` and ``MusicFlamingoForConditionalGeneration`` of transformers. Voxtral lays
frames side by side, as many as make the width of the encoder's MLP.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component
from planner.config import Count, Layers, Switch, either
from planner.families._multimodal import CLASS_DEFAULTS, LLAMA, Piece, Wrapper, around, text_model
from planner.vision_blocks import matrix, projector, whisper_tower

MODEL_TYPES = ("qwen2_audio", "voxtral", "audioflamingo3", "musicflamingo")

# The wrapper's own defaults for its text, under those of a Llama.
VOXTRAL = LLAMA | {
    "vocab_size": 131072,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 30,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "head_dim": 128,
}


class Tower(Piece):
    """``Qwen2AudioEncoderConfig`` and ``VoxtralEncoderConfig``, one under Whisper's names of keys."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"encoder_layerdrop", "layerdrop"}

    hidden_size: Count = Field(default=1280, validation_alias=either("d_model", "hidden_size"))
    intermediate_size: Count = Field(default=5120, validation_alias=either("encoder_ffn_dim", "intermediate_size"))
    num_hidden_layers: Layers = Field(default=32, validation_alias=either("encoder_layers", "num_hidden_layers"))
    num_attention_heads: Count = Field(
        default=20, validation_alias=either("encoder_attention_heads", "num_attention_heads")
    )
    head_dim: Count | None = None
    num_key_value_heads: Count | None = None
    num_mel_bins: Count = 128
    max_source_positions: Count = 1500


class Config(Wrapper):
    """Keys of the wrappers; ``hidden_size`` and ``vocab_size`` at the top level repeat the text's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"hidden_size", "vocab_size"})

    audio_config: dict[str, Any]
    projector_bias: Switch = True


def read(config: Config) -> Architecture:
    """Text model, encoder, projector."""
    voxtral = config.model_type == "voxtral"
    text = text_model(
        config,
        model_type="llama" if voxtral else "qwen2",
        class_defaults={"llama": VOXTRAL} if voxtral else CLASS_DEFAULTS,
    )
    tower = Tower.parse(config.audio_config, source=config.source, prefix=f"{config.prefix}audio_config.")
    weights = whisper_tower(
        "audio_tower",
        hidden=tower.hidden_size,
        width=tower.intermediate_size,
        layers=tower.num_hidden_layers,
        mel_bins=tower.num_mel_bins,
        positions=tower.max_source_positions,
    )
    path = "multi_modal_projector"
    if voxtral:
        found = projector(path, widths=(tower.intermediate_size, text.hidden, text.hidden), bias=False)
    elif config.model_type != "qwen2_audio":
        found = projector(path, widths=(tower.hidden_size, text.hidden, text.hidden), bias=config.projector_bias)
    else:
        found = matrix(f"{path}.linear", inputs=tower.hidden_size, outputs=text.hidden)
    return around(
        config,
        text,
        family="audio_language",
        components=(Component("audio tower", weights), Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )
