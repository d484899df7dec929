"""The catalogue of equations: its form, its units, and values that somebody else published.

The audit of units calls every formula with pint quantities made from the units that its signature declares, and
compares the dimension of what comes out with the declared one. It cannot see a missing factor of 2: the values do.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import math
import re
import textwrap
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pint
import pytest

from planner import formulas
from planner.quantity import equation, formula_units

Formula = Callable[..., float]


def formulas_of(module: ModuleType) -> dict[str, Formula]:
    """The public functions that a module itself defines."""
    return {
        name: found
        for name, found in vars(module).items()
        if inspect.isfunction(found) and found.__module__ == module.__name__ and not name.startswith("_")
    }


FORMULAS = formulas_of(formulas)
every_formula = pytest.mark.parametrize("name", FORMULAS)


# --- Form -------------------------------------------------------------------------------------------------------------


@every_formula
def test_every_parameter_is_given_by_name(name: str) -> None:
    kinds = {parameter.kind for parameter in inspect.signature(FORMULAS[name]).parameters.values()}
    assert kinds == {inspect.Parameter.KEYWORD_ONLY}


@every_formula
def test_every_docstring_begins_with_one_sentence(name: str) -> None:
    sentence = " ".join((inspect.getdoc(FORMULAS[name]) or "").split("\n\n")[0].split())
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert ". " not in sentence


@every_formula
def test_every_docstring_has_one_equation(name: str) -> None:
    lines = [line for line in (FORMULAS[name].__doc__ or "").splitlines() if " = " in line]
    assert [line.strip() for line in lines] == [equation(FORMULAS[name])]


@every_formula
def test_every_docstring_names_a_reference_that_can_be_found(name: str) -> None:
    lines = [line.strip() for line in (FORMULAS[name].__doc__ or "").splitlines()]
    references = [line for line in lines if line.startswith("Reference: ")]
    assert len(references) == 1
    document = r"doi:10\.\d{4,}/\S+|arXiv:\d{4}\.\d{4,5}|NVIDIA NIM LLM benchmarking guide|Feller, Probability theory"
    assert re.search(document, references[0])


@every_formula
def test_every_docstring_has_an_example_that_calls_the_formula(name: str) -> None:
    examples = [e for test in doctest.DocTestFinder().find(FORMULAS[name], name) for e in test.examples]
    assert any(f"{name}(" in example.source and example.want for example in examples)


@every_formula
def test_every_figure_has_a_declared_unit(name: str) -> None:
    units, result = formula_units(FORMULAS[name])
    assert set(units) == set(inspect.signature(FORMULAS[name]).parameters)
    assert {*units.values(), result} <= UNITS


# --- Units ------------------------------------------------------------------------------------------------------------

UNITS = {"B", "B/s", "FLOP", "FLOP/s", "FLOP/B", "s", "token", "token/s", "parameter", "1"}

# Arithmetic is multiply-adds: one per multiplied parameter and token. That is the one conversion.
REGISTRY: Any = pint.UnitRegistry(None)
for definition in ("B = [data]", "s = [time]", "token = [tokens]", "parameter = [parameters]"):
    REGISTRY.define(definition)
REGISTRY.define("FLOP = parameter * token")

# What a signature's unit leaves out, where it leaves out a count: "seconds" that are seconds per token, a "ratio" that
# is a width in parameters. A refinement may only add or drop counts (see the test of that).
REFINED = {
    "textbook_weight_bytes": {"width": "B / parameter"},
    "time_per_output_token": {"return": "s / token"},
    "end_to_end_time": {"per_token": "s / token"},
    "distinct_experts": {"tokens": "1"},  # an exponent
    "attention_work": {"key_dim": "parameter", "value_dim": "parameter"},
}


def quantity(magnitude: float, unit: str) -> Any:
    """A pint quantity of the private registry."""
    return REGISTRY.Quantity(magnitude, "dimensionless" if unit == "1" else unit)


def audit(name: str, formula: Formula, declared: Formula) -> None:
    """Call ``formula`` with quantities in the units of ``declared``, and compare the dimension of the outcome."""
    units, result = formula_units(declared)
    refined = REFINED.get(name, {})
    magnitudes = (2.0, 3.0, 5.0, 7.0)
    inputs = {
        parameter: quantity(magnitude, refined.get(parameter, unit))
        for (parameter, unit), magnitude in zip(units.items(), magnitudes, strict=False)
    }
    outcome = REGISTRY.Quantity(1) * formula(**inputs)
    expected = quantity(1, refined.get("return", result))
    assert outcome.dimensionality == expected.dimensionality, f"{name}: {outcome.units}, declared {expected.units}"


@every_formula
def test_the_outcome_has_the_declared_unit(name: str) -> None:
    audit(name, FORMULAS[name], FORMULAS[name])


def test_a_refined_unit_adds_or_drops_nothing_but_counts() -> None:
    counts = {"[tokens]", "[parameters]"}
    for name, refined in REFINED.items():
        units, result = formula_units(FORMULAS[name])
        for parameter, unit in refined.items():
            declared = result if parameter == "return" else units[parameter]
            change = quantity(1, unit) / quantity(1, declared)
            assert change.dimensionality, f"{name}.{parameter} is declared so already"
            assert set(change.dimensionality) <= counts


class _Swap(ast.NodeTransformer):
    """Turns the ``wanted``-th multiplication or division around."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.seen = 0

    def visit_BinOp(self, node: ast.BinOp) -> ast.BinOp:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mult | ast.Div):
            if self.seen == self.wanted:
                node.op = ast.Div() if isinstance(node.op, ast.Mult) else ast.Mult()
            self.seen += 1
        return node


def mutants(formula: Formula) -> list[Formula]:
    """The formula with each of its multiplications and divisions turned around, one at a time."""
    source = textwrap.dedent(inspect.getsource(formula))
    operators = sum(isinstance(node, ast.Mult | ast.Div) for node in ast.walk(ast.parse(source)))
    found = []
    for wanted in range(operators):
        space = dict(vars(formulas))
        tree = ast.fix_missing_locations(_Swap(wanted).visit(ast.parse(source)))
        exec(compile(tree, "mutant", "exec"), space)
        found.append(space[formula.__name__])
    return found


# Formulas of pure numbers have no units to get wrong; a number of heads multiplies like the factor 2.
BLIND = {"distinct_experts": 2, "attention_work": 1}


@every_formula
def test_the_audit_fails_for_a_multiplication_turned_into_a_division(name: str) -> None:
    survivors = 0
    for mutant in mutants(FORMULAS[name]):
        try:
            audit(name, mutant, FORMULAS[name])
        except (AssertionError, pint.DimensionalityError):
            continue
        survivors += 1
    assert survivors == BLIND.get(name, 0)


def test_the_audit_fails_for_a_formula_that_was_broken_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def multiplied(*, traffic: float, bandwidth: float) -> float:
        return traffic * bandwidth

    declared = formulas.memory_time
    monkeypatch.setattr(formulas, "memory_time", multiplied)
    with pytest.raises(AssertionError, match="memory_time"):
        audit("memory_time", formulas.memory_time, declared)


def test_the_audit_fails_for_a_formula_that_adds_seconds_to_bytes() -> None:
    with pytest.raises(pint.DimensionalityError):
        audit("memory_time", lambda *, traffic, bandwidth: traffic + bandwidth, formulas.memory_time)


# --- Values -----------------------------------------------------------------------------------------------------------

SEED_NIM = "lesson 'Prefill, Decode and Time to First Token on NVIDIA NIM', bounds for Llama-3.1-8B on an H100 SXM"
SEED_COST = "lesson 'What One Model Call Costs', RTX 3060 and Qwen2.5-1.5B"
BY_HAND = "by hand: "

VALUES: tuple[tuple[str, dict[str, float], float, float, str], ...] = (
    ("memory_time", {"traffic": 16.06e9, "bandwidth": 3.35e12}, 4.8e-3, 0.05e-3, SEED_NIM),
    ("compute_time", {"work": 2 * 8.03e9 * 2000, "peak": 990e12}, 32e-3, 0.5e-3, SEED_NIM),
    ("step_floor", {"memory": 1.0, "compute": 3.0, "link": 2.0}, 3.0, 0, BY_HAND + "the largest of three"),
    ("ridge_point", {"peak": 27.63e12, "bandwidth": 318.3e9}, 86.8, 0.05, SEED_COST),
    ("ridge_point", {"peak": 346.1e9, "bandwidth": 16.0e9}, 21.6, 0.05, SEED_COST + ", section 5 (CPU)"),
    ("arithmetic_intensity", {"work": 2 * 1.5e9, "traffic": 2 * 1.5e9}, 1, 0, SEED_COST + ", decode at batch 1"),
    ("textbook_weight_bytes", {"parameters": 1_543_714_304, "width": 2}, 3.087e9, 0.0005e9, SEED_COST),
    ("textbook_weight_bytes", {"parameters": 1_543_714_304, "width": 4}, 6.17e9, 0.005e9, SEED_COST + ", fp32"),
    (
        "textbook_prefill_work",
        {"parameters": 1_543_714_304, "tokens": 1024},
        20.38e12 * 0.1551,  # printed rate times printed time
        0.005e12 * 0.1551 + 20.38e12 * 0.00005,
        SEED_COST + ", section 4",
    ),
    (
        "matrix_work",
        {"multiplied": 4096 * 4096, "tokens": 3},
        100_663_296,
        0,
        BY_HAND + "4,096 rows of 4,096 multiply-adds, 2 FLOP each, for 3 tokens",
    ),
    (
        "time_per_output_token",
        {"end_to_end": 10.0, "first_token": 1.0, "gaps": 99},
        1 / 11,
        1e-12,
        "NVIDIA NIM benchmarking guide: (e2e_latency − TTFT) / (output tokens − 1), here of 100 tokens",
    ),
    ("end_to_end_time", {"first_token": 0.64, "per_token": 0.017, "gaps": 49}, 1.47, 0.005, SEED_COST + ", section 6"),
    ("end_to_end_time", {"first_token": 0.04, "per_token": 0.017, "gaps": 799}, 13.6, 0.05, SEED_COST + ", section 6"),
    ("token_rate", {"tokens": 1024, "time": 0.1551}, 6602, 2.2, SEED_COST + " (0.1551 s to ±0.00005)"),
    ("token_rate", {"tokens": 1, "time": 16.06e9 / 3.35e12}, 209, 0.5, SEED_NIM),
    ("share_of_ceiling", {"reached": 178.5e9, "ceiling": 318.3e9}, 0.561, 0.0005, SEED_COST + ", section 4"),
    ("share_of_ceiling", {"reached": 84e9, "ceiling": 273e9}, 0.31, 0.005, "issue text: M4 Pro, 31 to 47 %"),
    ("share_of_ceiling", {"reached": 128e9, "ceiling": 273e9}, 0.47, 0.005, "issue text: M4 Pro, 31 to 47 %"),
    # https://github.com/inference-sim/inference-sim/issues/764: about 4.6 of 8 experts for 3 tokens that take 2 each.
    ("distinct_experts", {"experts": 8, "active": 2, "tokens": 3}, 4.6, 0.05, "inference-sim issue 764"),
    ("distinct_experts", {"experts": 8, "active": 2, "tokens": 1}, 2, 1e-12, BY_HAND + "one token takes its own two"),
    (
        "distinct_experts",
        {"experts": 128, "active": 8, "tokens": 16},
        128 * (1 - 15**16 / 16**16),
        1e-9,
        BY_HAND + "an expert stays untouched by 16 tokens with probability (15/16)^16",
    ),
    (
        "attention_work",
        {"heads": 32, "key_dim": 128, "value_dim": 128, "pairs": 2000 * 2001 / 2},
        32_784_384_000,
        0,
        BY_HAND + "2 · 32 · 256 = 16,384 FLOP for each of 2,001,000 causal pairs",
    ),
    ("all_reduce_floor", {"message": 9e8, "rate": 450e9}, 2e-3, 1e-15, BY_HAND + "0.9 GB at 450 GB/s one way"),
)


@pytest.mark.parametrize(("name", "inputs", "expected", "tolerance", "source"), VALUES)
def test_values_are_those_that_others_published(
    name: str, inputs: dict[str, float], expected: float, tolerance: float, source: str
) -> None:
    assert math.isclose(FORMULAS[name](**inputs), expected, rel_tol=0, abs_tol=tolerance), source


def test_every_formula_has_a_value_from_elsewhere() -> None:
    assert {name for name, *_ in VALUES} == set(FORMULAS)
