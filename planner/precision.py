"""Number formats: the exact bytes of a tensor in each, and the recipes behind ``--precision X``.

A ``NumberFormat`` says how a matrix is laid out: bits per weight, what is stored per block of weights (scale, zero
point), and what is stored once per tensor. ``bytes_for`` turns a shape into bytes. A *recipe* says which of a model's
tensors get the format, because no format is ever used for all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import prod
from types import MappingProxyType
from typing import Protocol

from planner.architecture import Architecture, Attention, Layer, Mlp, Moe, Part, Use, Weight, layer_weights
from planner.errors import PlanError, did_you_mean


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """How the weights of one tensor are stored.

    ``bits`` per weight without scales. ``block`` is (rows, columns) of weights that share ``scale_bits`` +
    ``zero_bits``; None stands for all rows or all columns, so (1, None) is per output channel, (1, 128) groups of 128
    inputs, (None, None) per tensor; ``block`` None means no scales. ``flat``: blocks run over the whole tensor, not
    row by row (bitsandbytes). ``padded``: whole blocks are stored at a ragged edge (GGUF). ``word_bits``: each line of
    weights is padded to whole words, lines running along the inputs, or along the outputs with ``packs_outputs``.
    ``packed_zeros``: zero points of one group are packed over the outputs into such words. ``super_block``: so many
    blocks share ``super_scale_bits`` more (double quantisation). ``column_bits`` are stored per input column (GPTQ's
    group index), ``tensor_bits`` once per matrix.

    ``multiply`` is the arithmetic that engines use for it (weights that are only stored narrow are multiplied in 16
    bit); ``fastest`` the fastest unit that an engine may use, which a floor must grant.
    """

    name: str
    bits: Fraction
    multiply: str
    fastest: str
    block: tuple[int | None, int | None] | None = None
    scale_bits: int = 0
    zero_bits: int = 0
    super_block: int = 0
    super_scale_bits: int = 0
    column_bits: int = 0
    tensor_bits: int = 0
    word_bits: int = 0
    packs_outputs: bool = False
    packed_zeros: bool = False
    flat: bool = False
    padded: bool = False

    @property
    def bits_per_weight(self) -> Fraction:
        """Bits per weight of a large matrix: blocks count, what is stored per row, column or tensor vanishes."""
        rows, columns = self.block or (None, None)
        if rows is None or columns is None:
            return self.bits
        shared = self.scale_bits + self.zero_bits + (Fraction(self.super_scale_bits, self.super_block or 1))
        return self.bits + shared / (rows * columns)


def _ceil(value: int | Fraction, step: int = 1) -> int:
    return -(-value // step)


@lru_cache(maxsize=65536)
def layout(shape: tuple[int, ...], form: NumberFormat) -> tuple[int, int]:
    """Bytes of the weights, and bytes of scales, zero points and whatever else stands beside them.

    The last dimension is the inputs, the one before it the outputs; further ones count equal matrices.

    >>> layout((4096, 512), FORMATS["fp8-block"])
    (2097152, 512)
    """
    if len(shape) > 2:
        payload, beside = layout(shape[-2:], form)
        return payload * prod(shape[:-2]), beside * prod(shape[:-2])
    rows, columns = shape if len(shape) == 2 else (1, prod(shape))
    return _payload_bytes(rows, columns, form), _beside_bytes(rows, columns, form)


def _payload_bytes(rows: int, columns: int, form: NumberFormat) -> int:
    if form.padded and form.block and form.block[1]:
        return rows * _ceil(columns, form.block[1]) * int(form.bits * form.block[1]) // 8
    if form.word_bits:
        line, lines = (rows, columns) if form.packs_outputs else (columns, rows)
        return lines * _ceil(form.bits * line, form.word_bits) * form.word_bits // 8
    return _ceil(form.bits * rows * columns, 8)


def _beside_bytes(rows: int, columns: int, form: NumberFormat) -> int:
    bits = form.tensor_bits + form.column_bits * columns
    if form.block is not None:
        block_rows, block_columns = form.block[0] or rows, form.block[1] or columns
        blocks = _ceil(rows, block_rows) * _ceil(columns, block_columns)
        if form.flat:
            blocks = _ceil(rows * columns, block_columns)
        bits += blocks * form.scale_bits
        if form.packed_zeros:
            bits += _ceil(columns, block_columns) * _ceil(form.zero_bits * rows, form.word_bits) * form.word_bits
        else:
            bits += blocks * form.zero_bits
        if form.super_block:
            bits += _ceil(blocks, form.super_block) * form.super_scale_bits
    return _ceil(bits, 8)


def bytes_for(shape: tuple[int, ...], form: NumberFormat) -> int:
    """Exact bytes of a tensor with its scales; blocks at a ragged edge count whole scales.

    >>> bytes_for((4096, 4096), FORMATS["int4"]), bytes_for((4096, 4096), FORMATS["q4_k"])
    (8650752, 9437184)
    """
    return sum(layout(shape, form))


def cache_bytes(elements: int, form: NumberFormat) -> int:
    """Bytes of ``elements`` cached values; per-tensor and per-channel scales of a cache are not worth counting.

    >>> cache_bytes(61 * 576 * 32768, FORMATS["q8_0"])
    1223294976
    """
    return _ceil(form.bits_per_weight * elements, 8)


# --- the table ------------------------------------------------------------------------------------------------------


def _plain(name: str, bits: int, multiply: str | None = None) -> NumberFormat:
    return NumberFormat(name, Fraction(bits), multiply or name, multiply or name)


def group_format(
    name: str,
    bits: int,
    group: int | None,
    *,
    scale_bits: int = 16,
    zero_bits: int = 0,
    multiply: str = "bf16",
    fastest: str = "int8",
    word_bits: int = 32,
) -> NumberFormat:
    """Integers in groups of ``group`` inputs (None: one group per output), packed into whole words."""
    return NumberFormat(
        name,
        Fraction(bits),
        multiply,
        fastest,
        (1, group),
        scale_bits=scale_bits,
        zero_bits=zero_bits,
        word_bits=word_bits if bits < 8 else 0,
        packed_zeros=zero_bits > 0 and bits < 8,
    )


def gptq_format(bits: int, group: int | None) -> NumberFormat:
    """GPTQ: int32 words along the inputs, fp16 scales, packed zero points, and an int32 group index per input."""
    return NumberFormat(
        f"gptq-int{bits}" + ("" if group == 128 else f"-g{group or 'channel'}"),
        Fraction(bits),
        "fp16",
        "int8",
        (1, group),
        scale_bits=16,
        zero_bits=bits,
        word_bits=32,
        packed_zeros=True,
        column_bits=32,
    )


def awq_format(group: int | None) -> NumberFormat:
    """AWQ (gemm): int32 words along the outputs, fp16 scales, packed zero points."""
    return NumberFormat(
        "awq-int4" + ("" if group == 128 else f"-g{group or 'channel'}"),
        Fraction(4),
        "fp16",
        "int8",
        (1, group),
        scale_bits=16,
        zero_bits=4,
        word_bits=32,
        packs_outputs=True,
        packed_zeros=True,
    )


def bnb_format(kind: str, *, block: int = 64, double: bool = False) -> NumberFormat:
    """bitsandbytes 4 bit: one absmax per 64 weights in fp32, or in 8 bit with an fp32 per 256 of them."""
    name = f"{kind}-double" if double else kind
    return NumberFormat(
        name,
        Fraction(4),
        "bf16",
        "int8",
        (1, block),
        scale_bits=8 if double else 32,
        super_block=256 if double else 0,
        super_scale_bits=32 if double else 0,
        flat=True,
    )


def _eight_bit(name: str, unit: str, block: tuple[int | None, int | None], scale_bits: int) -> NumberFormat:
    return NumberFormat(name, Fraction(8), unit, unit, block, scale_bits=scale_bits)


# ggml block layouts (ggml-common.h): weights per block, bytes per block, of which scales and minima. Where a type
# interleaves sub-block scales with indices (IQ1_S, IQ2_XXS, IQ3_XXS) those bits count as weights.
_GGML: dict[str, tuple[int, int, int]] = {
    "q1_0": (128, 18, 2),
    "q4_0": (32, 18, 2),
    "q4_1": (32, 20, 4),
    "q5_0": (32, 22, 2),
    "q5_1": (32, 24, 4),
    "q8_0": (32, 34, 2),
    "q8_1": (32, 40, 8),
    "q2_k": (256, 84, 20),
    "q3_k": (256, 110, 14),
    "q4_k": (256, 144, 16),
    "q5_k": (256, 176, 16),
    "q6_k": (256, 210, 18),
    "q8_k": (256, 292, 36),
    "iq1_s": (256, 50, 2),
    "iq1_m": (256, 56, 8),
    "iq2_xxs": (256, 66, 2),
    "iq2_xs": (256, 74, 10),
    "iq2_s": (256, 82, 10),
    "iq3_xxs": (256, 98, 2),
    "iq3_s": (256, 110, 6),
    "iq4_nl": (32, 18, 2),
    "iq4_xs": (256, 136, 8),
    "tq1_0": (256, 54, 2),
    "tq2_0": (256, 66, 2),
    "gguf-mxfp4": (32, 17, 1),
    "gguf-nvfp4": (64, 36, 4),
}


def _ggml(name: str) -> NumberFormat:
    weights, size, beside = _GGML[name]
    bits = Fraction(8 * (size - beside), weights)
    return NumberFormat(name, bits, "int8", "int8", (1, weights), scale_bits=8 * beside, padded=True)


_TABLE = (
    _plain("fp64", 64),
    _plain("fp32", 32),
    _plain("tf32", 32),
    _plain("bf16", 16),
    _plain("fp16", 16),
    _eight_bit("fp8", "fp8", (1, None), 16),
    _eight_bit("fp8-block", "fp8", (128, 128), 32),
    _eight_bit("fp8-tensor", "fp8", (None, None), 32),
    _eight_bit("int8", "int8", (1, None), 16),
    _eight_bit("bnb-int8", "int8", (1, None), 32),
    replace(_eight_bit("int8-weight-only", "bf16", (1, None), 16), fastest="int8"),
    NumberFormat("fp6", Fraction(6), "bf16", "fp6", (1, None), scale_bits=16),
    group_format("int4", 4, 128),
    gptq_format(4, 128),
    gptq_format(8, 128),
    awq_format(128),
    bnb_format("nf4"),
    bnb_format("nf4", double=True),
    bnb_format("fp4"),
    bnb_format("fp4", double=True),
    NumberFormat("mxfp4", Fraction(4), "bf16", "fp4", (1, 32), scale_bits=8),
    NumberFormat("mxfp6", Fraction(6), "fp6", "fp6", (1, 32), scale_bits=8),
    NumberFormat("mxfp8", Fraction(8), "fp8", "fp8", (1, 32), scale_bits=8),
    NumberFormat("nvfp4", Fraction(4), "fp4", "fp4", (1, 16), scale_bits=8, tensor_bits=32),
    *(_ggml(name) for name in _GGML),
)
FORMATS: Mapping[str, NumberFormat] = MappingProxyType({form.name: form for form in _TABLE})

_ALIASES = {
    **dict.fromkeys(("float64", "f64", "double"), "fp64"),
    **dict.fromkeys(("float32", "float", "f32"), "fp32"),
    **dict.fromkeys(("bfloat16",), "bf16"),
    **dict.fromkeys(("float16", "half", "f16"), "fp16"),
    **dict.fromkeys(("f8_e4m3", "f8_e5m2", "fp8_e4m3", "fp8_e5m2", "e4m3", "e5m2", "f8", "float8"), "fp8"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3", "float8_e4m3fnuz", "float8_e5m2"), "fp8"),
    **dict.fromkeys(("fp8-channel", "fp8-dynamic", "w8a8-fp8"), "fp8"),
    **dict.fromkeys(("fp8-128x128", "block-fp8", "deepseek-fp8"), "fp8-block"),
    **dict.fromkeys(("fp8-per-tensor", "fp8-static", "modelopt-fp8"), "fp8-tensor"),
    **dict.fromkeys(("w8a8", "i8", "smoothquant", "int8-channel"), "int8"),
    **dict.fromkeys(("w8a16", "int8-wo", "eetq"), "int8-weight-only"),
    **dict.fromkeys(("bitsandbytes-int8", "bnb-8bit", "llm.int8", "llm-int8"), "bnb-int8"),
    **dict.fromkeys(("w4a16", "i4", "int4-g128", "w4a16-g128"), "int4"),
    **dict.fromkeys(("gptq", "gptq-4bit", "gptq-int4-g128"), "gptq-int4"),
    **dict.fromkeys(("awq", "awq-4bit", "awq-int4-g128"), "awq-int4"),
    **dict.fromkeys(("bnb-nf4", "bnb-4bit", "bitsandbytes-nf4", "bitsandbytes-4bit", "qlora"), "nf4"),
    **dict.fromkeys(("nf4-dq", "bnb-nf4-double", "nf4-double-quant"), "nf4-double"),
    **dict.fromkeys(("bnb-fp4", "bitsandbytes-fp4"), "fp4"),
    **dict.fromkeys(("fp4-dq", "bnb-fp4-double"), "fp4-double"),
    **dict.fromkeys(("fp6-llm", "e3m2", "e2m3"), "fp6"),
    **dict.fromkeys(("w4a4-nvfp4", "nvfp4-g16"), "nvfp4"),
    **dict.fromkeys(("mxfp4-gguf",), "gguf-mxfp4"),
    **dict.fromkeys(("nvfp4-gguf",), "gguf-nvfp4"),
}


def _spelling(text: str) -> str:
    """Lower case without ``torch.``; GGUF names keep their underscores, the others take dashes."""
    word = text.strip().lower().removeprefix("torch.")
    known = word in FORMATS or word in _ALIASES or word in MIXTURES
    return word if known else word.replace("_", "-").replace(" ", "-")


def parse_format(text: str) -> NumberFormat:
    """The number format of that name or alias.

    >>> parse_format("torch.bfloat16").name, parse_format("F8_E4M3").name, parse_format("Q8_0").name
    ('bf16', 'fp8', 'q8_0')

    Raises:
        PlanError: unknown; names the nearest. A GGUF mixture such as ``q4_k_m`` is several formats: see ``recipe``.
    """
    word = _spelling(text)
    word = _ALIASES.get(word, word)
    if word in FORMATS:
        return FORMATS[word]
    if word in MIXTURES:
        raise PlanError(
            f"{text!r} is a mixture of number formats, not one of them; as a cache or tensor format take for example "
            f"{MIXTURES[word][0]}"
        )
    near = did_you_mean(word, [*FORMATS, *_ALIASES])
    raise PlanError(f"{text!r} is not a number format that is known here{near or '; known: ' + ', '.join(FORMATS)}")


_NO_CACHE = re.compile(r"^(gptq|awq|nf4|fp4|bnb|int4$|fp6|iq|tq|q1_0|q\d_k|q8_1)")


def parse_cache_format(text: str) -> NumberFormat:
    """A format for keys and values: 16 or 32 bit, 8 bit with scales that do not count, or a GGUF block type.

    Raises:
        PlanError: unknown, or a format that no engine keeps a cache in.
    """
    form = parse_format(text)
    if _NO_CACHE.match(form.name):
        raise PlanError(
            f"{text!r} is a format for weights, not for a cache; caches are kept for example in bf16, fp16, fp8, int8, "
            "q8_0, q4_0 or nvfp4"
        )
    return form


def dtype_format(dtype: str | None) -> NumberFormat | None:
    """The format that a config's ``dtype`` names; None where it names none, because then nobody knows.

    >>> dtype_format("torch.bfloat16").name, dtype_format(None)
    ('bf16', None)
    """
    return None if dtype is None or dtype == "auto" else parse_format(dtype)


# --- what a tensor is -----------------------------------------------------------------------------------------------

_CONVOLUTION = re.compile(r"(^|[._])conv(1d|2d|3d|olution)?($|[._\d])|patch_embed(ding)?(\.proj)?$")


def is_linear(weight: Weight) -> bool:
    """Whether the tensor is the matrix of a linear layer, the one thing that quantisation methods look for."""
    return (
        len(weight.shape) == 2
        and not weight.is_bias
        and not weight.buffer
        and weight.use in (Use.MULTIPLIED, Use.ROUTED, Use.UNUSED)
        and weight.part not in (Part.EMBEDDING, Part.NORM)
        and not _CONVOLUTION.search(weight.name)
    )


def is_router(weight: Weight) -> bool:
    """Whether the tensor chooses experts (or weighs the shared one); engines keep it in 16 bit."""
    if weight.part is Part.ROUTER or weight.name.endswith(("shared_expert_gate", "shared_experts_gate")):
        return True
    return weight.part is Part.MTP and weight.name.rsplit(".", 1)[-1] in ("gate", "router")


def is_kept_wide(full_name: str) -> bool:
    """Matrices that published 8- and 4-bit files leave wide: MTP input projection, indexer head weights."""
    return full_name.endswith(("eh_proj", "indexer.weights_proj"))


# --- recipes --------------------------------------------------------------------------------------------------------


class Assignment(Protocol):
    """Which number format each tensor of a model has.

    ``by_layer`` says whether equal layers may differ. ``format_of`` answers None for "as the model itself is".
    """

    @property
    def by_layer(self) -> bool: ...

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat | None: ...


@dataclass(frozen=True, slots=True)
class Recipe:
    """The usual way to put a model into ``form``: ``scope`` is "everything", "linear layers" or "experts".

    What is outside the scope stays in ``rest`` (16 bit): embedding, LM head, norms, biases, router, towers, MTP.
    """

    name: str
    form: NumberFormat
    rest: NumberFormat
    scope: str
    approximate: bool = False
    by_layer: bool = False

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat | None:
        """The format of a tensor."""
        if self.scope == "everything" or (self.scope == "experts" and weight.use is Use.ROUTED and is_linear(weight)):
            return self.form
        outside = weight.part in (Part.LM_HEAD, Part.VISION, Part.MTP) or is_router(weight) or is_kept_wide(full_name)
        return self.form if self.scope == "linear layers" and is_linear(weight) and not outside else self.rest

    def describe(self) -> str:
        """The recipe in words."""
        if self.scope == "everything":
            return f"every tensor in {self.form.name}"
        kept = "everything else" if self.scope == "experts" else "embedding, LM head, norms, biases, router and towers"
        return f"{self.scope} in {self.form.name}; {kept} in {self.rest.name}"


def recipe(text: str, architecture: Architecture) -> Recipe | GgufRecipe:
    """What ``--precision text`` means for this model.

    Raises:
        PlanError: unknown name; names the nearest.
    """
    word = _spelling(text)
    word = _ALIASES.get(word, word)
    if word in MIXTURES:
        return _gguf_recipe(word, architecture)
    if word not in FORMATS:
        near = did_you_mean(word, [*FORMATS, *_ALIASES, *MIXTURES])
        raise PlanError(f"precision {text!r} is not known{near or '; known: ' + ', '.join([*FORMATS, *MIXTURES])}")
    form = FORMATS[word]
    if form.block is None:
        return Recipe(word, form, form, "everything")
    return Recipe(word, form, _sixteen_bit(architecture), _scope(form, architecture))


def _sixteen_bit(architecture: Architecture) -> NumberFormat:
    own = dtype_format(architecture.dtype)
    return own if own is not None and own.name in ("bf16", "fp16") else FORMATS["bf16"]


def _scope(form: NumberFormat, architecture: Architecture) -> str:
    """MXFP4 is used for experts where there are any (gpt-oss); the other formats for all linear layers."""
    experts = any(isinstance(block, Moe) for layer in set(architecture.layers) for block in layer.blocks)
    return "experts" if form.name == "mxfp4" and experts else "linear layers"


# --- GGUF mixtures --------------------------------------------------------------------------------------------------

# llama.cpp's names for files: the base type, and whether an importance matrix (which we assume absent) changes types.
MIXTURES: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        **{name: (name, False) for name in ("q4_0", "q4_1", "q5_0", "q5_1", "q6_k", "q8_0", "tq1_0", "tq2_0")},
        **{f"q3_k{size}": ("q3_k", False) for size in ("", "_s", "_m", "_l")},
        **{f"q4_k{size}": ("q4_k", False) for size in ("", "_s", "_m")},
        **{f"q5_k{size}": ("q5_k", False) for size in ("", "_s", "_m")},
        "q2_k": ("q2_k", False),
        "q2_k_s": ("q2_k", True),
        "iq4_nl": ("iq4_nl", True),
        "iq4_xs": ("iq4_xs", True),
        "iq3_xxs": ("iq3_xxs", True),
        "iq3_xs": ("iq3_s", True),
        "iq3_s": ("iq3_s", True),
        "iq3_m": ("iq3_s", True),
        "iq2_xxs": ("iq2_xxs", True),
        "iq2_xs": ("iq2_xs", True),
        "iq2_s": ("iq2_xs", True),
        "iq2_m": ("iq2_s", True),
        "iq1_s": ("iq1_s", True),
        "iq1_m": ("iq1_m", True),
        "mxfp4_moe": ("gguf-mxfp4", False),
    }
)
_SAME_FILE = {"q3_k": "q3_k_m", "q4_k": "q4_k_m", "q5_k": "q5_k_m"}

# Our tensor names (the last component) -> llama.cpp's.
_GGUF_ATTENTION = {
    "attn_v": ("v_proj", "value", "v"),
    "attn_k": ("k_proj", "key", "k"),
    "attn_q": ("q_proj", "query", "q", "q_b_proj"),
    "attn_qkv": ("qkv_proj", "query_key_value", "c_attn", "Wqkv", "qkv", "in_proj_qkv", "in_proj_qkvz", "wqkv"),
    "attn_output": ("o_proj", "out_proj", "dense", "c_proj", "wo", "output"),
}
_GGUF_MLP = {
    "ffn_down": ("down_proj", "w2", "fc2", "fc_out", "c_proj", "dense_4h_to_h", "output_linear", "wo"),
    "ffn_gate": ("gate_proj", "w1"),
}
_FALLBACK = {
    **dict.fromkeys(("tq1_0", "tq2_0"), "q4_0"),
    **dict.fromkeys(("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"), "iq4_nl"),
    **dict.fromkeys(("q2_k", "q3_k", "iq4_xs"), "iq4_nl"),
    **{"q4_k": "q5_0", "q5_k": "q5_1", "q6_k": "q8_0"},
}
_IQ_LOW = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq2_m")
_INDEX = re.compile(r"\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class GgufRecipe:
    """A GGUF file type: llama.cpp's choice of a block type for each tensor (``llama_tensor_get_type``).

    Written from knowledge of that function as of 2025, without an importance matrix: output in Q6_K, ``attn_v`` and
    ``ffn_down`` upgraded in the layers that ``use_more_bits`` names, rows that do not divide by the block in the
    fallback type, vectors and the router in F32, towers in F16 (their own file). Exact in the tests against the tensor
    sizes that llama.cpp prints for Llama 2 and 3; ``approximate`` is True for file types whose published files are
    made with an importance matrix, and for mixers whose tensors GGUF splits or renames (MLA, state space, MTP).
    """

    name: str
    form: NumberFormat
    layers: int
    value_layers: tuple[int, ...]
    queries_per_key: int
    experts: int
    tied: bool
    falcon: bool
    seventy: bool
    layer_names: str
    approximate: bool
    by_layer: bool = True

    def describe(self) -> str:
        """The recipe in words."""
        about = ", tensor by tensor as far as llama.cpp's rules are known here" if self.approximate else ""
        return f"a {self.name.upper()} file as llama.cpp makes it (mostly {self.form.name}{about}); vectors in fp32"

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat | None:
        """The format of a tensor."""
        if weight.part is Part.VISION:
            return FORMATS["fp16"] if len(weight.shape) > 1 else FORMATS["fp32"]
        if is_router(weight) or weight.buffer or weight.part is Part.NORM:
            return FORMATS["fp32"]
        table = len(weight.shape) == 2 and weight.use is Use.LOOKED_UP and "pos" not in weight.name
        if not table and not is_linear(weight):
            return FORMATS["fp32"]
        chosen = self._type(full_name, weight)
        if weight.shape[-1] % _GGML[chosen][0]:
            chosen = _FALLBACK.get(chosen, "fp16")
            if chosen in _GGML and weight.shape[-1] % _GGML[chosen][0]:
                chosen = "fp16"
        return FORMATS[chosen]

    def _type(self, full_name: str, weight: Weight) -> str:
        if weight.part is Part.LM_HEAD or (self.tied and weight.part is Part.EMBEDDING):
            return self._output(weight)
        if self.name == "mxfp4_moe":
            return "gguf-mxfp4" if weight.use is Use.ROUTED else "q8_0"
        if weight.use is Use.LOOKED_UP:
            return self._embedding()
        match = _INDEX.search(full_name.removeprefix(self.layer_names))
        layer = int(match.group(1)) if match else 0
        return self._matrix(_gguf_role(weight), layer)

    def _matrix(self, role: str, layer: int) -> str:
        if self.name in _IQ_LOW:
            return self._low(role, layer)
        if role == "attn_v":
            return self._value(layer)
        return self._down(layer) if role == "ffn_down" else self._other(role, layer)

    def _output(self, weight: Weight) -> str:
        base = self.form.name
        if self.name == "mxfp4_moe" or self.falcon or weight.shape[-1] % _GGML[base][0]:
            return "q8_0"
        if self.name in (*_IQ_LOW, "iq3_xxs"):
            return "q5_k"
        return base if base == "q8_0" else "q6_k"

    def _embedding(self) -> str:
        if self.name in ("iq2_xxs", "iq2_xs", "iq1_s", "iq1_m"):
            return "q2_k"
        if self.name in ("iq2_s", "iq2_m", "iq3_xxs"):
            return "iq3_s"
        return "q4_k" if self.name in ("tq1_0", "tq2_0") else self.form.name

    def _more(self, index: int, count: int) -> bool:
        """llama.cpp's ``use_more_bits``: the first and last eighth, and every third layer between."""
        return index < count // 8 or index >= 7 * count // 8 or (index - count // 8) % 3 == 2

    def _value(self, layer: int) -> str:
        index = self.value_layers.index(layer) if layer in self.value_layers else layer
        grouped = self.queries_per_key >= 4
        chosen = self.form.name
        if self.name == "q2_k":
            chosen = "q4_k" if grouped else "q3_k"
        elif (self.name in ("q2_k_s", "iq3_xs", "iq3_s") and grouped) or self.name == "iq3_m":
            chosen = "q4_k"
        elif self.name == "iq3_xxs":
            chosen = "q4_k" if grouped else "iq3_s"
        elif self.name == "q3_k_m":
            chosen = "q5_k" if index < 2 else "q4_k"
        elif self.name == "q3_k_l" or (self.name in ("iq4_nl", "iq4_xs") and grouped):
            chosen = "q5_k"
        elif self.name in ("q4_k_m", "q5_k_m") and self._more(index, len(self.value_layers)):
            chosen = "q6_k"
        elif self.name == "q4_k_s" and index < 4:
            chosen = "q5_k"
        if self.seventy and chosen in ("q3_k", "q4_k"):
            chosen = "q5_k"
        return "q8_0" if self.experts == 8 else chosen

    def _down(self, layer: int) -> str:
        early, more = layer < self.layers // 8, self._more(layer, self.layers)
        chosen = self.form.name
        if self.name == "q2_k":
            chosen = "q3_k"
        elif self.name == "q2_k_s" and early:
            chosen = "q4_k"
        elif self.name == "iq3_xxs":
            chosen = "q4_k" if early else "q3_k"
        elif self.name == "q3_k_m":
            first = layer < self.layers // 16
            chosen = "q5_k" if first else "q4_k" if not self.falcon or more else "q3_k"
        elif self.name == "iq3_m" and (early or (self.experts == 8 and more)):
            chosen = "q4_k"
        elif self.name == "q3_k_l":
            chosen = "q4_k" if self.falcon else "q5_k"
        elif self.name == "q4_k_m" and self.falcon:
            chosen = "q6_k" if layer < self.layers // 16 else "q5_k" if more else "q4_k"
        elif self.name in ("q4_k_m", "q5_k_m") and more:
            chosen = "q6_k"
        elif early and (self.name in ("iq4_nl", "iq4_xs") or (self.name == "q4_k_s" and not self.falcon)):
            chosen = "q5_k"
        return chosen

    def _other(self, role: str, layer: int) -> str:
        chosen: dict[str, str] = {}
        if role == "attn_output" and not self.falcon:
            if self.experts == 8:
                small = ("q2_k", "q3_k_s", "q3_k_m", "q4_k_s", "q4_k_m")
                chosen = dict.fromkeys((*small, "iq3_xxs", "iq3_xs", "iq3_s", "iq3_m", "iq4_nl", "iq4_xs"), "q5_k")
            else:
                chosen = {"q2_k": "q3_k", "iq3_xxs": "iq3_s", "q3_k_m": "q4_k", "q3_k_l": "q5_k", "iq3_m": "q4_k"}
        elif role == "attn_output":
            chosen = {"q3_k_l": "q4_k"}
        elif role == "attn_k" and self.experts == 8:
            return "q8_0"
        elif role in ("attn_k", "attn_q"):
            chosen = {"iq3_xs": "iq3_xxs", "iq3_xxs": "iq2_s"}
        elif role == "attn_qkv":
            chosen = {"q3_k_m": "q4_k", "q3_k_l": "q4_k", "iq3_m": "q4_k", "q4_k_m": "q5_k", "q5_k_m": "q6_k"}
        elif role in ("ffn_gate", "ffn_up") and self.layers // 8 <= layer < 7 * self.layers // 8:
            chosen = {"iq3_xs": "iq3_xxs"}
        return chosen.get(self.name, self.form.name)

    def _low(self, role: str, layer: int) -> str:
        small = "iq3_s" if self.name in ("iq2_s", "iq2_m") else "q2_k"
        if role == "attn_v":
            return "q4_k" if self.queries_per_key >= 4 or self.experts >= 4 else small
        if role == "attn_k" and self.experts == 8:
            return "q4_k"
        if role == "ffn_down" and layer < self.layers // 8:
            return small
        if role == "attn_output":
            if self.experts == 8:
                return "q5_k"
            upgraded = {"iq1_s": "iq2_xxs", "iq1_m": "iq2_xxs", "iq2_s": "iq3_s", "iq2_m": "iq3_s"}
            return upgraded.get(self.name, self.form.name)
        return self.form.name


def _gguf_role(weight: Weight) -> str:
    last = weight.name.rsplit(".", 1)[-1]
    names = _GGUF_MLP if weight.part in (Part.MLP, Part.EXPERTS, Part.SHARED_EXPERTS) else _GGUF_ATTENTION
    for role, spellings in names.items():
        if last in spellings and (weight.part is not Part.STATE_SPACE or role == "attn_qkv"):
            return role
    return "ffn_up" if names is _GGUF_MLP else "other"


@lru_cache(maxsize=256)
def _gguf_recipe(word: str, architecture: Architecture) -> GgufRecipe:
    name = _SAME_FILE.get(word, word)
    base, importance = MIXTURES[word]
    layers = architecture.layers
    attentions = [block for layer in layers for block in layer.blocks if isinstance(block, Attention)]
    ratio = attentions[0].heads // attentions[0].kv_heads if attentions else 1
    return GgufRecipe(
        name=name,
        form=FORMATS[base],
        layers=len(layers),
        value_layers=tuple(i for i, layer in enumerate(layers) if _has_values(layer)),
        queries_per_key=ratio,
        experts=max((block.experts for layer in layers for block in layer.blocks if isinstance(block, Moe)), default=0),
        tied=architecture.tied,
        falcon=architecture.model_type in ("falcon", "RefinedWeb", "RefinedWebModel"),
        seventy=architecture.model_type in ("llama", "qwen2") and len(layers) == 80 and ratio > 1,
        layer_names=architecture.layer_names,
        approximate=importance or not _plain_stack(architecture),
    )


def _has_values(layer: Layer) -> bool:
    return any(_gguf_role(weight) in ("attn_v", "attn_qkv") for weight in layer_weights(layer))


def _plain_stack(architecture: Architecture) -> bool:
    blocks = (block for layer in set(architecture.layers) for block in layer.blocks)
    known = all(isinstance(block, Attention | Mlp | Moe) for block in blocks)
    return known and not architecture.encoder and not architecture.components and not architecture.unread
