"""The schema of a device's file, ``hardware/<vendor>/<id>.yaml``: what may stand in it, and what is said if not.

The classes mirror ``records``; they only check. Every figure of the catalogue names its sources; a figure that nobody
published is absent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from planner import units
from planner.errors import PlanError, brief, did_you_mean

Basis = Literal["stated", "derived", "recalled", "given"]
Kind = Literal[
    "datacenter gpu",
    "workstation gpu",
    "consumer gpu",
    "edge gpu soc",
    "apu",
    "apple-soc",
    "accelerator",
    "tpu",
    "npu",
    "cpu",
    "custom",
]
PriceKind = Literal["on-demand", "spot", "reserved", "capacity block", "index"]
Metric = Literal["matmul", "memory read", "memory copy", "memory write", "memory triad", "link"]

# Far above anything built; beyond it a figure is a slip of the unit.
_LARGEST = {"B": 1e16, "B/s": 1e17, "FLOP/s": 1e20, "W": 1e6, "Hz": 1e11, "USD/h": 1e5}


def quantity(found: object, unit: str) -> int | float:
    """A positive quantity in ``unit`` from text with its unit; whole numbers come back as int.

    >>> quantity("3.35 TB/s", "B/s")
    3350000000000

    Raises:
        ValueError: the end of a sentence whose beginning is the field's path.
    """
    example = f"expected for example {units.example(unit)!r}"
    if not isinstance(found, str):
        raise ValueError(f"is {brief(found)}, which has no unit; {example}")
    try:
        value = units.parse(found, unit)
    except units.UnitError as error:
        raise ValueError(f"is {brief(found)}, which {str(error).replace(repr(found), '', 1).strip()}") from None
    except ArithmeticError:
        raise ValueError(f"is {brief(found)}, which is too large; {example}") from None
    if not 0 < value <= _LARGEST[unit]:
        raise ValueError(f"is {brief(found)}, which is not plausible; {example}")
    return value


def _quantity(unit: str) -> BeforeValidator:
    return BeforeValidator(lambda found: quantity(found, unit))


def _written(found: object) -> object:
    """YAML reads 2026-08-22 as a date and 2025 as a number; here both are text."""
    return str(found) if isinstance(found, (date, int)) and not isinstance(found, bool) else found


def _listed(found: object) -> object:
    return [found] if isinstance(found, str) else found


Bytes = Annotated[int | float, _quantity("B")]
BytesPerSecond = Annotated[int | float, _quantity("B/s")]
FlopPerSecond = Annotated[int | float, _quantity("FLOP/s")]
Watts = Annotated[int | float, _quantity("W")]
Hertz = Annotated[int | float, _quantity("Hz")]
DollarsPerHour = Annotated[int | float, _quantity("USD/h")]
Count = Annotated[int, Field(strict=True, gt=0, le=10_000_000)]
Text = Annotated[str, Field(strict=True, min_length=1)]
DateText = Annotated[str, BeforeValidator(_written)]
SourceKeys = Annotated[tuple[Text, ...], BeforeValidator(_listed)]

Value = TypeVar("Value")


class Record(BaseModel):
    """Frozen, and strict about its keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, found: object) -> object:
        """Refuse an unknown key here, where the valid ones are known, so that the message can name the nearest."""
        if isinstance(found, dict):
            for key in found:
                if key not in cls.model_fields:
                    hint = did_you_mean(str(key), cls.model_fields) or f"; known are {', '.join(cls.model_fields)}"
                    raise PydanticCustomError("unknown_key", "{hint}", {"key": str(key), "hint": hint})
        return found


class Source(Record):
    """Where a figure was read."""

    title: Text
    address: str = ""
    date: DateText = ""


class Alternative(Record, Generic[Value]):
    """Another value that a source prints for the same figure; never used, shown as the spread."""

    value: Value
    basis: Basis = "stated"
    source: SourceKeys = ()
    note: str | None = None


class Figure(Record, Generic[Value]):
    """A value in base units with its basis and source keys. ``bandwidth: 1 TB/s`` is short for a value as given."""

    value: Value
    basis: Basis = "given"
    source: SourceKeys = ()
    note: str | None = None
    also: tuple[Alternative[Value], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, found: object) -> object:
        return found if isinstance(found, (dict, list, Figure)) else {"value": found}


class PeakFigure(Figure[FlopPerSecond]):
    """Dense FLOP/s (operations per second for integers); ``sparse`` is the rate with structured sparsity."""

    sparse: FlopPerSecond | None = None

    @model_validator(mode="after")
    def _sparse_is_faster(self) -> Self:
        if self.sparse is not None and self.sparse < self.value:
            raise ValueError(f"has a sparse rate below its dense rate of {units.exact(self.value, 'FLOP/s')}")
        return self


class Peak(Record):
    """Dense peaks by arithmetic unit; ``fp16_acc16`` accumulates in fp16, ``fp16_acc32``, ``bf16``, ``fp8`` in fp32."""

    fp32: PeakFigure | None = None
    tf32: PeakFigure | None = None
    fp16_acc16: PeakFigure | None = None
    fp16_acc32: PeakFigure | None = None
    bf16: PeakFigure | None = None
    fp8: PeakFigure | None = None
    fp8_acc16: PeakFigure | None = None
    fp6: PeakFigure | None = None
    fp4: PeakFigure | None = None
    int8: PeakFigure | None = None
    int4: PeakFigure | None = None


class Memory(Record):
    """``usable`` is what the runtime reports to a program; ``options`` the sizes that the machine is sold with."""

    capacity: Figure[Bytes]
    usable: Figure[Bytes] | None = None
    nominal: Figure[Bytes] | None = None
    type: Figure[Text] | None = None
    bus_bits: Figure[Count] | None = None
    options: tuple[Bytes, ...] = ()

    @model_validator(mode="after")
    def _usable_fits(self) -> Self:
        # Two per cent of slack: a capacity may be the vendor's rounding of what the runtime counts exactly.
        if self.usable is not None and self.usable.value > self.capacity.value * 1.02:
            usable, capacity = units.exact(self.usable.value, "B"), units.exact(self.capacity.value, "B")
            raise ValueError(f"has {usable} usable, which is more than its capacity of {capacity}")
        return self


class Interconnect(Record):
    """A way off the device; ``rate`` is B/s in one direction, all links of this kind together."""

    rate: Figure[BytesPerSecond] | None = None
    per_link: Figure[BytesPerSecond] | None = None
    links: Count | None = None
    generation: Count | None = None
    lanes: Count | None = None
    topology: Text | None = None
    note: str | None = None


class Price(Record):
    """What an hour of one device costs, USD/h: ``value``, or ``low`` and ``high`` where a source prints a range."""

    value: DollarsPerHour | None = None
    low: DollarsPerHour | None = None
    high: DollarsPerHour | None = None
    kind: PriceKind
    date: DateText
    source: SourceKeys
    note: str | None = None

    @model_validator(mode="after")
    def _value_or_range(self) -> Self:
        single = self.value is not None
        both_ends = self.low is not None and self.high is not None and self.low <= self.high
        if single == both_ends or (single and (self.low is not None or self.high is not None)):
            raise ValueError("needs either value, or low and high")
        return self


class MeasuredCeiling(Record):
    """A rate that somebody measured: FLOP/s for ``matmul``, B/s otherwise. Only trusted ones may raise a ceiling."""

    metric: Metric
    format: str | None = None
    value: int | float
    method: Text
    software: str | None = None
    source: SourceKeys
    date: DateText = ""
    trusted: bool
    note: str | None = None

    @field_validator("value", mode="before")
    @classmethod
    def _in_the_unit_of_its_metric(cls, found: object, info: ValidationInfo) -> object:
        return quantity(found, "FLOP/s" if info.data.get("metric") == "matmul" else "B/s")


class Device(Record):
    """One device as a program sees it. Absent figures are None: nothing is imputed."""

    id: Text
    name: Text
    vendor: str = ""
    kind: Kind = "custom"
    architecture: Text | None = None
    compute_capability: Figure[Text] | None = None
    gfx_target: Figure[Text] | None = None
    release_year: Figure[Count] | None = None
    page: Text | None = None
    aliases: tuple[Text, ...] = ()
    notes: str | None = None
    sources: Mapping[str, Source] = {}
    memory: Memory | None = None
    bandwidth: Figure[BytesPerSecond] | None = None
    peak: Peak = Peak()
    compute_floor: Figure[bool] = Figure[bool](value=True)
    last_level_cache: Figure[Bytes] | None = None
    compute_units: Figure[Count] | None = None
    compute_unit_name: Text | None = None
    boost_clock: Figure[Hertz] | None = None
    peak_clock: Figure[Hertz] | None = None
    tdp: Figure[Watts] | None = None
    devices_per_node: Count = 1
    interconnect: Mapping[str, Interconnect] = {}
    prices: tuple[Price, ...] = ()
    measured: tuple[MeasuredCeiling, ...] = ()

    @model_validator(mode="after")
    def _sources_resolve(self) -> Self:
        for path, record in _records(self, ""):
            cited = getattr(record, "source", ())
            if not cited and getattr(record, "basis", None) in ("stated", "recalled") and isinstance(record, Figure):
                raise ValueError(f"{path} has the basis {record.basis} but no source")
            for key in cited:
                if key not in self.sources:
                    hint = did_you_mean(key, self.sources)
                    raise ValueError(f"{path}.source names {key!r}, which is not under sources{hint}")
        return self


def _records(record: BaseModel, path: str) -> Iterator[tuple[str, BaseModel]]:
    """Every record inside ``record`` with its path, itself first."""
    yield path, record
    for name in type(record).model_fields:
        value = getattr(record, name)
        here = f"{path}.{name}" if path else name
        if isinstance(value, BaseModel):
            yield from _records(value, here)
        elif isinstance(value, (tuple, Mapping)):
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            for key, item in items:
                if isinstance(item, BaseModel):
                    yield from _records(item, f"{here}.{key}")


# --- Checking ---------------------------------------------------------------------------------------------------------


def check(found: object, where: str) -> None:
    """Refuse a mapping that does not describe a device; the first thing wrong is one sentence starting with ``where``.

    Raises:
        PlanError: anything that the schema refuses.
    """
    try:
        Device.model_validate(found)
        return
    except ValidationError as error:
        details = error.errors(include_url=False)[0]
    said, path = _sentence(details)
    raise PlanError(f"{where}: {said}", path)


def _sentence(details: ErrorDetails) -> tuple[str, str]:
    path = ".".join(str(part) for part in details["loc"])
    found, context = brief(details["input"]), details.get("ctx", {})
    match details["type"]:
        case "unknown_key":
            path = f"{path}.{context['key']}".lstrip(".")
            said = f"is not a known key{context['hint']}"
        case "missing":
            said = "is missing"
        case "value_error":
            said = str(context["error"])
        case "literal_error":
            said = f"is {found}; expected {context['expected']}"
        case "model_type" | "dict_type" | "mapping_type":
            said = f"is {found}; expected a mapping of keys to values"
        case "int_type" | "string_type" | "tuple_type" | "bool_type" | "bool_parsing":
            expected = {"int": "a whole number", "string": "text", "tuple": "a list", "bool": "true or false"}
            said = f"is {found}; expected {expected[details['type'].split('_')[0]]}"
        case _:
            said = f"is {found}; {details['msg'][0].lower()}{details['msg'][1:]}"
    return f"{path} {said}".lstrip(), path
