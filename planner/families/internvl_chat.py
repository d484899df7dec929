"""InternVL as its authors publish it: InternViT, a projector over merged patches, the text under ``llm_config``.

Reference: ``InternVLChatModel`` of the models' own repositories; transformers reads the converted form (``internvl``).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import Field

from planner.architecture import Architecture, Component
from planner.config import Count, Factor, Layers, Switch, either
from planner.families._multimodal import Piece, Size, Wrapper, around, pair, patches, text_model
from planner.vision_blocks import intern_tower, layer_norm, projector

MODEL_TYPES = ("internvl_chat",)


class Tower(Piece):
    """``InternVisionConfig``; the expert keys that InternVL3's files carry do nothing unless ``use_moe`` is set."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {
        "num_experts",
        "num_routed_experts",
        "num_shared_experts",
        "moe_intermediate_size",
        "moe_output_scale",
        "moe_coeff_ratio",
        "shared_expert_intermediate_size",
    }

    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_channels: Count = 3
    image_size: Size
    patch_size: Size
    qkv_bias: Switch
    qk_normalization: Switch
    norm_type: Literal["layer_norm", "rms_norm"] = "rms_norm"
    use_moe: Switch = False


class Config(Wrapper):
    """Keys of the wrapper; ``hidden_size`` at the top level repeats the text's, the LoRA keys were for training."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"hidden_size", "use_backbone_lora", "use_llm_lora"})

    text_config: dict[str, Any] = Field(validation_alias=either("llm_config"))
    vision_config: dict[str, Any]
    downsample_ratio: Factor = 0.5
    force_image_size: Count | None = None


def read(config: Config) -> Architecture:
    """Text model, tower, projector; the wrapper's own tie flag is nothing to the text."""
    text = text_model(config.model_copy(update={"tie_word_embeddings": None}), model_type="", key="llm_config")
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    if tower.use_moe:
        raise tower.refusal("use_moe", "is true, and a tower with experts is not known here")
    weights = intern_tower(
        "vision_model",
        hidden=tower.hidden_size,
        width=tower.intermediate_size,
        layers=tower.num_hidden_layers,
        channels=tower.num_channels,
        patch=pair(tower.patch_size),
        positions=patches(tower, config.force_image_size or tower.image_size, tower.patch_size) + 1,
        bias=tower.qkv_bias,
        query_key_norm=tower.qk_normalization,
        norm_bias=tower.norm_type == "layer_norm",
    )
    merged = tower.hidden_size * int(1 / config.downsample_ratio) ** 2
    found = layer_norm("mlp1.0", merged) + projector(
        "mlp1", widths=(merged, text.hidden, text.hidden), names=("1", "3")
    )
    return around(
        config,
        text,
        family="internvl_chat",
        components=(Component("vision tower", weights), Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )
