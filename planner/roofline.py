"""Floors: what the catalogue's ceilings allow at best. Three sorts of line, never mixed.

*Textbook*: the two lines of a whiteboard, W/B and 2·N·P/peak. *Counted*: compulsory bytes and arithmetic against the
published (or trustworthily measured) ceilings; no engine beats it. Predictions are another module's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from planner import formulas, work
from planner.inventory import Inventory
from planner.work import Work

# A step that reads less than this many times the last-level cache may find part of its bytes there.
CACHE_MATTERS_BELOW = 4


class Limit(StrEnum):
    """Which ceiling a step meets first."""

    COMPUTE = "compute"
    MEMORY = "memory bandwidth"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Machine:
    """The ceilings of ``devices`` equal devices that share the work evenly; rates are per device.

    ``peaks`` gives FLOP/s by arithmetic kind, ``attention_peak`` that of attention; None: the catalogue states
    no ceiling, so there is no compute floor. ``link`` is one direction per device. ``message_bytes`` are exchanged per
    token and step between the devices.
    """

    bandwidth: float
    peaks: dict[str, float | None]
    attention_peak: float | None
    last_level_cache: int = 0
    devices: int = 1
    link: float | None = None
    message_bytes: int = 0

    @property
    def has_compute_floor(self) -> bool:
        """Whether every arithmetic kind in use has a ceiling."""
        return self.attention_peak is not None and all(peak is not None for peak in self.peaks.values())


class Step(NamedTuple):
    """The counted floor of one step, with its three times side by side (0 where there is no such ceiling)."""

    time: float
    memory_time: float
    compute_time: float
    link_time: float
    limit: Limit
    work: Work
    cached_bytes: int


class Latency(NamedTuple):
    """TTFT, TPOT and E2E in seconds; TPOT is None for a single output token."""

    ttft: float
    tpot: float | None
    e2e: float


class CountedFloors(NamedTuple):
    """The counted floors of a request, with the prefill step and the first and last decode step behind them."""

    latency: Latency
    prefill: Step
    first_decode: Step | None
    last_decode: Step | None

    @property
    def decode_limit(self) -> Limit | None:
        """What limits decode; that of its last step when it changes on the way."""
        return None if self.last_decode is None else self.last_decode.limit


def step_floor(step: Work, machine: Machine) -> Step:
    """The counted floor of a step on a machine."""
    per_device = step.bytes / machine.devices
    cached = 0
    if per_device < CACHE_MATTERS_BELOW * machine.last_level_cache:
        cached = min(machine.last_level_cache * machine.devices, step.bytes)
    memory = formulas.memory_time(traffic=(step.bytes - cached) / machine.devices, bandwidth=machine.bandwidth)
    compute = compute_floor(step, machine)
    link = 0.0
    if machine.link is not None and machine.devices > 1:
        link = formulas.all_reduce_floor(message=step.tokens * machine.message_bytes, rate=machine.link)
    time = formulas.step_floor(memory=memory, compute=compute, link=link)
    limit = Limit.MEMORY if time == memory else Limit.COMPUTE if time == compute else Limit.LINK
    return Step(time, memory, compute, link, limit, step, cached)


def compute_floor(step: Work, machine: Machine) -> float:
    """Σ over arithmetic kinds of FLOP / peak, in seconds per device; 0 where a ceiling is missing."""
    if not machine.has_compute_floor:
        return 0.0
    total = sum(flop / (machine.peaks[arithmetic] or 1.0) for arithmetic, flop in step.matrix_flop)
    total += (step.attention_flop + step.scan_flop) / (machine.attention_peak or 1.0)
    return total / machine.devices


def counted_floors(
    inventory: Inventory, machine: Machine, *, batch: int, prompt: int, out: int, cached: int = 0
) -> CountedFloors:
    """Counted floors of ``batch`` equal requests run as one static batch.

    E2E is the first token plus every decode step at its own context: the step that makes output token i + 1 finds
    prompt + i − 1 tokens in the cache, i = 1 … out − 1.
    """
    first = step_floor(work.prefill(inventory, batch=batch, prompt=prompt, cached=cached), machine)
    if out == 1:
        return CountedFloors(Latency(first.time, None, first.time), first, None, None)

    def at(index: int) -> Step:
        encoded = prompt if inventory.encoder_decoder else 0
        context = index if inventory.encoder_decoder else prompt + index - 1
        return step_floor(work.decode(inventory, batch=batch, context=context, encoded=encoded), machine)

    opening, closing = at(1), at(out - 1)
    decode = sum_steps(at, 1, out - 1, opening, closing)
    total = first.time + decode
    tpot = formulas.time_per_output_token(end_to_end=total, first_token=first.time, gaps=out - 1)
    return CountedFloors(Latency(first.time, tpot, total), first, opening, closing)


def sum_steps(at: Callable[[int], Step], first: int, last: int, opening: Step, closing: Step) -> float:
    """Σ of step floors over ``first`` … ``last`` without visiting each.

    Between two steps with the same caps in force and the same limit, every term is linear in the context and the
    largest is the same one throughout, so the sum is that of an arithmetic series; elsewhere the range is halved.
    """
    if last - first < 2:
        return opening.time + (closing.time if last > first else 0.0)
    same = (
        opening.limit is closing.limit
        and opening.work.label == closing.work.label
        and _cache_regime(opening) == _cache_regime(closing)
    )
    if same:
        return (last - first + 1) * (opening.time + closing.time) / 2
    middle = (first + last) // 2
    left, right = at(middle), at(middle + 1)
    return sum_steps(at, first, middle, opening, left) + sum_steps(at, middle + 1, last, right, closing)


def _cache_regime(step: Step) -> tuple[bool, bool]:
    """Whether the last-level cache counts, and whether it holds everything that the step reads."""
    return step.cached_bytes > 0, step.cached_bytes >= step.work.bytes


class TextbookInput(NamedTuple):
    """What the whiteboard lines take: active parameters, bytes per parameter, published peak and bandwidth."""

    parameters: int
    width: float
    peak: float | None
    bandwidth: float | None

    @property
    def ridge(self) -> float | None:
        """The device's balance point, FLOP per byte; None without both ceilings."""
        if self.peak is None or self.bandwidth is None:
            return None
        return formulas.ridge_point(peak=self.peak, bandwidth=self.bandwidth)


def textbook(given: TextbookInput, *, batch: int, prompt: int, out: int, devices: int = 1) -> Latency | None:
    """W/B and 2·N·P/peak; None where a ceiling is missing. Embedding and head are in N, cache and attention are not."""
    if given.peak is None or given.bandwidth is None:
        return None
    prefill = formulas.textbook_prefill_work(parameters=given.parameters, tokens=batch * prompt)
    ttft = formulas.compute_time(work=prefill, peak=given.peak * devices)
    if out == 1:
        return Latency(ttft, None, ttft)
    weights = formulas.textbook_weight_bytes(parameters=given.parameters, width=given.width)
    tpot = formulas.memory_time(traffic=weights, bandwidth=given.bandwidth * devices)
    return Latency(ttft, tpot, formulas.end_to_end_time(first_token=ttft, per_token=tpot, gaps=out - 1))


def turning_prompt(inventory: Inventory, machine: Machine, *, batch: int, limit: int) -> int | None:
    """The shortest prompt whose prefill is limited by compute, up to ``limit`` tokens; None if there is none."""

    def bound(prompt: int) -> bool:
        step = step_floor(work.prefill(inventory, batch=batch, prompt=prompt), machine)
        return step.compute_time >= step.memory_time and step.compute_time > 0

    return _first_true(bound, limit)


def turning_batch(inventory: Inventory, machine: Machine, *, context: int, limit: int = 2**20) -> int | None:
    """The smallest batch whose decode step at ``context`` tokens is limited by compute; None if there is none."""

    def bound(batch: int) -> bool:
        encoded = context if inventory.encoder_decoder else 0
        step = step_floor(work.decode(inventory, batch=batch, context=context, encoded=encoded), machine)
        return step.compute_time >= step.memory_time and step.compute_time > 0

    return _first_true(bound, limit)


def _first_true(holds: Callable[[int], bool], limit: int) -> int | None:
    """Smallest n in 1 … ``limit`` for which ``holds``, if it changes once."""
    if not holds(limit):
        return None
    low, high = 1, limit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def faster(machine: Machine, *, compute: float = 1.0, bandwidth: float = 1.0) -> Machine:
    """The same machine with other ceilings, for what-if questions."""
    return replace(
        machine,
        bandwidth=machine.bandwidth * bandwidth,
        peaks={name: None if peak is None else peak * compute for name, peak in machine.peaks.items()},
        attention_peak=None if machine.attention_peak is None else machine.attention_peak * compute,
    )


def arithmetic_used(inventory: Inventory) -> tuple[str, ...]:
    """Arithmetic kinds of the weights that some step multiplies."""
    rows = (*inventory.prompt_multiplied, *inventory.token_multiplied, *inventory.head_multiplied)
    return tuple(dict.fromkeys(arithmetic for arithmetic, _ in rows))
