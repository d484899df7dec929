"""``plan models``, ``plan gpus`` and ``plan show``: what is bundled, and where its figures come from."""

from __future__ import annotations

from planner.commands.options import Form
from planner.errors import PlanError, did_you_mean
from planner.hardware import all_devices, device_ids, find_device
from planner.hardware import resolve as resolve_device
from planner.models import bundled_models, find_model, model_ids, provenance
from planner.models import resolve as resolve_model


def models(needle: str, form: Form) -> str:
    """Bundled models whose id or family holds ``needle``."""
    from planner.render.catalogue import listing, model_row

    found = [m for m in bundled_models() if needle.lower() in f"{m.id} {m.architecture.family}".lower()]
    if not found:
        raise PlanError(f"no bundled model matches {needle!r}{did_you_mean(needle, model_ids())}", "filter")
    return listing([model_row(m, plain=form in (Form.CSV, Form.JSON)) for m in found], form)


def gpus(needle: str, form: Form) -> str:
    """Devices whose id, name, vendor or kind holds ``needle``."""
    from planner.render.catalogue import device_row, listing

    words = needle.lower()
    found = [d for d in all_devices() if words in f"{d.id} {d.name} {d.vendor} {d.kind} {d.architecture}".lower()]
    if not found:
        raise PlanError(f"no device matches {needle!r}{did_you_mean(needle, device_ids())}", "filter")
    return listing([device_row(d, plain=form in (Form.CSV, Form.JSON)) for d in found], form)


def show(name: str) -> str:
    """Everything about one device or model."""
    from planner.render.catalogue import show_device, show_model

    if name.endswith((".yaml", ".yml")) or _known(resolve_device, name):
        return show_device(find_device(name))
    if name.endswith(".json") or "/" in name or _known(resolve_model, name):
        model = find_model(name)
        return show_model(model, provenance(model.id) if _known(resolve_model, name) else None)
    hint = did_you_mean(name, [*device_ids(), *model_ids()])
    raise PlanError(f"no device or model is called {name!r}{hint}", "name")


def _known(resolve: object, name: str) -> bool:
    try:
        resolve(name)  # type: ignore[operator]
    except PlanError:
        return False
    return True
