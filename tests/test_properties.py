"""Laws that hold for every model, machine and workload."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from planner import units, work
from planner.architecture import Architecture, Attention
from planner.blocks import gated_mlp, grouped_query_attention
from planner.counting import cache_elements, cache_layers, count_parameters
from planner.hardware import device_from_numbers
from planner.inventory import AttentionGroup, Inventory, Stage, halved_weights
from planner.memory import Budget, Memory, memory_of
from planner.planning import plan
from planner.render.data import as_data
from planner.roofline import (
    CACHE_MATTERS_BELOW,
    Machine,
    TextbookInput,
    counted_floors,
    faster,
    step_floor,
    textbook,
    turning_batch,
    turning_prompt,
)
from planner.sharding import device_cache_bytes, device_weight_bytes, legal_degrees
from planner.workload import Workload
from tests.strategies import (
    architectures,
    attention_groups,
    batches,
    caps,
    checked,
    encoder_decoders,
    inventory,
    machines,
    model,
    outputs,
    prompts,
    transformer,
    workloads,
)

MODELS = st.one_of(architectures(), encoder_decoders())
SLACK = 1 + 1e-12  # rounding of floats, nothing else


def chunked(counted: Inventory) -> bool:
    """Whether a layer forgets at chunk borders: its steps get cheaper there, so longer is not always more."""
    return any(group.chunk is not None for group in counted.attention)


# --- Counting ---------------------------------------------------------------------------------------------------------


@checked
@given(MODELS)
def test_the_parts_of_a_model_sum_to_its_total_and_active_ones_are_among_them(architecture: Architecture) -> None:
    counts = count_parameters(architecture)
    assert sum(counts.by_part.values()) == counts.total
    assert counts.active <= counts.total
    assert counts.active_without_embedding_and_head <= counts.active_without_embedding <= counts.active
    assert counts.decode_read <= counts.active


@checked
@given(MODELS)
def test_the_ledgers_stored_parameters_and_bytes_sum_to_the_models(architecture: Architecture) -> None:
    counted = inventory(architecture)
    total = count_parameters(architecture).total
    assert sum(op.stored_parameters for op in counted.operations if op.stage is not Stage.DRAFT) == total
    assert counted.stored_bytes == 2 * total  # bf16: two bytes each, nothing beside


@checked
@given(architectures())
def test_a_decode_step_reads_the_parameters_that_the_count_says(architecture: Architecture) -> None:
    counted = inventory(architecture)
    step = work.decode(counted, batch=1, context=0)
    assert step.weight_bytes == 2 * count_parameters(architecture).decode_read
    assert step.row_bytes == 2 * architecture.hidden


@checked
@given(architectures(), batches)
def test_a_step_reads_no_more_weight_bytes_than_are_stored(architecture: Architecture, batch: int) -> None:
    counted = inventory(architecture)
    assert work.decode(counted, batch=batch, context=9).weight_bytes <= counted.stored_bytes
    assert work.prefill(counted, batch=batch, prompt=9).weight_bytes <= counted.stored_bytes


@checked
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(1, 8), caps)
def test_the_cache_is_linear_in_tokens_under_full_attention_and_bounded_by_a_window(
    one: int, other: int, layers: int, window: int
) -> None:
    def cached(tokens: int, window: int | None) -> int:
        attention = grouped_query_attention(hidden=16, heads=4, kv_heads=2, head_dim=4, window=window)
        mlp = gated_mlp(hidden=16, width=8)
        counted = inventory(transformer(attention, mlp, hidden=16, vocabulary=9, layers=layers))
        return work.cache_bytes(counted, tokens)

    assert cached(one, None) + cached(other, None) == cached(one + other, None)
    # 2 KV heads of width 4, keys and values, 2 bytes each: 32 bytes per token and layer.
    assert cached(one, None) == 32 * layers * one
    assert cached(one, window) == 32 * layers * min(one, window)


@checked
@given(architectures(), st.integers(0, 500))
def test_two_ways_to_count_the_cache_agree(architecture: Architecture, tokens: int) -> None:
    rows = cache_elements(architecture, tokens)
    rows += sum(group.layers * group.indexer_elements * tokens for group in cache_layers(architecture))
    assert work.cache_bytes(inventory(architecture), tokens) == 2 * rows


@checked
@given(architectures(), st.integers(0, 300))
def test_another_token_never_shrinks_the_cache(architecture: Architecture, tokens: int) -> None:
    counted = inventory(architecture)
    assert work.cache_bytes(counted, tokens) <= work.cache_bytes(counted, tokens + 1)


# --- Attended pairs, counted one by one -------------------------------------------------------------------------------


def attends(group: AttentionGroup, query: int, key: int) -> bool:
    """Whether the query at a position (from 0) attends the key at another."""
    if not group.causal:
        return True
    if key > query:
        return False
    if group.window is not None:
        return query - key < group.window
    return group.chunk is None or key // group.chunk == query // group.chunk


def pairs(group: AttentionGroup, cached: int, prompt: int) -> int:
    """(query, key) pairs of the tokens after ``cached``, by looking at each."""
    found = 0
    for query in range(cached, prompt):
        keys = sum(attends(group, query, key) for key in range(prompt))
        found += keys if group.selected is None else min(keys, group.selected)
    return found


@checked
@given(attention_groups(), st.integers(1, 90), st.integers(0, 89))
@example(AttentionGroup("window", 1, 1, 1, 1, window=1), 5, 0)
@example(AttentionGroup("chunk", 1, 1, 1, 1, chunk=8), 17, 8)
def test_attended_pairs_are_those_of_a_count_one_by_one(group: AttentionGroup, prompt: int, cached: int) -> None:
    cached %= prompt
    assert work.attended(group, cached, prompt) == pairs(group, cached, prompt)


@checked
@given(attention_groups(), st.integers(0, 90))
def test_a_decode_step_attends_what_prefill_of_its_one_token_would(group: AttentionGroup, context: int) -> None:
    counted = replace(inventory(transformer(hidden=8, vocabulary=2, layers=1)), attention=(group,))
    step = work.decode(counted, batch=1, context=context)
    if group.causal:
        assert step.attention_flop == work.attended(group, context, context + 1)


@checked
@given(architectures(), st.integers(2, 100), st.integers(1, 99))
def test_a_prompt_read_in_two_pieces_does_the_work_of_one(architecture: Architecture, prompt: int, cut: int) -> None:
    assume(cut < prompt)
    counted = inventory(architecture)
    whole = work.prefill(counted, batch=1, prompt=prompt)
    first = work.prefill(counted, batch=1, prompt=cut)
    second = work.prefill(counted, batch=1, prompt=prompt, cached=cut)
    assert first.attention_flop + second.attention_flop == whole.attention_flop
    assert first.scan_flop + second.scan_flop == whole.scan_flop
    assert first.row_bytes + second.row_bytes == whole.row_bytes


# --- Floors -----------------------------------------------------------------------------------------------------------


@checked
@given(MODELS, machines(), batches, prompts)
def test_a_counted_step_is_the_largest_of_its_parts_and_at_most_their_sum(
    architecture: Architecture, machine: Machine, batch: int, context: int
) -> None:
    step = step_floor(work.decode(inventory(architecture), batch=batch, context=context), machine)
    parts = (step.memory_time, step.compute_time, step.link_time)
    assert step.time == max(parts)
    assert step.time <= sum(parts)
    named = dict(zip(("memory bandwidth", "compute", "link"), parts, strict=True))
    assert named[str(step.limit)] == step.time


@checked
@given(MODELS, machines(), workloads, st.floats(1, 10), st.floats(1, 10))
def test_more_bandwidth_or_compute_is_never_slower(
    architecture: Architecture, machine: Machine, asked: Workload, bandwidth: float, compute: float
) -> None:
    counted = inventory(architecture)
    size = {"batch": asked.batch, "prompt": asked.prompt, "out": asked.out}
    now = counted_floors(counted, machine, **size).latency
    for better in (faster(machine, bandwidth=bandwidth), faster(machine, compute=compute)):
        then = counted_floors(counted, better, **size).latency
        assert then.ttft <= now.ttft * SLACK
        assert then.e2e <= now.e2e * SLACK


@checked
@given(MODELS, machines(), batches, prompts, st.integers(0, 10**6))
def test_more_bytes_are_never_faster(
    architecture: Architecture, machine: Machine, batch: int, context: int, more: int
) -> None:
    counted = inventory(architecture)
    heavier = replace(counted, decode_bytes=counted.decode_bytes + more, prefill_bytes=counted.prefill_bytes + more)
    for step_of in (work.decode, work.prefill):
        length = {"context": context} if step_of is work.decode else {"prompt": context}
        light = step_floor(step_of(counted, batch=batch, **length), machine)
        heavy = step_floor(step_of(heavier, batch=batch, **length), machine)
        assert light.time <= heavy.time


@checked
@given(MODELS, machines(), batches, prompts, outputs)
def test_half_the_weight_bytes_are_never_slower(
    architecture: Architecture, machine: Machine, batch: int, prompt: int, out: int
) -> None:
    counted = inventory(architecture)
    size = {"batch": batch, "prompt": prompt, "out": out}
    now = counted_floors(counted, machine, **size).latency.e2e
    assert counted_floors(halved_weights(counted), machine, **size).latency.e2e <= now * SLACK


@checked
@given(MODELS, machines(), batches, prompts)
def test_a_larger_batch_is_never_faster(architecture: Architecture, machine: Machine, batch: int, length: int) -> None:
    counted = inventory(architecture)
    for more in (1, 7):
        one = step_floor(work.decode(counted, batch=batch, context=length), machine)
        other = step_floor(work.decode(counted, batch=batch + more, context=length), machine)
        assert one.time <= other.time * SLACK
        one = step_floor(work.prefill(counted, batch=batch, prompt=length), machine)
        other = step_floor(work.prefill(counted, batch=batch + more, prompt=length), machine)
        assert one.time <= other.time * SLACK


@checked
@given(MODELS, machines(), batches, prompts, st.integers(1, 50))
def test_a_longer_context_is_never_faster_unless_a_chunk_begins_anew(
    architecture: Architecture, machine: Machine, batch: int, length: int, more: int
) -> None:
    counted = inventory(architecture)
    short = step_floor(work.prefill(counted, batch=batch, prompt=length), machine)
    long = step_floor(work.prefill(counted, batch=batch, prompt=length + more), machine)
    assert short.time <= long.time * SLACK
    if not chunked(counted):
        short = step_floor(work.decode(counted, batch=batch, context=length), machine)
        long = step_floor(work.decode(counted, batch=batch, context=length + more), machine)
        assert short.time <= long.time * SLACK


def every_step(counted: Inventory, machine: Machine, batch: int, prompt: int, out: int) -> float:
    """E2E by a plain loop over the decode steps; output token i + 1 finds prompt + i − 1 tokens in the cache."""
    total = step_floor(work.prefill(counted, batch=batch, prompt=prompt), machine).time
    for i in range(1, out):
        context, encoded = (i, prompt) if counted.encoder_decoder else (prompt + i - 1, 0)
        total += step_floor(work.decode(counted, batch=batch, context=context, encoded=encoded), machine).time
    return total


@checked
@given(MODELS, machines(), batches, prompts, outputs)
def test_e2e_is_the_sum_of_every_decode_step_at_its_own_context(
    architecture: Architecture, machine: Machine, batch: int, prompt: int, out: int
) -> None:
    counted = inventory(architecture)
    found = counted_floors(counted, machine, batch=batch, prompt=prompt, out=out).latency
    assert found.e2e == pytest.approx(every_step(counted, machine, batch, prompt, out), rel=1e-9)
    if out > 1:
        assert found.tpot == pytest.approx((found.e2e - found.ttft) / (out - 1), rel=1e-9)
    else:
        assert found.tpot is None


@checked
@given(MODELS, machines(compute=False), batches, prompts, outputs)
def test_e2e_is_that_sum_without_a_compute_ceiling_too(
    architecture: Architecture, machine: Machine, batch: int, prompt: int, out: int
) -> None:
    counted = inventory(architecture)
    found = counted_floors(counted, machine, batch=batch, prompt=prompt, out=out).latency
    assert found.e2e == pytest.approx(every_step(counted, machine, batch, prompt, out), rel=1e-9)


@checked
@given(architectures(), machines(cache=False), workloads, st.integers(1, 50))
def test_another_output_token_is_never_free_of_charge(
    architecture: Architecture, machine: Machine, asked: Workload, more: int
) -> None:
    counted = inventory(architecture)
    size = {"batch": asked.batch, "prompt": asked.prompt}
    short = counted_floors(counted, machine, **size, out=asked.out).latency
    long = counted_floors(counted, machine, **size, out=asked.out + more).latency
    assert short.e2e < long.e2e
    assert short.ttft == long.ttft


@checked
@given(MODELS, machines(cache=False), batches, prompts, st.integers(2, 8))
def test_n_devices_are_at_most_n_times_as_fast(
    architecture: Architecture, machine: Machine, batch: int, context: int, devices: int
) -> None:
    # Without a last-level cache: n caches may hold what one does not, which is more than n times as fast.
    step = work.decode(inventory(architecture), batch=batch, context=context)
    alone = step_floor(step, replace(machine, devices=1)).time
    together = step_floor(step, replace(machine, devices=devices)).time
    assert together * devices >= alone / SLACK


@checked
@given(architectures(), machines(), st.integers(1, 100))
def test_the_last_level_cache_counts_only_where_little_is_read(
    architecture: Architecture, machine: Machine, context: int
) -> None:
    step = step_floor(work.decode(inventory(architecture), batch=1, context=context), machine)
    each = step.work.bytes / machine.devices
    granted = each < CACHE_MATTERS_BELOW * machine.last_level_cache
    assert bool(step.cached_bytes) == granted
    assert step.cached_bytes <= min(step.work.bytes, machine.last_level_cache * machine.devices)


@checked
@given(architectures(), machines(cache=False, devices=1), batches, prompts)
def test_counted_matrix_work_and_weight_bytes_stay_below_the_whiteboards(
    architecture: Architecture, machine: Machine, batch: int, prompt: int
) -> None:
    counted, counts = inventory(architecture), count_parameters(architecture)
    peak = machine.peaks["bf16"]
    given_ = TextbookInput(counts.active, counted.textbook_width, peak, machine.bandwidth)
    board = textbook(given_, batch=batch, prompt=prompt, out=2)
    assert board is not None
    assert board.tpot is not None
    step = work.decode(counted, batch=batch, context=prompt)
    # The whiteboard reads every active weight, a step leaves out the embedding table unless it is the head.
    assert step.weight_bytes / machine.bandwidth <= board.tpot * SLACK
    matrices = sum(flop for _, flop in work.prefill(counted, batch=batch, prompt=prompt).matrix_flop)
    assert peak is not None
    tied_head = 2 * batch * architecture.vocabulary_head.elements
    assert (matrices - tied_head) / peak <= board.ttft * SLACK


@checked
@given(architectures(), machines(cache=False, devices=1), batches)
def test_prefill_turns_to_compute_exactly_at_the_turning_prompt(
    architecture: Architecture, machine: Machine, batch: int
) -> None:
    counted = inventory(architecture)
    turn = turning_prompt(counted, machine, batch=batch, limit=2**20)

    def compute_bound(prompt: int) -> bool:
        step = step_floor(work.prefill(counted, batch=batch, prompt=prompt), machine)
        return step.compute_time >= step.memory_time

    assert compute_bound(2**20) == (turn is not None)
    if turn is not None:
        assert compute_bound(turn)
        assert turn == 1 or not compute_bound(turn - 1)


@checked
@given(architectures(), machines(cache=False, devices=1), prompts)
def test_decode_turns_to_compute_exactly_at_the_turning_batch(
    architecture: Architecture, machine: Machine, context: int
) -> None:
    counted = inventory(architecture)
    turn = turning_batch(counted, machine, context=context)

    def compute_bound(batch: int) -> bool:
        step = step_floor(work.decode(counted, batch=batch, context=context), machine)
        return step.compute_time >= step.memory_time

    assert compute_bound(2**20) == (turn is not None)
    if turn is not None:
        assert compute_bound(turn)
        assert turn == 1 or not compute_bound(turn - 1)


# --- Shards and memory ------------------------------------------------------------------------------------------------


@checked
@given(MODELS, st.integers(1, 8))
def test_shards_together_hold_at_least_the_whole(architecture: Architecture, degree: int) -> None:
    counted = inventory(architecture)
    assert device_weight_bytes(counted, degree) * degree >= counted.stored_bytes
    assert device_weight_bytes(counted, degree) <= counted.stored_bytes
    if degree in legal_degrees(architecture, 8):
        whole = device_cache_bytes(architecture, counted, tokens=50, encoded=0, degree=1)
        each = device_cache_bytes(architecture, counted, tokens=50, encoded=0, degree=degree)
        assert each <= whole <= each * degree


@checked
@given(architectures())
def test_legal_degrees_divide_the_heads_and_split_or_repeat_the_kv_heads(architecture: Architecture) -> None:
    legal = legal_degrees(architecture, 16)
    assert legal[0] == 1
    blocks = [b for layer in architecture.layers for b in layer.blocks if isinstance(b, Attention)]
    for degree in legal:
        assert all(block.heads % degree == 0 for block in blocks)
        assert all(block.kv_heads % degree == 0 or degree % block.kv_heads == 0 for block in blocks)


@checked
@given(MODELS, workloads, st.sampled_from((1, 2, 4)), st.integers(0, 10**8))
def test_the_largest_batch_and_context_fit_and_the_next_ones_do_not(
    architecture: Architecture, asked: Workload, degree: int, usable: int
) -> None:
    counted, out = inventory(architecture), asked.out

    def memory(batch: int, prompt: int) -> Memory:
        budget = Budget(usable, 0.9)
        return memory_of(architecture, counted, batch=batch, prompt=prompt, out=out, degree=degree, budget=budget)

    found = memory(asked.batch, asked.prompt)
    assert found.max_batch is not None
    assert found.max_batch == 0 or memory(found.max_batch, asked.prompt).fits
    assert not memory(found.max_batch + 1, asked.prompt).fits
    assert found.fits == (asked.batch <= found.max_batch)
    if found.max_context:
        assert memory(asked.batch, found.max_context - out).fits
        assert not memory(asked.batch, found.max_context - out + 1).fits
        assert found.fits == (asked.context <= found.max_context)
    elif found.max_context == 0:
        assert not memory(asked.batch, 1).fits


@checked
@given(MODELS, batches, prompts, outputs)
def test_the_parts_of_the_memory_sum_to_its_total(
    architecture: Architecture, batch: int, prompt: int, out: int
) -> None:
    found = memory_of(
        architecture, inventory(architecture), batch=batch, prompt=prompt, out=out, degree=1, budget=Budget(10**6, 1)
    )
    assert found.total == found.weights + found.cache + found.activations + found.logits
    assert found.cache == batch * found.cache_per_request
    assert found.spare == 10**6 - found.total


@checked
@given(MODELS, batches, prompts, outputs)
def test_more_requests_or_tokens_never_need_less_memory(
    architecture: Architecture, batch: int, prompt: int, out: int
) -> None:
    counted = inventory(architecture)

    def needed(batch: int, prompt: int, out: int) -> int:
        return memory_of(architecture, counted, batch=batch, prompt=prompt, out=out, degree=1, budget=None).total

    now = needed(batch, prompt, out)
    assert now <= needed(batch + 1, prompt, out)
    assert now <= needed(batch, prompt + 1, out)
    assert now <= needed(batch, prompt, out + 1)


# --- Whole plans and texts --------------------------------------------------------------------------------------------


@checked
@given(MODELS, workloads, st.sampled_from((None, "fp8", "int4")), st.booleans(), st.booleans())
def test_a_plans_data_survive_json_without_nan(
    architecture: Architecture, asked: Workload, precision: str | None, peak: bool, memory: bool
) -> None:
    device = device_from_numbers(bandwidth=3e12, peak=1e15 if peak else None, memory=80e9 if memory else None)
    data = as_data(plan(model(architecture), device, asked, precision=precision))
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@checked
@given(st.integers(0, 10**18), st.sampled_from(("B", "B/s", "FLOP/s", "FLOP")))
def test_whole_quantities_are_read_back_exactly_as_written(value: int, unit: str) -> None:
    assert units.parse(units.exact(value, unit), unit) == value


@checked
@given(st.floats(1e-6, 1e15), st.sampled_from(("B/s", "FLOP/s", "s")))
def test_fractional_quantities_are_read_back_exactly_as_written(value: float, unit: str) -> None:
    assert units.parse(units.exact(value, unit), unit) == value
