"""GLM-4.1V, GLM-4.5V and GLM-4.6V: a tower with a convolution that merges patches, and a GLM text model.

Reference: ``Glm4vForConditionalGeneration``, ``Glm4vMoeForConditionalGeneration`` and
``Glm46VForConditionalGeneration`` of transformers. The keys of the tower mislead: the layers' MLP is
``out_hidden_size`` wide, ``intermediate_size`` is the merger's.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers, Switch
from planner.families._multimodal import FlatWrapper, Piece, Size, around, pair, patches, text_model
from planner.vision_blocks import convolution, fused_attention, layer_norm, matrix, scale_norm, table, three_matrix_mlp

MODEL_TYPES = ("glm4v", "glm4v_moe", "glm46v")

TEXT_TYPES = {"glm4v": "glm4v_text", "glm46v": "glm4v_text", "glm4v_moe": "glm4v_moe_text"}


class Tower(Piece):
    """``Glm4vVisionConfig``."""

    depth: Layers = 24
    hidden_size: Count = 1536
    attention_bias: Switch = False
    num_heads: Count = 12
    in_channels: Count = 3
    image_size: Size = 336
    patch_size: Size = 14
    spatial_merge_size: Count = 2
    temporal_patch_size: Count = 2
    out_hidden_size: Count = 4096
    intermediate_size: Count = 13696


class Config(FlatWrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]


def read(config: Config) -> Architecture:
    """Text model and tower."""
    text = text_model(config, model_type=TEXT_TYPES[config.model_type], read_as=TEXT_TYPES, tied_by_either=True)
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    return around(
        config,
        text,
        family="glm4v",
        components=(Component("vision tower", _tower(tower) + _merger(tower)),),
        parts=(tower,),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "model.visual", config.hidden_size, config.depth
    layer = f"{path}.blocks.*"
    return (
        table(f"{path}.embeddings.position_embedding", patches(config, config.image_size, config.patch_size), hidden)
        + convolution(
            f"{path}.patch_embed.proj",
            channels=config.in_channels,
            kernel=(config.temporal_patch_size, *pair(config.patch_size)),
            outputs=hidden,
        )
        + scale_norm(f"{layer}.norm1", hidden, copies=layers)
        + scale_norm(f"{layer}.norm2", hidden, copies=layers)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers, bias=config.attention_bias, output_bias=False)
        + three_matrix_mlp(f"{layer}.mlp", hidden=hidden, width=config.out_hidden_size, copies=layers)
        + scale_norm(f"{path}.post_conv_layernorm", hidden)
        + scale_norm(f"{path}.post_layernorm", hidden)
    )


def _merger(config: Tower) -> tuple[Weight, ...]:
    path, out, merge = "model.visual.merger", config.out_hidden_size, config.spatial_merge_size
    return (
        convolution("model.visual.downsample", channels=config.hidden_size, kernel=(merge, merge), outputs=out)
        + matrix(f"{path}.proj", inputs=out, outputs=out, bias=False)
        + layer_norm(f"{path}.post_projection_norm", out)
        + three_matrix_mlp(path, hidden=out, width=config.intermediate_size, copies=1)
    )
