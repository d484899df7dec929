"""Quantities: made from formulas with their units checked, and walked as trees."""

from __future__ import annotations

import json

import pytest

from planner import formulas
from planner.quantity import (
    Quantity,
    Status,
    UnitMismatchError,
    as_json,
    combine,
    derive,
    equation,
    formula_units,
    leaves,
    walk,
)

TRAFFIC = Quantity("weights", 16e9, "B", "config", Status.CONFIG)
BANDWIDTH = Quantity("bandwidth", 4e12, "B/s", "data sheet", Status.CATALOGUE)


def test_a_derived_quantity_has_the_formulas_value_unit_and_equation() -> None:
    found = derive("memory time", formulas.memory_time, traffic=TRAFFIC, bandwidth=BANDWIDTH)
    assert (found.name, found.value, found.unit) == ("memory time", 0.004, "s")
    assert found.because == "t = bytes / bandwidth"
    assert found.status is Status.DERIVED
    assert found.inputs == (TRAFFIC, BANDWIDTH)


def test_a_quantity_of_another_unit_is_refused() -> None:
    seconds = Quantity("not a rate", 4.0, "s", "a slip")
    with pytest.raises(UnitMismatchError, match="memory time: bandwidth is in s, the formula wants B/s"):
        derive("memory time", formulas.memory_time, traffic=TRAFFIC, bandwidth=seconds)


def test_swapped_quantities_are_refused() -> None:
    with pytest.raises(UnitMismatchError):
        derive("memory time", formulas.memory_time, traffic=BANDWIDTH, bandwidth=TRAFFIC)


def test_an_input_that_is_missing_or_unknown_is_refused() -> None:
    with pytest.raises(TypeError):
        derive("memory time", formulas.memory_time, traffic=TRAFFIC)
    with pytest.raises((TypeError, KeyError)):
        derive("memory time", formulas.memory_time, traffic=TRAFFIC, bandwidth=BANDWIDTH, latency=BANDWIDTH)


def test_a_derived_quantity_is_an_input_of_the_next() -> None:
    memory = derive("memory time", formulas.memory_time, traffic=TRAFFIC, bandwidth=BANDWIDTH)
    zero = Quantity("none", 0.0, "s", "no link")
    step = derive("step", formulas.step_floor, memory=memory, compute=zero, link=zero)
    assert step.value == 0.004
    assert [(depth, q.name) for depth, q in walk(step)] == [
        (0, "step"),
        (1, "memory time"),
        (2, "weights"),
        (2, "bandwidth"),
        (1, "none"),
        (1, "none"),
    ]
    assert [q.name for q in leaves(step)] == ["weights", "bandwidth", "none", "none"]


def test_a_sum_says_what_it_sums() -> None:
    total = combine("both", 32e9, "B", "sum of the terms", TRAFFIC, TRAFFIC)
    assert total.inputs == (TRAFFIC, TRAFFIC)
    assert total.because == "sum of the terms"
    assert total.status is Status.DERIVED


def test_units_are_read_from_the_signature() -> None:
    units, result = formula_units(formulas.memory_time)
    assert (units, result) == ({"traffic": "B", "bandwidth": "B/s"}, "s")
    assert equation(formulas.end_to_end_time) == "E2E = TTFT + (O − 1) · TPOT"


def test_a_tree_becomes_plain_data() -> None:
    found = derive("memory time", formulas.memory_time, traffic=TRAFFIC, bandwidth=BANDWIDTH)
    data = as_json(found)
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert data["status"] == "derived"
    assert data["inputs"][1] == {
        "name": "bandwidth",
        "value": 4e12,
        "unit": "B/s",
        "because": "data sheet",
        "status": "catalogue",
    }


def test_quantities_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TRAFFIC.value = 1.0  # type: ignore[misc]
