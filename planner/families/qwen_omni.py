"""Qwen2.5-Omni and Qwen3-Omni: the thinker, which reads text, pictures and sound and writes text.

Reference: ``Qwen2_5OmniThinkerForConditionalGeneration`` and ``Qwen3OmniMoeThinkerForConditionalGeneration`` of
transformers. The talker and the vocoder behind it turn text into speech; a text request does not touch them, and they
are named as unread, not counted.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers, Switch, either
from planner.families import qwen2_vl, qwen3_vl
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import convolution, layer_norm, matrix, table, whisper_layers, whisper_tower

MODEL_TYPES = ("qwen2_5_omni", "qwen3_omni_moe")

TEXT_TYPES = {"qwen2_5_omni_text": "qwen2", "qwen3_omni_moe_text": "qwen3_moe"}
SPEECH = ("talker_config", "token2wav_config", "code2wav_config")


class Audio(Piece):
    """``Qwen2_5OmniAudioEncoderConfig`` and ``Qwen3OmniMoeAudioEncoderConfig``; windows change arithmetic only."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {
        "encoder_layerdrop",
        "n_window",
        "n_window_infer",
        "conv_chunksize",
        "num_hidden_layers",
        "max_source_positions",
    }

    d_model: Count = 1280
    encoder_ffn_dim: Count = 5120
    encoder_layers: Layers = 32
    encoder_attention_heads: Count = 20
    num_mel_bins: Count = 128
    output_dim: Count = 3584
    downsample_hidden_size: Count = 480


class Thinker(Wrapper):
    """Keys of ``thinker_config``."""

    vision_config: dict[str, Any]
    audio_config: dict[str, Any]


class Config(Wrapper):
    """Keys of the whole; the thinker holds the text's."""

    text_config: dict[str, Any] = Field(default_factory=dict)
    thinker_config: dict[str, Any]
    talker_config: dict[str, Any] | None = None
    token2wav_config: dict[str, Any] | None = None
    code2wav_config: dict[str, Any] | None = None
    enable_audio_output: Switch = True
    dtype: str | None = Field(default=None, validation_alias=either("dtype", "torch_dtype"))


def read(config: Config) -> Architecture:
    """The thinker: text model, vision tower, audio tower."""
    thinker = Thinker.parse(config.thinker_config, source=config.source, prefix="thinker_config.")
    third = config.model_type == "qwen3_omni_moe"
    text = text_model(thinker, model_type="qwen3_moe" if third else "qwen2", read_as=TEXT_TYPES)
    audio = Audio.parse(thinker.audio_config, source=config.source, prefix=f"{thinker.prefix}audio_config.")
    model: type[qwen2_vl.Tower25 | qwen3_vl.Tower] = qwen3_vl.Tower if third else qwen2_vl.Tower25
    tower = model.parse(thinker.vision_config, source=config.source, prefix=f"{thinker.prefix}vision_config.")
    if isinstance(tower, qwen3_vl.Tower):
        seen = tower.weights("thinker.visual", merger_names=("ln_q", "mlp.0", "mlp.2", "merger_list"))
    else:
        seen = tower.weights("thinker.visual")
    heard = _audio_third(audio) if third else _audio_second(audio)
    return around(
        config,
        text,
        family="qwen_omni",
        components=(Component("vision tower", seen), Component("audio tower", heard)),
        parts=(tower, audio),
        layout=("thinker.model", "thinker.lm_head"),
        unread=tuple(f"speech output ({key})" for key in SPEECH if getattr(config, key)),
    )


def _audio_second(config: Audio) -> tuple[Weight, ...]:
    path, hidden = "thinker.audio_tower", config.d_model
    return (
        whisper_tower(
            path,
            hidden=hidden,
            width=config.encoder_ffn_dim,
            layers=config.encoder_layers,
            mel_bins=config.num_mel_bins,
            positions=None,
            final_norm="ln_post",
        )
        + table(f"{path}.audio_bos_eos_token", 2, config.output_dim)
        + matrix(f"{path}.proj", inputs=hidden, outputs=config.output_dim)
    )


def _audio_third(config: Audio) -> tuple[Weight, ...]:
    """Three convolutions halve time and pitch each."""
    path, hidden, channels = "thinker.audio_tower", config.d_model, config.downsample_hidden_size
    bins = config.num_mel_bins
    found: tuple[Weight, ...] = ()
    for index, inputs in enumerate((1, channels, channels), start=1):
        found += convolution(f"{path}.conv2d{index}", channels=inputs, kernel=(3, 3), outputs=channels)
        bins = (bins + 1) // 2
    return (
        found
        + matrix(f"{path}.conv_out", inputs=channels * bins, outputs=hidden, bias=False)
        + whisper_layers(
            f"{path}.layers.*", hidden=hidden, width=config.encoder_ffn_dim, layers=config.encoder_layers, key_bias=True
        )
        + layer_norm(f"{path}.ln_post", hidden)
        + matrix(f"{path}.proj1", inputs=hidden, outputs=hidden)
        + matrix(f"{path}.proj2", inputs=hidden, outputs=config.output_dim)
    )
