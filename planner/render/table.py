"""The main answer for a terminal: at most 78 columns, three significant digits, a unit on every number."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tabulate import tabulate

from planner.memory import Memory
from planner.planning import Plan
from planner.prediction import NO_CALIBRATION
from planner.render.rows import HEADERS, percent, rows
from planner.units import show, significant

WIDTH = 78
INDENT = 11
# The space between a number and its unit.
_UNIT_SPACE = re.compile(r"(?<=\d) (?=(?:[kMGTPEmµn]?(?:B|FLOP|s|tok)\b|%|×))")


def as_table(plan: Plan) -> str:
    """The whole answer as text without a final newline."""
    blocks = [_wrapped(title(plan))]
    stated = list(facts(plan))
    if plan.memory.fits is False:
        blocks.append(_paragraph(*stated.pop(0)))
    blocks += [_latencies(plan), "\n".join(_paragraph(label, text) for label, text in stated)]
    return "\n\n".join(blocks)


def title(plan: Plan) -> str:
    """Model, number format, devices and workload in one line."""
    workload = plan.workload
    cached = f" ({workload.cached_prefix:,} of them cached)" if workload.cached_prefix else ""
    return (
        f"{plan.model.id}, {plan.storage.label}, on {plan.tp} × {plan.device.name}; {workload.prompt:,} prompt "
        f"{_plural('token', workload.prompt)}{cached}, {workload.out:,} output {_plural('token', workload.out)}, batch "
        f"{workload.batch:,}"
    )


def facts(plan: Plan) -> Iterator[tuple[str, str]]:
    """What stands below the latencies, as label and text; the first one says that the plan does not fit, if so."""
    if plan.memory.fits is False:
        yield "NO FIT", _shortfall(plan.memory)
    yield "memory", _memory(plan)
    yield "compute", _compute(plan)
    if plan.what_if:
        yield "what helps", "E2E floor: " + "; ".join(f"{w.change} {_change(w.relative)}" for w in plan.what_if)
    if plan.measured is not None:
        yield "measured", "; ".join(_measured(plan))
    yield "exact", _exact(plan)
    yield "weights", plan.storage.detail
    if plan.assumed:
        yield "assumed", "; ".join(plan.assumed)
    yield "sources", f"plan show {plan.model.id}; plan show {plan.device.id}; plan explain tpot …"
    for warning in plan.warnings:
        yield "warning", warning


def _latencies(plan: Plan) -> str:
    cells = [(row.name, row.textbook, row.counted, row.predicted, row.limit) for row in rows(plan)]
    text = tabulate(
        cells,
        headers=HEADERS,
        tablefmt="plain",
        colalign=("left", "right", "right", "right", "left"),
        disable_numparse=True,
    )
    lines = [line.rstrip() for line in text.splitlines()]
    if plan.prediction is None:
        lines.append(f"predicted: {NO_CALIBRATION}")
    return "\n".join(lines)


def _memory(plan: Plan) -> str:
    memory = plan.memory
    state = plan.inventory.state_bytes
    cache = "KV cache and state" if state else "KV cache"
    parts = (
        f"weights {show(memory.weights, 'B', 4)} + {cache} {show(memory.cache, 'B')} + activations "
        f"{show(memory.activations, 'B')} + logits {show(memory.logits, 'B')} = {show(memory.total, 'B', 4)}"
    )
    each = " on each device" if plan.tp > 1 else ""
    if memory.budget is None or memory.spare is None:
        return f"{parts}{each}; the device's memory is not known"
    share = f"{memory.budget.utilisation:g} of {show(memory.budget.usable, 'B')} usable"
    offered = f" of {show(memory.budget.bytes, 'B')}{each} ({share})"
    if memory.spare < 0:
        return f"{parts}{offered}: does not fit, {show(-memory.spare, 'B')} too many"
    return f"{parts}{offered}: fits, {show(memory.spare, 'B')} spare; {_room(plan)}"


def _room(plan: Plan) -> str:
    memory = plan.memory
    room = f"at most {memory.max_batch:,} such {_plural('request', memory.max_batch or 0)} at once"
    if memory.max_context is None:
        return f"{room}, of any length"
    return f"{room}, or {memory.max_context:,} tokens a request"


def _shortfall(memory: Memory) -> str:
    assert memory.budget is not None
    assert memory.spare is not None
    return (
        f"does not fit: {show(memory.total, 'B', 4)} are needed on each device, {show(memory.budget.bytes, 'B', 4)} "
        f"may be used, {show(-memory.spare, 'B')} too many; the times below are floors for a device with more memory"
    )


def _compute(plan: Plan) -> str:
    intensity, given, turn = plan.intensity, plan.textbook_input, plan.turning_points
    text = f"textbook intensity: prefill {_number(intensity.textbook_prefill)} FLOP/byte"
    if plan.workload.out > 1:
        text += f", decode {_number(intensity.textbook_decode)}"
    if given.ridge is None:
        return text
    text += f"; this device balances at {_number(given.ridge)}"
    if turn.prompt is not None:
        text += f": prefill is limited by compute from {turn.prompt:,} prompt {_plural('token', turn.prompt)} on"
    if plan.machine is not None and plan.machine.has_compute_floor and plan.workload.out > 1:
        text += (
            ", decode at this context by memory bandwidth at every batch"
            if turn.batch is None
            else f", decode from batch {turn.batch:,} on"
        )
    return text


def _measured(plan: Plan) -> Iterator[str]:
    found = plan.measured
    assert found is not None
    for name, time, rates in (
        ("TTFT", found.measured.ttft, found.prefill),
        ("TPOT", found.measured.tpot, found.decode),
    ):
        if time is None or rates is None:
            continue
        text = (
            f"{name} {show(time, 's')} is {significant(rates.tokens_per_second)} tok/s, {show(rates.compute, 'FLOP/s')}"
        )
        text += "" if rates.compute_share is None else f" ({percent(rates.compute_share)} of compute)"
        text += f" and {show(rates.bandwidth, 'B/s')} of weights"
        yield text + ("" if rates.bandwidth_share is None else f" ({percent(rates.bandwidth_share)} of bandwidth)")
    if found.prefill_over_decode is not None:
        yield f"prefill is {significant(found.prefill_over_decode)} × faster per token than decode"
    if found.e2e is not None and found.prefill_share is not None:
        yield f"E2E {show(found.e2e, 's')}, of which prefill {percent(found.prefill_share)}"


def _exact(plan: Plan) -> str:
    counts = plan.counts
    text = f"parameters {counts.total:,}"
    if counts.active != counts.total:
        text += f", active per token {counts.active:,} (embedding and head included)"
    if counts.mtp:
        text += f"; MTP module {counts.mtp:,} apart"
    return text


def _change(relative: float) -> str:
    """A relative change in whole per cent, with one digit below ten.

    >>> _change(-0.4893), _change(-0.012)
    ('−49 %', '−1.2 %')
    """
    size = abs(relative) * 100
    sign = "−" if relative < 0 else "+"
    if size < 0.05:
        return "±0 %"
    return f"{sign}{size:.0f} %" if size >= 9.95 else f"{sign}{size:.1f} %"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else significant(value)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def _paragraph(label: str, text: str) -> str:
    if len(label) >= INDENT:
        return _wrapped(f"{label}: {text}", INDENT)
    return _wrapped(f"{label:<{INDENT}}{text}", INDENT)


def _wrapped(text: str, indent: int = 2) -> str:
    """Lines of at most ``WIDTH`` columns; a number is never parted from its unit."""
    kept = _UNIT_SPACE.sub("\u00a0", text)
    lines = textwrap.wrap(kept, WIDTH, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace("\u00a0", " ")
