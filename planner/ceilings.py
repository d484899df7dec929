"""The most that a device could do, for the floors: catalogue figures, or measured ones where those are higher.

A published figure is not always a ceiling: cards clock above their stated boost, and a processor's peak is often
counted at its base clock. A floor must hold for every engine, so here the highest trustworthy rate counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from planner import units
from planner.hardware import Device, Figure, MeasuredCeiling

_MEMORY_METRICS = ("memory read", "memory copy", "memory write", "memory triad")
# Libraries multiply fp16 with fp32 accumulation unless told otherwise.
_FORMAT_OF_UNIT = {"fp16_acc32": "fp16"}
_USABLE_SHARE = 0.98


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A rate or a size in base units, where it comes from, and whether a document was read for it.

    ``note`` says how it differs from the published figure, where it does.
    """

    value: float
    because: str
    verified: bool
    note: str | None = None


def published_bandwidth(device: Device) -> Ceiling | None:
    """The catalogue's memory bandwidth in B/s, unmodified; None where the device has none."""
    return None if device.bandwidth is None else _catalogued(device, device.bandwidth)


def published_peak(device: Device, unit: str) -> Ceiling | None:
    """The catalogue's dense peak in FLOP/s of exactly this unit ("bf16", "fp16_acc32", "int8", ...), unmodified."""
    figure = getattr(device.peak, unit)
    return None if figure is None else _catalogued(device, figure)


def bandwidth_ceiling(device: Device) -> Ceiling | None:
    """The most bytes per second that the memory could move; None where the catalogue has no bandwidth.

    A measured write or triad counts like a read: each shows what the memory's bus can carry.
    """
    published = published_bandwidth(device)
    measured = [entry for entry in device.measured if entry.metric in _MEMORY_METRICS]
    return None if published is None else _raised(device, published, measured, "B/s")


def compute_ceiling(device: Device, unit: str) -> Ceiling | None:
    """The most FLOP/s that this unit could do with dense operands.

    None where the catalogue has no such unit or is unsure of it (``compute_floor: false``). A processor's peak is
    scaled from the clock at which it is counted to its boost clock.
    """
    published = published_peak(device, unit)
    if published is None or not device.compute_floor.value:
        return None
    number_format = _FORMAT_OF_UNIT.get(unit, unit)
    measured = [entry for entry in device.measured if entry.metric == "matmul" and entry.format == number_format]
    return _raised(device, _at_boost_clock(device, published), measured, "FLOP/s")


def usable_memory(device: Device) -> Ceiling | None:
    """Bytes that the runtime reports to a program; where nobody published them, 98 % of the capacity, as assumed."""
    if device.memory is None:
        return None
    if device.memory.usable is not None:
        return _catalogued(device, device.memory.usable)
    capacity = device.memory.capacity
    share = f"assumed: {_USABLE_SHARE:.0%} of the capacity of {units.exact(capacity.value, 'B')}"
    return Ceiling(int(capacity.value * _USABLE_SHARE), share, verified=False, note="assumed, not published")


def _catalogued(device: Device, figure: Figure[int | float]) -> Ceiling:
    because = f"{figure.basis}: {_cited(device, figure.source)}" if figure.source else figure.basis
    return Ceiling(figure.value, because, verified=figure.basis != "recalled")


def _raised(device: Device, published: Ceiling, measured: Iterable[MeasuredCeiling], unit: str) -> Ceiling:
    best = max((entry for entry in measured if entry.trusted), key=lambda entry: entry.value, default=None)
    if best is None or best.value <= published.value:
        return published
    because = f"measured ({best.method}): {_cited(device, best.source)}"
    return Ceiling(
        best.value, because, verified=True, note=f"above the {units.show(published.value, unit, 4)} published"
    )


def _at_boost_clock(device: Device, published: Ceiling) -> Ceiling:
    counted, boost = device.peak_clock, device.boost_clock
    if counted is None or boost is None or boost.value <= counted.value:
        return published
    return replace(
        published,
        value=published.value * boost.value / counted.value,
        because=f"{published.because}; times {units.show(boost.value, 'Hz')} / {units.show(counted.value, 'Hz')}",
        verified=published.verified and "recalled" not in (counted.basis, boost.basis),
        note="scaled from the clock at which the peak is counted to the boost clock",
    )


def _cited(device: Device, keys: tuple[str, ...]) -> str:
    first = device.sources[keys[0]]
    where = ", ".join(part for part in (first.title, first.address, first.date) if part)
    return where if len(keys) == 1 else f"{where}; and {len(keys) - 1} more"
