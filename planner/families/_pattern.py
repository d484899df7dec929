"""The layer types of a file that gives a pattern instead of a list.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from planner.families._decoder import FULL, SLIDING


def every(pattern: int, layers: int) -> list[str]:
    """Every ``pattern``-th layer is full, the others slide."""
    return [SLIDING if (number + 1) % pattern else FULL for number in range(layers)]
