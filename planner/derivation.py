"""Derivations: a plan's figures as trees of quantities, formulas with their numbers put in, origins at the leaves.

The trees are made from the same formulas and the same step work that the plan was made from; a test compares every
root with the plan's own figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner import formulas
from planner.ceilings import Ceiling
from planner.counting import cache_layers
from planner.errors import PlanError, did_you_mean
from planner.inventory import Operation, Stage
from planner.planning import Plan
from planner.quantity import Quantity, Status, combine, derive
from planner.roofline import Step


def explain(plan: Plan, topic: str) -> list[Quantity]:
    """The trees of a topic: ``tpot``, ``ttft``, ``e2e``, ``kv``, ``weights``, ``params`` or ``memory``.

    Raises:
        PlanError: unknown topic, or one that this plan has no figure for.
    """
    builder = TOPICS.get(topic)
    if builder is None:
        hint = did_you_mean(topic, TOPICS)
        raise PlanError(
            f"nothing called {topic!r} to explain{hint or '; known are ' + ', '.join(TOPICS)}", field="topic"
        )
    found = list(builder(plan))
    if not found:
        raise PlanError(f"{plan.device.id} has no ceiling that a {topic} follows from", field="topic")
    return found


def _ttft(plan: Plan) -> Iterator[Quantity]:
    given, workload = plan.textbook_input, plan.workload
    peak = plan.ceilings.textbook_peak
    if peak is not None:
        new = workload.prompt - workload.cached_prefix
        because = "batch · (prompt − cached prefix)" if workload.cached_prefix else "batch · prompt"
        tokens = combine("prompt tokens", workload.batch * new, "token", because, *_workload(plan))
        work = derive(
            "textbook prefill work",
            formulas.textbook_prefill_work,
            parameters=_config("active parameters", given.parameters, "parameter", plan),
            tokens=tokens,
        )
        rate = _all_devices(plan, _peak(plan, peak, plan.inventory.main.multiply))
        yield derive("TTFT, textbook", formulas.compute_time, work=work, peak=rate)
    if plan.counted is not None:
        yield _step("TTFT, counted floor", plan, plan.counted.prefill)


def _tpot(plan: Plan) -> Iterator[Quantity]:
    if plan.workload.out == 1:
        raise PlanError(
            "one output token has no TPOT: there is no gap between tokens; give --out 2 or more", field="out"
        )
    bandwidth = plan.ceilings.textbook_bandwidth
    if bandwidth is not None:
        yield _textbook_tpot(plan, bandwidth)
    floors = plan.counted
    if floors is None or floors.first_decode is None or floors.last_decode is None or floors.latency.tpot is None:
        return
    gaps = plan.workload.out - 1
    first = _step("first decode step", plan, floors.first_decode)
    last = _step("last decode step", plan, floors.last_decode)
    yield combine(
        "TPOT, counted floor",
        floors.latency.tpot,
        "s",
        f"mean over the {gaps:,} decode steps, each at its own context, from the first to the last",
        first,
        last,
    )


def _textbook_tpot(plan: Plan, bandwidth: Ceiling) -> Quantity:
    given = plan.textbook_input
    weights = derive(
        "textbook weight bytes",
        formulas.textbook_weight_bytes,
        parameters=_config("active parameters", given.parameters, "parameter", plan),
        width=Quantity("bytes per parameter", given.width, "B", plan.inventory.main.name, Status.CONFIG),
    )
    rate = _all_devices(plan, _bandwidth(plan, bandwidth))
    return derive("TPOT, textbook", formulas.memory_time, traffic=weights, bandwidth=rate)


def _e2e(plan: Plan) -> Iterator[Quantity]:
    if plan.workload.out == 1:
        yield from _ttft(plan)
        return
    gaps = Quantity("gaps between output tokens", plan.workload.out - 1, "token", "output tokens − 1", Status.GIVEN)
    steps = {tree.name.replace("TPOT", "E2E"): tree for tree in _tpot(plan)}
    for first in _ttft(plan):
        name = first.name.replace("TTFT", "E2E")
        if name in steps:
            yield derive(name, formulas.end_to_end_time, first_token=first, per_token=steps[name], gaps=gaps)


def _step(name: str, plan: Plan, step: Step) -> Quantity:
    """A counted step: the largest of its times, each with its bytes or work."""
    parts = [_memory_time(plan, step)]
    if step.compute_time:
        parts.append(_compute_time(plan, step))
    if step.link_time:
        parts.append(Quantity("link time", step.link_time, "s", "bytes exchanged / link rate, one direction"))
    return combine(name, step.time, "s", f"max of the times below, limited by {step.limit}", *parts)


def _memory_time(plan: Plan, step: Step) -> Quantity:
    work, ceiling = step.work, plan.ceilings.bandwidth
    assert ceiling is not None
    rows = (
        ("weights read", work.weight_bytes, "ledger: plan explain weights"),
        ("KV cache read", work.cache_read_bytes, "ledger: plan explain kv"),
        ("KV cache written", work.cache_written_bytes, "one row per token and layer"),
        ("embedding rows read", work.row_bytes, "one row of each lookup table per token"),
        ("state read and written", work.state_bytes, "constant per sequence"),
        ("bytes that the last-level cache may hold", -step.cached_bytes, "granted to every engine"),
    )
    terms = [Quantity(name, size, "B", because) for name, size, because in rows if size]
    total = combine("bytes that must move", work.bytes - step.cached_bytes, "B", "sum of the terms below", *terms)
    if plan.tp > 1:
        total = combine("bytes per device", total.value / plan.tp, "B", f"divided by {plan.tp} devices", total)
    return derive("memory time", formulas.memory_time, traffic=total, bandwidth=_bandwidth(plan, ceiling))


def _compute_time(plan: Plan, step: Step) -> Quantity:
    terms = []
    for kind, flop in step.work.matrix_flop:
        ceiling = plan.ceilings.compute[kind]
        if ceiling is not None:
            work = Quantity(f"matrix work in {kind}", flop, "FLOP", "2 · multiplied parameters · tokens")
            terms.append(derive(f"{kind} matrices", formulas.compute_time, work=work, peak=_peak(plan, ceiling, kind)))
    attention = step.work.attention_flop + step.work.scan_flop
    if attention and plan.ceilings.attention is not None:
        work = Quantity(
            "attention and scans", attention, "FLOP", "2 · heads · (key_dim + value_dim) · pairs, per layer"
        )
        peak = _peak(plan, plan.ceilings.attention, plan.inventory.cache_format.fastest)
        terms.append(derive("attention", formulas.compute_time, work=work, peak=peak))
    shared = "" if plan.tp == 1 else f", divided by {plan.tp} devices"
    return combine("compute time", step.compute_time, "s", f"sum of the times below{shared}", *terms)


def _kv(plan: Plan) -> Iterator[Quantity]:
    inventory, cache = plan.inventory, plan.storage.cache
    groups = cache_layers(plan.model.architecture)
    per_token = [
        Quantity(
            f"{group.layers} × {group.kind}"
            + (f", at most {group.window:,} tokens" if group.window is not None else ""),
            inventory.cache_bytes(group.layers * (group.elements + group.indexer_elements)),
            "B",
            f"{group.layers} layers · {group.elements + group.indexer_elements:,} elements · "
            f"{float(cache.bits_per_weight):g} bit ({cache.name})",
            Status.CONFIG,
        )
        for group in groups
    ]
    yield combine("KV cache per token", sum(q.value for q in per_token), "B", "sum over layer kinds", *per_token)
    if inventory.state_bytes:
        yield Quantity(
            "state per sequence", inventory.state_bytes, "B", "constant, whatever the context", Status.CONFIG
        )
    yield combine(
        "KV cache and state of the whole batch, per device",
        plan.memory.cache,
        "B",
        f"{plan.workload.batch:,} × {plan.workload.context:,} tokens",
        Quantity("per request", plan.memory.cache_per_request, "B", "windows hold at most their own length"),
    )


def _weights(plan: Plan) -> Iterator[Quantity]:
    yield _ledger(plan, "weights stored", "B", lambda op: op.stored_bytes)
    terms = [
        Quantity("read whole", plan.inventory.decode_bytes, "B", "every matrix, norm and bias, the head once"),
        Quantity(
            "experts",
            plan.decode_read_bytes - plan.inventory.decode_bytes,
            "B",
            "active experts of one token, the least that any routing reads",
        ),
    ]
    yield combine(
        "weights read by a decode step",
        plan.decode_read_bytes,
        "B",
        "the embedding table is not read, one row of it is",
        *(term for term in terms if term.value),
    )


def _params(plan: Plan) -> Iterator[Quantity]:
    yield _ledger(plan, "parameters", "parameter", lambda op: op.stored_parameters)
    counts = plan.counts
    if counts.active != counts.total:
        yield _config("active parameters per token, embedding and head included", counts.active, "parameter", plan)
        yield _config("the same without the input embedding", counts.active_without_embedding, "parameter", plan)
        yield _config(
            "the same without embedding and head", counts.active_without_embedding_and_head, "parameter", plan
        )


def _ledger(plan: Plan, name: str, unit: str, value: Callable[[Operation], int]) -> Quantity:
    """Every kind of tensor once, whatever layers hold it; MTP modules apart."""
    rows: dict[tuple[object, ...], list[Operation]] = {}
    for op in plan.inventory.operations:
        if op.stage is not Stage.DRAFT and value(op):
            rows.setdefault((op.part, op.name, op.shape, op.format.name, op.copies, op.is_bias), []).append(op)
    terms = [
        Quantity(
            f"{same[0].part}: {same[0].name}{' (bias)' if same[0].is_bias else ''}",
            sum(map(value, same)),
            unit,
            _shape_words(same),
            Status.CONFIG,
        )
        for same in rows.values()
    ]
    return combine(name, sum(term.value for term in terms), unit, "sum over the tensors", *terms)


def _shape_words(same: list[Operation]) -> str:
    """Layers × experts of the shape, and its number format."""
    op, layers = same[0], sum(op.layers for op in same)
    shape = " × ".join(f"{side:,}" for side in op.shape)
    times = " × ".join(f"{n:,}" for n in (layers, op.copies) if n > 1)
    return f"{times + ' of ' if times else ''}{shape} in {op.format.name}"


def _memory(plan: Plan) -> Iterator[Quantity]:
    memory = plan.memory
    rows = (
        ("weights", memory.weights, "plan explain weights"),
        ("KV cache and state", memory.cache, "plan explain kv"),
        ("activations", memory.activations, "2 · hidden + widest block input projections, per token of a step"),
        ("logits", memory.logits, "batch · vocabulary · 4 bytes"),
    )
    terms = [Quantity(name, size, "B", because) for name, size, because in rows]
    yield combine("memory needed per device", memory.total, "B", "sum; the runtime's own share is not counted", *terms)
    if memory.budget is not None and plan.usable is not None:
        usable = Quantity("usable memory", memory.budget.usable, "B", plan.usable.because, _status(plan.usable))
        because = f"{memory.budget.utilisation:g} of the usable memory ({plan.engine.source})"
        yield combine("memory that may be used", memory.budget.bytes, "B", because, usable)


def _workload(plan: Plan) -> list[Quantity]:
    workload = plan.workload
    found = [
        Quantity("batch", workload.batch, "1", f"--batch {workload.batch}", Status.GIVEN),
        Quantity("prompt", workload.prompt, "token", f"--prompt {workload.prompt}", Status.GIVEN),
    ]
    if workload.cached_prefix:
        cached = f"--cached-prefix {workload.cached_prefix}"
        found.append(Quantity("cached prefix", workload.cached_prefix, "token", cached, Status.GIVEN))
    return found


def _all_devices(plan: Plan, rate: Quantity) -> Quantity:
    """The rate of all devices together."""
    if plan.tp == 1:
        return rate
    return combine(f"{plan.tp} devices together", rate.value * plan.tp, rate.unit, f"times {plan.tp} devices", rate)


def _config(name: str, value: float, unit: str, plan: Plan) -> Quantity:
    return Quantity(name, value, unit, f"counted from {plan.model.origin}", Status.CONFIG)


def _bandwidth(plan: Plan, ceiling: Ceiling) -> Quantity:
    return Quantity(f"{plan.device.id} bandwidth", ceiling.value, "B/s", ceiling.because, _status(ceiling))


def _peak(plan: Plan, ceiling: Ceiling, kind: str) -> Quantity:
    return Quantity(f"{plan.device.id} {kind} peak, dense", ceiling.value, "FLOP/s", ceiling.because, _status(ceiling))


def _status(ceiling: Ceiling) -> Status:
    return Status.CATALOGUE if ceiling.verified else Status.UNVERIFIED


TOPICS: dict[str, Callable[[Plan], Iterator[Quantity]]] = {
    "ttft": _ttft,
    "tpot": _tpot,
    "e2e": _e2e,
    "kv": _kv,
    "weights": _weights,
    "params": _params,
    "memory": _memory,
}
