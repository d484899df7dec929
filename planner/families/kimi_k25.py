"""Kimi K2.5, K2.6 and Kimi-VL: MoonViT, a projector over merged patches, and a DeepSeek-V3 text model.

Reference: ``Kimi_K25ForConditionalGeneration`` of transformers; names of keys and tensors as in the published files,
which say ``vt_hidden_size`` where transformers says ``hidden_size``. Kimi-VL (arXiv:2504.07491) has no class there:
the same tower and projector, with ``hidden_size`` as in transformers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import Field

from planner.architecture import Architecture, Component
from planner.config import Count, Layers, either
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import layer_norm, moon_tower, projector

MODEL_TYPES = ("kimi_k25", "kimi_vl")

TEXT_TYPES = {"kimi_k2": "deepseek_v3"}


class Tower(Piece):
    """Keys of MoonViT. The table of times is computed, not stored."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"mm_hidden_size", "text_hidden_size"}

    hidden_size: Count = Field(default=1152, validation_alias=either("vt_hidden_size", "hidden_size"))
    intermediate_size: Count = Field(default=4304, validation_alias=either("vt_intermediate_size", "intermediate_size"))
    num_hidden_layers: Layers = Field(default=27, validation_alias=either("vt_num_hidden_layers", "num_hidden_layers"))
    num_attention_heads: Count = Field(
        default=16, validation_alias=either("vt_num_attention_heads", "num_attention_heads")
    )
    patch_size: Count = 14
    position_height: Count = Field(default=64, validation_alias=either("init_pos_emb_height", "pos_emb_height"))
    position_width: Count = Field(default=64, validation_alias=either("init_pos_emb_width", "pos_emb_width"))
    merge_kernel_size: tuple[Count, Count] = (2, 2)
    mm_projector_type: str = "patchmerger"


class Config(Wrapper):
    """Keys of the wrapper."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"use_unified_vision_chunk", "projection_hidden_size"})

    vision_config: dict[str, Any]


def read(config: Config) -> Architecture:
    """Text model, tower, projector."""
    text = text_model(config, model_type="deepseek_v3", read_as=TEXT_TYPES)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    if tower.mm_projector_type != "patchmerger":
        raise tower.refusal("mm_projector_type", f"is {tower.mm_projector_type!r}; only patchmerger is known")
    weights = moon_tower(
        "vision_tower",
        hidden=tower.hidden_size,
        width=tower.intermediate_size,
        layers=tower.num_hidden_layers,
        patch=(tower.patch_size, tower.patch_size),
        grid=(tower.position_height, tower.position_width),
    )
    rows, columns = tower.merge_kernel_size
    merged = tower.hidden_size * rows * columns
    old = config.model_type == "kimi_vl"
    path, names = ("multi_modal_projector", ("linear_1", "linear_2")) if old else ("mm_projector.proj", ("0", "2"))
    norm_path = f"{path.removesuffix('.proj')}.pre_norm"
    found = layer_norm(norm_path, tower.hidden_size)
    found += projector(path, widths=(merged, merged, text.hidden), names=names)
    return around(
        config,
        text,
        family="kimi_k25",
        components=(Component("vision tower", weights), Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )
