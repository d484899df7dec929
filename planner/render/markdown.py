"""The main answer as Markdown, for a design document."""

from __future__ import annotations

from tabulate import tabulate

from planner.planning import Plan
from planner.render.rows import HEADERS, rows
from planner.render.table import facts, title


def as_markdown(plan: Plan) -> str:
    """A heading line, the table of latencies, and the facts as a list."""
    cells = [(row.name, row.textbook, row.counted, row.predicted, row.limit) for row in rows(plan)]
    table = tabulate(
        cells,
        headers=HEADERS,
        tablefmt="github",
        colalign=("left", "right", "right", "right", "left"),
        disable_numparse=True,
    )
    listed = "\n".join(f"- **{label}**: {text}" for label, text in facts(plan))
    return f"**{title(plan)}**\n\n{table}\n\n{listed}"
