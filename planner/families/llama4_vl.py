"""Llama 4: its own tower and adapter around ``llama4_text``.

Reference: ``Llama4ForConditionalGeneration`` of transformers, except for a file without a ``vision_config``: the
class's defaults there describe no published model, so the tower of the four published checkpoints is assumed.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import Piece, Size, Wrapper, around, pair, patches, text_model
from planner.vision_blocks import layer_norm, matrix, projector, separate_attention, table, two_layer_mlp

MODEL_TYPES = ("llama4",)

PUBLISHED = {
    "hidden_size": 1408,
    "intermediate_size": 5632,
    "num_hidden_layers": 34,
    "num_attention_heads": 16,
    "image_size": 336,
    "patch_size": 14,
    "projector_input_dim": 4096,
    "projector_output_dim": 4096,
    "vision_output_dim": 4096,
}


class Tower(Piece):
    """Keys of ``llama4_vision_model``. The projector's bias flag and the dropout change nothing."""

    HARMLESS = Piece.HARMLESS | {"multi_modal_projector_bias"}

    hidden_size: Count = 768
    intermediate_size: Count = 5632
    num_hidden_layers: Layers = 34
    num_attention_heads: Count = 16
    num_channels: Count = 3
    image_size: Size = 448
    patch_size: Size = 14
    projector_input_dim: Count = 4096
    projector_output_dim: Count = 4096
    vision_output_dim: Count = 7680


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """Text model, tower with adapter, and one linear layer between them; only the text's tie flag ties."""
    text = text_model(config.model_copy(update={"tie_word_embeddings": None}), model_type="llama4_text")
    silent = config.vision_config is None
    given = PUBLISHED if config.vision_config is None else config.vision_config
    tower = Tower.parse(given, source=config.source, prefix=f"{config.prefix}vision_config.")
    widths = (tower.vision_output_dim, text.hidden)
    return around(
        config,
        text,
        family="llama4_vl",
        components=(
            Component("vision tower", _tower(tower)),
            Component("projector", projector("multi_modal_projector", widths=widths, names=("linear_1",), bias=False)),
        ),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
        assumed=("vision_config (absent in the config): the tower of the published Llama 4 checkpoints",)
        if silent
        else (),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "vision_model", config.hidden_size, config.num_hidden_layers
    rows, columns = pair(config.patch_size)
    layer = f"{path}.model.layers.*"
    adapter = f"{path}.vision_adapter.mlp"
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    shuffled, inner, outer = config.intermediate_size, config.projector_input_dim, config.projector_output_dim
    return (
        table(f"{path}.class_embedding", hidden)
        + table(f"{path}.positional_embedding_vlm", patches(config, config.image_size, config.patch_size) + 1, hidden)
        + matrix(
            f"{path}.patch_embedding.linear", inputs=config.num_channels * rows * columns, outputs=hidden, bias=False
        )
        + layer_norm(f"{path}.layernorm_pre", hidden)
        + layer_norm(f"{path}.layernorm_post", hidden)
        + separate_attention(f"{layer}.self_attn", hidden=hidden, copies=layers, names=names)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=config.intermediate_size, copies=layers)
        + layer_norm(f"{layer}.input_layernorm", hidden, copies=layers)
        + layer_norm(f"{layer}.post_attention_layernorm", hidden, copies=layers)
        + matrix(f"{adapter}.fc1", inputs=shuffled, outputs=inner, bias=False)
        + matrix(f"{adapter}.fc2", inputs=outer, outputs=outer, bias=False)
    )
