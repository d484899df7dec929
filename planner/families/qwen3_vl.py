"""Qwen3-VL, dense and with experts: a Qwen3 text model, and a tower whose early layers feed the text's first layers.

Reference: ``Qwen3VLForConditionalGeneration`` and ``Qwen3VLMoeForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import qwen3_vl_tower

MODEL_TYPES = ("qwen3_vl", "qwen3_vl_moe")

TEXT_TYPES = {"qwen3_vl_text": "qwen3", "qwen3_vl_moe_text": "qwen3_moe"}
MERGER_NAMES = ("norm", "linear_fc1", "linear_fc2", "deepstack_merger_list")


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]


class Tower(Piece):
    """``Qwen3VLVisionConfig``; the merger behind it belongs to it."""

    depth: Layers = 27
    hidden_size: Count = 1152
    intermediate_size: Count = 4304
    num_heads: Count = 16
    in_channels: Count = 3
    patch_size: Count = 16
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2
    out_hidden_size: Count = 3584
    num_position_embeddings: Count = 2304
    deepstack_visual_indexes: tuple[int, ...] = (8, 16, 24)

    def weights(self, path: str, *, merger_names: tuple[str, str, str, str] = MERGER_NAMES) -> tuple[Weight, ...]:
        """Tower and mergers."""
        return qwen3_vl_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.depth,
            channels=self.in_channels,
            patch=(self.temporal_patch_size, self.patch_size, self.patch_size),
            positions=self.num_position_embeddings,
            merge=self.spatial_merge_size,
            out=self.out_hidden_size,
            deep_mergers=len(self.deepstack_visual_indexes),
            merger_names=merger_names,
        )


def read(config: Config) -> Architecture:
    """A Qwen3 with a tower."""
    dense = config.model_type == "qwen3_vl"
    text = text_model(config, model_type="qwen3" if dense else "qwen3_moe", read_as=TEXT_TYPES)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    return around(
        config,
        text,
        family="qwen3_vl",
        components=(Component("vision tower", tower.weights("model.visual")),),
        parts=(tower,),
    )
