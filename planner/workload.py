"""The user's question as data: how many tokens in and out, how many requests at once."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import PlanError

# Longer than any published context window; beyond it a number is a slip of the keyboard.
MAXIMUM_TOKENS = 1_000_000_000
MAXIMUM_BATCH = 10_000_000


@dataclass(frozen=True, slots=True)
class Workload:
    """``batch`` equal requests: ``prompt`` tokens, of which ``cached_prefix`` are cached, and ``out`` answer tokens.

    Raises:
        PlanError: a count that is no whole number in its range.
    """

    prompt: int = 1024
    out: int = 256
    batch: int = 1
    cached_prefix: int = 0

    def __post_init__(self) -> None:
        _whole("prompt", self.prompt, 1, MAXIMUM_TOKENS)
        _whole("out", self.out, 1, MAXIMUM_TOKENS)
        _whole("batch", self.batch, 1, MAXIMUM_BATCH)
        _whole("cached_prefix", self.cached_prefix, 0, MAXIMUM_TOKENS)
        if self.cached_prefix >= self.prompt:
            raise PlanError(
                f"cached_prefix is {self.cached_prefix:,}; expected fewer than the {self.prompt:,} prompt tokens, "
                "since the last one is always computed",
                field="cached_prefix",
            )

    @property
    def context(self) -> int:
        """Tokens of a whole request."""
        return self.prompt + self.out


def _whole(name: str, value: object, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{name} is {value!r}; expected a whole number of {least} or more", field=name)
    if value < least:
        raise PlanError(f"{name} is {value:,}; expected {least} or more", field=name)
    if value > most:
        raise PlanError(f"{name} is {value:,}; expected at most {most:,}", field=name)
