"""The bytes and the arithmetic of one step, derived by hand from the widths of published models."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner import work
from planner.architecture import Layer, Part, StateSpace, Use, Weight
from planner.blocks import (
    grouped_query_attention,
    latent_attention,
    linear,
    lm_head,
    mixture_of_experts,
    plain_mlp,
)
from planner.counting import count_parameters
from planner.inventory import AttentionGroup, Stage
from tests.strategies import LLAMA_8B, inventory, transformer

LLAMA = inventory(LLAMA_8B)
# Llama-3.1-8B: 32 layers of 41,943,040 (attention) + 176,160,768 (MLP) multiplied elements, a head of 128,256 × 4,096,
# and 65 norms of 4,096.
LAYERS = 32 * (41_943_040 + 176_160_768)
HEAD = 128_256 * 4_096
NORMS = 65 * 4_096
PAIR = 2 * 32 * (128 + 128) * 32  # FLOP per (query, key) pair over all heads and layers
ROW = 2 * 8 * 128 * 32 * 2  # bytes cached per token over all layers: keys and values in bf16


def test_a_decode_step_reads_all_weights_but_the_embedding_table_and_one_row_of_it() -> None:
    step = work.decode(LLAMA, batch=1, context=2000)
    assert step.weight_bytes == 2 * (LAYERS + HEAD + NORMS) == 15_009_849_344
    assert step.row_bytes == 2 * 4_096


def test_a_decode_step_reads_the_cache_and_writes_one_row() -> None:
    step = work.decode(LLAMA, batch=1, context=2000)
    assert step.cache_read_bytes == 2000 * ROW
    assert step.cache_written_bytes == ROW == 131_072
    assert step.bytes == 15_009_849_344 + 2 * 4_096 + 2001 * ROW


def test_a_decode_step_multiplies_every_matrix_once_and_attends_itself_too() -> None:
    step = work.decode(LLAMA, batch=1, context=2000)
    assert step.matrix_flop == (("bf16", 2 * (LAYERS + HEAD)),)
    assert step.attention_flop == 2001 * PAIR
    assert step.flop == 2 * (LAYERS + HEAD) + 2001 * PAIR


def test_a_batch_shares_the_weights_and_nothing_else() -> None:
    one, five = work.decode(LLAMA, batch=1, context=100), work.decode(LLAMA, batch=5, context=100)
    assert five.weight_bytes == one.weight_bytes
    assert five.cache_read_bytes == 5 * one.cache_read_bytes
    assert five.row_bytes == 5 * one.row_bytes
    assert five.flop == 5 * one.flop
    assert five.tokens == 5


def test_prefill_multiplies_the_head_for_the_last_position_alone() -> None:
    step = work.prefill(LLAMA, batch=3, prompt=2000)
    assert step.matrix_flop == (("bf16", 3 * (2000 * 2 * LAYERS + 2 * HEAD)),)


def test_prefill_attends_each_token_and_those_before_it() -> None:
    assert work.prefill(LLAMA, batch=1, prompt=2000).attention_flop == 2000 * 2001 // 2 * PAIR


def test_prefill_writes_the_cache_of_the_prompt_and_reads_none() -> None:
    step = work.prefill(LLAMA, batch=2, prompt=2000)
    assert (step.cache_written_bytes, step.cache_read_bytes) == (2 * 2000 * ROW, 0)


def test_a_cached_prefix_spares_its_matrices_and_is_read_once() -> None:
    step = work.prefill(LLAMA, batch=1, prompt=2000, cached=1500)
    assert step.tokens == 500
    assert step.matrix_flop == (("bf16", 500 * 2 * LAYERS + 2 * HEAD),)
    assert step.cache_read_bytes == 1500 * ROW
    assert step.cache_written_bytes == 500 * ROW
    # Tokens 1,501 … 2,000 attend as many keys as their position: 500 · 1,750.5.
    assert step.attention_flop == 875_250 * PAIR


def test_a_tied_head_is_read_once_and_stored_once() -> None:
    tied = inventory(transformer(hidden=64, vocabulary=1000, layers=1, tied=True))
    # Embedding 1,000 × 64, two layer norms and a final one of 64.
    assert tied.stored_bytes == 2 * (64_000 + 3 * 64)
    assert work.decode(tied, batch=1, context=0).weight_bytes == 2 * (64_000 + 3 * 64)
    assert work.decode(tied, batch=1, context=0).matrix_flop == (("bf16", 2 * 64_000),)


def test_biases_and_norms_are_read_and_cost_no_arithmetic() -> None:
    with_bias = plain_mlp(hidden=64, width=100, bias=True)
    found = inventory(transformer(with_bias, hidden=64, vocabulary=10, layers=1))
    step = work.decode(found, batch=1, context=0)
    # Two matrices of 6,400, biases of 100 and 64, three norms of 64, a head of 640; no cache, one embedding row.
    assert step.weight_bytes == 2 * (2 * 6_400 + 164 + 3 * 64 + 640)
    assert step.matrix_flop == (("bf16", 2 * (2 * 6_400 + 640)),)


# --- Windows and chunks -----------------------------------------------------------------------------------------------


def group(window: int | None = None, chunk: int | None = None, selected: int | None = None) -> AttentionGroup:
    return AttentionGroup("one", 1, 1, 1, 1, window=window, chunk=chunk, selected=selected)


@pytest.mark.parametrize(
    ("layer", "cached", "prompt", "expected"),
    [
        (group(), 0, 1, 1),
        (group(), 0, 4, 1 + 2 + 3 + 4),
        (group(), 3, 4, 4),
        (group(window=1), 0, 9, 9),  # each token itself
        (group(window=3), 0, 5, 1 + 2 + 3 + 3 + 3),
        (group(window=3), 4, 5, 3),
        (group(window=9), 0, 4, 10),
        (group(chunk=3), 0, 7, (1 + 2 + 3) + (1 + 2 + 3) + 1),
        (group(chunk=3), 2, 4, 3 + 1),
        (group(selected=2), 0, 4, 1 + 2 + 2 + 2),
        (AttentionGroup("both ways", 1, 1, 1, 1, causal=False), 0, 4, 16),
    ],
)
def test_attended_pairs(layer: AttentionGroup, cached: int, prompt: int, expected: int) -> None:
    assert work.attended(layer, cached, prompt) == expected


@pytest.mark.parametrize(
    ("layer", "context", "past"),
    [
        (group(), 10, 10),
        (group(window=4), 2, 2),
        (group(window=4), 3, 3),
        (group(window=4), 10, 3),  # with the new token itself: four
        (group(chunk=4), 7, 3),
        (group(chunk=4), 8, 0),  # a new chunk begins
        (group(selected=4), 10, 3),
    ],
)
def test_a_new_token_reads_the_cached_rows_that_it_attends(layer: AttentionGroup, context: int, past: int) -> None:
    bare = inventory(transformer(hidden=8, vocabulary=2, layers=1))
    step = work.decode(replace(bare, attention=(layer,)), batch=1, context=context)
    assert step.cache_read_bytes == 2 * past  # one element per row, bf16
    assert step.attention_flop == past + 1


@pytest.mark.parametrize(("window", "chunk"), [(512, None), (None, 512)])
def test_the_cache_of_a_windowed_layer_is_full_at_its_window(window: int | None, chunk: int | None) -> None:
    attention = grouped_query_attention(hidden=64, heads=4, kv_heads=2, head_dim=16, window=window, chunk=chunk)
    found = inventory(transformer(attention, hidden=64, vocabulary=10, layers=3))
    # 2 KV heads · (16 + 16) · 2 bytes · 3 layers = 384 bytes per token
    assert [work.cache_bytes(found, tokens) for tokens in (0, 100, 512, 5000)] == [0, 38_400, 196_608, 196_608]


def test_a_layer_that_shares_another_layers_cache_stores_none() -> None:
    own = grouped_query_attention(hidden=64, heads=4, kv_heads=2, head_dim=16)
    shared = grouped_query_attention(hidden=64, heads=4, kv_heads=2, head_dim=16, caches=False)
    found = inventory(transformer(own, shared, hidden=64, vocabulary=10, layers=1))
    assert work.cache_bytes(found, 10) == 10 * 2 * 2 * 32
    # It attends all the same: 2 · 4 heads · 32 FLOP per pair, twice.
    assert work.decode(found, batch=1, context=9).attention_flop == 2 * 10 * 256


# --- Latent attention: widths of DeepSeek-V2 (arXiv:2405.04434, section 3.1.2) ----------------------------------------

MLA = latent_attention(hidden=5120, heads=128, query_rank=1536, latent=512, nope_dim=128, rope_dim=64, value_dim=128)
DEEPSEEK_V2 = inventory(transformer(MLA, hidden=5120, vocabulary=10, layers=60))


def test_a_latent_row_is_cached_once_for_all_heads() -> None:
    # The paper's table 1: (512 + 64) elements per token and layer, "9/2 · head width · layers"; 60 layers, bf16.
    assert work.cache_bytes(DEEPSEEK_V2, 1) == 2 * 60 * 576
    assert 60 * 576 == 9 * 128 * 60 // 2


def test_latent_attention_prefills_expanded_and_decodes_absorbed() -> None:
    (layers,) = DEEPSEEK_V2.attention
    # Expanded: keys of 128 + 64, values of 128, per head. Absorbed: scores over 512 + 64, values over 512.
    assert layers.prefill_pair == 2 * 128 * (192 + 128)
    assert layers.decode_pair == 2 * 128 * (576 + 512)


def test_a_sparse_indexer_reads_its_own_keys_of_every_token_and_attends_a_selection() -> None:
    # DeepSeek-V3.2-Exp: 2,048 tokens selected by an indexer of 64 heads of 128.
    sparse = latent_attention(
        hidden=256,
        heads=128,
        query_rank=None,
        latent=512,
        nope_dim=128,
        rope_dim=64,
        value_dim=128,
        selected=2048,
        indexer_dim=128,
        indexer_heads=64,
    )
    found = inventory(transformer(sparse, hidden=256, vocabulary=10, layers=1))
    step = work.decode(found, batch=1, context=100_000)
    assert step.cache_read_bytes == 2 * (576 * 2047 + 128 * 100_000)
    assert step.cache_written_bytes == 2 * (576 + 128)
    assert step.attention_flop == 2 * 128 * (576 + 512) * 2048 + 2 * 64 * 128 * 100_001
    assert work.cache_bytes(found, 100_000) == 2 * (576 + 128) * 100_000


# --- Experts ----------------------------------------------------------------------------------------------------------


def test_a_sparse_model_reads_its_active_experts_alone() -> None:
    # https://github.com/AlexsJones/llmfit/issues/474 and three more: tools priced Qwen3-30B-A3B's decode by all of its
    # experts (18 ms) or with the embedding table (2.00 ms); 6,083,735,552 bytes are read, 1.816 ms at 3.35 TB/s.
    attention = grouped_query_attention(hidden=2048, heads=32, kv_heads=4, head_dim=128, query_key_norm=(128, 128))
    moe = mixture_of_experts(hidden=2048, width=768, experts=128, active=8)
    found = inventory(transformer(attention, moe, hidden=2048, vocabulary=151_936, layers=48))
    step = work.decode(found, batch=1, context=0)
    assert step.weight_bytes == 6_083_735_552
    assert step.weight_bytes / 3.35e12 == pytest.approx(1.816e-3, rel=0.001)


def test_the_floor_grants_that_all_tokens_of_a_batch_agree_on_their_experts() -> None:
    moe = mixture_of_experts(hidden=64, width=32, experts=16, active=2)
    found = inventory(transformer(moe, hidden=64, vocabulary=10, layers=3))
    # Three matrices of 64 × 32 per expert, two experts, three layers, bf16.
    assert work.least_expert_bytes(found) == 3 * 2 * 3 * 64 * 32 * 2
    one, many = work.decode(found, batch=1, context=5), work.decode(found, batch=500, context=5)
    assert one.weight_bytes == many.weight_bytes
    # 2 · (3 layers · (router 64 × 16 + 2 experts of 3 · 64 · 32) + head 640)
    assert one.matrix_flop == (("bf16", 2 * (3 * (1_024 + 2 * 6_144) + 640)),)


def test_layers_with_equal_experts_may_use_different_numbers_of_them() -> None:
    # Two layers of 4 experts, of which one token uses 1 and 4; an expert has 3 · 8 · 4 = 96 elements, a router 32.
    layers = tuple(Layer((mixture_of_experts(hidden=8, width=4, experts=4, active=n),)) for n in (1, 4))
    architecture = replace(
        transformer(hidden=8, vocabulary=2, layers=1),
        layers=layers,
        outer=(),
        lm_head=lm_head(vocabulary=2, hidden=8, tied=False),
    )
    assert count_parameters(architecture).decode_read == (1 + 4) * 96 + 2 * 32 + 16


# --- State spaces and encoders ----------------------------------------------------------------------------------------


def test_a_constant_state_is_read_and_written_whatever_the_context() -> None:
    weights = linear("mixer.in_proj", inputs=64, outputs=64, part=Part.STATE_SPACE)
    # 1,000 elements in fp32 and 30 of a convolution in bf16: 4,060 bytes.
    block = StateSpace("mamba", weights, state=1000, convolution=30, scan_flops=77)
    architecture = replace(transformer(hidden=64, vocabulary=10, layers=1), layers=(Layer((block,)),))
    found = inventory(architecture)
    for context in (1, 10_000):
        step = work.decode(found, batch=2, context=context)
        assert step.state_bytes == 2 * 2 * 4_060
        assert step.scan_flop == 2 * 77
        assert step.cache_read_bytes == step.cache_written_bytes == 0
    assert work.prefill(found, batch=1, prompt=100).state_bytes == 4_060  # written once, nothing to read
    assert work.prefill(found, batch=1, prompt=100, cached=50).state_bytes == 2 * 4_060


def test_parts_beside_the_text_are_stored_and_not_read() -> None:
    unused = Weight("vision", (100, 100), Part.OTHER, Use.UNUSED)
    found = inventory(replace(transformer(hidden=64, vocabulary=10, layers=1), outer=(unused,)))
    (row,) = (op for op in found.operations if op.name == "vision")
    assert (row.stored_bytes, row.read_parameters, row.multiplied_parameters) == (20_000, 0, 0)
    assert row.stage is Stage.EVERY_TOKEN
    assert work.decode(found, batch=1, context=1).weight_bytes == found.stored_bytes - 20_000 - 2 * 640


def test_one_more_use_of_a_shared_tensor_is_multiplied_again_and_neither_stored_nor_read_twice() -> None:
    once = Weight("shared", (64, 64), Part.MLP)
    again = replace(once, stored=False)
    found = inventory(replace(transformer(hidden=64, vocabulary=10, layers=1), outer=(once, again)))
    plain = inventory(replace(transformer(hidden=64, vocabulary=10, layers=1), outer=(once,)))
    assert found.stored_bytes == plain.stored_bytes
    step, bare = work.decode(found, batch=1, context=1), work.decode(plain, batch=1, context=1)
    assert step.weight_bytes == bare.weight_bytes
    assert step.flop - bare.flop == 2 * 64 * 64
