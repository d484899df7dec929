"""The command line: arguments in, one library call, text out. Nothing is computed here.

stdout holds the result, stderr everything else. Exit codes: 0 done, 1 internal error, 2 bad input, 3 "does not fit"
(with --require), 130 interrupted.
"""

from __future__ import annotations

import gc

# A short life: collecting garbage while modules load costs a twentieth of the start. ``batch`` turns it on again.
gc.disable()

import io  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from typing import Annotated  # noqa: E402

import typer  # noqa: E402

from planner.commands.main import render, render_trees  # noqa: E402
from planner.commands.options import OUTPUT, Form, takes_scenario  # noqa: E402
from planner.errors import PlanError  # noqa: E402
from planner.scenario import Scenario  # noqa: E402

app = typer.Typer(
    name="plan",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# typer carries its own copy of click since 0.16; this is the base of its usage errors in either case.
UsageError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

FormOption = Annotated[Form, typer.Option("--format", "-f", help="Form of the answer.", rich_help_panel=OUTPUT)]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as --format json.", rich_help_panel=OUTPUT)]

EXAMPLES = """
What one call of a language model costs, and why.

\b
  plan --model meta/llama-3.1-8b --gpu h100-sxm --prompt 2000 --out 256
  plan -m openai/gpt-oss-20b -g rtx-5090 -p 8k -o 1k --json
  plan -m ./config.json --bandwidth 3.35TB/s --peak 989TFLOP/s --memory 80GB
  plan explain tpot -m meta/llama-3.1-8b -g h100-sxm
  plan gpus nvidia; plan models llama; plan show h100-sxm

Exit codes: 0 done, 1 internal error, 2 bad input, 3 does not fit (with --require), 130 interrupted.
"""


@takes_scenario
def main_job(
    scenario: Scenario,
    *,
    context: typer.Context,
    form: FormOption = Form.TABLE,
    as_json: JsonOption = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the derivations of TTFT and TPOT.", rich_help_panel=OUTPUT)
    ] = False,
    require: Annotated[
        bool, typer.Option("--require", help="Exit with 3 when it does not fit.", rich_help_panel=OUTPUT)
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", rich_help_panel=OUTPUT)] = False,
) -> None:
    if context.invoked_subcommand is not None:
        return
    if version:
        from importlib.metadata import version as installed

        print(f"plan {installed('llm-capacity-plan')}")
        return
    answer = scenario.plan()
    print(render(answer, Form.JSON if as_json else form))
    if explain:
        topics = ["ttft", "tpot"] if answer.workload.out > 1 else ["ttft"]
        print(f"\n{render_trees(answer, topics)}")
    if require and answer.memory.fits is False:
        raise typer.Exit(3)


app.callback(invoke_without_command=True, help=EXAMPLES)(main_job)


@app.command("explain")
@takes_scenario
def explain_command(
    scenario: Scenario,
    *,
    topic: Annotated[str, typer.Argument(help="ttft, tpot, e2e, kv, weights, params or memory.")] = "tpot",
    as_json: JsonOption = False,
) -> None:
    """The derivation of a figure: formulas with numbers put in, and where each number was read."""
    answer = scenario.plan()
    if as_json:
        import json

        from planner.derivation import explain
        from planner.quantity import as_json as tree_as_json

        print(json.dumps([tree_as_json(tree) for tree in explain(answer, topic)], indent=2, ensure_ascii=False))
        return
    print(render_trees(answer, [topic]))


@app.command("models")
def models_command(
    needle: Annotated[str, typer.Argument(metavar="[FILTER]", help="Part of an id or family.")] = "",
    form: FormOption = Form.TABLE,
    as_json: JsonOption = False,
) -> None:
    """The bundled models."""
    from planner.commands.catalogue import models

    print(models(needle, Form.JSON if as_json else form))


@app.command("gpus")
def gpus_command(
    needle: Annotated[str, typer.Argument(metavar="[FILTER]", help="Part of an id, name, vendor or kind.")] = "",
    form: FormOption = Form.TABLE,
    as_json: JsonOption = False,
) -> None:
    """The hardware catalogue; * marks a figure that no source was opened for."""
    from planner.commands.catalogue import gpus

    print(gpus(needle, Form.JSON if as_json else form))


@app.command("show")
def show_command(
    name: Annotated[str, typer.Argument(metavar="ID", help="A device or a model, by id, alias or file.")],
) -> None:
    """Everything that is known about one device or model, with sources."""
    from planner.commands.catalogue import show

    print(show(name))


@app.command("batch")
def batch_command(
    file: Annotated[str, typer.Argument(metavar="FILE|-", help="Scenarios as JSONL, or as CSV with a header.")],
    form: Annotated[str, typer.Option("--format", "-f", help="jsonl or csv; that of the input by default.")] = "",
) -> None:
    """Many scenarios: one object or row of options per line, one result per line in the same order."""
    gc.enable()
    from planner.commands.batch import run
    from planner.commands.files import opened

    if form not in ("", "jsonl", "csv"):
        raise PlanError(f"format is {form!r}; expected jsonl or csv", "format")
    with opened(file) as stream:
        from_csv = file.lower().endswith(".csv")
        to_csv = form == "csv" or (not form and from_csv)
        if not run(stream, from_csv=from_csv, to_csv=to_csv, write=print):
            raise typer.Exit(2)


def main() -> None:
    """Entry point of the ``plan`` command."""
    # Looking for other packages' pydantic plugins opens every installed distribution: a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has had enough (``| head``) ends us quietly
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × and µ gets a question mark, not a crash
    try:
        code = app(standalone_mode=False, prog_name="plan")
    except PlanError as error:
        code = _complain(str(error))
    except UsageError as error:
        code = _complain(error.format_message())  # type: ignore[attr-defined]
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code or 0)


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
