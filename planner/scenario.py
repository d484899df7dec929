"""A question as its options spell it: text or numbers by option name, from a command line, a JSON line or a CSV row.

``Scenario.read`` checks every value and says which option is wrong; ``Scenario.plan`` answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from planner import units
from planner.errors import PlanError, did_you_mean
from planner.hardware import Device, device_from_numbers, find_device, with_ceilings, with_memory
from planner.hardware import resolve as resolve_device
from planner.measurement import Measured
from planner.models import Model, find_model
from planner.planning import Plan, plan
from planner.workload import Workload

# No rate, size or count of this planet is larger.
LARGEST = 1e30


@dataclass(frozen=True, slots=True)
class Scenario:
    """Options of the main job; None means that the option was not given. Rates and sizes in base units."""

    model: str | None = None
    gpu: str | None = None
    prompt: int = 1024
    out: int = 256
    batch: int = 1
    cached_prefix: int = 0
    precision: str | None = None
    kv_precision: str | None = None
    engine: str | None = None
    tp: int = 1
    mem_util: float | None = None
    bandwidth: float | None = None
    peak: float | None = None
    memory: float | None = None
    measured_ttft: float | None = None
    measured_tpot: float | None = None

    @classmethod
    def read(cls, given: Mapping[str, object]) -> Scenario:
        """The scenario of option names and values; None and empty text count as not given.

        Raises:
            PlanError: an unknown option, or a value that cannot be read.
        """
        values: dict[str, object] = {}
        for name, value in given.items():
            key = name.replace("-", "_")
            if key not in OPTIONS:
                hint = did_you_mean(key, OPTIONS) or f"; known are {', '.join(OPTIONS)}"
                raise PlanError(f"unknown option {name!r}{hint}", field=name)
            if value is not None and value != "":
                values[key] = _read(key, value)
        return cls(**values)  # type: ignore[arg-type]

    def plan(
        self, model_of: Callable[[str], Model] = find_model, device_of: Callable[[str], Device] = find_device
    ) -> Plan:
        """The answer; ``model_of`` and ``device_of`` may be cached readers.

        Raises:
            PlanError: what is missing or does not go together.
        """
        if self.model is None:
            raise PlanError("no model given; name one with --model, for example --model meta/llama-3.1-8b", "model")
        measured = None
        if self.measured_ttft is not None or self.measured_tpot is not None:
            measured = Measured(self.measured_ttft, self.measured_tpot)
        return plan(
            model_of(self.model),
            self.device(device_of),
            Workload(self.prompt, self.out, self.batch, self.cached_prefix),
            precision=self.precision,
            kv_precision=self.kv_precision,
            engine=self.engine,
            tp=self.tp,
            memory_utilisation=self.mem_util,
            measured=measured,
            notes=self.notes(),
        )

    def notes(self) -> tuple[str, ...]:
        """What names were taken for, where an alias was given."""
        found = None if self.gpu is None else device_note(self.gpu)
        return () if found is None else (found,)

    def device(self, device_of: Callable[[str], Device] = find_device) -> Device:
        """The named device with the given numbers in place of its own, or a device of those numbers alone."""
        numbers = (self.bandwidth, self.peak, self.memory)
        if self.gpu is None:
            if all(number is None for number in numbers):
                raise PlanError(
                    "no device given; name one with --gpu, for example --gpu h100-sxm, or describe it with "
                    "--bandwidth, --peak and --memory",
                    "gpu",
                )
            return device_from_numbers(bandwidth=self.bandwidth, peak=self.peak, memory=self.memory)
        device = device_of(self.gpu)
        if self.memory is not None:
            device = with_memory(device, self.memory)
        if self.bandwidth is not None or self.peak is not None:
            device = with_ceilings(device, bandwidth=self.bandwidth, peak=self.peak)
        return device


def device_note(name: str) -> str | None:
    """What an alias of a device was taken for."""
    if name.endswith((".yaml", ".yml")):
        return None
    try:
        found, alias = resolve_device(name)
    except PlanError:
        return None
    return f"{name} is {found}" if alias else None


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise PlanError(f"{name} is {value!r}; expected text", field=name)
    return value


def _whole(name: str, value: object) -> int:
    """A count: 2000, "2000", "2k" (1000), "2Ki" (1024)."""
    found = _number(name, value, "token")
    if isinstance(found, float) and not found.is_integer():
        raise PlanError(f"{name} is {value!r}; expected a whole number, such as 2000 or 2k", field=name)
    return int(found)


def _number(name: str, value: object, unit: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise PlanError(f"{name} is {value!r}; expected for example {units.example(unit)!r}", field=name)
    if isinstance(value, str):
        try:
            return units.parse(value, unit)
        except units.UnitError as error:
            raise PlanError(f"{name}: {error}", field=name) from None
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{name} is {value}; expected a finite number", field=name)
    if abs(value) > LARGEST:
        raise PlanError(f"{name} is beyond any size; expected for example {units.example(unit)!r}", field=name)
    return value


def _positive(name: str, value: object, unit: str) -> float:
    found = _number(name, value, unit)
    if found <= 0:
        raise PlanError(f"{name} is {value!r}; expected more than 0, for example {units.example(unit)!r}", field=name)
    return found


def _read(name: str, value: object) -> object:
    kind = OPTIONS[name]
    if kind == "text":
        return _text(name, value)
    return _whole(name, value) if kind == "count" else _positive(name, value, kind)


# Option name -> how its value is read: "text", "count", or the unit of a quantity.
OPTIONS: dict[str, str] = {
    "model": "text",
    "gpu": "text",
    "prompt": "count",
    "out": "count",
    "batch": "count",
    "cached_prefix": "count",
    "precision": "text",
    "kv_precision": "text",
    "engine": "text",
    "tp": "count",
    "mem_util": "1",
    "bandwidth": "B/s",
    "peak": "FLOP/s",
    "memory": "B",
    "measured_ttft": "s",
    "measured_tpot": "s",
}
assert set(OPTIONS) == {field.name for field in fields(Scenario)}
