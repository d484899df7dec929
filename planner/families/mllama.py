"""Llama 3.2 Vision: Llama with layers that attend to a picture, and a tower that keeps tiles apart.

Reference: ``MllamaForConditionalGeneration`` of transformers. The cross-attention layers count among
``num_hidden_layers``; a request without a picture skips them whole, their MLP too. Their two gates are scalars. The
embedding has 8 rows more than the head, for the tokens of the picture.
"""

from __future__ import annotations

from typing import Any

from planner.architecture import Architecture, Component, CrossAttention, Layer, Part, Weight
from planner.blocks import embedding, gated_mlp, grouped_query_attention, linear, lm_head, norm, pre_norm_layer, vector
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families._multimodal import Piece, Size, Wrapper, around, pair, patches
from planner.vision_blocks import convolution, layer_norm, matrix, separate_attention, table, two_layer_mlp

MODEL_TYPES = ("mllama",)

PICTURE_TOKENS = 8
ASPECT_RATIOS = 8


class Text(FamilyConfig):
    """Keys of ``mllama_text_model``."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count
    intermediate_size: Count
    vocab_size: Count
    cross_attention_layers: list[int]
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


class Tower(Piece):
    """Keys of ``mllama_vision_model``; which middle layers are handed on shows in ``vision_output_dim``."""

    hidden_size: Count = 1280
    intermediate_size: Count = 5120
    num_hidden_layers: Layers = 32
    num_global_layers: Layers = 8
    attention_heads: Count = 16
    num_channels: Count = 3
    image_size: Size = 448
    patch_size: Size = 14
    max_num_tiles: Count = 4
    supported_aspect_ratios: list[list[int]] | None = None
    intermediate_layers_indices: list[int] | None = None
    vision_output_dim: Count = 7680


class Config(Wrapper):
    """Keys of the wrapper; its tie flag is nothing, the text's decides."""

    vision_config: dict[str, Any]


def read(config: Config) -> Architecture:
    """Text model, tower, and one linear layer between them."""
    text = Text.parse(config.text_config, source=config.source, prefix="text_config.")
    tower = Tower.parse(config.vision_config, source=config.source, prefix="vision_config.")
    if text.tie_word_embeddings:
        raise text.refusal("tie_word_embeddings", "is true, and the embedding has more rows than the head")
    outputs = text.hidden_size
    projector = matrix("multi_modal_projector", inputs=tower.vision_output_dim, outputs=outputs)
    return around(
        config,
        _text_model(text),
        family="mllama",
        components=(Component("vision tower", _tower(tower)), Component("projector", projector)),
        parts=(tower,),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _text_model(config: Text) -> Architecture:
    hidden = config.hidden_size
    return Architecture(
        family="mllama",
        model_type="mllama_text_model",
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=_layers(config),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size + PICTURE_TOKENS, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=False),
        outer=norm("model.norm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _layers(config: Text) -> tuple[Layer, ...]:
    crossing = set(config.cross_attention_layers)
    if len(crossing) < len(config.cross_attention_layers) or not crossing <= set(range(config.num_hidden_layers)):
        raise config.refusal(
            "cross_attention_layers",
            f"must be different numbers from 0 to {config.num_hidden_layers - 1}, the layers that exist",
        )
    hidden, heads = config.hidden_size, config.num_attention_heads
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    head_dim = config.head_width(hidden, heads)
    attention = grouped_query_attention(
        hidden=hidden, heads=heads, kv_heads=config.num_key_value_heads, head_dim=head_dim
    )
    own = pre_norm_layer(attention, mlp, hidden=hidden)
    cross = Layer((_cross_attention(config, head_dim), mlp), own.weights)
    return tuple(cross if index in crossing else own for index in range(config.num_hidden_layers))


def _cross_attention(config: Text, head_dim: int) -> CrossAttention:
    heads, kv_heads, hidden = config.num_attention_heads, config.num_key_value_heads, config.hidden_size

    def attention(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        return linear(f"cross_attn.{name}", inputs=inputs, outputs=outputs, part=Part.ATTENTION)

    weights = (
        attention("q_proj", hidden, heads * head_dim)
        + attention("o_proj", heads * head_dim, hidden)
        + norm("cross_attn.q_norm", head_dim)
        + vector("cross_attn_attn_gate", 1, Part.ATTENTION)
        + vector("cross_attn_mlp_gate", 1, Part.ATTENTION)
    )
    memory = (
        attention("k_proj", hidden, kv_heads * head_dim)
        + attention("v_proj", hidden, kv_heads * head_dim)
        + norm("cross_attn.k_norm", head_dim)
    )
    return CrossAttention(heads, kv_heads, head_dim, head_dim, weights, memory, optional=True)


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, tiles = "vision_model", config.hidden_size, config.max_num_tiles
    positions = patches(config, config.image_size, config.patch_size) + 1
    listed = config.supported_aspect_ratios
    shapes = 1 + (ASPECT_RATIOS if listed is None else len(listed))
    positional = f"{path}.gated_positional_embedding"
    found = (
        table(f"{path}.class_embedding", hidden)
        + convolution(
            f"{path}.patch_embedding",
            channels=config.num_channels,
            kernel=pair(config.patch_size),
            outputs=hidden,
            bias=False,
        )
        + table(f"{positional}.gate", 1)
        + table(f"{positional}.embedding", positions, hidden)
        + table(f"{positional}.tile_embedding", shapes, tiles * positions * hidden)
        + layer_norm(f"{path}.layernorm_pre", hidden)
        + layer_norm(f"{path}.layernorm_post", hidden)
    )
    for name in ("pre_tile_positional_embedding", "post_tile_positional_embedding"):
        found += table(f"{path}.{name}.gate", 1) + table(f"{path}.{name}.embedding", shapes, tiles * hidden)
    found += _tower_layers(f"{path}.transformer.layers.*", config, config.num_hidden_layers)
    path = f"{path}.global_transformer.layers.*"
    gates = table(f"{path}.gate_attn", 1, copies=config.num_global_layers)
    gates += table(f"{path}.gate_ffn", 1, copies=config.num_global_layers)
    return found + gates + _tower_layers(path, config, config.num_global_layers)


def _tower_layers(path: str, config: Tower, layers: int) -> tuple[Weight, ...]:
    hidden = config.hidden_size
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    return (
        separate_attention(f"{path}.self_attn", hidden=hidden, copies=layers, bias=False, names=names)
        + two_layer_mlp(f"{path}.mlp", hidden=hidden, width=config.intermediate_size, copies=layers)
        + layer_norm(f"{path}.input_layernorm", hidden, copies=layers)
        + layer_norm(f"{path}.post_attention_layernorm", hidden, copies=layers)
    )
