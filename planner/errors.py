"""The one error that people see: a sentence that names file, field, what was found and what would be valid."""

from __future__ import annotations

from collections.abc import Iterable


class PlanError(Exception):
    """Bad input. The message is one sentence for people; ``field`` names the offending key or option when known."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


def nearest(word: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Known names closest to ``word``, for "did you mean".

    >>> nearest("h100-smx", ["h100-sxm", "h100-pcie", "mi300x"], 1)
    ['h100-sxm']
    """
    import difflib

    names = list(known)
    lowered = {name.lower(): name for name in names}
    found = difflib.get_close_matches(word.lower(), lowered, n=count, cutoff=0.5)
    return [lowered[name] for name in found]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The words ``; did you mean a, b or c?`` or nothing."""
    found = nearest(word, known)
    if not found:
        return ""
    listed = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
    return f"; did you mean {listed}?"


def brief(found: object) -> str:
    """``repr`` in at most 60 characters, for messages about what was found."""
    text = repr(found)
    return text if len(text) <= 60 else f"{text[:57]}..."
