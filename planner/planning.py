"""One answer: a model on a device, in a number format, for a workload.

``plan`` assembles what the lower modules compute and adds the warnings that a careful colleague would give. It does no
arithmetic of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from planner.ceilings import Ceiling, usable_memory
from planner.counting import ParameterCounts, count_parameters
from planner.engines import Engine, default_engine, find_engine
from planner.errors import PlanError
from planner.hardware import Device, find_device
from planner.inventory import Inventory, halved_weights
from planner.machine import Ceilings, ceilings_of, machine_of
from planner.measurement import Measured, Reached, reached
from planner.memory import STEP_TOKENS, Budget, Memory, memory_of
from planner.models import Model, find_model
from planner.prediction import Prediction
from planner.roofline import (
    CountedFloors,
    Latency,
    Machine,
    TextbookInput,
    arithmetic_used,
    counted_floors,
    faster,
    textbook,
    turning_batch,
    turning_prompt,
)
from planner.sharding import check_degree, message_bytes
from planner.storage import Storage, inventory_of, storage_of
from planner.work import least_expert_bytes
from planner.workload import Workload


@dataclass(frozen=True)
class Plan:
    """Everything that is known about one configuration; times in seconds, sizes in bytes.

    ``textbook`` and ``counted`` are None where the device has no published ceiling for them (see ``warnings``).
    ``prediction`` is None while no calibration covers the case.
    """

    model: Model
    device: Device
    workload: Workload
    storage: Storage
    engine: Engine
    tp: int
    counts: ParameterCounts
    inventory: Inventory
    ceilings: Ceilings
    machine: Machine | None
    usable: Ceiling | None
    memory: Memory
    textbook_input: TextbookInput
    textbook: Latency | None
    counted: CountedFloors | None
    prediction: Prediction | None
    measured: Reached | None
    chosen: frozenset[str]
    notes: tuple[str, ...] = ()

    @cached_property
    def turning_points(self) -> TurningPoints:
        """Where prefill and decode change sides."""
        if self.machine is None or not self.machine.has_compute_floor:
            return TurningPoints(None, None)
        context = self.workload.prompt + self.workload.out // 2
        return TurningPoints(
            prompt=turning_prompt(self.inventory, self.machine, batch=self.workload.batch, limit=2**20),
            batch=turning_batch(self.inventory, self.machine, context=context),
        )

    @cached_property
    def what_if(self) -> tuple[WhatIf, ...]:
        """How much the counted E2E floor would change with other ceilings, weights or prompts."""
        if self.machine is None or self.counted is None:
            return ()
        return tuple(_what_if(self, self.machine, self.counted.latency.e2e))

    @property
    def decode_read_bytes(self) -> int:
        """Weight bytes that a decode step of one token reads."""
        return self.inventory.decode_bytes + least_expert_bytes(self.inventory)

    @property
    def decode_share(self) -> float | None:
        """Share of the counted E2E floor that is spent in decode."""
        if self.counted is None:
            return None
        return 1 - self.counted.latency.ttft / self.counted.latency.e2e

    @property
    def intensity(self) -> Intensity:
        """Arithmetic per byte of both phases, by the whiteboard and by the ledger."""
        width, batch = self.textbook_input.width, self.workload.batch
        tokens = batch * (self.workload.prompt - self.workload.cached_prefix)
        floors = self.counted
        decode = None if floors is None else floors.last_decode
        return Intensity(
            textbook_prefill=2 * tokens / width,
            textbook_decode=2 * batch / width,
            counted_prefill=None if floors is None else floors.prefill.work.flop / floors.prefill.work.bytes,
            counted_decode=None if decode is None else decode.work.flop / decode.work.bytes,
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What a careful colleague would say about this plan, the gravest first."""
        return tuple(_warnings(self))

    @cached_property
    def assumed(self) -> tuple[str, ...]:
        """What the user did not choose and the program did."""
        return tuple(_assumed(self))


class Intensity(NamedTuple):
    """FLOP per byte; the counted decode figure is that of the last step."""

    textbook_prefill: float
    textbook_decode: float
    counted_prefill: float | None
    counted_decode: float | None


class TurningPoints(NamedTuple):
    """The shortest prompt whose prefill is limited by compute, and the smallest batch whose decode is (None: never)."""

    prompt: int | None
    batch: int | None


class WhatIf(NamedTuple):
    """A change and the counted E2E floor under it, in seconds."""

    change: str
    e2e: float
    relative: float


def plan(
    model: Model | str,
    device: Device | str,
    workload: Workload | None = None,
    *,
    precision: str | None = None,
    kv_precision: str | None = None,
    engine: str | None = None,
    tp: int = 1,
    memory_utilisation: float | None = None,
    measured: Measured | None = None,
    notes: tuple[str, ...] = (),
) -> Plan:
    """Plan ``workload`` on ``tp`` devices under tensor parallelism.

    ``precision``: number format of the weights, the checkpoint's own by default. ``kv_precision``: that of the cache.
    ``memory_utilisation``: share of the usable memory that may be filled, the engine's default otherwise. ``notes``
    are handed through to ``assumed``.

    Raises:
        PlanError: unknown model, device, format or engine, or values that do not go together.
    """
    model = find_model(model) if isinstance(model, str) else model
    device = find_device(device) if isinstance(device, str) else device
    workload = workload or Workload()
    running = default_engine(device.kind) if engine is None else find_engine(engine)
    check_degree(model.architecture, tp)
    storage = storage_of(model, precision=precision, kv_precision=kv_precision)
    inventory = inventory_of(model, storage)
    ceilings = ceilings_of(device, arithmetic_used(inventory), inventory.main.multiply, storage.cache.fastest)
    machine = machine_of(device, ceilings, devices=tp, message_bytes=message_bytes(model.architecture))
    usable = usable_memory(device)
    counts = count_parameters(model.architecture)
    given = TextbookInput(
        parameters=counts.active,
        width=inventory.textbook_width,
        peak=None if ceilings.textbook_peak is None else ceilings.textbook_peak.value,
        bandwidth=None if ceilings.textbook_bandwidth is None else ceilings.textbook_bandwidth.value,
    )
    size = {"batch": workload.batch, "prompt": workload.prompt, "out": workload.out}
    budget = None
    if usable is not None:
        budget = Budget(int(usable.value), _utilisation(memory_utilisation, running))
    return Plan(
        model=model,
        device=device,
        workload=workload,
        storage=storage,
        engine=running,
        tp=tp,
        counts=counts,
        inventory=inventory,
        ceilings=ceilings,
        machine=machine,
        usable=usable,
        memory=memory_of(model.architecture, inventory, **size, degree=tp, budget=budget),
        textbook_input=given,
        textbook=textbook(given, **size | {"prompt": workload.prompt - workload.cached_prefix}, devices=tp),
        counted=None if machine is None else _counted(inventory, machine, workload),
        prediction=None,
        measured=None if measured is None else reached(measured, given, workload, devices=tp),
        chosen=frozenset(
            name
            for name, value in (("engine", engine), ("mem-util", memory_utilisation), ("kv-precision", kv_precision))
            if value is not None
        ),
        notes=notes,
    )


def _counted(inventory: Inventory, machine: Machine, workload: Workload) -> CountedFloors:
    return counted_floors(
        inventory,
        machine,
        batch=workload.batch,
        prompt=workload.prompt,
        out=workload.out,
        cached=workload.cached_prefix,
    )


def _utilisation(asked: float | None, engine: Engine) -> float:
    if asked is None:
        return engine.memory_utilisation
    if not 0 < asked <= 1:
        raise PlanError(f"mem-util is {asked:g}; expected a share above 0 and up to 1, such as 0.9", field="mem-util")
    return asked


def _what_if(answer: Plan, machine: Machine, now: float) -> Iterator[WhatIf]:
    workload = answer.workload
    half_prompt = max(1, workload.prompt // 2)
    shorter = replace(workload, prompt=half_prompt, cached_prefix=min(workload.cached_prefix, half_prompt - 1))
    cases = (
        ("2 × bandwidth", answer.inventory, faster(machine, bandwidth=2), workload),
        ("2 × compute", answer.inventory, faster(machine, compute=2), workload),
        ("half the weight bytes", halved_weights(answer.inventory), machine, workload),
        ("half the prompt", answer.inventory, machine, shorter),
    )
    for change, inventory, changed, asked in cases:
        e2e = _counted(inventory, changed, asked).latency.e2e
        yield WhatIf(change, e2e, e2e / now - 1)


def _warnings(answer: Plan) -> Iterator[str]:
    yield from _memory_warnings(answer)
    yield from _model_warnings(answer)
    yield from _ceiling_warnings(answer)
    yield from _measured_warnings(answer)


def _memory_warnings(answer: Plan) -> Iterator[str]:
    memory, workload = answer.memory, answer.workload
    if memory.budget is None:
        yield f"{answer.device.id} has no memory size, so whether the model fits is not known"
    limit = answer.model.architecture.max_context
    if limit is not None and workload.context > limit:
        yield (
            f"{workload.prompt:,} + {workload.out:,} tokens are more than the {limit:,} that {answer.model.id} was "
            "made for (max_position_embeddings)"
        )


def _model_warnings(answer: Plan) -> Iterator[str]:
    for part in answer.model.architecture.unread:
        yield f"not counted and not in the total: {part}"
    yield from answer.storage.warnings
    if answer.inventory.routed and answer.workload.batch > 1:
        yield (
            "mixture of experts: the counted floor assumes that all tokens of a step choose the same experts, the "
            "least that any routing can read"
        )


def _ceiling_warnings(answer: Plan) -> Iterator[str]:
    ceilings = answer.ceilings
    yield from ceilings.fallbacks
    if answer.machine is None:
        yield f"{answer.device.id} has no memory bandwidth, so there are no floors"
    elif not answer.machine.has_compute_floor:
        yield (
            f"{answer.device.id} has no compute ceiling to rely on for {answer.inventory.main.name}, so the counted "
            "floor rests on memory bandwidth alone"
        )
    used = {"bandwidth": ceilings.bandwidth, "attention peak": ceilings.attention, "usable memory": answer.usable}
    used |= {f"{name} peak": ceiling for name, ceiling in ceilings.compute.items()}
    for name, ceiling in used.items():
        if ceiling is not None and not ceiling.verified:
            yield f"the {name} of {answer.device.id} is unverified ({ceiling.because})"
        if ceiling is not None and ceiling.note:
            yield f"the {name} of {answer.device.id}: {ceiling.note}"
    if answer.tp > 1 and answer.machine is not None and answer.machine.link is None:
        yield f"the catalogue has no link of {answer.device.id}, so the floor leaves out what the devices exchange"
    if answer.tp > answer.device.devices_per_node:
        yield (
            f"tp {answer.tp} spans hosts of {answer.device.devices_per_node} devices; the floor takes the link inside "
            "a host for all of them"
        )


def _measured_warnings(answer: Plan) -> Iterator[str]:
    if answer.measured is None:
        return
    for phase, rates in (("prefill", answer.measured.prefill), ("decode", answer.measured.decode)):
        for name, share in (
            () if rates is None else (("compute", rates.compute_share), ("bandwidth", rates.bandwidth_share))
        ):
            if share is not None and share > 1:
                yield (
                    f"the measured {phase} reaches {share:.1%} of the {name} ceiling: nothing runs above its ceiling, "
                    "so the ceiling is wrong (how was it measured?), or the model, format or device is another one"
                )


def _assumed(answer: Plan) -> Iterator[str]:
    if answer.model.note:
        yield answer.model.note
    yield from answer.notes
    if "engine" not in answer.chosen:
        yield f"engine {answer.engine.name}"
    if "mem-util" not in answer.chosen and answer.memory.budget is not None:
        yield f"{answer.memory.budget.utilisation:g} of the usable memory ({answer.engine.source})"
    if "kv-precision" not in answer.chosen:
        yield f"KV cache in {answer.storage.cache.name}"
    if answer.workload.batch * answer.workload.prompt > STEP_TOKENS:
        yield f"prefill in steps of at most {STEP_TOKENS:,} tokens (activation memory)"
    yield from answer.model.architecture.assumed
