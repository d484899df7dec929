"""Gemma 3n: a MobileNet tower for pictures, a Conformer for sound, and a Gemma 3n text model.

Reference: ``Gemma3nForConditionalGeneration`` of transformers; the picture tower is ``mobilenetv5_300m_enc`` of timm,
which the file only names.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.architecture import Architecture, Component, Part, Weight
from planner.config import Count, Layers
from planner.families._mobilenet import MOBILENET_V5_300M, mobilenet_v5
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import convolution, matrix, scale_norm, separate_attention, table

MODEL_TYPES = ("gemma3n",)


class Picture(Piece):
    """Keys of ``gemma3n_vision``. The widths of the tower itself follow from its name."""

    HARMLESS = Piece.HARMLESS | {"vocab_offset", "num_classes", "label_names"}

    architecture: str = "mobilenetv5_300m_enc"
    model_args: dict[str, Any] | None = None
    hidden_size: Count = 2048
    vocab_size: Count = 128


class Sound(Piece):
    """Keys of ``gemma3n_audio``. How far a frame sees (chunk and context) changes no weight."""

    HARMLESS = Piece.HARMLESS | {"conf_attention_chunk_size", "conf_positional_bias_size", "vocab_offset"}

    hidden_size: Count = 1536
    vocab_size: Count = 128
    input_feat_size: Count = 128
    conf_num_hidden_layers: Layers = 12
    conf_num_attention_heads: Count = 8
    conf_conv_kernel_size: Count = 5
    sscp_conv_channel_size: list[Count] = Field(default=[128, 32], min_length=2, max_length=2)
    sscp_conv_kernel_size: list[list[Count]] = Field(default=[[3, 3], [3, 3]], min_length=2, max_length=2)
    sscp_conv_stride_size: list[list[Count]] = Field(default=[[2, 2], [2, 2]], min_length=2, max_length=2)


class Config(Wrapper):
    """Keys of the wrapper; a file without towers' configs has the published towers."""

    vision_config: dict[str, Any] = Field(default={})
    audio_config: dict[str, Any] = Field(default={})


def read(config: Config) -> Architecture:
    """Text model and both towers, each with the matrix that leads into the text model."""
    text = text_model(config, model_type="gemma3n_text")
    picture = Picture.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    sound = Sound.parse(config.audio_config, source=config.source, prefix=f"{config.prefix}audio_config.")
    known = picture.architecture == "mobilenetv5_300m_enc" and not picture.model_args
    tower = (Component("vision tower", mobilenet_v5("model.vision_tower.timm_model", MOBILENET_V5_300M)),)
    return around(
        config,
        text,
        family="gemma3n",
        components=(tower if known else ())
        + (
            Component("vision embedder", _embedder("model.embed_vision", picture, text.hidden)),
            Component("audio tower", _conformer("model.audio_tower", sound)),
            Component("audio embedder", _embedder("model.embed_audio", sound, text.hidden)),
        ),
        parts=(picture, sound),
        unread=() if known else (f"vision tower (vision_config, {picture.architecture} of timm)",),
    )


def _embedder(path: str, tower: Picture | Sound, hidden: int) -> tuple[Weight, ...]:
    width = tower.hidden_size
    return (
        table(f"{path}.embedding", tower.vocab_size, width)
        + scale_norm(f"{path}.hard_embedding_norm", width)
        + scale_norm(f"{path}.soft_embedding_norm", width)
        + matrix(f"{path}.embedding_projection", inputs=width, outputs=hidden, bias=False)
    )


def _conformer(path: str, config: Sound) -> tuple[Weight, ...]:
    """The audio encoder of the Universal Speech Model (arXiv:2303.01037)."""
    hidden, layers = config.hidden_size, config.conf_num_hidden_layers
    layer = f"{path}.conformer.*"
    return (
        _subsampling(f"{path}.subsample_conv_projection", config)
        + _feed_forward(f"{layer}.ffw_layer_start", hidden, layers)
        + _attention(f"{layer}.attention", config)
        + _light_convolution(f"{layer}.lconv1d", config)
        + _feed_forward(f"{layer}.ffw_layer_end", hidden, layers)
        + scale_norm(f"{layer}.norm", hidden, copies=layers)
    )


def _subsampling(path: str, config: Sound) -> tuple[Weight, ...]:
    """Two convolutions over time and frequency, padded by one on both ends of the frequencies."""
    found: tuple[Weight, ...] = ()
    channels, bins = 1, config.input_feat_size
    sizes = zip(config.sscp_conv_channel_size, config.sscp_conv_kernel_size, config.sscp_conv_stride_size, strict=True)
    for number, (outputs, kernel, stride) in enumerate(sizes):
        name = f"{path}.conv_{number}"
        found += convolution(
            f"{name}.conv", channels=channels, kernel=(kernel[0], kernel[-1]), outputs=outputs, bias=False
        )
        found += scale_norm(f"{name}.norm", outputs)
        channels, bins = outputs, (bins + 2 - kernel[-1]) // stride[-1] + 1
    return found + matrix(f"{path}.input_proj_linear", inputs=channels * bins, outputs=config.hidden_size, bias=False)


def _feed_forward(path: str, hidden: int, layers: int) -> tuple[Weight, ...]:
    return (
        scale_norm(f"{path}.pre_layer_norm", hidden, copies=layers)
        + matrix(f"{path}.ffw_layer_1", inputs=hidden, outputs=4 * hidden, bias=False, copies=layers)
        + matrix(f"{path}.ffw_layer_2", inputs=4 * hidden, outputs=hidden, bias=False, copies=layers)
        + scale_norm(f"{path}.post_layer_norm", hidden, copies=layers)
    )


def _attention(path: str, config: Sound) -> tuple[Weight, ...]:
    """Local attention with relative positions; the output projection sits beside it."""
    hidden, layers, heads = config.hidden_size, config.conf_num_hidden_layers, config.conf_num_attention_heads
    width = hidden // heads
    return (
        scale_norm(f"{path}.pre_attn_norm", hidden, copies=layers)
        + table(f"{path}.attn.per_dim_scale", width, copies=layers)
        + matrix(
            f"{path}.attn.relative_position_embedding.pos_proj",
            inputs=hidden,
            outputs=heads * width,
            bias=False,
            copies=layers,
        )
        + separate_attention(
            path,
            hidden=hidden,
            inner=heads * width,
            copies=layers,
            bias=False,
            names=("attn.q_proj", "attn.k_proj", "attn.v_proj", "post"),
        )
        + scale_norm(f"{path}.post_norm", hidden, copies=layers)
    )


def _light_convolution(path: str, config: Sound) -> tuple[Weight, ...]:
    """A gated matrix, a convolution of each channel with itself, and a matrix."""
    hidden, layers = config.hidden_size, config.conf_num_hidden_layers
    kernel = (hidden, 1, config.conf_conv_kernel_size)
    return (
        scale_norm(f"{path}.pre_layer_norm", hidden, copies=layers)
        + matrix(f"{path}.linear_start", inputs=hidden, outputs=2 * hidden, bias=False, copies=layers)
        + (Weight(f"{path}.depthwise_conv1d", kernel, Part.VISION, copies=layers),)
        + scale_norm(f"{path}.conv_norm", hidden, copies=layers)
        + matrix(f"{path}.linear_end", inputs=hidden, outputs=hidden, bias=False, copies=layers)
    )
