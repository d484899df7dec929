"""Measured times against ceilings, to first order."""

from __future__ import annotations

import pytest

from planner.measurement import Measured, reached
from planner.planning import plan
from planner.roofline import TextbookInput
from planner.workload import Workload
from tests.strategies import LLAMA_8B, model

# 100 parameters of 2 bytes; 1,000 FLOP/s and 400 B/s.
GIVEN = TextbookInput(parameters=100, width=2, peak=1000, bandwidth=400)


def test_prefill_does_two_flop_per_parameter_and_token_and_reads_the_weights_once() -> None:
    found = reached(Measured(ttft=4.0), GIVEN, Workload(prompt=10, out=5)).prefill
    assert found is not None
    assert found.tokens_per_second == 2.5
    assert (found.compute, found.compute_share) == (2 * 100 * 10 / 4, 0.5)
    assert (found.bandwidth, found.bandwidth_share) == (50, 0.125)


def test_decode_makes_one_token_per_sequence_from_one_reading_of_the_weights() -> None:
    found = reached(Measured(tpot=0.8), GIVEN, Workload(prompt=10, out=5, batch=4)).decode
    assert found is not None
    assert found.tokens_per_second == 5
    assert (found.compute, found.compute_share) == (1000, 1.0)
    assert (found.bandwidth, found.bandwidth_share) == (250, 0.625)


def test_a_cached_prefix_was_not_computed() -> None:
    found = reached(Measured(ttft=1.0), GIVEN, Workload(prompt=10, out=5, cached_prefix=6)).prefill
    assert found is not None
    assert found.tokens_per_second == 4


def test_a_group_of_devices_has_their_ceilings_together() -> None:
    found = reached(Measured(tpot=1.0), GIVEN, Workload(), devices=2).decode
    assert found is not None
    assert (found.bandwidth, found.bandwidth_share) == (200, 0.25)


def test_both_times_make_the_request() -> None:
    found = reached(Measured(ttft=2.0, tpot=0.5), GIVEN, Workload(prompt=10, out=5))
    assert found.e2e == 2.0 + 4 * 0.5
    assert found.prefill_share == 0.5
    assert found.prefill_over_decode == 5 / 2


def test_one_time_alone_makes_no_request() -> None:
    for measured in (Measured(ttft=2.0), Measured(tpot=0.5)):
        found = reached(measured, GIVEN, Workload())
        assert found.e2e is None
        assert found.prefill_share is None
        assert found.prefill_over_decode is None


def test_without_a_ceiling_there_is_a_rate_and_no_share() -> None:
    bare = TextbookInput(parameters=100, width=2, peak=None, bandwidth=None)
    found = reached(Measured(ttft=4.0), bare, Workload(prompt=10)).prefill
    assert found is not None
    assert found.compute == 500
    assert found.compute_share is None
    assert found.bandwidth_share is None


@pytest.mark.parametrize(
    ("measured", "words"),
    [
        (Measured(ttft=1e-3), "the measured prefill reaches"),  # 2,000 tokens in 1 ms: 32 times the H100's peak
        (Measured(tpot=1e-3), "the measured decode reaches"),  # 16 GB in 1 ms: 16 TB/s of 3.35
    ],
)
def test_above_a_ceiling_the_ceiling_is_said_to_be_wrong(measured: Measured, words: str) -> None:
    answer = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 256), measured=measured)
    said = [warning for warning in answer.warnings if words in warning]
    assert said
    assert all("the ceiling is wrong" in warning for warning in said)


def test_below_the_ceilings_nothing_is_said() -> None:
    # vLLM's own order of magnitude on this card: 40 ms and 7 ms, above the floors of 29.3 and 4.56.
    answer = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 256), measured=Measured(0.04, 0.007))
    assert not any("ceiling is wrong" in warning for warning in answer.warnings)


def test_without_a_measurement_there_is_none() -> None:
    answer = plan(model(LLAMA_8B), "h100-sxm")
    assert answer.measured is None
