"""The catalogue for people: lists of models and devices, and everything that is known about one of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from tabulate import tabulate

from planner import units
from planner.counting import cache_layers, count_parameters, layer_counts, state_elements
from planner.hardware import Device, Figure
from planner.models import Model
from planner.render.flat import rows_as_csv

ABSENT = "–"
UNVERIFIED = "*"

Row = dict[str, Any]


def listing(rows: list[Row], form: str) -> str:
    """Rows as ``table``, ``md``, ``csv`` or ``json``; absent values are a dash for people, null or empty in data."""
    if form == "json":
        return json.dumps(rows, indent=2, ensure_ascii=False)
    if form == "csv":
        return rows_as_csv(rows)
    cells = [{name: ABSENT if value is None else value for name, value in row.items()} for row in rows]
    text: str = tabulate(cells, headers="keys", tablefmt="github" if form == "md" else "plain", disable_numparse=True)
    return "\n".join(line.rstrip() for line in text.splitlines())


def device_row(device: Device, *, plain: bool) -> Row:
    """One line of the device list; ``plain`` gives base units instead of text for people."""
    memory = device.memory
    columns = {
        "memory": (None if memory is None else memory.capacity, "B"),
        "bandwidth": (device.bandwidth, "B/s"),
        "bf16": (device.peak.bf16 or device.peak.fp16_acc32, "FLOP/s"),
        "fp8": (device.peak.fp8, "FLOP/s"),
        "int8": (device.peak.int8, "FLOP/s"),
        "power": (device.tdp, "W"),
    }
    row: Row = {"id": device.id, "name": device.name}
    for name, (figure, unit) in columns.items():
        if plain:
            row[f"{name}_{_PLAIN[unit]}"] = None if figure is None else figure.value
        elif figure is None:
            row[name] = None
        else:
            shown = units.binary(figure.value) if unit == "B" else units.show(figure.value, unit)
            row[name] = shown + (UNVERIFIED if figure.basis == "recalled" else "")
    row["released"] = None if device.release_year is None else device.release_year.value
    return row


_PLAIN = {"B": "bytes", "B/s": "bytes_per_s", "FLOP/s": "flop_per_s", "W": "watts"}


def model_row(model: Model, *, plain: bool) -> Row:
    """One line of the model list."""
    architecture, counts = model.architecture, count_parameters(model.architecture)
    per_token = 2 * sum(group.layers * group.elements for group in cache_layers(architecture))
    row: Row = {"id": model.id}
    if plain:
        return row | {
            "parameters": counts.total,
            "active": counts.active,
            "layers": len(architecture.layers),
            "kv_bytes_per_token_16_bit": per_token,
            "max_context": architecture.max_context,
            "family": architecture.family,
        }
    return row | {
        "parameters": f"{counts.total:,}",
        "active": None if counts.active == counts.total else f"{counts.active:,}",
        "layers": len(architecture.layers),
        "KV per token (16 bit)": units.show(per_token, "B") if per_token else None,
        "context": None if architecture.max_context is None else f"{architecture.max_context:,}",
        "family": architecture.family,
    }


def show_device(device: Device) -> str:
    """Every figure of a device with its basis and sources; other values that sources print stand beside it."""
    lines = [f"{device.id}: {device.name}, {device.vendor}, {device.kind}, {device.architecture or ''}".rstrip(", ")]
    if device.aliases:
        lines.append(f"also called {', '.join(device.aliases)}")
    if device.notes:
        lines.append(device.notes)
    lines += ["", *_figures(device, "")]
    if device.measured:
        lines += ["", "measured:", *(f"  {_measured(entry)}" for entry in device.measured)]
    if device.prices:
        lines += ["", "prices per device:", *(f"  {_price(price)}" for price in device.prices)]
    lines += ["", "sources:"]
    lines += [
        f"  {key}: {', '.join(part for part in (source.title, source.address, source.date) if part)}"
        for key, source in device.sources.items()
    ]
    return "\n".join(lines)


_UNITS = {
    "capacity": "B",
    "usable": "B",
    "nominal": "B",
    "bandwidth": "B/s",
    "last_level_cache": "B",
    "boost_clock": "Hz",
    "peak_clock": "Hz",
    "tdp": "W",
    "rate": "B/s",
    "per_link": "B/s",
    "sparse": "FLOP/s",
}


def _figures(record: Any, prefix: str) -> Iterator[str]:
    for name in getattr(record, "_fields", None) or [field.name for field in fields(record)]:
        value = getattr(record, name)
        path = f"{prefix}{name}"
        if isinstance(value, Figure):
            if value != Figure(True):
                yield from _figure(path, value, "FLOP/s" if prefix == "peak." else _UNITS.get(name, ""))
        elif is_dataclass(value):
            yield from _figures(value, f"{path}.")
        elif isinstance(value, dict) and name == "interconnect":
            for key, link in value.items():
                yield from _figures(link, f"{path}.{key}.")


def _figure(path: str, figure: Any, unit: str) -> Iterator[str]:
    text = f"  {path:<28} {_shown(figure.value, unit)}"
    if getattr(figure, "sparse", None) is not None:
        text += f" dense, {_shown(figure.sparse, unit)} sparse"
    basis = "UNVERIFIED (recalled)" if figure.basis == "recalled" else figure.basis
    text += f"  [{basis}: {', '.join(figure.source)}]" if figure.source else f"  [{basis}]"
    yield text + (f"  {figure.note}" if figure.note else "")
    for other in figure.also:
        note = f", {other.note}" if other.note else ""
        yield f"  {'':<28} also {_shown(other.value, unit)} ({', '.join(other.source)}{note})"


def _shown(value: Any, unit: str) -> str:
    if isinstance(value, bool) or not unit:
        return str(value)
    return units.exact(value, unit)


def _measured(entry: Any) -> str:
    unit = "FLOP/s" if entry.metric == "matmul" else "B/s"
    what = f"{entry.metric} {entry.format}" if entry.format else entry.metric
    trust = "" if entry.trusted else "  (not trusted)"
    return f"{what}: {units.show(entry.value, unit, 4)}, {entry.method} [{', '.join(entry.source)}]{trust}"


def _price(price: Any) -> str:
    rate = f"{price.value:g}" if price.value is not None else f"{price.low:g}–{price.high:g}"
    note = f", {price.note}" if price.note else ""
    return f"{rate} USD/h, {price.kind}, {price.date} [{', '.join(price.source)}]{note}"


def show_model(model: Model, source: Mapping[str, Any] | None = None) -> str:
    """What a model is made of: parameters by part, layers by kind, cache and state; ``source``: where it was read."""
    architecture, counts = model.architecture, count_parameters(model.architecture)
    lines = [
        f"{model.id}: {architecture.model_type}, read by the family {architecture.family} from {model.origin}",
        "",
        f"  {'parameters':<28} {counts.total:,}",
        *(f"    {part:<26} {n:,}" for part, n in counts.by_part.items() if n),
        f"    {'(of these biases)':<26} {counts.bias:,}",
        f"  {'active per token':<28} {counts.active:,} with embedding and head",
        f"  {'':<28} {counts.active_without_embedding:,} without the input embedding",
        f"  {'':<28} {counts.active_without_embedding_and_head:,} without embedding and head",
    ]
    if counts.mtp:
        lines.append(f"  {'MTP module, apart':<28} {counts.mtp:,}")
    if counts.buffers:
        lines.append(f"  {'buffers, apart':<28} {counts.buffers:,}")
    lines += [f"  {'LM head':<28} {'tied to the embedding' if architecture.tied else 'its own matrix'}"]
    for layer, count in layer_counts(architecture.layers):
        blocks = ", ".join(_block(block) for block in layer.blocks)
        lines.append(f"  {f'{count} × layer':<28} {blocks}")
    for group in cache_layers(architecture):
        size = units.show(2 * group.layers * group.elements, "B")
        window = "" if group.window is None else f", at most {group.window:,} tokens"
        lines.append(f"  {'KV cache, 16 bit':<28} {group.layers} × {group.kind}: {size} per token{window}")
    state = state_elements(architecture)
    if state.recurrent_bytes or state.convolution:
        size = units.show(state.recurrent_bytes + 2 * state.convolution, "B")
        lines.append(f"  {'state per sequence':<28} {size} (recurrent part in its own format, convolution in 16 bit)")
    lines += [f"  {'NOT COUNTED':<28} {part}" for part in architecture.unread]
    lines += [f"  {'note':<28} {note}" for note in architecture.notes]
    lines += [f"  {'assumed':<28} {text}" for text in architecture.assumed]
    return "\n".join([*lines, *_provenance(source or {})])


def _provenance(source: Mapping[str, Any]) -> Iterator[str]:
    read = source.get("read", {})
    if read:
        said = ", ".join(str(read[key]) for key in ("title", "address", "date", "note") if read.get(key))
        yield f"  {'read from':<28} {said}"
    for key, word in (("published", "published"), ("counted", "counted elsewhere")):
        if key in source:
            yield f"  {word:<28} {source[key]['parameters']:,} parameters ({source[key]['source']})"
    for difference in source.get("published", {}).get("difference", ()):
        yield f"  {'':<28} of these {difference['parameters']:,} {difference['what']}"
    if source.get("aliases"):
        yield f"  {'also called':<28} {', '.join(source['aliases'])}"


def _block(block: Any) -> str:
    name = type(block).__name__
    heads = getattr(block, "heads", None)
    kv_heads = getattr(block, "kv_heads", None)
    if heads is not None:
        shared = f", {kv_heads} KV heads" if kv_heads not in (None, heads) else ""
        window = f", window {block.window:,}" if getattr(block, "window", None) else ""
        return f"{name} ({heads} heads{shared}{window})"
    if hasattr(block, "experts"):
        return f"{name} ({block.active} of {block.experts} experts)"
    return f"{name} ({block.kind})" if hasattr(block, "kind") else name
