"""From a catalogue device to the ceilings of the floors: which arithmetic unit a number format runs on, and why."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from planner.ceilings import Ceiling, bandwidth_ceiling, compute_ceiling, published_bandwidth, published_peak
from planner.hardware import Device
from planner.roofline import Machine

# Units that an engine may use for weights of an arithmetic kind, in tiers: the first tier of which the device has any
# unit is taken, and the fastest unit in it. Weight-only formats may be multiplied in 8 bits or widened to 16. Widening
# to fp32 or tf32 is always possible and is the faster way on a few chips (GTX 10), so those units always count.
_SIXTEEN = ("fp16_acc16", "fp16_acc32", "bf16")
_WIDEST = ("fp32", "tf32")
FLOOR_UNITS: dict[str, tuple[tuple[str, ...], ...]] = {
    "fp64": (),
    "fp32": (),
    "tf32": (),
    "fp16": (("fp16_acc16", "fp16_acc32"),),
    "bf16": (("bf16",), ("fp16_acc16", "fp16_acc32")),
    "fp8": (("fp8", "fp8_acc16"), _SIXTEEN),
    "fp6": (("fp6",), ("fp8", "fp8_acc16"), _SIXTEEN),
    "fp4": (("fp4",), ("fp6",), ("fp8", "fp8_acc16"), _SIXTEEN),
    "int8": (("int8", "fp8", "fp8_acc16", *_SIXTEEN),),
}
# The unit that a whiteboard line names: the format's own, accumulating in fp32; weight-only formats in 16 bits.
_TEXTBOOK_SIXTEEN = ("bf16", "fp16_acc32", "fp16_acc16", "fp32")
TEXTBOOK_UNITS: dict[str, tuple[str, ...]] = {
    "fp64": ("fp32",),
    "fp32": ("fp32",),
    "tf32": ("tf32", "fp32"),
    "fp16": ("fp16_acc32", "fp16_acc16", "fp32"),
    "bf16": _TEXTBOOK_SIXTEEN,
    "fp8": ("fp8", *_TEXTBOOK_SIXTEEN),
    "fp6": ("fp6", "fp8", *_TEXTBOOK_SIXTEEN),
    "fp4": ("fp4", "fp8", *_TEXTBOOK_SIXTEEN),
    "int8": ("int8", *_TEXTBOOK_SIXTEEN),
}


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The ceilings that a plan uses, each with its origin. ``compute`` is by arithmetic kind.

    ``attention`` is the unit of scores and values; ``fallbacks`` says which kinds the device has no units for.
    """

    bandwidth: Ceiling | None
    compute: dict[str, Ceiling | None]
    attention: Ceiling | None
    textbook_bandwidth: Ceiling | None
    textbook_peak: Ceiling | None
    fallbacks: tuple[str, ...]


@lru_cache(maxsize=1024)
def ceilings_of(device: Device, kinds: tuple[str, ...], main: str, cache: str) -> Ceilings:
    """Ceilings of a device for weights multiplied in ``kinds``, by a whiteboard in ``main``; attention in ``cache``."""
    compute: dict[str, Ceiling | None] = {}
    fallbacks: list[str] = []
    for kind in kinds:
        ceiling, unit = _fastest(device, kind)
        compute[kind] = ceiling
        if unit is not None and unit not in _own_units(kind):
            fallbacks.append(
                f"{device.id} lists no {kind} units: {kind} weights run on its {unit} units, so their bytes shrink and "
                "their arithmetic does not"
            )
    return Ceilings(
        bandwidth=bandwidth_ceiling(device),
        compute=compute,
        attention=_fastest(device, cache)[0],
        textbook_bandwidth=published_bandwidth(device),
        textbook_peak=_published(device, main),
        fallbacks=tuple(fallbacks),
    )


def machine_of(device: Device, ceilings: Ceilings, *, devices: int = 1, message_bytes: int = 0) -> Machine | None:
    """The machine that floors are computed on; None without a bandwidth."""
    if ceilings.bandwidth is None:
        return None
    cache = device.last_level_cache
    return Machine(
        bandwidth=ceilings.bandwidth.value,
        peaks={kind: None if ceiling is None else ceiling.value for kind, ceiling in ceilings.compute.items()},
        attention_peak=None if ceilings.attention is None else ceilings.attention.value,
        last_level_cache=0 if cache is None else int(cache.value),
        devices=devices,
        link=link_rate(device),
        message_bytes=message_bytes,
    )


def link_rate(device: Device) -> float | None:
    """The fastest way off the device, bytes per second in one direction."""
    rates = [link.rate.value for link in device.interconnect.values() if link.rate is not None]
    return max(rates, default=None)


def _own_units(kind: str) -> tuple[str, ...]:
    return FLOOR_UNITS[kind][0] if FLOOR_UNITS[kind] else _WIDEST


def _fastest(device: Device, kind: str) -> tuple[Ceiling | None, str | None]:
    """The fastest unit for a kind, and its name; None where the catalogue has no ceiling to rely on."""
    tiers = (_present(device, tier) for tier in FLOOR_UNITS[kind])
    found = next((tier for tier in tiers if tier), []) + _present(device, _WIDEST)
    return max(found, key=lambda pair: pair[0].value) if found else (None, None)


def _present(device: Device, units: tuple[str, ...]) -> list[tuple[Ceiling, str]]:
    return [(ceiling, unit) for unit in units if (ceiling := compute_ceiling(device, unit)) is not None]


def _published(device: Device, kind: str) -> Ceiling | None:
    found = (published_peak(device, unit) for unit in TEXTBOOK_UNITS[kind])
    return next((ceiling for ceiling in found if ceiling is not None), None)
