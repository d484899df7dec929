"""Gemma 3n's text model: alternating updates (AltUp) of several residual streams, a low-rank bypass (LAuReL), an
embedding of its own for every layer, and last layers that read the cache of earlier ones.

Reference: ``Gemma3nForCausalLM`` of transformers.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Attention, Layer, Part, Use, Weight
from planner.blocks import gated_mlp, grouped_query_attention, linear, norm, vector
from planner.config import Count, CountOrZero
from planner.families._decoder import decoder, per_layer, stack, windows
from planner.families._gemma import GemmaDecoder, causal, sandwich, shares_cache, unused_projections
from planner.families._pattern import every

MODEL_TYPES = ("gemma3n_text",)


class Config(GemmaDecoder):
    """Keys that decide the counts. Which stream a layer works on, and how sparse its activations are, do not."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"altup_active_idx"})

    intermediate_size: Count | list[Count]  # type: ignore[assignment]
    sliding_window: Count
    layer_types: list[str] | None = None
    num_kv_shared_layers: CountOrZero
    hidden_size_per_layer_input: Count
    vocab_size_per_layer_input: Count
    altup_num_inputs: Count
    laurel_rank: Count
    activation_sparsity_pattern: Any = None


def read(config: Config) -> Architecture:
    """Layers by window, shared cache and MLP width."""
    causal(config)
    hidden, count = config.hidden_size, config.num_hidden_layers
    kinds = config.layer_types or every(5, count)
    sizes = windows(config, kinds, config.sliding_window)
    shared = shares_cache(config, kinds, config.num_kv_shared_layers)
    if isinstance(config.activation_sparsity_pattern, list):
        per_layer(config, "activation_sparsity_pattern", config.activation_sparsity_pattern)
    layers = stack(zip(sizes, shared, _widths(config), strict=True), lambda kind: _layer(config, *kind))
    return decoder(
        config,
        family="gemma3n_text",
        layers=layers,
        outer=norm("model.norm", hidden) + _per_layer_inputs(config) + _streams(config),
        notes=unused_projections(
            [
                (_attention(config, window, shares=True), _attention(config, window, shares=False))
                for window, shares in zip(sizes, shared, strict=True)
                if shares
            ]
        ),
    )


def _widths(config: Config) -> list[int]:
    given = config.intermediate_size
    if isinstance(given, int):
        return [given] * config.num_hidden_layers
    return list(per_layer(config, "intermediate_size", given))


def _attention(config: Config, window: int | None, *, shares: bool) -> Attention:
    width = config.head_dim
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=width,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(width, width),
        window=window,
        caches=not shares,
    )


def _layer(config: Config, window: int | None, shares: bool, width: int) -> Layer:
    mlp = gated_mlp(hidden=config.hidden_size, width=width)
    extra = _altup(config) + _laurel(config) + layer_input(config.hidden_size, config.hidden_size_per_layer_input)
    return sandwich(_attention(config, window, shares=shares), mlp, hidden=config.hidden_size, extra=extra)


def _other(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
    return linear(name, inputs=inputs, outputs=outputs, part=Part.OTHER)


def _altup(config: Config) -> tuple[Weight, ...]:
    """Alternating updates: predict all streams, run the layer on one, correct the others."""
    streams, hidden = config.altup_num_inputs, config.hidden_size
    return (
        vector("altup.correct_output_scale", hidden, Part.OTHER)
        + _other("altup.correction_coefs", streams, streams)
        + _other("altup.prediction_coefs", streams, streams**2)
        + linear("altup.modality_router", inputs=hidden, outputs=streams, part=Part.ROUTER)
        + norm("altup.router_norm", hidden)
    )


def _laurel(config: Config) -> tuple[Weight, ...]:
    """A learned residual of low rank."""
    return (
        _other("laurel.linear_left", config.hidden_size, config.laurel_rank)
        + _other("laurel.linear_right", config.laurel_rank, config.hidden_size)
        + norm("laurel.post_laurel_norm", config.hidden_size)
    )


def layer_input(hidden: int, width: int) -> tuple[Weight, ...]:
    """A layer's gate and projection around its row of the per-layer embedding."""
    return (
        _other("per_layer_input_gate", hidden, width)
        + _other("per_layer_projection", width, hidden)
        + norm("post_per_layer_input_norm", hidden)
    )


def layer_inputs(*, hidden: int, width: int, layers: int, rows: int) -> tuple[Weight, ...]:
    """The embedding that has a row of its own for every layer, and the projection that is added to it."""
    table = Weight("model.embed_tokens_per_layer", (rows, layers * width), Part.OTHER, Use.LOOKED_UP)
    projection = _other("model.per_layer_model_projection", hidden, layers * width)
    return (table, *projection, *norm("model.per_layer_projection_norm", width))


def _per_layer_inputs(config: Config) -> tuple[Weight, ...]:
    return layer_inputs(
        hidden=config.hidden_size,
        width=config.hidden_size_per_layer_input,
        layers=config.num_hidden_layers,
        rows=config.vocab_size_per_layer_input,
    )


def _streams(config: Config) -> tuple[Weight, ...]:
    """What makes the further streams from the first and one vector from all of them."""
    hidden, further = config.hidden_size, config.altup_num_inputs - 1
    if not further:
        return ()
    names = ("model.altup_projections.*", "model.altup_unembed_projections.*")
    return tuple(Weight(name, (hidden, hidden), Part.OTHER, copies=further) for name in names)
