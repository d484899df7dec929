"""Devices that are in no file: described by numbers, or the catalogue's with another memory size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner import units
from planner.errors import PlanError
from planner.hardware.records import Device, Memory, device_from_mapping, figure

# Units that a single given rate stands for.
_ONE_RATE = ("bf16", "fp16_acc16", "fp16_acc32", "fp32")
_MEMORY_METRICS = ("memory read", "memory copy", "memory write", "memory triad")


def device_from_numbers(
    *,
    bandwidth: float | None = None,
    peak: float | None = None,
    memory: float | None = None,
    peak_format: str = "bf16",
    name: str = "custom",
) -> Device:
    """A device described by numbers: ``bandwidth`` B/s, ``peak`` dense FLOP/s, ``memory`` usable bytes.

    A 16-bit peak counts for bf16, fp16 and fp32 alike, since it is the only rate that is known; any other
    ``peak_format`` for that unit alone. A figure left out gives a device without that ceiling.

    >>> device_from_numbers(bandwidth=3.35e12, peak=989e12).peak.fp16_acc32.value
    989000000000000
    """
    formats = _ONE_RATE if peak_format in ("fp16", *_ONE_RATE) else (peak_format,)
    found = {
        "id": name,
        "name": name,
        "sources": {"command line": {"title": "command line"}},
        "bandwidth": _given(bandwidth, "B/s"),
        "peak": None if peak is None else {unit: _given(peak, "FLOP/s") for unit in formats},
        "memory": None if memory is None else {"capacity": _given(memory, "B"), "usable": _given(memory, "B")},
    }
    from planner.hardware.schema import check

    given = {key: value for key, value in found.items() if value is not None}
    check(given, "device by numbers")
    return device_from_mapping(given)


def _given(value: float | None, unit: str) -> dict[str, object] | None:
    if value is None:
        return None
    try:
        text = units.exact(value, unit)
    except (ArithmeticError, ValueError):
        text = str(value)
    return {"value": text, "basis": "given", "source": ["command line"]}


def with_ceilings(device: Device, *, bandwidth: float | None = None, peak: float | None = None) -> Device:
    """The same device with the user's own ``bandwidth`` (B/s) or dense ``peak`` (FLOP/s) in place of the catalogue's.

    The peak takes the place of the 16-bit and fp32 rates; what others measured no longer counts for them.
    """
    given = device_from_numbers(bandwidth=bandwidth, peak=peak)
    changes: dict[str, Any] = {"sources": {**device.sources, **given.sources}}
    measured = device.measured
    if given.bandwidth is not None:
        changes["bandwidth"] = given.bandwidth
        measured = tuple(entry for entry in measured if entry.metric not in _MEMORY_METRICS)
    if peak is not None:
        changes["peak"] = replace(device.peak, **{unit: getattr(given.peak, unit) for unit in _ONE_RATE})
        changes |= {"compute_floor": given.compute_floor, "peak_clock": None}
        measured = tuple(entry for entry in measured if entry.metric != "matmul")
    return replace(device, **changes, measured=measured)


def with_memory(device: Device, size: float) -> Device:
    """The same machine with ``size`` bytes of memory; the usable share stays.

    48 GB and 48 GiB both name the option of 48 GiB, as the machines are sold.

    Raises:
        PlanError: a device that is not sold with that size.
    """
    if not 0 < size < 1e16:
        raise PlanError(f"{size:g} bytes of memory are not plausible; expected for example '64 GB'", "memory")
    memory = device.memory
    if memory is None or (device.kind in ("cpu", "custom") and not memory.options):
        options: tuple[int | float, ...] = (int(size),)
    else:
        options = memory.options or (memory.capacity.value,)
    taken = [option for option in options if size in (option, _as_sold(option))]
    if not taken:
        listed = ", ".join(units.exact(option, "B") for option in options)
        raise PlanError(f"{device.id} has no {units.show(size, 'B')} of memory; expected {listed}", "memory")
    return replace(device, memory=_resized(memory, taken[0]))


def _as_sold(option: float) -> float:
    """Decimal bytes of the number on the box: 48 GiB are sold as 48 GB."""
    return option / 2**30 * 10**9


def _resized(memory: Memory | None, size: float) -> Memory:
    if memory is None:
        return Memory(capacity=figure("B")(_given(size, "B")))
    share = size / memory.capacity.value
    usable, nominal = memory.usable, memory.nominal
    return replace(
        memory,
        capacity=replace(memory.capacity, value=size, also=()),
        usable=None if usable is None else replace(usable, value=int(usable.value * share), also=()),
        nominal=None if nominal is None else replace(nominal, value=_as_sold(size), also=()),
    )
