"""The lines of the main answer as text cells, shared by the table, Markdown and CSV forms."""

from __future__ import annotations

from dataclasses import dataclass

from planner import formulas
from planner.planning import Plan
from planner.prediction import Interval
from planner.units import show, significant

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: a quantity by the whiteboard, as a counted floor, as a prediction, and what limits it."""

    name: str
    textbook: str
    counted: str
    predicted: str
    limit: str


HEADERS = ("", "textbook", "floor", "predicted", "limited by")


def rows(plan: Plan) -> list[Row]:
    """TTFT, TPOT, E2E and speed; a cell without a value holds a dash."""
    textbook, counted, predicted = plan.textbook, plan.counted, plan.prediction
    latency = None if counted is None else counted.latency
    found = [
        Row(
            "TTFT",
            _seconds(None if textbook is None else textbook.ttft),
            _seconds(None if latency is None else latency.ttft),
            _interval(None if predicted is None else predicted.ttft),
            ABSENT if counted is None else str(counted.prefill.limit),
        ),
        Row(
            "TPOT",
            _seconds(None if textbook is None else textbook.tpot),
            _seconds(None if latency is None else latency.tpot),
            _interval(None if predicted is None else predicted.tpot),
            ABSENT if counted is None or counted.decode_limit is None else str(counted.decode_limit),
        ),
        Row(
            "E2E",
            _seconds(None if textbook is None else textbook.e2e),
            _seconds(None if latency is None else latency.e2e),
            _interval(None if predicted is None else predicted.e2e),
            _phase(plan),
        ),
    ]
    if plan.workload.out > 1:
        found.append(_speed(plan))
    return found


def _speed(plan: Plan) -> Row:
    def cell(latency_tpot: float | None) -> str:
        if latency_tpot is None:
            return ABSENT
        rate = formulas.token_rate(tokens=1, time=latency_tpot)
        return f"{significant(rate, 3)} tok/s"

    textbook = None if plan.textbook is None else plan.textbook.tpot
    counted = None if plan.counted is None else plan.counted.latency.tpot
    predicted = None if plan.prediction is None or plan.prediction.tpot is None else plan.prediction.tpot.value
    whole = ""
    if plan.workload.batch > 1 and counted is not None:
        system = formulas.token_rate(tokens=plan.workload.batch, time=counted)
        whole = f"per request; {significant(system, 3)} tok/s in all"
    return Row("speed", cell(textbook), cell(counted), cell(predicted), whole)


def _phase(plan: Plan) -> str:
    share = plan.decode_share
    if share is None:
        return ABSENT
    if plan.workload.out == 1:
        return "prefill alone"
    name, part = ("decode", share) if share >= 0.5 else ("prefill", 1 - share)
    return f"{name}, {percent(part)} of the floor"


def percent(share: float) -> str:
    """A share with three significant digits.

    >>> percent(0.9754), percent(0.0065), percent(1.0)
    ('97.5 %', '0.65 %', '100 %')
    """
    return f"{significant(share * 100, 3 if share >= 0.1 else 2)} %"


def _seconds(value: float | None) -> str:
    return ABSENT if value is None else show(value, "s")


def _interval(interval: Interval | None) -> str:
    if interval is None:
        return ABSENT
    return f"{show(interval.value, 's')} ({show(interval.low, 's')} … {show(interval.high, 's')})"
