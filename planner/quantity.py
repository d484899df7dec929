"""Quantities that know where they come from, and the tree that explains them.

Arithmetic lives in ``formulas`` on plain floats; ``derive`` calls a formula on quantities, checks their units against
the signature and keeps the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from inspect import signature
from typing import Any, get_type_hints


class Status(StrEnum):
    """How far a value can be trusted, and who is responsible for it."""

    GIVEN = "given"
    CONFIG = "config"
    CATALOGUE = "catalogue"
    UNVERIFIED = "unverified"
    DEFAULT = "default"
    ASSUMED = "assumed"
    DERIVED = "derived"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value with its unit. A leaf's ``because`` says where it was read; a derived one's is its equation."""

    name: str
    value: float
    unit: str
    because: str
    status: Status = Status.DERIVED
    inputs: tuple[Quantity, ...] = ()


class UnitMismatchError(TypeError):
    """A quantity was handed to a formula that wants another unit (a mistake in this package)."""


@cache
def formula_units(formula: Callable[..., float]) -> tuple[dict[str, str], str]:
    """Unit of each parameter and of the result, from the annotations of a formula."""
    hints = get_type_hints(formula, include_extras=True)
    units = {name: hint.__metadata__[0] for name, hint in hints.items()}
    return {name: units[name] for name in signature(formula).parameters}, units["return"]


def equation(formula: Callable[..., float]) -> str:
    """The equation line of a formula's docstring."""
    lines = [line.strip() for line in (formula.__doc__ or "").splitlines()]
    return next(line for line in lines if " = " in line)


def derive(name: str, formula: Callable[..., float], **inputs: Quantity) -> Quantity:
    """Apply ``formula`` to quantities.

    Raises:
        UnitMismatchError: an input's unit differs from the formula's signature.
    """
    units, result = formula_units(formula)
    for parameter, quantity in inputs.items():
        if quantity.unit != units[parameter]:
            raise UnitMismatchError(f"{name}: {parameter} is in {quantity.unit}, the formula wants {units[parameter]}")
    value = formula(**{parameter: quantity.value for parameter, quantity in inputs.items()})
    return Quantity(name, value, result, equation(formula), inputs=tuple(inputs.values()))


def combine(name: str, value: float, unit: str, because: str, *inputs: Quantity) -> Quantity:
    """A derived quantity whose arithmetic is a plain sum or choice said in ``because``."""
    return Quantity(name, value, unit, because, inputs=inputs)


def walk(quantity: Quantity, depth: int = 0) -> Iterator[tuple[int, Quantity]]:
    """The tree in reading order with its depth."""
    yield depth, quantity
    for part in quantity.inputs:
        yield from walk(part, depth + 1)


def leaves(quantity: Quantity) -> list[Quantity]:
    """The quantities that were read, not computed."""
    return [q for _, q in walk(quantity) if not q.inputs]


def as_json(quantity: Quantity) -> dict[str, Any]:
    """The tree as plain data."""
    found: dict[str, Any] = {
        "name": quantity.name,
        "value": quantity.value,
        "unit": quantity.unit,
        "because": quantity.because,
        "status": str(quantity.status),
    }
    if quantity.inputs:
        found["inputs"] = [as_json(part) for part in quantity.inputs]
    return found
