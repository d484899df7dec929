"""Plans as one CSV row each: the JSON form with its nesting in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from planner.planning import Plan
from planner.render.data import as_data


def as_csv(plans: list[Plan]) -> str:
    """A header line and one line per plan, without a final newline."""
    return rows_as_csv([dict(flattened(as_data(plan))) for plan in plans])


def rows_as_csv(rows: list[dict[str, Any]]) -> str:
    """Dictionaries as CSV, every column that any of them has, in order of first appearance."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().rstrip("\n")


def flattened(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested data with dotted names; lists of text are joined, absent values are empty.

    >>> dict(flattened({"a": {"b": 1, "c": None}, "d": ["x", "y"]}))
    {'a.b': 1, 'a.c': '', 'd': 'x | y'}
    """
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from flattened(value, f"{name}.")
        elif isinstance(value, list):
            yield name, " | ".join(_listed(item) for item in value)
        else:
            yield name, "" if value is None else value


def _listed(item: Any) -> str:
    return ", ".join(f"{k}={v}" for k, v in item.items()) if isinstance(item, Mapping) else str(item)
