"""Gemma 4: a tower for pictures, a Conformer for sound where the file has one, and a Gemma 4 text model.

Reference: ``Gemma4ForConditionalGeneration`` of transformers.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from planner.architecture import Architecture, Component, Part, Weight
from planner.blocks import buffer
from planner.config import Count, Layers, Switch
from planner.families._multimodal import Piece, Wrapper, around, text_model
from planner.vision_blocks import convolution, matrix, scale_norm, table

MODEL_TYPES = ("gemma4",)

BOUNDS = ("input_min", "input_max", "output_min", "output_max")


class Picture(Piece):
    """Keys of ``gemma4_vision``. The tower's matrices have no bias, and its head dimension is the same everywhere."""

    HARMLESS = Piece.HARMLESS | {"attention_bias", "global_head_dim", "pooling_kernel_size"}

    hidden_size: Count = 768
    intermediate_size: Count = 3072
    num_hidden_layers: Layers = 16
    num_attention_heads: Count = 12
    num_key_value_heads: Count = 12
    head_dim: Count = 64
    patch_size: Count = 16
    position_embedding_size: Count = 10_240
    use_clipped_linears: Switch = False
    standardize: Switch = False


class Sound(Piece):
    """Keys of ``gemma4_audio``. How far a frame sees (chunk and context) changes no weight."""

    HARMLESS = Piece.HARMLESS | {"attention_chunk_size"}

    hidden_size: Count = 1024
    num_hidden_layers: Layers = 12
    num_attention_heads: Count = 8
    subsampling_conv_channels: list[Count] = Field(default=[128, 32], min_length=2, max_length=2)
    conv_kernel_size: Count = 5
    output_proj_dims: Count = 1536
    use_clipped_linears: Switch = True


class Config(Wrapper):
    """Keys of the wrapper; a config that is null or absent means that there is no such tower."""

    vision_config: dict[str, Any] | None = None
    audio_config: dict[str, Any] | None = None


def read(config: Config) -> Architecture:
    """Text model and towers, each with the matrix that leads into the text model."""
    text = text_model(config, model_type="gemma4_text")
    components: tuple[Component, ...] = ()
    parts: tuple[Piece, ...] = ()
    if config.vision_config is not None:
        picture = Picture.parse(config.vision_config, source=config.source, prefix=f"{config.prefix}vision_config.")
        components += (
            Component("vision tower", picture_tower("model.vision_tower", picture)),
            Component("vision embedder", _embedder("model.embed_vision", picture.hidden_size, text.hidden)),
        )
        parts += (picture,)
    if config.audio_config is not None:
        sound = Sound.parse(config.audio_config, source=config.source, prefix=f"{config.prefix}audio_config.")
        components += (
            Component("audio tower", _conformer("model.audio_tower", sound)),
            Component("audio embedder", _embedder("model.embed_audio", sound.output_proj_dims, text.hidden)),
        )
        parts += (sound,)
    return around(config, text, family="gemma4", components=components, parts=parts)


def _embedder(path: str, width: int, hidden: int) -> tuple[Weight, ...]:
    return matrix(f"{path}.embedding_projection", inputs=width, outputs=hidden, bias=False)


def _clipped(path: str, *, inputs: int, outputs: int, copies: int, tower: Picture | Sound) -> tuple[Weight, ...]:
    """A matrix whose inputs and outputs may be clipped to bounds that the file stores."""
    found = matrix(f"{path}.linear", inputs=inputs, outputs=outputs, bias=False, copies=copies)
    if tower.use_clipped_linears:
        for name in BOUNDS:
            found += buffer(f"{path}.{name}", copies, Part.VISION)
    return found


def picture_tower(path: str, config: Picture) -> tuple[Weight, ...]:
    """A vision transformer with a table of positions per axis, norms as in the text model and gated MLPs."""
    hidden, layers, layer = config.hidden_size, config.num_hidden_layers, f"{path}.encoder.layers.*"
    queries, keys = config.num_attention_heads * config.head_dim, config.num_key_value_heads * config.head_dim
    found = table(f"{path}.patch_embedder.position_embedding_table", 2, config.position_embedding_size, hidden)
    found += matrix(f"{path}.patch_embedder.input_proj", inputs=3 * config.patch_size**2, outputs=hidden, bias=False)
    for name, inputs, outputs in (
        ("self_attn.q_proj", hidden, queries),
        ("self_attn.k_proj", hidden, keys),
        ("self_attn.v_proj", hidden, keys),
        ("self_attn.o_proj", queries, hidden),
        ("mlp.gate_proj", hidden, config.intermediate_size),
        ("mlp.up_proj", hidden, config.intermediate_size),
        ("mlp.down_proj", config.intermediate_size, hidden),
    ):
        found += _clipped(f"{layer}.{name}", inputs=inputs, outputs=outputs, copies=layers, tower=config)
    for name in ("q_norm", "k_norm"):
        found += scale_norm(f"{layer}.self_attn.{name}", config.head_dim, copies=layers)
    for name in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        found += scale_norm(f"{layer}.{name}_layernorm", hidden, copies=layers)
    if config.standardize:
        found += buffer(f"{path}.std_bias", hidden, Part.VISION) + buffer(f"{path}.std_scale", hidden, Part.VISION)
    return found


def _conformer(path: str, config: Sound) -> tuple[Weight, ...]:
    """The audio encoder of the Universal Speech Model (arXiv:2303.01037)."""
    hidden, layers, layer = config.hidden_size, config.num_hidden_layers, f"{path}.layers.*"
    heads = config.num_attention_heads * (hidden // config.num_attention_heads)
    found = _subsampling(f"{path}.subsample_conv_projection", config)
    for name, inputs, outputs in (
        ("feed_forward1.ffw_layer_1", hidden, 4 * hidden),
        ("feed_forward1.ffw_layer_2", 4 * hidden, hidden),
        ("feed_forward2.ffw_layer_1", hidden, 4 * hidden),
        ("feed_forward2.ffw_layer_2", 4 * hidden, hidden),
        ("self_attn.q_proj", hidden, heads),
        ("self_attn.k_proj", hidden, heads),
        ("self_attn.v_proj", hidden, heads),
        ("self_attn.post", hidden, hidden),
        ("lconv1d.linear_start", hidden, 2 * hidden),
        ("lconv1d.linear_end", hidden, hidden),
    ):
        found += _clipped(f"{layer}.{name}", inputs=inputs, outputs=outputs, copies=layers, tower=config)
    found += matrix(f"{layer}.self_attn.relative_k_proj", inputs=hidden, outputs=heads, bias=False, copies=layers)
    found += table(f"{layer}.self_attn.per_dim_scale", hidden // config.num_attention_heads, copies=layers)
    kernel = (hidden, 1, config.conv_kernel_size)
    found += (Weight(f"{layer}.lconv1d.depthwise_conv1d", kernel, Part.VISION, copies=layers),)
    for name in (
        "feed_forward1.pre_layer_norm",
        "feed_forward1.post_layer_norm",
        "feed_forward2.pre_layer_norm",
        "feed_forward2.post_layer_norm",
        "lconv1d.pre_layer_norm",
        "lconv1d.conv_norm",
        "norm_pre_attn",
        "norm_post_attn",
        "norm_out",
    ):
        found += scale_norm(f"{layer}.{name}", hidden, copies=layers)
    return found + matrix(f"{path}.output_proj", inputs=hidden, outputs=config.output_proj_dims)


def _subsampling(path: str, config: Sound) -> tuple[Weight, ...]:
    """Two convolutions that leave a quarter of the frequencies, which the reference takes to be a quarter of 128."""
    first, second = config.subsampling_conv_channels
    return (
        convolution(f"{path}.layer0.conv", channels=1, kernel=(3, 3), outputs=first, bias=False)
        + scale_norm(f"{path}.layer0.norm", first)
        + convolution(f"{path}.layer1.conv", channels=first, kernel=(3, 3), outputs=second, bias=False)
        + scale_norm(f"{path}.layer1.norm", second)
        + matrix(f"{path}.input_proj_linear", inputs=first // 4 * second, outputs=config.hidden_size, bias=False)
    )
