"""What must be in memory at once, against sizes worked out by hand or reported by others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.blocks import gated_mlp, grouped_query_attention, mixture_of_experts
from planner.ceilings import usable_memory
from planner.errors import PlanError
from planner.hardware import device_from_numbers, find_device
from planner.memory import STEP_TOKENS, Budget, Memory, activation_bytes_per_token, memory_of
from planner.planning import plan
from planner.scenario import Scenario
from planner.workload import Workload
from tests.strategies import LLAMA_8B, inventory, llama, model, transformer

WEIGHTS = 2 * 8_030_261_248
ROW = 131_072  # bytes cached per token: 2 · 8 · 128 · 32 layers in bf16
ACTIVE = 2 * (2 * 4096 + 2 * 14336)  # residual and normalised input, gate and up halves; bf16
LOGITS = 4 * 128_256


def memory(usable: int, *, batch: int = 1, prompt: int = 2000, out: int = 256, degree: int = 1) -> Memory:
    """Llama-3.1-8B in bf16 on a budget of exactly ``usable`` bytes."""
    return memory_of(
        LLAMA_8B,
        inventory(LLAMA_8B),
        batch=batch,
        prompt=prompt,
        out=out,
        degree=degree,
        budget=Budget(usable, 1.0),
    )


def test_weights_cache_activations_and_logits_add_up() -> None:
    found = memory(80 * 10**9, batch=3)
    assert found.weights == WEIGHTS
    assert found.cache_per_request == 2256 * ROW
    assert found.cache == 3 * 2256 * ROW
    assert found.activations == 6000 * ACTIVE
    assert found.logits == 3 * LOGITS
    assert found.runtime is None
    assert found.total == WEIGHTS + 3 * 2256 * ROW + 6000 * ACTIVE + 3 * LOGITS


def test_the_widest_block_decides_the_activations() -> None:
    assert activation_bytes_per_token(LLAMA_8B, 2) == ACTIVE
    # Four experts of 2 · 100 columns per token are wider than a dense block of 2 · 300, and the router adds its 16.
    moe = mixture_of_experts(hidden=64, width=100, experts=16, active=4)
    both = transformer(gated_mlp(hidden=64, width=300), moe, hidden=64, vocabulary=10, layers=1)
    assert activation_bytes_per_token(both, 2) == 2 * (2 * 64 + 16 + 4 * 2 * 100)


def test_the_output_projection_is_no_input_projection() -> None:
    # With an MLP of 256 the queries, keys and values (4,096 + 2 · 1,024) are wider than gate and up (512).
    narrow = llama(hidden=4096, layers=1, heads=32, kv_heads=8, width=256, vocabulary=10)
    assert activation_bytes_per_token(narrow, 2) == 2 * (2 * 4096 + 6144)


def test_a_long_prompt_is_read_in_steps() -> None:
    assert memory(10**12, prompt=100_000).activations == STEP_TOKENS * ACTIVE


def test_what_fits_exactly_fits_and_one_byte_less_does_not() -> None:
    needed = memory(0).total
    exact, short = memory(needed), memory(needed - 1)
    assert (exact.fits, exact.spare) == (True, 0)
    assert (short.fits, short.spare) == (False, -1)


def test_the_largest_batch_is_the_last_that_fits() -> None:
    # Beyond four requests of 2,000 tokens the step is full, so each further one costs its cache and its logits.
    def needed(requests: int) -> int:
        return WEIGHTS + STEP_TOKENS * ACTIVE + requests * (2256 * ROW + LOGITS)

    assert memory(needed(150)).max_batch == 150
    assert memory(needed(150) - 1).max_batch == 149


def test_the_largest_batch_is_zero_when_not_even_one_request_fits() -> None:
    found = memory(WEIGHTS)
    assert (found.max_batch, found.max_context, found.fits) == (0, 0, False)


def test_the_longest_context_is_the_last_that_fits() -> None:
    def needed(context: int) -> int:
        return WEIGHTS + STEP_TOKENS * ACTIVE + context * ROW + LOGITS

    assert memory(needed(100_000)).max_context == 100_000
    assert memory(needed(100_000) - 1).max_context == 99_999


def test_a_model_whose_cache_stops_growing_has_no_longest_context() -> None:
    attention = grouped_query_attention(hidden=64, heads=4, kv_heads=2, head_dim=16, window=512)
    windowed = transformer(attention, hidden=64, vocabulary=10, layers=2)
    found = memory_of(windowed, inventory(windowed), batch=1, prompt=10, out=10, degree=1, budget=Budget(10**9, 1.0))
    assert found.max_context is None


def test_without_a_capacity_nothing_is_said_about_fitting() -> None:
    found = plan(model(LLAMA_8B), device_from_numbers(bandwidth=1e12, peak=1e14), Workload(2000, 256))
    assert found.memory.fits is None
    assert found.memory.spare is None
    assert found.memory.max_batch is None
    assert any("has no memory size" in warning for warning in found.warnings)


def test_a_large_model_does_not_fit_and_is_short_by_so_many_bytes() -> None:
    # Llama-3.1-70B: 70,553,706,496 parameters (published checkpoint) in bf16 on one card of 80 GB.
    seventy = llama(hidden=8192, layers=80, heads=64, kv_heads=8, width=28672, vocabulary=128256)
    found = plan(model(seventy), device_from_numbers(memory=80e9), Workload(10, 10), memory_utilisation=1.0)
    assert found.memory.weights == 2 * 70_553_706_496
    assert found.memory.fits is False
    assert found.memory.spare is not None
    assert found.memory.spare == pytest.approx(80e9 - 2 * 70_553_706_496, rel=0.001)
    assert found.memory.max_batch == 0


# https://github.com/ai-dynamo/dynamo/issues/10104 and two more reports: a deployment keeps the advertised 131,072
# tokens and crashes. A 70B Llama in fp8 with an fp8 cache on cards of 85,520,809,984 bytes at 0.9: one full request is
# 20 GiB of cache; 87.67 GiB are needed on one card (71.68 GiB offered), 43.83 on each of two.
@pytest.mark.parametrize(("degree", "gib", "fits"), [(1, 87.67, False), (2, 43.83, True)])
def test_one_request_of_the_advertised_context_must_fit_too(degree: int, gib: float, fits: bool) -> None:
    seventy = llama(hidden=8192, layers=80, heads=64, kv_heads=8, width=28672, vocabulary=128256)
    found = plan(
        model(seventy),
        device_from_numbers(memory=85_520_809_984),
        Workload(131_000, 72),
        precision="fp8",
        kv_precision="fp8",
        tp=degree,
    ).memory
    assert found.cache == 21_474_836_480 // degree
    assert (found.weights + found.cache) / 2**30 == pytest.approx(gib, rel=0.005)
    assert found.fits is fits


def test_a_request_of_the_workloads_own_length_takes_a_fraction_of_that() -> None:
    # The same report: 0.344 GiB for 2,000 + 256 tokens.
    seventy = llama(hidden=8192, layers=80, heads=64, kv_heads=8, width=28672, vocabulary=128256)
    found = plan(model(seventy), "h100-sxm", Workload(2000, 256), precision="fp8", kv_precision="fp8").memory
    assert found.cache / 2**30 == pytest.approx(0.344, abs=0.0005)


def test_capacity_is_what_programs_see_and_utilisation_takes_its_share() -> None:
    # hardware/nvidia/a100-sxm-80gb.yaml: 84,987,739,111 bytes usable (torch's total), stated by a log file.
    found = plan(model(LLAMA_8B), "a100-sxm-80gb", Workload(2000, 256), engine="vllm")
    assert found.memory.budget == Budget(84_987_739_111, 0.9)
    assert found.memory.budget.bytes == 76_488_965_199  # 0.9 of it, rounded down
    whole = plan(model(LLAMA_8B), "a100-sxm-80gb", Workload(2000, 256), memory_utilisation=1.0)
    assert whole.memory.budget is not None
    assert whole.memory.budget.bytes == 84_987_739_111


def test_98_per_cent_of_the_capacity_are_assumed_where_nobody_published_the_usable_bytes(tmp_path: Path) -> None:
    (tmp_path / "card.yaml").write_text("memory: {capacity: 80 GB}\nbandwidth: 1 TB/s\n", encoding="utf-8")
    found = usable_memory(find_device(str(tmp_path / "card.yaml")))
    assert found is not None
    assert found.value == 78_400_000_000
    assert not found.verified
    assert "assumed" in found.because


@pytest.mark.parametrize(("memory", "expected"), [("80GB", 80_000_000_000), ("80GiB", 85_899_345_920)])
def test_gb_and_gib_are_different_sizes(memory: str, expected: int) -> None:
    usable = usable_memory(Scenario.read({"memory": memory}).device())
    assert usable is not None
    assert usable.value == expected


@pytest.mark.parametrize("share", [0.0, -0.5, 1.01, 90])
def test_a_utilisation_is_a_share(share: float) -> None:
    with pytest.raises(PlanError, match="expected a share above 0 and up to 1"):
        plan(model(LLAMA_8B), "h100-sxm", memory_utilisation=share)


def test_a_context_beyond_the_models_maximum_is_warned_of_and_answered() -> None:
    short = llama(hidden=64, layers=1, heads=4, kv_heads=4, width=64, vocabulary=10)
    limited = model(replace(short, max_context=100))
    at = plan(limited, "h100-sxm", Workload(90, 10))
    beyond = plan(limited, "h100-sxm", Workload(90, 11))
    assert not any("max_position_embeddings" in warning for warning in at.warnings)
    assert any("more than the 100" in warning for warning in beyond.warnings)
    assert beyond.counted is not None
