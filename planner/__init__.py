"""What one call of a language model costs, and why.

``plan(model, device, workload)`` answers; ``explain(answer, "tpot")`` derives. Everything is in base units: bytes,
FLOP, seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.derivation import explain
    from planner.errors import PlanError
    from planner.hardware import Device, device_from_numbers, find_device
    from planner.models import Model, find_model
    from planner.planning import Plan, plan
    from planner.render.data import as_data
    from planner.scenario import Scenario
    from planner.workload import Workload

__all__ = [
    "Device",
    "Model",
    "Plan",
    "PlanError",
    "Scenario",
    "Workload",
    "as_data",
    "device_from_numbers",
    "explain",
    "find_device",
    "find_model",
    "plan",
]

_HOMES = {
    "Device": "hardware",
    "Model": "models",
    "Plan": "planning",
    "PlanError": "errors",
    "Scenario": "scenario",
    "Workload": "workload",
    "as_data": "render.data",
    "device_from_numbers": "hardware",
    "explain": "derivation",
    "find_device": "hardware",
    "find_model": "models",
    "plan": "planning",
}


def __getattr__(name: str) -> Any:
    """Public names are loaded when they are first used, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'planner' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"planner.{_HOMES[name]}"), name)
