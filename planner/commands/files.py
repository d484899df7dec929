"""Opening the files that a command is given; ``-`` is standard input."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from planner.errors import PlanError


@contextmanager
def opened(name: str) -> Iterator[TextIO]:
    """The text of a file or of standard input.

    Raises:
        PlanError: no such file, a folder, unreadable, or not text.
    """
    try:
        if name == "-":
            yield sys.stdin
            return
        with Path(name).open(encoding="utf-8-sig", newline="") as stream:
            yield stream
    except UnicodeDecodeError:
        raise PlanError(f"{name}: not text in UTF-8", "file") from None
    except OSError as error:
        raise PlanError(f"{name}: cannot be read ({error.strerror})", "file") from None
