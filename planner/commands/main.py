"""The main job: one configuration, and what limits it."""

from __future__ import annotations

import json

from planner.commands.options import Form
from planner.planning import Plan


def render(plan: Plan, form: Form) -> str:
    """The answer in a form, without a final newline."""
    match form:
        case Form.JSON:
            from planner.render.data import as_data

            return json.dumps(as_data(plan), indent=2, ensure_ascii=False, allow_nan=False)
        case Form.CSV:
            from planner.render.flat import as_csv

            return as_csv([plan])
        case Form.MARKDOWN:
            from planner.render.markdown import as_markdown

            return as_markdown(plan)
        case Form.TABLE:
            from planner.render.table import as_table

            return as_table(plan)


def render_trees(plan: Plan, topics: list[str]) -> str:
    """The derivations of topics, one below the other."""
    from planner.derivation import explain
    from planner.render.tree import as_trees

    return as_trees([tree for topic in topics for tree in explain(plan, topic)])
