"""Counts made by the reference implementation: a transformers model built on torch's meta device.

Needs the ``oracle`` extra; nothing here is imported by the default test run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

AUTO_CLASSES = (
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModelForSeq2SeqLM",
    "AutoModelForMultimodalLM",
)


def unique_parameters(raw: Mapping[str, Any]) -> int:
    """Parameters of the reference model of a config, tied ones once."""
    import torch
    import transformers

    values = copy.deepcopy(dict(raw))
    values.pop("quantization_config", None)
    first = "AutoModelForImageTextToText" if "vision_config" in values else "AutoModelForCausalLM"
    if values.get("is_encoder_decoder"):
        first = "AutoModelForSeq2SeqLM"
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    last: Exception | None = None
    with torch.device("meta"):
        for name in (first, *AUTO_CLASSES):
            try:
                model = getattr(transformers, name).from_config(config)
            except (ValueError, AttributeError) as error:
                last = error
                continue
            return sum(parameter.numel() for parameter in model.parameters())
    raise RuntimeError(f"no reference class for {raw['model_type']}") from last


def variants(raw: Mapping[str, Any], changes: Mapping[str, Sequence[Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The config itself, then one copy per changed key and value; keys may be dotted paths."""
    yield "as published", copy.deepcopy(dict(raw))
    for path, values in changes.items():
        for value in values:
            changed = copy.deepcopy(dict(raw))
            target = changed
            *parents, key = path.split(".")
            for parent in parents:
                target = target[parent]
            if value is ...:
                target.pop(key, None)
            else:
                target[key] = value
            yield f"{path} = {value!r}", changed
