"""The options that describe a scenario, declared once and given to every verb that takes one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from planner.scenario import OPTIONS, Scenario

WHAT = "What"
WORKLOAD = "Workload"
MEASURED = "Measured"
OUTPUT = "Output"


class Form(StrEnum):
    """Forms of the answer."""

    TABLE = "table"
    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"


# Option name -> flags, help, panel. The order is that of --help.
_DECLARED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "model": (("--model", "-m"), "Model: catalogue id or alias, folder, or config.json.", WHAT),
    "gpu": (("--gpu", "-g"), "Device: id, alias, or a YAML file of your own.", WHAT),
    "tp": (("--tp",), "Devices under tensor parallelism.", WHAT),
    "precision": (("--precision", "-q"), "Number format of the weights; the checkpoint's own by default.", WHAT),
    "kv_precision": (("--kv-precision",), "Number format of the KV cache; the model's own by default.", WHAT),
    "engine": (("--engine",), "Serving engine; named in the output when left out.", WHAT),
    "mem_util": (("--mem-util",), "Share of the usable memory that may be filled, such as 0.9.", WHAT),
    "bandwidth": (("--bandwidth",), "Memory bandwidth in place of the catalogue's, such as 3.35TB/s.", WHAT),
    "peak": (("--peak",), "Dense peak in place of the catalogue's, such as 989TFLOP/s.", WHAT),
    "memory": (("--memory",), "Memory size, such as 64GB, of a machine that is sold with several.", WHAT),
    "prompt": (("--prompt", "-p"), "Prompt tokens per request (2000, 2k = 2000, 2Ki = 2048).", WORKLOAD),
    "out": (("--out", "-o"), "Output tokens per request.", WORKLOAD),
    "batch": (("--batch", "-b"), "Equal requests in one static batch.", WORKLOAD),
    "cached_prefix": (("--cached-prefix",), "Prompt tokens that are in the cache already.", WORKLOAD),
    "measured_ttft": (("--measured-ttft",), "A TTFT that you measured, such as 155.1ms.", MEASURED),
    "measured_tpot": (("--measured-tpot",), "A TPOT that you measured, such as 17.31ms.", MEASURED),
}
assert set(_DECLARED) == set(OPTIONS)


def takes_scenario(command: Callable[..., None]) -> Callable[..., None]:
    """A verb whose first parameter is a ``Scenario`` becomes one with all the options of a scenario."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]

    def run(**values: Any) -> None:
        scenario = Scenario.read({name: values.pop(name) for name in _DECLARED})
        command(scenario, **values)

    shared = [_parameter(name) for name in _DECLARED]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *shared)]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__, run.__name__ = command.__doc__, command.__name__
    return run


def _parameter(name: str) -> inspect.Parameter:
    flags, text, panel = _DECLARED[name]
    default = {"prompt": "1024", "out": "256", "batch": "1", "tp": "1"}.get(name)
    option = typer.Option(
        *flags,
        help=text,
        rich_help_panel=panel,
        envvar=f"PLAN_{name.upper()}",
        show_envvar=False,
        metavar=_metavar(name),
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[str | None, option]
    )


def _metavar(name: str) -> str:
    return {"text": "NAME", "count": "N", "1": "SHARE", "B/s": "RATE", "FLOP/s": "RATE", "B": "SIZE", "s": "TIME"}[
        OPTIONS[name]
    ]
