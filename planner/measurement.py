"""A measured TTFT or TPOT held against the ceilings, to first order: weights read and 2·N·P done per second.

The same estimate as in textbooks: it leaves out the cache, activations and scratch traffic. A share above one means
that the ceiling is wrong, never that the machine runs beyond it.
"""

from __future__ import annotations

from typing import NamedTuple

from planner import formulas
from planner.roofline import TextbookInput
from planner.workload import Workload


class Measured(NamedTuple):
    """Times that the user measured, in seconds."""

    ttft: float | None = None
    tpot: float | None = None


class Rates(NamedTuple):
    """Rates that a phase reached and their shares of the device's ceilings (None without a ceiling)."""

    tokens_per_second: float
    compute: float
    bandwidth: float
    compute_share: float | None
    bandwidth_share: float | None


class Reached(NamedTuple):
    """What the measured times mean: each phase's rates, the request's E2E, and the share of it spent in prefill."""

    measured: Measured
    prefill: Rates | None
    decode: Rates | None
    e2e: float | None
    prefill_share: float | None
    prefill_over_decode: float | None


def reached(measured: Measured, given: TextbookInput, workload: Workload, *, devices: int = 1) -> Reached:
    """The rates behind measured times.

    Prefill of P tokens does 2·N·P and reads the weights once; a decode step does 2·N per sequence and reads them once.
    """
    prefill = decode = e2e = share = ratio = None
    if measured.ttft is not None:
        tokens = workload.batch * (workload.prompt - workload.cached_prefix)
        prefill = _rates(given, tokens=tokens, time=measured.ttft, devices=devices)
    if measured.tpot is not None:
        decode = _rates(given, tokens=workload.batch, time=measured.tpot, devices=devices)
    if measured.ttft is not None and measured.tpot is not None:
        e2e = formulas.end_to_end_time(first_token=measured.ttft, per_token=measured.tpot, gaps=workload.out - 1)
        share = measured.ttft / e2e
    if prefill is not None and decode is not None:
        ratio = prefill.tokens_per_second / decode.tokens_per_second
    return Reached(measured, prefill, decode, e2e, share, ratio)


def _rates(given: TextbookInput, *, tokens: int, time: float, devices: int) -> Rates:
    work = formulas.textbook_prefill_work(parameters=given.parameters, tokens=tokens)
    traffic = formulas.textbook_weight_bytes(parameters=given.parameters, width=given.width)
    compute, bandwidth = work / time, traffic / time
    return Rates(
        tokens_per_second=formulas.token_rate(tokens=tokens, time=time),
        compute=compute,
        bandwidth=bandwidth,
        compute_share=None if given.peak is None else compute / (given.peak * devices),
        bandwidth_share=None if given.bandwidth is None else bandwidth / (given.bandwidth * devices),
    )
