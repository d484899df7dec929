"""Derivations: their roots are the plan's own figures, their sums add up, their leaves say where they were read."""

from __future__ import annotations

import json

import pytest

from planner.derivation import TOPICS, explain
from planner.errors import PlanError
from planner.planning import Plan
from planner.quantity import Quantity, Status, as_json, leaves, walk
from planner.scenario import Scenario

JOB: dict[str, object] = {"model": "meta/llama-3.1-8b", "gpu": "h100-sxm", "prompt": 2000, "out": 256}
CASES: dict[str, dict[str, object]] = {
    "the main job": {},
    "a batch with a cached prefix": {"batch": 8, "cached_prefix": 1000},
    "two output tokens": {"out": 2},
    "one output token": {"out": 1},
    "fp8 on a device without fp8": {"gpu": "a100-sxm-80gb", "precision": "fp8"},
    "a quantised cache": {"kv_precision": "q8_0"},
    "a device unsure of its units": {"gpu": "m5-10c"},
    "a device of numbers": {"gpu": None, "bandwidth": "1TB/s", "peak": "100TFLOP/s", "memory": "80GB"},
}


def planned(**changes: object) -> Plan:
    return Scenario.read(JOB | changes).plan()


@pytest.fixture(params=CASES)
def answer(request: pytest.FixtureRequest) -> Plan:
    return planned(**CASES[request.param])


def roots(answer: Plan, topic: str) -> dict[str, float]:
    """Root name → value; a topic that one output token has no figure for is empty."""
    if topic == "tpot" and answer.workload.out == 1:
        return {}
    return {tree.name: tree.value for tree in explain(answer, topic)}


def test_the_roots_of_ttft_and_tpot_are_the_plans_own_floors(answer: Plan) -> None:
    assert answer.textbook is not None
    assert answer.counted is not None
    ttft, tpot = roots(answer, "ttft"), roots(answer, "tpot")
    assert ttft["TTFT, textbook"] == pytest.approx(answer.textbook.ttft, rel=1e-12)
    assert ttft["TTFT, counted floor"] == pytest.approx(answer.counted.latency.ttft, rel=1e-12)
    if answer.workload.out > 1:
        assert tpot["TPOT, textbook"] == pytest.approx(answer.textbook.tpot, rel=1e-12)
        assert tpot["TPOT, counted floor"] == pytest.approx(answer.counted.latency.tpot, rel=1e-12)


def test_the_roots_of_e2e_are_the_plans_own_floors(answer: Plan) -> None:
    assert answer.textbook is not None
    assert answer.counted is not None
    found = roots(answer, "e2e")
    name = "E2E" if answer.workload.out > 1 else "TTFT"  # one token: the request is its first token
    assert found[f"{name}, textbook"] == pytest.approx(answer.textbook.e2e, rel=1e-12)
    assert found[f"{name}, counted floor"] == pytest.approx(answer.counted.latency.e2e, rel=1e-9)


def test_the_roots_of_sizes_are_the_plans_own(answer: Plan) -> None:
    assert roots(answer, "weights")["weights stored"] == answer.inventory.stored_bytes
    assert roots(answer, "weights")["weights read by a decode step"] == answer.decode_read_bytes
    assert roots(answer, "params")["parameters"] == answer.counts.total
    assert roots(answer, "memory")["memory needed per device"] == answer.memory.total
    assert roots(answer, "kv")["KV cache and state of the whole batch, per device"] == answer.memory.cache


@pytest.mark.parametrize("topic", TOPICS)
def test_every_leaf_says_where_it_was_read(answer: Plan, topic: str) -> None:
    if topic == "tpot" and answer.workload.out == 1:
        return
    for tree in explain(answer, topic):
        for leaf in leaves(tree):
            assert leaf.because.strip()
        for _, node in walk(tree):
            assert node.name.strip()
            assert node.because.strip()


@pytest.mark.parametrize("topic", TOPICS)
def test_every_sum_is_the_sum_of_its_terms(answer: Plan, topic: str) -> None:
    if topic == "tpot" and answer.workload.out == 1:
        return
    for tree in explain(answer, topic):
        for _, node in walk(tree):
            if node.because.startswith("sum") and node.inputs:
                assert node.value == pytest.approx(sum(term.value for term in node.inputs), rel=1e-9)


def test_every_maximum_is_the_largest_of_its_times(answer: Plan) -> None:
    steps = [node for tree in explain(answer, "ttft") for _, node in walk(tree) if node.because.startswith("max of")]
    assert steps
    for step in steps:
        assert step.value == max(part.value for part in step.inputs)
        assert str(answer.counted and answer.counted.prefill.limit) in step.because


def test_a_catalogue_figure_names_its_document() -> None:
    (counted,) = (tree for tree in explain(planned(), "tpot") if "counted" in tree.name)
    (bandwidth, *_) = (leaf for leaf in leaves(counted) if leaf.name == "h100-sxm bandwidth")
    assert bandwidth.status is Status.CATALOGUE
    assert "http" in bandwidth.because or "github.com" in bandwidth.because


def test_an_unverified_figure_is_marked_as_such() -> None:
    answer = planned(gpu="rtx-3060-12gb")
    assert answer.ceilings.attention is not None
    nodes = [node for tree in explain(answer, "ttft") for _, node in walk(tree)]
    unverified = [node for node in nodes if node.status is Status.UNVERIFIED]
    used = (answer.ceilings.bandwidth, answer.ceilings.textbook_peak, *answer.ceilings.compute.values())
    assert bool(unverified) == any(ceiling is not None and not ceiling.verified for ceiling in used)


def test_the_users_own_numbers_say_that_they_were_given() -> None:
    answer = planned(gpu=None, bandwidth="1TB/s", peak="100TFLOP/s")
    because = {leaf.because for tree in explain(answer, "tpot") for leaf in leaves(tree) if "bandwidth" in leaf.name}
    assert because == {"given: command line"}


def test_a_tied_head_is_no_second_row_of_the_ledger() -> None:
    (ledger,) = explain(planned(), "params")
    names = [term.name for term in ledger.inputs]
    assert len(names) == len(set(names))
    assert "lm_head: lm_head" in names


def test_one_output_token_has_no_tpot_to_explain() -> None:
    with pytest.raises(PlanError, match="one output token has no TPOT") as caught:
        explain(planned(out=1), "tpot")
    assert caught.value.field == "out"


def test_an_unknown_topic_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(PlanError, match="did you mean tpot or ttft") as caught:
        explain(planned(), "tpto")
    assert caught.value.field == "topic"
    with pytest.raises(PlanError, match="known are ttft, tpot, e2e, kv, weights, params, memory"):
        explain(planned(), "zzzzzzzz")


def test_trees_become_json_without_nan(answer: Plan) -> None:
    trees: list[Quantity] = [tree for topic in ("ttft", "e2e", "memory", "kv") for tree in explain(answer, topic)]
    data = [as_json(tree) for tree in trees]
    assert json.loads(json.dumps(data, allow_nan=False)) == data


@pytest.mark.parametrize("topic", ["ttft", "tpot", "e2e"])
def test_the_textbook_roots_of_a_group_of_devices_are_the_plans_own(topic: str) -> None:
    # Two H100: 2 · 8.03e9 · 2,000 / (2 · 989.5e12) = 16.2 ms, 16.06 GB / (2 · 3.35 TB/s) = 2.40 ms.
    answer = planned(tp=2)
    assert answer.textbook is not None
    value = {"ttft": answer.textbook.ttft, "tpot": answer.textbook.tpot, "e2e": answer.textbook.e2e}[topic]
    assert roots(answer, topic)[f"{topic.upper()}, textbook"] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("topic", ["ttft", "tpot", "e2e"])
def test_the_counted_roots_of_a_group_of_devices_are_the_plans_own(topic: str) -> None:
    answer = planned(tp=2)
    assert answer.counted is not None
    latency = answer.counted.latency
    value = {"ttft": latency.ttft, "tpot": latency.tpot, "e2e": latency.e2e}[topic]
    assert roots(answer, topic)[f"{topic.upper()}, counted floor"] == pytest.approx(value, rel=1e-9)


def test_e2e_is_explained_as_far_as_the_device_is_known() -> None:
    assert set(roots(planned(gpu=None, bandwidth="1TB/s"), "e2e")) == {"E2E, counted floor"}


def test_e2e_of_a_device_without_bandwidth_cannot_be_explained() -> None:
    with pytest.raises(PlanError, match="custom has no ceiling that a e2e follows from"):
        roots(planned(gpu=None, peak="100TFLOP/s"), "e2e")
