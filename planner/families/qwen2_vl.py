"""Qwen2-VL and Qwen2.5-VL: a Qwen2 text model whose keys stand at the top level, and a tower that merges patches.

Reference: ``Qwen2VLForConditionalGeneration`` and ``Qwen2_5_VLForConditionalGeneration`` of transformers. The towers
differ: LayerNorm and a two-matrix MLP in Qwen2-VL, RMSNorm and a gated MLP in Qwen2.5-VL; the names of their widths
differ too (``hidden_size`` is the text's width in the first).
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import FlatWrapper, Piece, around, text_model
from planner.vision_blocks import qwen2_5_vl_tower, qwen2_vl_tower

MODEL_TYPES = ("qwen2_vl", "qwen2_5_vl")

TEXT_TYPES = {
    "qwen2_vl": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
}


class Config(FlatWrapper):
    """Keys of the wrapper; the text's are read by Qwen2."""

    vision_config: dict[str, Any]


class Tower2(Piece):
    """``Qwen2VLVisionConfig``."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"spatial_patch_size"}

    depth: Layers = 32
    embed_dim: Count = 1280
    hidden_size: Count = 3584
    mlp_ratio: Count = 4
    num_heads: Count = 16
    in_channels: Count = 3
    patch_size: Count = 14
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2

    def weights(self, path: str) -> tuple[Weight, ...]:
        """Tower and merger."""
        return qwen2_vl_tower(
            path,
            hidden=self.embed_dim,
            width=self.embed_dim * self.mlp_ratio,
            layers=self.depth,
            channels=self.in_channels,
            patch=(self.temporal_patch_size, self.patch_size, self.patch_size),
            merge=self.spatial_merge_size,
            out=self.hidden_size,
        )


class Tower25(Piece):
    """``Qwen2_5_VLVisionConfig``; windows change a picture's arithmetic only. Published files say ``in_chans``."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {
        "spatial_patch_size",
        "window_size",
        "fullatt_block_indexes",
    }

    depth: Layers = 32
    hidden_size: Count = 3584
    intermediate_size: Count = 3420
    num_heads: Count = 16
    in_channels: Count = 3
    patch_size: Count = 14
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2
    out_hidden_size: Count = 3584

    def weights(self, path: str) -> tuple[Weight, ...]:
        """Tower and merger."""
        return qwen2_5_vl_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.depth,
            channels=self.in_channels,
            patch=(self.temporal_patch_size, self.patch_size, self.patch_size),
            merge=self.spatial_merge_size,
            out=self.out_hidden_size,
        )


def read(config: Config) -> Architecture:
    """A Qwen2 with a tower; published tensors are ``model.layers.…`` and ``visual.…``."""
    text = text_model(config, model_type="qwen2", read_as=TEXT_TYPES, tied_by_either=True)
    model: type[Tower2 | Tower25] = Tower2 if config.model_type == "qwen2_vl" else Tower25
    tower = model.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    return around(
        config,
        text,
        family="qwen2_vl",
        components=(Component("vision tower", tower.weights("visual")),),
        parts=(tower,),
        layout=("model", "lm_head"),
    )
