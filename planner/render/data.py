"""A plan as plain data: the stable JSON form. Base units, the unit in the name, ``null`` for what is absent."""

from __future__ import annotations

from typing import Any

from planner.architecture import Part
from planner.ceilings import Ceiling
from planner.counting import cache_layers
from planner.measurement import Rates
from planner.planning import Plan
from planner.prediction import NO_CALIBRATION, Interval
from planner.roofline import Latency, Step

SCHEMA_VERSION = 1


def as_data(plan: Plan) -> dict[str, Any]:
    """Everything that the plan knows, as JSON types."""
    return {
        "schema_version": SCHEMA_VERSION,
        "inputs": _inputs(plan),
        "model": _model(plan),
        "device": _device(plan),
        "floors": {"textbook": _latency(plan.textbook), "counted": None if plan.counted is None else _counted(plan)},
        "prediction": _prediction(plan),
        "memory": _memory(plan),
        "limits": _limits(plan),
        "what_if": [{"change": w.change, "e2e_s": w.e2e, "relative": w.relative} for w in plan.what_if],
        "measured": _measured(plan),
        "warnings": [*plan.warnings, *_absences(plan)],
        "assumed": list(plan.assumed),
        "sources": sources(plan),
    }


def _inputs(plan: Plan) -> dict[str, Any]:
    return {
        "model": plan.model.id,
        "gpu": plan.device.id,
        "precision": plan.storage.label,
        "kv_precision": plan.storage.cache.name,
        "engine": plan.engine.name,
        "tp": plan.tp,
        "prompt": plan.workload.prompt,
        "out": plan.workload.out,
        "batch": plan.workload.batch,
        "cached_prefix": plan.workload.cached_prefix,
        "memory_utilisation": None if plan.memory.budget is None else plan.memory.budget.utilisation,
    }


def _model(plan: Plan) -> dict[str, Any]:
    architecture, counts, inventory = plan.model.architecture, plan.counts, plan.inventory
    groups = cache_layers(architecture)
    parts = {str(part): n for part, n in counts.by_part.items() if part is not Part.MTP}
    return {
        "id": plan.model.id,
        "source": plan.model.origin,
        "architecture": {
            "family": architecture.family,
            "model_type": architecture.model_type,
            "hidden": architecture.hidden,
            "layers": len(architecture.layers),
            "encoder_layers": len(architecture.encoder),
            "vocabulary": architecture.vocabulary,
            "tied_lm_head": architecture.tied,
            "max_context": architecture.max_context,
            "not_counted": list(architecture.unread),
            "notes": list(architecture.notes),
        },
        "parameters": {
            "total": counts.total,
            "active": counts.active,
            "active_excluding_embedding": counts.active_without_embedding,
            "active_excluding_embedding_and_lm_head": counts.active_without_embedding_and_head,
            "decode_read": counts.decode_read,
            **parts,
            "mtp": counts.mtp,
            "bias": counts.bias,
            "buffers": counts.buffers,
        },
        "weight_formats": plan.storage.detail,
        "weight_bytes": inventory.stored_bytes,
        "mtp_bytes": inventory.draft_bytes,
        "decode_read_bytes": plan.decode_read_bytes,
        "kv_bytes_per_token": inventory.cache_bytes(sum(g.layers * (g.elements + g.indexer_elements) for g in groups)),
        "kv_bytes_per_token_beyond_window": inventory.cache_bytes(
            sum(g.layers * (g.elements + g.indexer_elements) for g in groups if g.window is None)
        ),
        "kv_layers": [
            {
                "kind": group.kind,
                "layers": group.layers,
                "bytes_per_token": inventory.cache_bytes(group.layers * group.elements),
                "window_tokens": group.window,
                "indexer_bytes_per_token": inventory.cache_bytes(group.layers * group.indexer_elements),
            }
            for group in groups
        ],
        "state_bytes_per_sequence": inventory.state_bytes,
    }


def _device(plan: Plan) -> dict[str, Any]:
    device, ceilings = plan.device, plan.ceilings
    return {
        "id": device.id,
        "name": device.name,
        "vendor": device.vendor,
        "kind": device.kind,
        "count": plan.tp,
        "bandwidth": _ceiling(ceilings.bandwidth, "bytes_per_s"),
        "peak": {kind: _ceiling(ceiling, "flop_per_s") for kind, ceiling in ceilings.compute.items()},
        "attention_peak": _ceiling(ceilings.attention, "flop_per_s"),
        "usable_memory": _ceiling(plan.usable, "bytes"),
        "link_bytes_per_s": None if plan.machine is None else plan.machine.link,
    }


def _ceiling(ceiling: Ceiling | None, unit: str) -> dict[str, Any] | None:
    if ceiling is None:
        return None
    return {unit: ceiling.value, "source": ceiling.because, "verified": ceiling.verified, "note": ceiling.note}


def _latency(latency: Latency | None) -> dict[str, Any] | None:
    if latency is None:
        return None
    return {"ttft_s": latency.ttft, "tpot_s": latency.tpot, "e2e_s": latency.e2e}


def _counted(plan: Plan) -> dict[str, Any]:
    assert plan.counted is not None
    floors = plan.counted
    return {
        **(_latency(floors.latency) or {}),
        "prefill": _step(floors.prefill),
        "first_decode_step": _step(floors.first_decode),
        "last_decode_step": _step(floors.last_decode),
    }


def _step(step: Step | None) -> dict[str, Any] | None:
    if step is None:
        return None
    work = step.work
    return {
        "time_s": step.time,
        "memory_time_s": step.memory_time,
        "compute_time_s": step.compute_time,
        "link_time_s": step.link_time,
        "limited_by": str(step.limit),
        "weight_bytes": work.weight_bytes,
        "kv_read_bytes": work.cache_read_bytes,
        "kv_written_bytes": work.cache_written_bytes,
        "embedding_row_bytes": work.row_bytes,
        "state_bytes": work.state_bytes,
        "total_bytes": work.bytes,
        "bytes_granted_to_cache": step.cached_bytes,
        "matrix_flop": sum(flop for _, flop in work.matrix_flop),
        "attention_flop": work.attention_flop,
        "scan_flop": work.scan_flop,
        "total_flop": work.flop,
    }


def _prediction(plan: Plan) -> dict[str, Any] | None:
    found = plan.prediction
    if found is None:
        return None
    return {
        "ttft_s": _interval(found.ttft),
        "tpot_s": None if found.tpot is None else _interval(found.tpot),
        "e2e_s": _interval(found.e2e),
        "calibration": {
            "engine": found.engine,
            "level": found.level,
            "runs": found.runs,
            "residual": found.residual,
        },
    }


def _interval(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


def _memory(plan: Plan) -> dict[str, Any]:
    memory = plan.memory
    return {
        "weights_bytes": memory.weights,
        "kv_bytes": memory.cache,
        "kv_bytes_per_request": memory.cache_per_request,
        "activation_bytes": memory.activations,
        "logits_bytes": memory.logits,
        "runtime_bytes": memory.runtime,
        "total_bytes": memory.total,
        "capacity_bytes": None if memory.budget is None else memory.budget.usable,
        "budget_bytes": None if memory.budget is None else memory.budget.bytes,
        "spare_bytes": memory.spare,
        "fits": memory.fits,
        "max_batch": memory.max_batch,
        "max_context": memory.max_context,
    }


def _limits(plan: Plan) -> dict[str, Any]:
    floors = plan.counted
    intensity = plan.intensity
    return {
        "prefill": None if floors is None else str(floors.prefill.limit),
        "decode": None if floors is None or floors.decode_limit is None else str(floors.decode_limit),
        "ridge_flop_per_byte": plan.textbook_input.ridge,
        "textbook_prefill_flop_per_byte": intensity.textbook_prefill,
        "textbook_decode_flop_per_byte": intensity.textbook_decode,
        "counted_prefill_flop_per_byte": intensity.counted_prefill,
        "counted_decode_flop_per_byte": intensity.counted_decode,
        "compute_bound_from_prompt_tokens": plan.turning_points.prompt,
        "compute_bound_from_batch": plan.turning_points.batch,
        "decode_share_of_e2e": plan.decode_share,
    }


def _measured(plan: Plan) -> dict[str, Any] | None:
    found = plan.measured
    if found is None:
        return None
    return {
        "ttft_s": found.measured.ttft,
        "tpot_s": found.measured.tpot,
        "e2e_s": found.e2e,
        "prefill_share_of_e2e": found.prefill_share,
        "prefill_over_decode": found.prefill_over_decode,
        "prefill": _rates(found.prefill),
        "decode": _rates(found.decode),
    }


def _rates(rates: Rates | None) -> dict[str, Any] | None:
    if rates is None:
        return None
    return {
        "tok_s": rates.tokens_per_second,
        "flop_per_s": rates.compute,
        "bytes_per_s": rates.bandwidth,
        "compute_share": rates.compute_share,
        "bandwidth_share": rates.bandwidth_share,
    }


def _absences(plan: Plan) -> list[str]:
    """Why a quantity is null."""
    found = []
    if plan.prediction is None:
        found.append(f"prediction is null: {NO_CALIBRATION}")
    if plan.memory.runtime is None:
        found.append(
            "runtime_bytes is null: what an engine keeps for itself is not calibrated yet, so it is not in the total"
        )
    if plan.workload.out == 1:
        found.append("tpot_s is null: one output token has no gap between tokens")
    if plan.textbook is None:
        found.append("floors.textbook is null: the device has no published peak or bandwidth for this number format")
    return found


def sources(plan: Plan) -> list[str]:
    """Where the figures of the plan were read."""
    ceilings = plan.ceilings
    used = (ceilings.bandwidth, *ceilings.compute.values(), ceilings.attention, plan.usable)
    read = [plan.model.origin, *(ceiling.because for ceiling in used if ceiling is not None)]
    return list(dict.fromkeys(read))
