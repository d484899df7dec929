"""MiniMax-M3: a CLIP-like tower with rotary positions, a projector that merges patches, and the M3 text model.

Reference: ``MiniMaxM3SparseForConditionalGeneration`` of transformers; the tensors' published names from its
conversion table (the merger is ``patch_merge_mlp`` there).
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import convolution, layer_norm, projector, transformer_layers

MODEL_TYPES = ("minimax_m3_vl",)


class Merge(Piece):
    """How neighbouring patches become one token; published files keep it apart, transformers in the tower's config."""

    image_token_compression_method: str = "patch_merge"
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2


class Tower(Piece):
    """``MiniMaxM3VLVisionConfig``; published files call it a CLIP. It has no table of positions."""

    hidden_size: Count = 1280
    intermediate_size: Count = 5120
    num_hidden_layers: Layers = 32
    num_attention_heads: Count = 16
    num_channels: Count = 3
    patch_size: Count = 14
    temporal_patch_size: Count | None = None
    spatial_merge_size: Count | None = None
    img_token_compression_config: Merge = Merge()


class Config(Wrapper):
    """Keys of the wrapper; the compression is said twice, and the tower's is read."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"img_token_compression_config"})

    vision_config: dict[str, Any]
    projector_hidden_size: Count = 6144
    multimodal_projector_bias: bool = True


def read(config: Config) -> Architecture:
    """Text model, tower, projector and merger."""
    if not config.multimodal_projector_bias:
        raise config.refusal("multimodal_projector_bias", "is false, and the reference has biases in any case")
    text = text_model(config, model_type="minimax_m3_vl_text", tied_by_either=True)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    method = tower.img_token_compression_config.image_token_compression_method
    if method != "patch_merge":
        raise tower.refusal("img_token_compression_config", f"names the method {method!r}; only patch_merge is known")
    inner, hidden = config.projector_hidden_size, text.hidden
    merge = tower.spatial_merge_size or tower.img_token_compression_config.spatial_merge_size
    found = projector("multi_modal_projector", widths=(tower.hidden_size, inner, hidden))
    found += projector("patch_merge_mlp", widths=(hidden * merge**2, inner, hidden))
    return around(
        config,
        text,
        family="minimax_m3_vl",
        components=(Component("vision tower", _tower(tower)), Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, patch = "vision_tower.vision_model", config.hidden_size, config.patch_size
    frames = config.temporal_patch_size or config.img_token_compression_config.temporal_patch_size
    return (
        convolution(
            f"{path}.embeddings.patch_embedding",
            channels=config.num_channels,
            kernel=(frames, patch, patch),
            outputs=hidden,
            bias=False,
        )
        + layer_norm(f"{path}.pre_layrnorm", hidden)
        + transformer_layers(
            f"{path}.encoder.layers.*",
            hidden=hidden,
            width=config.intermediate_size,
            layers=config.num_hidden_layers,
        )
    )
