"""How fast the product is, run by hand: ``python tests/bench/speed.py``. Not a test: figures depend on the machine.

Start: CPU time (user + system) of the main job as a whole process against importing its libraries alone, alternating,
medians. Library: one ``plan(...)`` on a loaded model and device. Batch: scenarios per second through ``plan batch``.
"""

from __future__ import annotations

import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time

from planner.commands.batch import run
from planner.hardware import find_device
from planner.models import find_model
from planner.planning import plan
from planner.workload import Workload

IMPORTS = [sys.executable, "-c", "import typer, pydantic, yaml, tabulate; from pydantic import BaseModel"]
MAIN_JOB = [
    sys.executable,
    "-m",
    "planner",
    *["--model", "meta/llama-3.1-8b", "--gpu", "h100-sxm", "--prompt", "2000", "--out", "256"],
]


# Modules are compiled once, as an installer does; otherwise compiling them would be measured.
COMPILED = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def cpu_seconds(command: list[str]) -> float:
    """User and system time of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=COMPILED)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def start(runs: int = 21) -> None:
    """Median CPU time of the imports and of the main job, and their ratio."""
    cpu_seconds(MAIN_JOB)
    pairs = [(cpu_seconds(IMPORTS), cpu_seconds(MAIN_JOB)) for _ in range(runs)]
    imports, job = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(
        f"start: imports {imports * 1e3:.0f} ms, main job {job * 1e3:.0f} ms, ratio {job / imports:.2f} ({runs} pairs)"
    )


def library(runs: int = 2000) -> None:
    """Median time of one plan."""
    model, device = find_model("meta/llama-3.1-8b"), find_device("h100-sxm")
    times = []
    for index in range(runs):
        workload = Workload(prompt=1000 + index % 997, out=256)
        begin = time.perf_counter()
        plan(model, device, workload)
        times.append(time.perf_counter() - begin)
    print(f"library: {statistics.median(times) * 1e6:.0f} µs per plan (median of {runs})")


def batch(lines: int = 5000) -> None:
    """Scenarios per second, results written as JSON."""
    text = "".join(
        json.dumps({"id": i, "model": "meta/llama-3.1-8b", "gpu": "h100-sxm", "prompt": 500 + i % 4000}) + "\n"
        for i in range(lines)
    )
    begin = time.perf_counter()
    run(io.StringIO(text), from_csv=False, to_csv=False, write=lambda _: None)
    print(f"batch: {lines / (time.perf_counter() - begin):,.0f} scenarios per second ({lines:,} lines)")


if __name__ == "__main__":
    start()
    library()
    batch()
