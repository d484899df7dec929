"""Muse Glimmer: a tower over pictures and frames, an adapter, and a dense text model.

Reference: ``MuseGlimmerForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, Layers
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import layer_norm, matrix, separate_attention, table, two_layer_mlp

MODEL_TYPES = ("muse_glimmer",)


class Tower(Piece):
    """``MuseGlimmerVisionConfig``; which layers see a window changes no shape."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"layer_types"}

    hidden_size: Count = 1536
    intermediate_size: Count = 8960
    num_hidden_layers: Layers = 50
    num_attention_heads: Count = 16
    patch_size: Count = 14
    patch_temporal: Count = 2
    pos_emb_height: Count = 32
    pos_emb_width: Count = 32


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]
    out_hidden_size: Count = 6144
    projector_hidden_size: Count = 4096


def read(config: Config) -> Architecture:
    """Text model, tower and adapter."""
    text = text_model(config, model_type="muse_glimmer_text")
    tower = Tower.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
    return around(
        config,
        text,
        family="muse_glimmer",
        components=(
            Component("vision tower", _tower(tower)),
            Component("projector", _adapter(config, text.hidden)),
        ),
        parts=(tower,),
    )


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers = "model.vision_tower", config.hidden_size, config.num_hidden_layers
    layer = f"{path}.layers.*"
    patch = config.patch_temporal * 3 * config.patch_size**2
    positions = config.pos_emb_height * config.pos_emb_width
    names = ("q_proj", "k_proj", "v_proj", "proj")
    return (
        matrix(f"{path}.patch_embedder.patch_embedding", inputs=patch, outputs=hidden, bias=False)
        + table(f"{path}.patch_embedder.position_embedding_table", positions, hidden)
        + layer_norm(f"{path}.ln_pre", hidden)
        + layer_norm(f"{layer}.norm1", hidden, copies=layers)
        + layer_norm(f"{layer}.norm2", hidden, copies=layers)
        + separate_attention(f"{layer}.attn", hidden=hidden, copies=layers, names=names)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=config.intermediate_size, copies=layers)
        + layer_norm(f"{path}.ln_post", hidden)
    )


def _adapter(config: Config, text_width: int) -> tuple[Weight, ...]:
    width = config.projector_hidden_size
    return (
        matrix("model.vision_adapter.fc1", inputs=config.out_hidden_size, outputs=width, bias=False)
        + matrix("model.vision_adapter.fc2", inputs=width, outputs=width, bias=False)
        + matrix("model.vision_projection", inputs=width, outputs=text_width, bias=False)
    )
