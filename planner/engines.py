"""Serving engines as far as memory is concerned: how much of a device they claim by default."""

from __future__ import annotations

from dataclasses import dataclass

from planner.errors import PlanError, did_you_mean


@dataclass(frozen=True, slots=True)
class Engine:
    """``memory_utilisation``: the share of a device's usable memory that the engine takes by default."""

    name: str
    memory_utilisation: float
    source: str


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("vllm", 0.9, "vLLM's default gpu_memory_utilization"),
        Engine("sglang", 0.9, "SGLang's mem_fraction_static, near 0.9 on large devices"),
        Engine("tensorrt-llm", 1.0, "no default share of the whole device"),
        Engine("llama.cpp", 1.0, "allocates what it needs"),
        Engine("mlx-lm", 1.0, "allocates what it needs"),
        Engine("transformers", 1.0, "allocates what it needs"),
        Engine("generic", 1.0, "no engine assumed"),
    )
}


def find_engine(name: str) -> Engine:
    """The engine called ``name``.

    Raises:
        PlanError: unknown; lists the known ones.
    """
    engine = ENGINES.get(name.lower())
    if engine is None:
        hint = did_you_mean(name, ENGINES)
        raise PlanError(f"engine {name!r} is not known{hint or '; known are ' + ', '.join(ENGINES)}", field="engine")
    return engine


def default_engine(kind: str) -> Engine:
    """The engine taken for a device of ``kind`` when none is named."""
    served = ("datacenter gpu", "workstation gpu", "consumer gpu", "custom", "accelerator", "tpu")
    return ENGINES["vllm"] if kind in served else ENGINES["llama.cpp"]
