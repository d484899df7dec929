"""Number formats, their bytes, and the recipes behind ``--precision``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture import Architecture, Component, Part, Use, Weight
from planner.blocks import (
    embedding,
    gated_mlp,
    grouped_query_attention,
    lm_head,
    mixture_of_experts,
    norm,
    pre_norm_layer,
)
from planner.errors import PlanError
from planner.precision import (
    FORMATS,
    MIXTURES,
    GgufRecipe,
    NumberFormat,
    Recipe,
    bytes_for,
    cache_bytes,
    dtype_format,
    layout,
    parse_cache_format,
    parse_format,
    recipe,
)
from planner.quantization import assigned_weights, component_weights, stored_bytes


def dense(
    *,
    hidden: int = 4096,
    layers: int = 32,
    heads: int = 32,
    kv_heads: int = 8,
    width: int = 14336,
    vocabulary: int = 128256,
    tied: bool = False,
    dtype: str | None = "bfloat16",
) -> Architecture:
    """A Llama; the defaults are Llama-3.1-8B."""
    attention = grouped_query_attention(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=hidden // heads)
    return Architecture(
        "llama",
        "llama",
        hidden,
        vocabulary,
        (pre_norm_layer(attention, gated_mlp(hidden=hidden, width=width), hidden=hidden),) * layers,
        embedding("model.embed_tokens", rows=vocabulary, width=hidden),
        lm_head(vocabulary=vocabulary, hidden=hidden, tied=tied),
        norm("model.norm", hidden),
        dtype=dtype,
    )


LLAMA_8B = dense()
LLAMA_2_7B = dense(kv_heads=32, width=11008, vocabulary=32000)


def total(architecture: Architecture, precision: str) -> int:
    return stored_bytes(architecture, recipe(precision, architecture), FORMATS["bf16"]).total


# --- block layouts ---


@pytest.mark.parametrize(
    ("name", "weights", "size"),
    [
        # GGML_QUANT_SIZES of the gguf package 0.19.0, the published description of the file format.
        *(("q4_0", 32, 18), ("q4_1", 32, 20), ("q5_0", 32, 22), ("q5_1", 32, 24), ("q8_0", 32, 34), ("q8_1", 32, 40)),
        *(("q2_k", 256, 84), ("q3_k", 256, 110), ("q4_k", 256, 144), ("q5_k", 256, 176), ("q6_k", 256, 210)),
        *(("q8_k", 256, 292), ("iq2_xxs", 256, 66), ("iq2_xs", 256, 74), ("iq2_s", 256, 82), ("iq3_xxs", 256, 98)),
        *(("iq3_s", 256, 110), ("iq1_s", 256, 50), ("iq1_m", 256, 56), ("iq4_nl", 32, 18), ("iq4_xs", 256, 136)),
        *(("tq1_0", 256, 54), ("tq2_0", 256, 66), ("gguf-mxfp4", 32, 17), ("gguf-nvfp4", 64, 36), ("q1_0", 128, 18)),
    ],
)
def test_ggml_blocks_have_the_published_sizes(name: str, weights: int, size: int) -> None:
    form = FORMATS[name]
    assert bytes_for((1, weights), form) == size
    assert bytes_for((7, 3 * weights), form) == 21 * size
    assert bytes_for((1, weights + 1), form) == 2 * size  # a started block is stored whole
    assert form.bits_per_weight == Fraction(8 * size, weights)


# Every example is a matrix of 4096 outputs and 512 inputs: 2,097,152 weights.
ROWS, COLUMNS = 4096, 512
WEIGHTS = ROWS * COLUMNS


@pytest.mark.parametrize(
    ("name", "payload", "beside"),
    [
        ("fp64", 8 * WEIGHTS, 0),
        ("fp32", 4 * WEIGHTS, 0),
        ("tf32", 4 * WEIGHTS, 0),
        ("bf16", 2 * WEIGHTS, 0),
        ("fp16", 2 * WEIGHTS, 0),
        ("fp8", WEIGHTS, 2 * ROWS),  # a 16-bit scale per output
        ("fp8-block", WEIGHTS, 4 * 32 * 4),  # 4096/128 × 512/128 fp32 scales
        ("fp8-tensor", WEIGHTS, 4),
        ("int8", WEIGHTS, 2 * ROWS),
        ("bnb-int8", WEIGHTS, 4 * ROWS),  # fp32 absmax per output
        ("int8-weight-only", WEIGHTS, 2 * ROWS),
        ("fp6", WEIGHTS * 6 // 8, 2 * ROWS),
        ("int4", WEIGHTS // 2, 2 * ROWS * 4),  # 512/128 groups per output
        # fp16 scales (4 groups), 4-bit zeros of the 4 groups packed over the outputs, an int32 index per input
        ("gptq-int4", WEIGHTS // 2, 2 * ROWS * 4 + 4 * ROWS // 2 + 4 * COLUMNS),
        ("gptq-int8", WEIGHTS, 2 * ROWS * 4 + 4 * ROWS + 4 * COLUMNS),
        ("awq-int4", WEIGHTS // 2, 2 * ROWS * 4 + 4 * ROWS // 2),
        ("nf4", WEIGHTS // 2, 4 * WEIGHTS // 64),
        ("nf4-double", WEIGHTS // 2, WEIGHTS // 64 + 4 * WEIGHTS // 64 // 256),
        ("fp4", WEIGHTS // 2, 4 * WEIGHTS // 64),
        ("mxfp4", WEIGHTS // 2, WEIGHTS // 32),
        ("mxfp6", WEIGHTS * 6 // 8, WEIGHTS // 32),
        ("mxfp8", WEIGHTS, WEIGHTS // 32),
        ("nvfp4", WEIGHTS // 2, WEIGHTS // 16 + 4),
        ("q8_0", WEIGHTS, 2 * WEIGHTS // 32),
        ("q4_k", WEIGHTS // 2, 16 * WEIGHTS // 256),
        ("q6_k", WEIGHTS * 6 // 8, 18 * WEIGHTS // 256),
    ],
)
def test_bytes_of_a_matrix_by_hand(name: str, payload: int, beside: int) -> None:
    assert layout((ROWS, COLUMNS), FORMATS[name]) == (payload, beside)
    assert bytes_for((ROWS, COLUMNS), FORMATS[name]) == payload + beside


def test_ragged_edges_have_scales_of_their_own() -> None:
    assert layout((576, 7168), FORMATS["fp8-block"]) == (576 * 7168, 4 * 5 * 56)  # 576 = 4.5 blocks
    assert layout((1, 130), FORMATS["int4"]) == (4 * 17, 2 * 2)  # 130 × 4 bits fill 17 words
    assert layout((10, 128), FORMATS["awq-int4"]) == (128 * 4 * 2, 10 * 2 + 4 * 2)  # 10 outputs fill two words
    assert layout((3, 10), FORMATS["nf4"]) == (15, 4)


def test_weights_packed_into_wide_words_are_counted_by_what_they_hold() -> None:
    # 4096 × 512 int32 words hold 4096 × 4096 weights; with a bf16 scale per 32 of them that is 4.5 bits a weight.
    form = replace(FORMATS["int4"], block=(1, 32))
    assert bytes_for((4096, 4096), form) == 4096 * 512 * 4 + 4096 * 128 * 2 == 9_437_184
    assert form.bits_per_weight == Fraction(9, 2)


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        *(("q4_0", 4.5), ("q8_0", 8.5), ("q4_k", 4.5), ("q6_k", 6.5625), ("gguf-mxfp4", 4.25), ("mxfp4", 4.25)),
        *(("nvfp4", 4.5), ("nf4", 4.5), ("nf4-double", 4 + 1 / 8 + 32 / 64 / 256), ("int4", 4.125), ("fp8", 8)),
    ],
)
def test_the_name_of_a_format_is_not_its_bits_per_weight(name: str, bits: float) -> None:
    assert FORMATS[name].bits_per_weight == bits


# --- properties ---

shapes = st.tuples(st.integers(1, 400), st.integers(1, 700))
forms = st.sampled_from(sorted(FORMATS.values(), key=lambda form: form.name))


@given(shapes, forms)
def test_a_tensor_is_never_smaller_than_its_bits(shape: tuple[int, int], form: NumberFormat) -> None:
    payload, beside = layout(shape, form)
    assert payload * 8 >= form.bits * prod(shape)
    assert beside >= 0
    assert bytes_for(shape, form) * 8 >= form.bits_per_weight * prod(shape) or form.flat


@given(shapes, forms, st.integers(1, 9))
def test_copies_add_up(shape: tuple[int, int], form: NumberFormat, copies: int) -> None:
    assert bytes_for((copies, *shape), form) == copies * bytes_for(shape, form)


@given(shapes, forms, st.integers(0, 300), st.integers(0, 300))
def test_a_larger_tensor_is_never_smaller(shape: tuple[int, int], form: NumberFormat, rows: int, columns: int) -> None:
    assert bytes_for((shape[0] + rows, shape[1] + columns), form) >= bytes_for(shape, form)


# --- names ---


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("float16", "fp16"), ("half", "fp16"), ("torch.float16", "fp16"), ("BF16", "bf16"), ("bfloat16", "bf16")),
        *(("F8_E4M3", "fp8"), ("fp8_e5m2", "fp8"), ("w8a8", "int8"), ("W4A16", "int4"), ("gptq", "gptq-int4")),
        *(("awq", "awq-int4"), ("bnb-4bit", "nf4"), ("Q8_0", "q8_0"), ("fp8_block", "fp8-block"), ("float32", "fp32")),
    ],
)
def test_aliases(text: str, name: str) -> None:
    assert parse_format(text).name == name


def test_an_unknown_format_names_its_neighbours() -> None:
    with pytest.raises(PlanError, match=r"'fp18' is not a number format .* did you mean .*fp16"):
        parse_format("fp18")
    with pytest.raises(PlanError, match=r"precision 'q4_k_x' is not known.*q4_k"):
        recipe("q4_k_x", LLAMA_8B)


def test_a_mixture_is_not_a_format() -> None:
    with pytest.raises(PlanError, match="mixture"):
        parse_format("q4_k_m")


def test_a_silent_dtype_stays_unknown() -> None:
    assert dtype_format(None) is None
    assert dtype_format("auto") is None
    assert all((dtype_format(t) or FORMATS["fp32"]).name == "bf16" for t in ("bfloat16", "torch.bfloat16"))


def test_quantised_caches_have_scales_too() -> None:
    # An MLA cache of 61 layers × 576 values over 32,768 tokens; llama.cpp logs 1166.62 MiB for q8_0.
    values = 61 * 576 * 32768
    assert cache_bytes(values, parse_cache_format("f16")) == 2_302_672_896
    assert cache_bytes(values, parse_cache_format("q8_0")) == 1_223_294_976
    assert cache_bytes(values, parse_cache_format("q4_0")) == 647_626_752
    assert cache_bytes(163_840, parse_cache_format("fp8")) == 163_840
    for text in ("gptq", "nf4", "q4_k", "iq4_nl", "int4"):
        with pytest.raises(PlanError, match="not for a cache"):
            parse_cache_format(text)


def test_what_a_device_multiplies_is_not_what_it_stores() -> None:
    assert FORMATS["gptq-int4"].multiply == "fp16"
    assert FORMATS["nf4"].multiply == "bf16"
    assert FORMATS["int8-weight-only"].multiply == "bf16"
    assert FORMATS["int8"].multiply == "int8"
    assert FORMATS["mxfp4"].multiply == "bf16"
    assert {FORMATS[name].fastest for name in ("q4_k", "int4", "int8", "awq-int4")} == {"int8"}
    assert FORMATS["nvfp4"].fastest == FORMATS["mxfp4"].fastest == "fp4"


# --- recipes ---

LINEAR_8B = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096)
REST_8B = 2 * 128256 * 4096 + 65 * 4096


def test_a_plain_format_applies_to_everything() -> None:
    assert total(LLAMA_8B, "fp32") == 4 * 8_030_261_248
    assert total(LLAMA_8B, "fp16") == total(LLAMA_8B, "bf16") == 2 * 8_030_261_248
    # 70B: asked for fp16, whatever the file's own dtype is.
    llama_70b = dense(hidden=8192, layers=80, heads=64, width=28672, dtype=None)
    assert total(llama_70b, "fp16") == 141_107_412_992


def test_fp8_leaves_embedding_head_and_norms_in_sixteen_bit() -> None:
    # 1,376,256 scales: one per output row of every linear layer, as a published FP8 checkpoint has them.
    assert total(LLAMA_8B, "fp8") == LINEAR_8B + 2 * REST_8B + 2 * 1_376_256 == 9_083_953_152
    assert recipe("fp8", LLAMA_8B).describe().startswith("linear layers in fp8; embedding, LM head")


def test_the_rest_keeps_the_models_own_sixteen_bit_format() -> None:
    for dtype, rest in (("float16", "fp16"), ("bfloat16", "bf16"), ("float32", "bf16"), (None, "bf16")):
        chosen = recipe("int4", dense(dtype=dtype))
        assert isinstance(chosen, Recipe)
        assert chosen.rest.name == rest


def mixture(experts: int = 4) -> Architecture:
    moe = mixture_of_experts(
        hidden=64, width=32, experts=experts, active=2, shared_width=32, shared_gate=True, bias=True
    )
    attention = grouped_query_attention(hidden=64, heads=4, kv_heads=2, head_dim=16)
    tower = Component("vision tower", (Weight("visual.blocks.0.mlp", (64, 64), Part.VISION),))
    return Architecture(
        "moe",
        "moe",
        64,
        100,
        (pre_norm_layer(attention, moe, hidden=64),) * 2,
        embedding("model.embed_tokens", rows=100, width=64),
        lm_head(vocabulary=100, hidden=64, tied=False),
        norm("model.norm", 64),
        components=(tower,),
        dtype="bfloat16",
    )


def formats(architecture: Architecture, precision: str) -> dict[str, str]:
    chosen = recipe(precision, architecture)
    items = list(assigned_weights(architecture, chosen, FORMATS["bf16"]))
    for component in architecture.components:
        items += component_weights(component, chosen, FORMATS["bf16"])
    return {item.name + (".bias" if item.weight.is_bias else ""): item.form.name for item in items}


def test_routers_biases_and_towers_are_no_linear_layers_to_a_recipe() -> None:
    found = formats(mixture(), "int8")
    quantised = {name.removeprefix("model.layers.0.") for name, form in found.items() if form == "int8"}
    parts = [f"mlp.{owner}.{name}_proj" for owner in ("experts.*", "shared_experts") for name in ("gate", "up", "down")]
    assert quantised == {*(f"self_attn.{name}_proj" for name in "qkvo"), *parts}


def test_mxfp4_is_for_experts_where_there_are_any() -> None:
    assert {n for n, form in formats(mixture(), "mxfp4").items() if form == "mxfp4"} == {
        f"model.layers.0.mlp.experts.*.{name}_proj" for name in ("gate", "up", "down")
    }
    assert formats(LLAMA_8B, "mxfp4")["model.layers.0.self_attn.q_proj"] == "mxfp4"


def test_everything_includes_towers_and_routers() -> None:
    assert set(formats(mixture(), "fp16").values()) == {"fp16"}


# --- GGUF mixtures ---


def test_a_q4_0_file_of_llama_2_7b_has_the_size_that_llama_bench_prints() -> None:
    # model_size 3825065984 in llama.cpp's own llama-bench examples: everything Q4_0, the output Q6_K, norms F32.
    linear = 32 * (4 * 4096 * 4096 + 3 * 11008 * 4096)
    by_hand = (linear + 32000 * 4096) * 18 // 32 + 32000 * 4096 * 210 // 256 + 65 * 4096 * 4
    assert total(LLAMA_2_7B, "q4_0") == by_hand == 3_825_065_984


def test_a_q4_k_m_file_of_llama_3_1_8b_has_the_published_size() -> None:
    # llama-bench prints 4,912,898,304 bytes of tensors; 256 of them are rope_freqs, which is no weight. The published
    # file of 4,920,739,232 bytes adds the vocabulary.
    assert total(LLAMA_8B, "q4_k_m") == 4_912_898_304 - 256
    assert total(LLAMA_8B, "q4_k_m") == pytest.approx(4_920_739_232, rel=0.002)


@pytest.mark.parametrize(
    ("name", "gib"),
    # llama.cpp's table of file sizes for Llama 3.1 8B (tools/quantize/README.md, GiB with metadata; recalled).
    [
        *(("q8_0", 7.95), ("q6_k", 6.14), ("q5_k_m", 5.33), ("q5_k_s", 5.21), ("q4_k_s", 4.37), ("q3_k_m", 3.74)),
        *(("q3_k_l", 4.02), ("q3_k_s", 3.41), ("q2_k", 2.95)),
    ],
)
def test_other_files_of_llama_3_1_8b(name: str, gib: float) -> None:
    assert total(LLAMA_8B, name) / 2**30 == pytest.approx(gib, rel=0.003)


def test_more_bits_go_to_the_first_and_last_eighth_and_every_third_layer() -> None:
    found = formats(LLAMA_8B, "q4_k_m")
    upgraded = [i for i in range(32) if found[f"model.layers.{i}.mlp.down_proj"] == "q6_k"]
    assert upgraded == [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]
    assert upgraded == [i for i in range(32) if found[f"model.layers.{i}.self_attn.v_proj"] == "q6_k"]
    assert found["lm_head"] == "q6_k"
    assert found["model.embed_tokens"] == found["model.layers.0.self_attn.q_proj"] == "q4_k"
    assert found["model.norm"] == "fp32"


def test_a_tied_table_gets_the_outputs_type() -> None:
    assert formats(dense(tied=True), "q4_k_m")["model.embed_tokens"] == "q6_k"


def test_rows_that_do_not_fill_a_block_fall_back() -> None:
    # 896 is no multiple of 256: Q4_K becomes Q5_0 and Q6_K becomes Q8_0, as in files of Qwen2.5-0.5B.
    small = dense(hidden=896, layers=24, heads=14, kv_heads=2, width=4864, vocabulary=1000, tied=True)
    found = formats(small, "q4_k_m")
    assert found["model.layers.0.self_attn.q_proj"] == "q5_0"
    assert found["model.layers.0.self_attn.v_proj"] == "q8_0"
    assert found["model.layers.0.mlp.down_proj"] == "q6_k"
    assert found["model.embed_tokens"] == "q8_0"
    assert formats(dense(hidden=40, layers=1, heads=4, kv_heads=4, width=40), "q8_0")["lm_head"] == "fp16"


def test_seventy_billion_and_eight_experts_have_rules_of_their_own() -> None:
    large = formats(dense(hidden=8192, layers=80, heads=64, width=28672), "q4_k_m")
    assert large["model.layers.11.self_attn.v_proj"] == "q5_k"
    eight = formats(mixture(experts=8), "q4_k_m")
    assert eight["model.layers.0.mlp.gate"] == "fp32"
    wide = mixture_of_experts(hidden=256, width=256, experts=8, active=2)
    attention = grouped_query_attention(hidden=256, heads=4, kv_heads=2, head_dim=64)
    model = Architecture(
        "mixtral",
        "mixtral",
        256,
        100,
        (pre_norm_layer(attention, wide, hidden=256),) * 8,
        embedding("model.embed_tokens", rows=100, width=256),
        lm_head(vocabulary=100, hidden=256, tied=False),
    )
    found = formats(model, "q4_k_m")
    assert found["model.layers.3.self_attn.v_proj"] == found["model.layers.3.self_attn.k_proj"] == "q8_0"
    assert found["model.layers.3.self_attn.o_proj"] == "q5_k"


def test_files_made_with_an_importance_matrix_are_called_approximate() -> None:
    for name, approximate in (("q4_k_m", False), ("q8_0", False), ("iq4_xs", True), ("iq2_xxs", True)):
        chosen = recipe(name, LLAMA_8B)
        assert isinstance(chosen, GgufRecipe)
        assert chosen.approximate is approximate
    chosen = recipe("q4_k_m", mixture())
    assert chosen.approximate
    assert "as far as llama.cpp's rules are known" in chosen.describe()


@pytest.mark.parametrize("name", sorted(MIXTURES))
def test_every_mixture_lies_between_its_parts(name: str) -> None:
    bits = 8 * total(LLAMA_8B, name) / 8_030_261_248
    base = float(FORMATS[MIXTURES[name][0]].bits_per_weight)
    assert base * 0.97 < bits < max(base * 1.6, 8.6)


def test_lookup_tables_are_stored_but_positions_stay_wide() -> None:
    table = Weight("model.embed_tokens_per_layer", (100, 256), Part.OTHER, Use.LOOKED_UP)
    positions = Weight("model.embed_positions", (100, 256), Part.OTHER, Use.LOOKED_UP)
    chosen = recipe("q4_k_m", LLAMA_8B)
    assert (chosen.format_of(table.name, table) or FORMATS["bf16"]).name == "q4_k"
    assert (chosen.format_of(positions.name, positions) or FORMATS["bf16"]).name == "fp32"
