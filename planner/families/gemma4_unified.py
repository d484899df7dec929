"""Gemma 4 without towers: patches and sound samples go through a matrix straight into the text model.

Reference: ``Gemma4UnifiedForConditionalGeneration`` of transformers, names as in the published files.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, Weight
from planner.config import Count
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import layer_norm, matrix, table

MODEL_TYPES = ("gemma4_unified",)


class Picture(Piece):
    """Keys of ``gemma4_unified_vision``; a patch of the model is several of the picture's pooled."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"hidden_size"}

    patch_size: Count = 16
    pooling_kernel_size: Count = 3
    model_patch_size: Count | None = None
    mm_embed_dim: Count = 3840
    mm_posemb_size: Count = 1120
    output_proj_dims: Count = 3840


class Sound(Piece):
    """Keys of ``gemma4_unified_audio``; its width has three names beside this one, all of one value."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"hidden_size", "output_proj_dims"}

    audio_embed_dim: Count = 640


class Config(Wrapper):
    """Keys of the wrapper; a config that is null or absent means that there is no such input."""

    vision_config: dict[str, Any] | None = None
    audio_config: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """Text model and the embedders of pictures and sound."""
    text = text_model(config, model_type="gemma4_unified_text")
    components: tuple[Component, ...] = ()
    parts: tuple[Piece, ...] = ()
    if config.vision_config is not None:
        picture = Picture.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
        components += (Component("vision embedder", _patches(picture, text.hidden)),)
        parts += (picture,)
    if config.audio_config is not None:
        sound = Sound.parse(config.audio_config, source=config.source, prefix=f"{config.prefix}audio_config.")
        projection = matrix(
            "model.embed_audio.embedding_projection", inputs=sound.audio_embed_dim, outputs=text.hidden, bias=False
        )
        components += (Component("audio embedder", projection),)
        parts += (sound,)
    return around(config, text, family="gemma4_unified", components=components, parts=parts)


def _patches(config: Picture, hidden: int) -> tuple[Weight, ...]:
    side, width, path = config.patch_size * config.pooling_kernel_size, config.mm_embed_dim, "model.vision_embedder"
    if config.model_patch_size not in (None, side):
        raise config.refusal("model_patch_size", f"is {config.model_patch_size}; patch times pooling size is {side}")
    if config.output_proj_dims != width:
        raise config.refusal(
            "output_proj_dims", f"is {config.output_proj_dims}, and the embedder makes {width} channels"
        )
    patch = 3 * side**2
    return (
        layer_norm(f"{path}.patch_ln1", patch)
        + matrix(f"{path}.patch_dense", inputs=patch, outputs=width)
        + layer_norm(f"{path}.patch_ln2", width)
        + table(f"{path}.pos_embedding", config.mm_posemb_size, 2, width)
        + layer_norm(f"{path}.pos_norm", width)
        + matrix("model.embed_vision.embedding_projection", inputs=width, outputs=hidden, bias=False)
    )
