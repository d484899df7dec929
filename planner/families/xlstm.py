"""xLSTM: a matrix LSTM and a gated MLP in every layer, no attention.

Reference: ``xLSTMForCausalLM`` of transformers, names as in the published files. ``embedding_dim`` and ``num_blocks``
are the older spellings of ``hidden_size`` and ``num_hidden_layers``.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from planner.architecture import Architecture, Layer, Part, StateSpace, Weight
from planner.blocks import embedding, gated_mlp, linear, lm_head, norm
from planner.config import Count, Factor, FamilyConfig, Layers, Switch, either
from planner.families._decoder import fused_mlp, norms

MODEL_TYPES = ("xlstm",)

STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Config(FamilyConfig):
    """Keys that decide the counts."""

    # The blocking of the scan.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"chunk_size", "max_inference_chunksize"})

    hidden_size: Count = Field(validation_alias=either("hidden_size", "embedding_dim"))
    embedding_dim: Count | None = None
    num_hidden_layers: Layers = Field(validation_alias=either("num_hidden_layers", "num_blocks"))
    num_blocks: Layers | None = None
    num_heads: Count
    head_dim: Count | None = None
    qk_dim_factor: Factor
    v_dim_factor: Factor
    ffn_proj_factor: Factor
    ffn_round_up_to_multiple_of: Count
    use_bias: Switch = False
    add_out_norm: Switch = True
    weight_mode: Literal["single", "fused"] = "single"
    inference_state_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    vocab_size: Count
    tie_word_embeddings: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    _check(config)
    hidden, bias, fused = config.hidden_size, config.use_bias, config.weight_mode == "fused"
    multiple = config.ffn_round_up_to_multiple_of
    width = int((hidden * config.ffn_proj_factor + multiple - 1) // multiple) * multiple
    if fused:
        mlp = fused_mlp(hidden=hidden, width=width, names=("ffn.proj_up_gate_z", "ffn.proj_down"), bias=bias)
    else:
        names = ("proj_up_gate", "proj_up", "proj_down")
        mlp = gated_mlp(hidden=hidden, width=width, bias=bias, prefix="ffn", names=names)
    layer = Layer((_matrix_lstm(config, fused), mlp), norms(("norm_mlstm", "norm_ffn"), hidden, bias=bias))
    return Architecture(
        family="xlstm",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=(layer,) * config.num_hidden_layers,
        embedding=embedding("backbone.embeddings", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=False),
        outer=norm("backbone.out_norm", hidden),
        layer_names="backbone.blocks",
        dtype=config.dtype,
    )


def _check(config: Config) -> None:
    """Both spellings have to agree, and the reference has to be able to follow."""
    if config.embedding_dim not in (None, config.hidden_size):
        raise config.refusal("embedding_dim", f"is {config.embedding_dim}, and hidden_size is {config.hidden_size}")
    if config.num_blocks not in (None, config.num_hidden_layers):
        raise config.refusal("num_blocks", f"is {config.num_blocks} for {config.num_hidden_layers} layers")
    if not config.add_out_norm:
        raise config.refusal("add_out_norm", "is false, and the reference always has this norm")
    if config.tie_word_embeddings:
        raise config.refusal("tie_word_embeddings", "is true, and the reference does not tie")
    keys, values = _widths(config)
    if keys % config.num_heads or values % config.num_heads:
        raise config.refusal("num_heads", f"is {config.num_heads} and does not divide {keys:,} and {values:,} channels")
    if config.head_dim not in (None, values // config.num_heads):
        raise config.refusal("head_dim", f"is {config.head_dim}; the factors make {values // config.num_heads}")


def _widths(config: Config) -> tuple[int, int]:
    """Channels of queries and keys, and of values."""
    return int(config.hidden_size * config.qk_dim_factor), int(config.hidden_size * config.v_dim_factor)


def _matrix_lstm(config: Config, fused: bool) -> StateSpace:
    """The matrix LSTM (arXiv:2405.04517): per head a matrix, a normaliser of the key's width and one maximum.

    Its scan costs, per head and token, 5 × key width × value width FLOP: decay 1, outer product 2, query · state 2.
    """
    hidden, heads, path = config.hidden_size, config.num_heads, "mlstm_layer"
    keys, values = _widths(config)

    def matrix(name: str, inputs: int, outputs: int, bias: bool = config.use_bias) -> tuple[Weight, ...]:
        return linear(f"{path}.{name}", inputs=inputs, outputs=outputs, part=Part.STATE_SPACE, bias=bias)

    if fused:
        weights = matrix("qkv_opreact", hidden, 2 * keys + 2 * values)
        weights += matrix("ifgate_preact", hidden, 2 * heads, bias=True)
    else:
        weights = matrix("q", hidden, keys) + matrix("k", hidden, keys)
        weights += matrix("v", hidden, values) + matrix("ogate_preact", hidden, values)
        weights += matrix("igate_preact", hidden, heads, bias=True) + matrix("fgate_preact", hidden, heads, bias=True)
    weights += norm(f"{path}.multihead_norm", values, bias=config.use_bias)
    weights += matrix("out_proj", values, hidden)
    products = keys * values // heads
    return StateSpace(
        kind="matrix LSTM",
        weights=weights,
        state=products + keys + heads,
        scan_flops=5 * products,
        state_bytes=STATE_BYTES[config.inference_state_dtype],
    )
