"""``plan batch``: many scenarios, one per line, in and out as JSONL or CSV.

A bad line gives an error object in its place and the rest goes on. Each model and each device is read once.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TextIO

from planner.errors import PlanError
from planner.hardware import Device, find_device
from planner.models import Model, find_model
from planner.render.data import as_data
from planner.render.flat import flattened, rows_as_csv
from planner.scenario import Scenario

Result = dict[str, Any]


def answers(lines: Iterable[Result | PlanError]) -> Iterator[Result]:
    """One result per scenario, in order; ``id`` is handed through."""
    model_of: Callable[[str], Model] = lru_cache(maxsize=None)(find_model)
    device_of: Callable[[str], Device] = lru_cache(maxsize=None)(find_device)
    for given in lines:
        name = None if isinstance(given, PlanError) else given.pop("id", None)
        labelled: Result = {} if name is None else {"id": name}
        try:
            if isinstance(given, PlanError):
                raise given
            yield labelled | as_data(Scenario.read(given).plan(model_of, device_of))
        except PlanError as error:
            yield labelled | {"error": {"message": str(error), "field": error.field}}


def read_jsonl(stream: Iterable[str]) -> Iterator[Result | PlanError]:
    """Scenarios of a JSONL text; empty lines are skipped, a line that is no JSON object is an error in its place."""
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            found = json.loads(line.lstrip("\ufeff"))
        except (ValueError, RecursionError):
            yield PlanError(f"line {number}: not JSON", f"line {number}")
            continue
        if isinstance(found, dict):
            yield found
        else:
            yield PlanError(f"line {number}: a {type(found).__name__}; expected an object of options", f"line {number}")


def read_csv(stream: Iterable[str]) -> Iterator[Result | PlanError]:
    """Scenarios of a CSV text whose header names the options; empty cells are options not given."""
    reader = csv.DictReader(line.lstrip("\ufeff") for line in stream)
    for number, row in enumerate(reader, 2):
        if None in row:
            yield PlanError(f"line {number}: more cells than the header has columns", f"line {number}")
        else:
            yield {name: value for name, value in row.items() if value not in (None, "")}


def run(stream: TextIO, *, from_csv: bool, to_csv: bool, write: Callable[[str], object]) -> bool:
    """Answer every line of ``stream``; whether all went well."""
    good = True
    rows: list[Result] = []
    for result in answers(read_csv(stream) if from_csv else read_jsonl(stream)):
        good = good and "error" not in result
        if to_csv:
            rows.append(dict(flattened(result)))
        else:
            write(json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    if to_csv:
        write(rows_as_csv(rows))
    return good
