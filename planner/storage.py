"""How a model's weights and cache are stored: as its checkpoint says, or as ``--precision X`` asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from planner.architecture import Weight
from planner.errors import PlanError
from planner.inventory import Inventory, build
from planner.models import Model
from planner.precision import FORMATS, Assignment, NumberFormat, Recipe, dtype_format, parse_cache_format, recipe

if TYPE_CHECKING:
    from planner.quantization import Quantization

Found = TypeVar("Found")
# Keys under which a config speaks of quantisation, at the top or inside a nested config.
_MENTIONS = ("quantization_config", "compression_config", "quantization")


@dataclass(frozen=True, eq=False)
class Storage:
    """Number formats of a model: ``assignment`` by tensor, ``rest`` for those that it leaves alone, ``cache``.

    ``label`` names the weights' format for people, ``detail`` says which tensors have it.
    """

    assignment: Assignment | None
    rest: NumberFormat
    cache: NumberFormat
    label: str
    detail: str
    warnings: tuple[str, ...] = ()

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat:
        """The format of a tensor."""
        found = None if self.assignment is None else self.assignment.format_of(full_name, weight)
        return self.rest if found is None else found


@lru_cache(maxsize=1024)
def storage_of(model: Model, *, precision: str | None = None, kv_precision: str | None = None) -> Storage:
    """The storage of a model; ``precision`` None means what the checkpoint holds, ``kv_precision`` the model's own.

    Raises:
        PlanError: unknown format, or a quantisation that cannot be read.
    """
    found = _from_checkpoint(model) if precision is None else _from_recipe(model, precision)
    return (
        found
        if kv_precision is None
        else replace(found, cache=_named("kv_precision", lambda: parse_cache_format(kv_precision)))
    )


def _from_checkpoint(model: Model) -> Storage:
    own = dtype_format(model.architecture.dtype)
    quantization = _quantization_of(model)
    rest = own or (FORMATS["bf16"] if quantization else FORMATS["fp32"])
    warnings = () if own else (_no_dtype(model, rest),)
    if quantization is None:
        return Storage(None, rest, rest, rest.name, f"every tensor in {rest.name}", warnings)
    cache = quantization.cache or rest
    return Storage(quantization, rest, cache, quantization.method, quantization.describe(), warnings)


def _quantization_of(model: Model) -> Quantization | None:
    """What the files say of quantisation; most say nothing, and then the readers of its dialects stay unloaded."""
    nested = (value for value in model.raw.values() if isinstance(value, dict))
    if model.quantization_file is None and not any(key in raw for raw in (model.raw, *nested) for key in _MENTIONS):
        return None
    from planner.quantization import read_quantization

    return read_quantization(model.raw, model.quantization_file, source=model.origin)


def _no_dtype(model: Model, rest: NumberFormat) -> str:
    return (
        f"{model.origin} names no dtype (or torch_dtype): tensors outside a quantisation are taken as {rest.name}; "
        "give --precision for another format"
    )


def _from_recipe(model: Model, precision: str) -> Storage:
    found = _named("precision", lambda: recipe(precision, model.architecture))
    warnings: tuple[str, ...] = ()
    if found.approximate:
        warnings = (f"{found.name}: which tensors get which type differs by version of the converter; sizes are close",)
    rest = found.rest if isinstance(found, Recipe) else FORMATS["fp16"]
    cache = rest if rest.bits >= 16 else FORMATS["fp16"]
    return Storage(found, rest, cache, found.name, found.describe(), warnings)


def _named(option: str, read: Callable[[], Found]) -> Found:
    """What ``read`` gives, its error naming the option that was wrong."""
    try:
        return read()
    except PlanError as error:
        raise PlanError(str(error), field=option) from None


@lru_cache(maxsize=1024)
def inventory_of(model: Model, storage: Storage) -> Inventory:
    """The inventory of a model stored so."""
    return build(
        model.architecture,
        storage.format_of,
        by_layer=storage.assignment is not None and storage.assignment.by_layer,
        cache_format=storage.cache,
        convolution_bytes=int(storage.cache.bits) // 8 if storage.cache.bits >= 16 else 2,
    )
