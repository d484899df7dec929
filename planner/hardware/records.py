"""What the program knows of a device: plain records in base units, made from a parsed YAML mapping.

A figure is written as text with its unit ("3.35 TB/s") and held in base units (bytes, B/s, FLOP/s, W, Hz, USD/h).
Untrusted text is checked by ``schema`` first; that module is not needed to read the bundled catalogue, whose files
the tests check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from planner import units

Value_co = TypeVar("Value_co", covariant=True)


class Source(NamedTuple):
    """Where a figure was read."""

    title: str
    address: str = ""
    date: str = ""


class Alternative(NamedTuple, Generic[Value_co]):
    """Another value that a source prints for the same figure; never used, shown as the spread."""

    value: Value_co
    basis: str = "stated"
    source: tuple[str, ...] = ()
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Figure(Generic[Value_co]):
    """A value with its basis (stated, derived, recalled, given) and source keys.

    ``sparse`` stands beside a dense peak: the rate with structured sparsity.
    """

    value: Value_co
    basis: str = "given"
    source: tuple[str, ...] = ()
    note: str | None = None
    also: tuple[Alternative[Value_co], ...] = ()
    sparse: float | None = None


Rate = Figure[float]


@dataclass(frozen=True, slots=True)
class Peak:
    """Dense FLOP/s by unit; ``fp16_acc16`` accumulates in fp16, ``fp16_acc32``, ``bf16`` and ``fp8`` in fp32."""

    fp32: Rate | None = None
    tf32: Rate | None = None
    fp16_acc16: Rate | None = None
    fp16_acc32: Rate | None = None
    bf16: Rate | None = None
    fp8: Rate | None = None
    fp8_acc16: Rate | None = None
    fp6: Rate | None = None
    fp4: Rate | None = None
    int8: Rate | None = None
    int4: Rate | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: ``usable`` is what the runtime reports to a program, ``options`` the sizes that are sold."""

    capacity: Rate
    usable: Rate | None = None
    nominal: Rate | None = None
    type: Figure[str] | None = None
    bus_bits: Figure[int] | None = None
    options: tuple[float, ...] = ()


class Interconnect(NamedTuple):
    """A way off the device; ``rate`` is B/s in one direction, all links of this kind together."""

    rate: Rate | None = None
    per_link: Rate | None = None
    links: int | None = None
    generation: int | None = None
    lanes: int | None = None
    topology: str | None = None
    note: str | None = None


class Price(NamedTuple):
    """What an hour of one device costs, USD/h: ``value``, or ``low`` and ``high`` where a source prints a range."""

    kind: str
    date: str
    source: tuple[str, ...]
    value: float | None = None
    low: float | None = None
    high: float | None = None
    note: str | None = None


class MeasuredCeiling(NamedTuple):
    """A rate that somebody measured: FLOP/s for ``matmul``, B/s otherwise. Only trusted ones may raise a ceiling."""

    metric: str
    value: float
    method: str
    source: tuple[str, ...]
    trusted: bool
    format: str | None = None
    software: str | None = None
    date: str = ""
    note: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """One device as a program sees it. Absent figures are None: nothing is imputed. Compared by identity."""

    id: str
    name: str
    vendor: str = ""
    kind: str = "custom"
    architecture: str | None = None
    compute_capability: Figure[str] | None = None
    gfx_target: Figure[str] | None = None
    release_year: Figure[int] | None = None
    page: str | None = None
    aliases: tuple[str, ...] = ()
    notes: str | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    memory: Memory | None = None
    bandwidth: Rate | None = None
    peak: Peak = Peak()
    compute_floor: Figure[bool] = Figure(True)
    last_level_cache: Rate | None = None
    compute_units: Figure[int] | None = None
    compute_unit_name: str | None = None
    boost_clock: Rate | None = None
    peak_clock: Rate | None = None
    tdp: Rate | None = None
    devices_per_node: int = 1
    interconnect: Mapping[str, Interconnect] = field(default_factory=dict)
    prices: tuple[Price, ...] = ()
    measured: tuple[MeasuredCeiling, ...] = ()


def device_from_mapping(found: Mapping[str, Any]) -> Device:
    """The device of a parsed YAML mapping.

    Raises:
        TypeError, ValueError, AttributeError, KeyError: anything that the schema would refuse and this notices.
    """
    return Device(**{key: _DEVICE[key](value) if key in _DEVICE else value for key, value in found.items()})


def figure(unit: str) -> Callable[[Any], Figure[Any]]:
    """A reader of figures in ``unit``; an empty unit leaves the value as it is. A bare value is a figure as given."""

    def value(found: Any) -> Any:
        return units.parse(found, unit) if unit else found

    def read(found: Any) -> Figure[Any]:
        given = dict(found) if isinstance(found, dict) else {"value": found}
        given["value"] = value(given["value"])
        if "source" in given:
            given["source"] = _keys(given["source"])
        if "sparse" in given:
            given["sparse"] = value(given["sparse"])
        if "also" in given:
            given["also"] = tuple(
                Alternative(**{**other, "value": value(other["value"]), "source": _keys(other.get("source", ()))})
                for other in given["also"]
            )
        return Figure(**given)

    return read


def _keys(found: str | Iterable[str]) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else tuple(found)


def _dated(found: Mapping[str, Any]) -> dict[str, Any]:
    """YAML reads 2026-08-22 as a date and 2025 as a number; here both are text."""
    return {key: str(value) if key == "date" else value for key, value in found.items()}


def _record(kind: Callable[..., Any], readers: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    return lambda found: kind(**{key: readers[key](v) if key in readers else v for key, v in found.items()})


def _price(found: Mapping[str, Any]) -> Price:
    given = _dated(found) | {"source": _keys(found["source"])}
    return Price(**given | {key: units.parse(given[key], "USD/h") for key in ("value", "low", "high") if key in given})


def _measured(found: Mapping[str, Any]) -> MeasuredCeiling:
    unit = "FLOP/s" if found["metric"] == "matmul" else "B/s"
    return MeasuredCeiling(
        **_dated(found) | {"source": _keys(found["source"]), "value": units.parse(found["value"], unit)}
    )


def _each(reader: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda found: {key: reader(value) for key, value in found.items()}


_SIZE, _RATE, _PLAIN = figure("B"), figure("B/s"), figure("")
_DEVICE: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("compute_capability", "gfx_target", "release_year", "compute_units", "compute_floor"), _PLAIN),
    **dict.fromkeys(("boost_clock", "peak_clock"), figure("Hz")),
    "aliases": tuple,
    "sources": _each(lambda found: Source(**_dated(found))),
    "memory": _record(
        Memory,
        {
            **dict.fromkeys(("capacity", "usable", "nominal"), _SIZE),
            **dict.fromkeys(("type", "bus_bits"), _PLAIN),
            "options": lambda found: tuple(units.parse(size, "B") for size in found),
        },
    ),
    "bandwidth": _RATE,
    "peak": _record(Peak, dict.fromkeys(Peak.__dataclass_fields__, figure("FLOP/s"))),
    "last_level_cache": _SIZE,
    "tdp": figure("W"),
    "interconnect": _each(_record(Interconnect, dict.fromkeys(("rate", "per_link"), _RATE))),
    "prices": lambda found: tuple(_price(price) for price in found),
    "measured": lambda found: tuple(_measured(entry) for entry in found),
}
