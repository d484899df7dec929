"""InternVL as converted to transformers: InternViT, a projector over merged patches, any text model.

Reference: ``InternVLForConditionalGeneration`` of transformers, except for an absent tie flag: the class would tie
the head, published files without the flag leave it to the text's config.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Factor, Layers, Switch
from planner.families._multimodal import CLASS_DEFAULTS, Piece, Size, Wrapper, around, pair, patches, text_model
from planner.vision_blocks import (
    any_norm,
    convolution,
    layer_norm,
    projector,
    scale_norm,
    separate_attention,
    table,
    two_layer_mlp,
)

MODEL_TYPES = ("internvl",)


class Tower(Piece):
    """``InternVLVisionConfig``."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"layer_scale_init_value"}

    hidden_size: Count = 1024
    intermediate_size: Count = 4096
    num_hidden_layers: Layers = 24
    num_attention_heads: Count = 16
    num_channels: Count = 3
    image_size: Size = 448
    patch_size: Size = 14
    attention_bias: Switch = False
    use_qk_norm: Switch = False
    norm_type: Literal["layer_norm", "rms_norm"] = "layer_norm"
    use_mask_token: Switch = False
    use_absolute_position_embeddings: Switch = True
    use_mean_pooling: Switch = True


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]
    downsample_ratio: Factor = 0.5


def read(config: Config) -> Architecture:
    """Text model, tower, projector."""
    text = text_model(config, model_type="qwen2", class_defaults=CLASS_DEFAULTS)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    merged = tower.hidden_size * int(1 / config.downsample_ratio) ** 2
    path = "multi_modal_projector"
    found = layer_norm(f"{path}.layer_norm", merged) + projector(path, widths=(merged, text.hidden, text.hidden))
    return around(
        config,
        text,
        family="internvl",
        components=(Component("vision tower", _tower(tower)), Component("projector", found)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden = "vision_tower", config.hidden_size
    found = table(f"{path}.embeddings.cls_token", hidden)
    found += convolution(
        f"{path}.embeddings.patch_embeddings.projection",
        channels=config.num_channels,
        kernel=pair(config.patch_size),
        outputs=hidden,
    )
    if config.use_mask_token:
        found += table(f"{path}.embeddings.mask_token", hidden)
    if config.use_absolute_position_embeddings:
        positions = patches(config, config.image_size, config.patch_size) + 1
        found += table(f"{path}.embeddings.position_embeddings", positions, hidden)
    if not config.use_mean_pooling:
        found += layer_norm(f"{path}.layernorm", hidden)
    return found + _layers(config, f"{path}.encoder.layer.*")


def _layers(config: Tower, path: str) -> tuple[Weight, ...]:
    hidden, layers, biased = config.hidden_size, config.num_hidden_layers, config.norm_type == "layer_norm"
    found = (
        separate_attention(
            f"{path}.attention",
            hidden=hidden,
            copies=layers,
            bias=config.attention_bias,
            output_bias=True,
            names=("q_proj", "k_proj", "v_proj", "projection_layer"),
        )
        + two_layer_mlp(f"{path}.mlp", hidden=hidden, width=config.intermediate_size, copies=layers)
        + any_norm(f"{path}.layernorm_before", hidden, bias=biased, copies=layers)
        + any_norm(f"{path}.layernorm_after", hidden, bias=biased, copies=layers)
        + table(f"{path}.lambda_1", hidden, copies=layers)
        + table(f"{path}.lambda_2", hidden, copies=layers)
    )
    if config.use_qk_norm:
        found += scale_norm(f"{path}.attention.q_norm", hidden, copies=layers)
        found += scale_norm(f"{path}.attention.k_norm", hidden, copies=layers)
    return found
