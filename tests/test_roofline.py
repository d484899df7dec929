"""Floors: which ceiling counts, what a device without units does, and how a request sums up."""

from __future__ import annotations

import pytest

from planner import work
from planner.blocks import mixture_of_experts
from planner.formulas import distinct_experts
from planner.hardware import device_from_numbers, find_device
from planner.machine import ceilings_of, machine_of
from planner.planning import plan
from planner.roofline import (
    Limit,
    Machine,
    TextbookInput,
    arithmetic_used,
    compute_floor,
    counted_floors,
    faster,
    step_floor,
    textbook,
    turning_batch,
    turning_prompt,
)
from planner.work import Work
from planner.workload import Workload
from tests.strategies import LLAMA_8B, inventory, llama, model, transformer

LLAMA = inventory(LLAMA_8B)
H100 = Machine(bandwidth=3.35e12, peaks={"bf16": 989.5e12}, attention_peak=989.5e12)


def job(size: int, flop: int = 0, tokens: int = 1) -> Work:
    """A step of ``size`` weight bytes and ``flop`` in bf16."""
    return Work(size, 0, 0, 0, 0, (("bf16", flop),), 0, 0, tokens, ())


# --- One step ---------------------------------------------------------------------------------------------------------


def test_a_step_takes_as_long_as_its_slowest_part() -> None:
    machine = Machine(bandwidth=100, peaks={"bf16": 10}, attention_peak=10)
    memory = step_floor(job(500, flop=20), machine)
    assert (memory.time, memory.memory_time, memory.compute_time, memory.limit) == (5, 5, 2, Limit.MEMORY)
    compute = step_floor(job(500, flop=80), machine)
    assert (compute.time, compute.limit) == (8, Limit.COMPUTE)


def test_arithmetic_of_different_formats_adds_up_and_attention_has_its_own_unit() -> None:
    step = Work(0, 0, 0, 0, 0, (("bf16", 100), ("fp8", 100)), 30, 20, 1, ())
    machine = Machine(bandwidth=1, peaks={"bf16": 10, "fp8": 20}, attention_peak=5)
    assert compute_floor(step, machine) == 100 / 10 + 100 / 20 + 50 / 5


def test_devices_share_the_work_evenly() -> None:
    machine = Machine(bandwidth=100, peaks={"bf16": 10}, attention_peak=10, devices=4)
    step = step_floor(job(800, flop=40), machine)
    assert (step.memory_time, step.compute_time) == (2, 1)


def test_a_link_counts_each_devices_message_once_and_one_way() -> None:
    machine = Machine(bandwidth=1e9, peaks={"bf16": 1e9}, attention_peak=1e9, devices=2, link=50, message_bytes=100)
    step = step_floor(job(10, tokens=3), machine)
    assert (step.link_time, step.time, step.limit) == (6, 6, Limit.LINK)


def test_one_device_exchanges_nothing() -> None:
    machine = Machine(bandwidth=1, peaks={"bf16": 1}, attention_peak=1, link=1, message_bytes=100)
    assert step_floor(job(10), machine).link_time == 0


@pytest.mark.parametrize(
    ("size", "cached", "time"),
    [
        (400, 0, 4.0),  # four times the cache: it is ignored
        (399, 100, 2.99),
        (100, 100, 0.0),
        (60, 60, 0.0),  # never more than there is
    ],
)
def test_a_step_below_four_times_the_last_level_cache_may_find_its_size_there(
    size: int, cached: int, time: float
) -> None:
    machine = Machine(bandwidth=100, peaks={"bf16": 1e9}, attention_peak=1e9, last_level_cache=100)
    step = step_floor(job(size), machine)
    assert step.cached_bytes == cached
    assert step.memory_time == pytest.approx(time, abs=1e-12)


def test_each_device_brings_its_own_cache() -> None:
    machine = Machine(bandwidth=100, peaks={"bf16": 1e9}, attention_peak=1e9, last_level_cache=100, devices=2)
    step = step_floor(job(700), machine)  # 350 bytes each, of which 100 may be in each cache
    assert (step.cached_bytes, step.memory_time) == (200, 2.5)


def test_without_a_compute_ceiling_there_is_no_compute_floor() -> None:
    for machine in (
        Machine(bandwidth=100, peaks={"bf16": None}, attention_peak=10),
        Machine(bandwidth=100, peaks={"bf16": 10}, attention_peak=None),
    ):
        assert not machine.has_compute_floor
        step = step_floor(job(100, flop=10**9), machine)
        assert (step.time, step.compute_time, step.limit) == (1, 0, Limit.MEMORY)
        assert faster(machine, compute=2, bandwidth=2).bandwidth == 200


# --- A request --------------------------------------------------------------------------------------------------------


def test_one_output_token_has_no_tpot() -> None:
    floors = counted_floors(LLAMA, H100, batch=1, prompt=2000, out=1)
    assert floors.latency.tpot is None
    assert floors.latency.e2e == floors.latency.ttft == floors.prefill.time
    assert floors.first_decode is None
    assert floors.decode_limit is None
    board = textbook(TextbookInput(8, 2, 1, 1), batch=1, prompt=10, out=1)
    assert board is not None
    assert board.tpot is None
    assert board.e2e == board.ttft == 2 * 8 * 10


def test_two_output_tokens_have_one_gap_at_the_prompts_length() -> None:
    floors = counted_floors(LLAMA, H100, batch=1, prompt=2000, out=2)
    assert floors.first_decode == floors.last_decode
    assert floors.first_decode is not None
    assert floors.first_decode.work == work.decode(LLAMA, batch=1, context=2000)
    assert floors.latency.e2e == pytest.approx(floors.prefill.time + floors.first_decode.time, rel=1e-12)


def test_the_last_of_256_tokens_finds_2254_in_the_cache() -> None:
    # 2,000 of the prompt and 254 answers: the first answer comes from the prefill, the last one is never read.
    floors = counted_floors(LLAMA, H100, batch=1, prompt=2000, out=256)
    assert floors.last_decode is not None
    assert floors.last_decode.work == work.decode(LLAMA, batch=1, context=2254)


def test_textbook_lines_need_both_ceilings() -> None:
    for peak, bandwidth in ((None, 1.0), (1.0, None)):
        given = TextbookInput(8, 2, peak, bandwidth)
        assert textbook(given, batch=1, prompt=10, out=2) is None
        assert given.ridge is None


def test_the_whiteboard_counts_a_batchs_prompts_together_and_its_weights_once() -> None:
    given = TextbookInput(parameters=8, width=2, peak=4, bandwidth=2)
    board = textbook(given, batch=3, prompt=10, out=11, devices=2)
    assert board is not None
    # 2 · 8 · 30 / (4 · 2) = 60 s; 16 B / (2 · 2) = 4 s; ten gaps.
    assert (board.ttft, board.tpot, board.e2e) == (60, 4, 100)


def test_a_request_that_grows_out_of_the_cache_is_summed_step_by_step() -> None:
    # No compute ceiling, so memory limits throughout; below 8 MB nothing need be read, above it bytes − 8 MB.
    small = inventory(llama(hidden=256, layers=4, heads=4, kv_heads=4, width=512, vocabulary=1000))
    machine = Machine(bandwidth=1e9, peaks={"bf16": None}, attention_peak=None, last_level_cache=8_000_000)
    found = counted_floors(small, machine, batch=1, prompt=500, out=1000).latency.e2e
    steps = (work.decode(small, batch=1, context=500 + i - 1) for i in range(1, 1000))
    prefill = work.prefill(small, batch=1, prompt=500)
    expected = sum(max(0, step.bytes - 8_000_000) for step in (prefill, *steps)) / 1e9
    assert found == pytest.approx(expected, rel=1e-9)


# --- Turning points ---------------------------------------------------------------------------------------------------


def test_decode_never_turns_to_compute_when_each_sequence_brings_its_own_cache() -> None:
    # Llama-3.1-8B at 2,000 tokens: 262 MB of cache against 16 GFLOP per sequence is 61 FLOP/byte, below 295.
    assert turning_batch(LLAMA, H100, context=2000) is None


def test_decode_turns_to_compute_near_the_ridge_when_the_context_is_short() -> None:
    # 2 · 7.50e9 FLOP per token against 15.0 GB: one FLOP/byte and sequence; ridge 989.5 / 3.35 = 295.4.
    turn = turning_batch(LLAMA, H100, context=1)
    assert turn == pytest.approx(296, abs=3)


def test_without_a_compute_ceiling_nothing_turns() -> None:
    machine = Machine(bandwidth=1, peaks={"bf16": None}, attention_peak=None)
    assert turning_prompt(LLAMA, machine, batch=1, limit=1000) is None
    assert turning_batch(LLAMA, machine, context=10) is None


# --- Formats that a device has no units for ---------------------------------------------------------------------------
# https://github.com/huggingface/huggingface-llama-recipes/issues/21 and three more reports: tools promised double speed
# for fp8 on an A100 and denied it on an L4. 28.97 TFLOP of a 2,000-token prefill of Llama-3.1-8B take 92.8 ms at
# 312 TFLOP/s, 119.7 ms at 242, and 14.64 ms (15.17 with attention and head in bf16) at 1,979.

FP8 = {
    "a100-sxm-80gb": (92.8e-3, True),
    "l4": (119.7e-3, False),
    "h100-sxm": (15.17e-3, False),
}


@pytest.mark.parametrize("device", FP8)
def test_fp8_runs_on_16_bit_units_where_there_are_none_for_it(device: str) -> None:
    expected, widened = FP8[device]
    answer = plan(model(LLAMA_8B), device, Workload(2000, 16), precision="fp8")
    assert answer.counted is not None
    assert answer.counted.prefill.compute_time == pytest.approx(expected, rel=0.04)
    said = [w for w in answer.warnings if f"{device} lists no fp8 units" in w]
    assert len(said) == int(widened)


def test_fp8_on_an_a100_halves_the_bytes_and_not_the_arithmetic() -> None:
    wide = plan(model(LLAMA_8B), "a100-sxm-80gb", Workload(2000, 16))
    narrow = plan(model(LLAMA_8B), "a100-sxm-80gb", Workload(2000, 16), precision="fp8")
    assert wide.counted is not None
    assert narrow.counted is not None
    assert narrow.counted.prefill.compute_time == pytest.approx(wide.counted.prefill.compute_time, rel=1e-12)
    # 8,033,280,000 bytes of weights are read instead of 15,009,849,344 (the issue: 8.03 GB read per step).
    assert narrow.decode_read_bytes == pytest.approx(8.03e9, abs=0.005e9)
    assert wide.decode_read_bytes == 15_009_849_344


def test_int4_weights_do_not_speed_up_a_large_batch() -> None:
    # https://github.com/casper-hansen/AutoAWQ/issues/106 and three more: a 13B model of 12,851,609,600 multiplied
    # parameters on 2,039 GB/s and 312 TFLOP/s; 3.394 ms (int4) and 12.61 ms (fp16) at batch 1, 21.09 ms both at 256.
    thirteen = llama(hidden=5120, layers=40, heads=40, kv_heads=40, width=13824, vocabulary=32000)
    device = device_from_numbers(bandwidth=2.039e12, peak=312e12)

    def floor(precision: str, batch: int) -> float:
        counted = plan(model(thirteen), device, Workload(1, 2, batch), precision=precision).counted
        assert counted is not None
        assert counted.latency.tpot is not None
        return counted.latency.tpot

    assert floor("int4", 1) == pytest.approx(3.394e-3, rel=0.02)
    assert floor("fp16", 1) == pytest.approx(12.61e-3, rel=0.02)
    assert floor("int4", 256) == pytest.approx(21.09e-3, rel=0.02)
    assert floor("fp16", 256) == pytest.approx(21.09e-3, rel=0.02)


def test_a_device_that_is_unsure_of_its_units_has_no_compute_floor_and_says_so() -> None:
    answer = plan(model(LLAMA_8B), "m5-10c", Workload(2000, 16))
    assert answer.counted is not None
    assert answer.counted.prefill.compute_time == 0
    assert answer.turning_points.prompt is None
    assert any("rests on memory bandwidth alone" in warning for warning in answer.warnings)


def test_a_device_without_bandwidth_has_no_floors_and_says_so() -> None:
    answer = plan(model(LLAMA_8B), device_from_numbers(peak=1e15), Workload(2000, 16))
    assert answer.textbook is None
    assert answer.counted is None
    assert answer.what_if == ()
    assert answer.decode_share is None
    assert any("no memory bandwidth" in warning for warning in answer.warnings)


def test_a_machine_takes_its_ceilings_from_the_catalogue() -> None:
    # hardware/nvidia/h100-sxm.yaml: 3.35 TB/s, 989.5 TFLOP/s, 50 MiB of cache, NVLink 450 GB/s one way.
    device = find_device("h100-sxm")
    machine = machine_of(device, ceilings_of(device, ("bf16",), "bf16", "bf16"), devices=2, message_bytes=7)
    assert machine == Machine(3.35e12, {"bf16": 989.5e12}, 989.5e12, 50 * 2**20, 2, 450e9, 7)


def test_every_arithmetic_kind_of_the_weights_is_asked_for() -> None:
    assert arithmetic_used(LLAMA) == ("bf16",)
    assert arithmetic_used(inventory(LLAMA_8B, weights="int4")) == ("int8",)  # the fastest that an engine may use


# --- Experts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experts", "active", "batch", "expected"),
    # https://github.com/inference-sim/inference-sim/issues/764 and three more: all experts were charged at batch 3, or
    # top-k times the batch. Expected numbers of different experts under uniform routing:
    [(8, 2, 1, 2.0), (8, 2, 3, 4.625), (128, 8, 16, 82.42), (128, 8, 64, 125.94), (256, 8, 32, 163.31)],
)
def test_a_batch_touches_fewer_experts_than_top_k_times_its_size(
    experts: int, active: int, batch: int, expected: float
) -> None:
    found = distinct_experts(experts=experts, active=active, tokens=batch)
    assert found == pytest.approx(expected, rel=0.001)
    assert found <= min(experts, active * batch) + 1e-9


def test_a_sparse_models_floor_warns_about_its_assumption_from_batch_2_on() -> None:
    moe = mixture_of_experts(hidden=64, width=32, experts=16, active=2)
    sparse = model(transformer(moe, hidden=64, vocabulary=10, layers=3))
    said = [
        any("same experts" in w for w in plan(sparse, "h100-sxm", Workload(10, 10, batch)).warnings) for batch in (1, 2)
    ]
    assert said == [False, True]


# --- What helps -------------------------------------------------------------------------------------------------------


def test_twice_both_ceilings_take_half_the_time() -> None:
    now = counted_floors(LLAMA, H100, batch=4, prompt=2000, out=100).latency
    then = counted_floors(LLAMA, faster(H100, compute=2, bandwidth=2), batch=4, prompt=2000, out=100).latency
    assert then.ttft == pytest.approx(now.ttft / 2, rel=1e-12)
    assert then.e2e == pytest.approx(now.e2e / 2, rel=1e-12)


def test_the_changes_that_might_help_are_named_and_measured_against_now() -> None:
    answer = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 256))
    assert answer.counted is not None
    assert [case.change for case in answer.what_if] == [
        "2 × bandwidth",
        "2 × compute",
        "half the weight bytes",
        "half the prompt",
    ]
    for case in answer.what_if:
        assert case.relative == pytest.approx(case.e2e / answer.counted.latency.e2e - 1, rel=1e-12)
        assert case.relative <= 0
