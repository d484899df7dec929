"""What an engine is likely to reach, with an interval. No calibration exists yet, so nothing is predicted."""

from __future__ import annotations

from dataclasses import dataclass

# Why the prediction column is empty.
NO_CALIBRATION = "no calibration covers this case yet"


@dataclass(frozen=True, slots=True)
class Interval:
    """A predicted value with the ends of its 80 % interval, in the value's own unit."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted TTFT, TPOT and E2E in seconds, and the calibration behind them.

    ``level`` names how specific the calibration was, ``runs`` how many measurements it rests on, ``residual`` their
    spread (80 % quantile of the relative error on data left out).
    """

    ttft: Interval
    tpot: Interval | None
    e2e: Interval
    engine: str
    level: str
    runs: int
    residual: float
