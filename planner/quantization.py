"""Quantised checkpoints: what a ``quantization_config`` says about every tensor, and the bytes that follow.

Each ``quant_method`` has its own dialect: one function reads it into a ``Quantization``, which answers for one full
module name at a time. What a dialect says and we cannot honour is an error that names the key; keys that plainly do
not touch storage are passed over.

Counted are weights, scales, zero points and code tables. Left out are descriptions that engines drop on loading
(``weight_shape`` of compressed-tensors, bitsandbytes' ``quant_state`` text: 8 to 200 bytes a matrix) and the scales of
a quantised cache (8 bytes a layer).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from planner.architecture import Architecture, Component, Layer, Part, Use, Weight, layer_weights
from planner.errors import PlanError, did_you_mean
from planner.precision import (
    FORMATS,
    Assignment,
    NumberFormat,
    awq_format,
    bnb_format,
    gptq_format,
    group_format,
    is_kept_wide,
    is_linear,
    is_router,
    layout,
    parse_cache_format,
)

# --- names and lists of names ---------------------------------------------------------------------------------------

# Files of one model disagree about the outermost modules: `model.language_model.layers`, `language_model.model.layers`.
_ROOT = re.compile(r"^(?:(?:model|language_model|text_model|backbone|base_model|transformer)\.)+(?=.)")
_EXPERT_INDEX = re.compile(r"(?<=\bexperts\.)\d+(?=\.|$)")
_GLOB = re.compile(r"[*?\[]")


def _stripped(name: str) -> str:
    return _ROOT.sub("", name)


def _runs(name: str) -> Iterator[str]:
    """Every contiguous run of a name's components."""
    parts = name.split(".")
    for start in range(len(parts)):
        for stop in range(start + 1, len(parts) + 1):
            yield ".".join(parts[start:stop])


def _heads(name: str) -> Iterator[str]:
    parts = name.split(".")
    for stop in range(1, len(parts) + 1):
        yield ".".join(parts[:stop])


class Patterns:
    """Names of modules as configs list them, each with the format it stands for (None: left as it is).

    A plain name means that module and everything inside it, and matches any run of whole components (``gate`` is
    ``mlp.gate`` but not ``mlp.gate_proj``); one that starts at the model's root only matches there. ``*`` is a
    wildcard, ``re:`` starts a regular expression, which is matched from the name's start.
    """

    def __init__(self, entries: Iterable[tuple[str, NumberFormat | None]], *, source: str, key: str) -> None:
        self.source, self.key = source, key
        self.texts: list[str] = []
        self._anchored: dict[str, NumberFormat | None] = {}
        self._floating: dict[str, NumberFormat | None] = {}
        self._compiled: list[tuple[re.Pattern[str], NumberFormat | None]] = []
        self._experts: dict[str, set[str]] = {}
        loose: dict[NumberFormat | None, list[str]] = {}
        for text, form in entries:
            self.texts.append(text)
            self._add(text, form, loose)
        for form, expressions in loose.items():
            self._compiled.append((re.compile("|".join(f"(?:{e})" for e in expressions)), form))

    def _add(self, text: str, form: NumberFormat | None, loose: dict[NumberFormat | None, list[str]]) -> None:
        if text.startswith("re:"):
            try:
                re.compile(text[3:])
            except re.error as error:
                raise PlanError(
                    f"{self.source}: {self.key} holds {text!r}, which is no regular expression: {error}", field=self.key
                ) from None
            loose.setdefault(form, []).append(text[3:])
            return
        plain = _EXPERT_INDEX.sub("*", text)
        if plain != text:
            self._experts.setdefault(_stripped(plain), set()).update(_EXPERT_INDEX.findall(text))
        if _GLOB.search(plain.replace("experts.*", "")):
            for pattern in {text, _stripped(text)}:
                if pattern == text or not _GLOB.search(pattern.split(".", 1)[0]):
                    loose.setdefault(form, []).extend((fnmatch.translate(pattern), fnmatch.translate(f"{pattern}.*")))
        elif plain != _stripped(plain) or plain.startswith("layers."):
            self._anchored[_stripped(plain)] = form
        else:
            self._floating[plain] = form

    @property
    def by_layer(self) -> bool:
        """Whether a number in some pattern can set one layer apart from the next."""
        return any(re.search(r"\d|\\d", _EXPERT_INDEX.sub("", text)) for text in self.texts)

    def find(self, full_name: str, copies: int = 1) -> tuple[bool, NumberFormat | None]:
        """Whether a pattern covers the module, and its format.

        Raises:
            PlanError: a list names some experts of a layer and not the others.
        """
        name = _stripped(full_name)
        for runs, known in ((_heads(name), self._anchored), (_runs(full_name), self._floating)):
            for run in runs if known else ():
                if run in known:
                    self._whole_layer(run, copies)
                    return True, known[run]
        if self._compiled:
            concrete, whole = name.replace(".*", ".0"), full_name.replace(".*", ".0")
            for pattern, form in self._compiled:
                if pattern.match(concrete) or pattern.match(whole):
                    return True, form
        return False, None

    def _whole_layer(self, run: str, copies: int) -> None:
        listed = self._experts.get(run)
        if listed is not None and copies > 1 and len(listed) != copies:
            raise PlanError(
                f"{self.source}: {self.key} names {len(listed)} of the {copies} experts of {run}; experts of one layer "
                "that differ in format are not supported",
                field=self.key,
            )

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """Patterns that cover none of ``names``."""
        wanted = list(names)
        return [
            text
            for text in self.texts
            if not any(Patterns([(text, None)], source=self.source, key=self.key).find(name)[0] for name in wanted)
        ]


# --- what a reader hands back ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scope:
    """Which tensors a method touches when no list says otherwise."""

    head: bool = False
    router: bool = False
    embedding: bool = False
    towers: bool = True
    layers_only: bool = False
    experts_only: bool = False

    def admits(self, full_name: str, weight: Weight) -> bool:
        """Whether the method takes the tensor."""
        if weight.use is Use.LOOKED_UP:
            return self.embedding and len(weight.shape) == 2
        if not is_linear(weight) or is_kept_wide(full_name):
            return False
        if (self.experts_only and weight.use is not Use.ROUTED) or (
            self.layers_only and not re.search(r"\.\d+\.", full_name)
        ):
            return False
        allowed = {Part.LM_HEAD: self.head, Part.VISION: self.towers}
        return allowed.get(weight.part, True) and (self.router or not is_router(weight))


@dataclass(frozen=True, eq=False)
class Quantization:
    """A checkpoint's number formats, as its config states them.

    ``ignored`` modules are left in the model's own format; then come ``explicit`` formats of named modules, then
    ``everywhere`` for what ``scope`` admits; ``experts`` overrides it for routed matrices. ``cache`` is the format of
    keys and values, where the file states one. ``activations`` names what activations are quantised to.
    """

    method: str
    source: str
    everywhere: NumberFormat | None
    scope: Scope
    explicit: Patterns
    ignored: Patterns
    experts: NumberFormat | None = None
    cache: NumberFormat | None = None
    activations: str | None = None
    whole_groups: bool = False
    notes: tuple[str, ...] = ()

    @property
    def by_layer(self) -> bool:
        """Whether equal layers may be stored differently."""
        return self.explicit.by_layer or self.ignored.by_layer

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat | None:
        """The format of a tensor; None where the checkpoint leaves it in the model's own.

        Raises:
            PlanError: the config treats experts of one layer differently.
        """
        if weight.buffer or weight.is_bias or len(weight.shape) != 2:
            return None
        matrix = is_linear(weight) or (weight.use is Use.LOOKED_UP and self.scope.embedding)
        if not matrix:
            return None
        if self.ignored.find(full_name, weight.copies)[0]:
            return None
        named, form = self.explicit.find(full_name, weight.copies)
        if not named:
            if not self.scope.admits(full_name, weight):
                return None
            form = self.experts if self.experts is not None and weight.use is Use.ROUTED else self.everywhere
        return form if form is None or self._fits(weight, form) else None

    def _fits(self, weight: Weight, form: NumberFormat) -> bool:
        """MLX leaves a matrix alone whose inputs do not fill whole groups."""
        group = form.block[1] if form.block else None
        return not self.whole_groups or group is None or weight.shape[-1] % group == 0

    def describe(self) -> str:
        """Method, format and what stays unquantised, in words."""
        if self.everywhere is not None:
            what = "routed experts" if self.scope.experts_only else "linear layers"
            formats = f"{what} in {self.everywhere.name}"
        else:
            formats = "named modules only" if self.explicit.texts else "no weights"
        parts = [f"{self.method}: {formats}"]
        kept = [] if self.scope.embedding else ["embedding"]
        kept += [] if self.scope.head else ["LM head"]
        kept += [] if self.scope.router else ["router"]
        kept += ["towers"] if self.scope.layers_only or not self.scope.towers else []
        left = _folded(self.ignored.texts)
        if self.scope.experts_only:
            kept = ["everything outside the experts"]
        parts.append("left in the model's own format: " + ", ".join([*kept, "norms", "biases", *left]))
        if self.cache is not None:
            parts.append(f"cache in {self.cache.name}")
        return "; ".join([*parts, *self.notes])

    def unmatched(self, architecture: Architecture) -> tuple[str, ...]:
        """Entries of the config's lists that cover no tensor of this model: a sign that names are spelled otherwise."""
        names = [item.name for item in assigned_weights(architecture, _EVERY_LAYER, FORMATS["bf16"])]
        names += [weight.name for component in architecture.components for weight in component.weights]
        return tuple(self.explicit.unmatched(names) + self.ignored.unmatched(names))


def _folded(texts: Iterable[str]) -> list[str]:
    """A list of modules with layer numbers folded: 94 entries become ``model.layers.N.mlp.gate (94)``."""
    counts: dict[str, int] = {}
    for text in texts:
        key = re.sub(r"(?<=\.)\d+(?=[.*]|$)", "N", text)
        counts[key] = counts.get(key, 0) + 1
    return [key if count == 1 else f"{key} ({count})" for key, count in counts.items()]


# --- reading keys ---------------------------------------------------------------------------------------------------

# A key with such a word can change what is stored; unread and set to something, it makes the config an error.
_SUSPICIOUS = re.compile(
    r"bits|group|block|scale|zero|pack|format|skip|modul|layer|target|ignore|exclude|dtype|type|sparsity|transform"
    r"|head|embed|expert|sym|desc|algo|scheme|mixed|rank|lora|rotat|outlier|axis|quant"
)


class _Keys:
    """One object of the config; remembers which keys were read."""

    def __init__(self, raw: Mapping[str, Any], source: str, path: str) -> None:
        self.raw, self.source, self.path = raw, source, path
        self._read: set[str] = set()

    def refusal(self, key: str, reason: str) -> PlanError:
        return PlanError(f"{self.source}: {self.path}.{key} {reason}", field=f"{self.path}.{key}")

    def get(self, *names: str, default: Any = None) -> Any:
        """The first of ``names`` that is present and not null."""
        self._read.update(names)
        return next((self.raw[name] for name in names if self.raw.get(name) is not None), default)

    def number(self, *names: str, among: tuple[int, ...] = (), default: int | None = None) -> int:
        value = self.get(*names, default=default)
        if value is None:
            raise self.refusal(names[0], "is missing, and it decides how many bytes a weight has")
        if isinstance(value, bool) or not isinstance(value, int) or (among and value not in among):
            wanted = f"one of {', '.join(map(str, among))}" if among else "a whole number"
            raise self.refusal(names[0], f"is {value!r}; expected {wanted}")
        return value

    def group(self, *names: str, default: int | None = None) -> int | None:
        """A group size: a positive number, or -1 for one group per output."""
        value = self.number(*names, default=default)
        if value == -1:
            return None
        if not 1 <= value <= 65536:
            raise self.refusal(names[0], f"is {value}; expected -1 or a number from 1 to 65536")
        return value

    def switch(self, *names: str, default: bool = False) -> bool:
        value = self.get(*names, default=default)
        if not isinstance(value, bool):
            raise self.refusal(names[0], f"is {value!r}; expected true or false")
        return value

    def word(self, *names: str, among: tuple[str, ...], default: str | None = None) -> str:
        value = self.get(*names, default=default)
        if not isinstance(value, str) or value.lower() not in among:
            state = "missing" if value is None else repr(value)
            raise self.refusal(names[0], f"is {state}; understood are {', '.join(among)}")
        return value.lower()

    def names(self, *keys: str) -> list[str]:
        """A list of module names."""
        value = self.get(*keys, default=[])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.refusal(keys[0], f"is {str(value)[:60]!r}; expected a list of module names")
        return value

    def inside(self, key: str) -> _Keys:
        value = self.get(key, default={})
        if not isinstance(value, Mapping):
            raise self.refusal(key, f"is {value!r}; expected an object")
        return _Keys(value, self.source, f"{self.path}.{key}")

    def must_be_empty(self, *keys: str) -> None:
        for key in keys:
            value = self.get(key)
            if value not in (None, False, [], {}, "", 0):
                raise self.refusal(key, f"is {str(value)[:60]}, which is not supported: no exact bytes are possible")

    def done(self, *harmless: str) -> None:
        """Refuse what nobody read and what could change the bytes."""
        for key, value in self.raw.items():
            empty = value in (None, False, [], {}, "")
            if key not in self._read and key not in harmless and not empty and _SUSPICIOUS.search(key):
                raise self.refusal(
                    key, f"= {str(value)[:60]} may change what is stored and is not understood for this quant_method"
                )


@dataclass(frozen=True)
class _Context:
    """What a dialect's reader needs besides its own keys."""

    keys: _Keys
    sixteen: str
    scale_bits: int
    nested: bool
    experts: NumberFormat | None = None

    def patterns(self, key: str, entries: Iterable[tuple[str, NumberFormat | None]] = ()) -> Patterns:
        return Patterns(entries, source=self.keys.source, key=f"{self.keys.path}.{key}")

    def ignored(self, key: str, names: Iterable[str]) -> Patterns:
        return self.patterns(key, ((name, None) for name in names))

    def build(
        self,
        method: str,
        everywhere: NumberFormat | None,
        scope: Scope,
        *,
        ignored: Patterns | None = None,
        explicit: Patterns | None = None,
        **more: Any,
    ) -> Quantization:
        if self.nested:
            scope = replace(scope, towers=False)
        return Quantization(
            method,
            self.keys.source,
            everywhere,
            scope,
            explicit if explicit is not None else self.patterns(""),
            ignored if ignored is not None else self.patterns(""),
            **more,
        )


# --- the dialects ---------------------------------------------------------------------------------------------------

_SKIPPED = ("modules_to_not_convert", "ignored_layers", "ignore")


def _gptq(context: _Context) -> Quantization:
    keys = context.keys
    keys.word("checkpoint_format", "format", among=("gptq", "gptq_v2"), default="gptq")
    keys.must_be_empty("is_marlin_format", "adapter", "rotation")
    bits, group = keys.number("bits", among=(2, 3, 4, 8)), keys.group("group_size")
    base = gptq_format(bits, group)
    entries: list[tuple[str, NumberFormat | None]] = []
    for pattern, change in keys.inside("dynamic").raw.items():
        entries.append(_gptq_rule(keys, pattern, change, bits, group))
    inside = keys.get("modules_in_block_to_quantize", "inside_layer_modules", default=[])
    scope = Scope(layers_only=True, head=keys.switch("lm_head"))
    if inside:
        names = [name for item in inside for name in (item if isinstance(item, list) else [item])]
        entries += [(str(name), base) for name in names]
    keys.done(
        *("desc_act", "sym", "block_name_to_quantize", "true_sequential", "cache_block_outputs", "exllama_config"),
        *("static_groups", "pack_dtype", "quant_method", "module_name_preceding_first_block", "quantizer", "meta"),
        *("model_file_base_name", "use_cuda_fp16", "pack_impl"),
    )
    return context.build(
        "GPTQ",
        None if inside else base,
        replace(scope, layers_only=not scope.head),
        explicit=context.patterns("dynamic", entries),
        ignored=context.ignored("modules_to_not_convert", keys.names(*_SKIPPED)),
    )


def _gptq_rule(
    keys: _Keys, pattern: str, change: object, bits: int, group: int | None
) -> tuple[str, NumberFormat | None]:
    """GPTQModel's ``dynamic``: ``-:regex`` leaves modules alone, ``+:regex`` or ``regex`` changes bits or group."""
    expression = f"re:{pattern.removeprefix('+:').removeprefix('-:')}"
    if pattern.startswith("-:"):
        return expression, None
    if not isinstance(change, Mapping):
        raise keys.refusal("dynamic", f"has {change!r} for {pattern!r}; expected an object")
    inner = _Keys(change, keys.source, f"{keys.path}.dynamic.{pattern}")
    form = gptq_format(
        inner.number("bits", among=(2, 3, 4, 8), default=bits), inner.group("group_size", default=group or -1)
    )
    return expression, form


def _awq(context: _Context) -> Quantization:
    keys = context.keys
    keys.number("bits", "w_bit", among=(4,))
    keys.word("version", among=("gemm",), default="gemm")
    form = awq_format(keys.group("group_size", "q_group_size"))
    skipped = keys.names(*_SKIPPED)
    keys.done(
        "quant_method", "zero_point", "exllama_config", "fuse_max_seq_len", "do_fuse", "backend", "modules_to_fuse"
    )
    return context.build(
        "AWQ", form, Scope(layers_only=True, towers=False), ignored=context.ignored("modules_to_not_convert", skipped)
    )


def _bitsandbytes(context: _Context) -> Quantization:
    keys = context.keys
    four = keys.switch("load_in_4bit", "_load_in_4bit")
    eight = keys.switch("load_in_8bit", "_load_in_8bit")
    if four == eight:
        raise keys.refusal("load_in_4bit", f"and load_in_8bit are both {str(four).lower()}; exactly one must be true")
    skipped = keys.get("llm_int8_skip_modules", "modules_to_not_convert")
    names = keys.names("llm_int8_skip_modules", "modules_to_not_convert")
    form = FORMATS["bnb-int8"]
    if four:
        kind = keys.word("bnb_4bit_quant_type", among=("nf4", "fp4"), default="fp4")
        double = keys.switch("bnb_4bit_use_double_quant")
        keys.word("bnb_4bit_quant_storage", among=("uint8", "bfloat16", "float16", "float32"), default="uint8")
        # The file keeps the 16 code values of each matrix (and the 256 of the second level) in fp32.
        tables = 32 * (16 + (256 if double else 0))
        form = replace(bnb_format(kind, double=double), multiply=context.sixteen, tensor_bits=tables)
    keys.done("quant_method", "llm_int8_has_fp16_weight", "bnb_4bit_compute_dtype")
    return context.build(
        "bitsandbytes",
        form,
        Scope(head=skipped is not None),
        ignored=context.ignored("llm_int8_skip_modules", names),
        activations="int8" if eight else None,
    )


def _fp8(context: _Context) -> Quantization:
    keys = context.keys
    keys.word("fmt", "fp8_format", among=("e4m3", "float8_e4m3fn", "e5m2", "float8_e5m2"), default="e4m3")
    static = keys.word("activation_scheme", among=("dynamic", "static"), default="dynamic") == "static"
    block = keys.get("weight_block_size")
    form = FORMATS["fp8-tensor"]
    if block is not None:
        if not (isinstance(block, list) and len(block) == 2 and all(type(n) is int and n > 0 for n in block)):
            raise keys.refusal("weight_block_size", f"is {block!r}; expected two positive numbers")
        name = "fp8-block" if block == [128, 128] else f"fp8-block-{block[0]}x{block[1]}"
        form = replace(FORMATS["fp8-block"], name=name, block=(block[0], block[1]))
    if static:
        form = replace(form, tensor_bits=32)
    notes = []
    if keys.get("scale_fmt") is not None:
        keys.word("scale_fmt", among=("ue8m0",))
        notes.append("scales are powers of two and counted in fp32, as DeepSeek-V3.2's file stores them")
    elif block is not None:
        notes.append("the file does not state the width of its scales; fp32 taken")
    skipped = keys.names("modules_to_not_convert", "ignored_layers")
    explicit = context.patterns("quantized_layers", _quantized_layers(context))
    cache = _cache_format(keys, "kv_cache_scheme") or _cache_format(keys, "kv_cache_quant_algo")
    keys.done("quant_method", *_MODELOPT_HARMLESS, *(("quant_algo", "ignore", "group_size") if explicit.texts else ()))
    return context.build(
        "FP8",
        form,
        Scope(),
        explicit=explicit,
        ignored=context.ignored("modules_to_not_convert", skipped),
        experts=context.experts,
        cache=cache,
        activations="fp8",
        notes=tuple(notes),
    )


def _fbgemm(context: _Context) -> Quantization:
    keys = context.keys
    skipped = keys.names("modules_to_not_convert", "ignored_layers")
    keys.done("quant_method", "activation_scale_ub")
    return context.build(
        "FBGEMM FP8",
        replace(FORMATS["fp8"], scale_bits=32),
        Scope(),
        ignored=context.ignored("modules_to_not_convert", skipped),
        activations="fp8",
    )


def _mxfp4(context: _Context) -> Quantization:
    keys = context.keys
    skipped = keys.names(*_SKIPPED)
    keys.done("quant_method", "dequantize")
    return context.build(
        "MXFP4",
        FORMATS["mxfp4"],
        Scope(experts_only=True),
        ignored=context.ignored("modules_to_not_convert", skipped),
    )


# compressed-tensors --------------------------------------------------------------------------------------------------

_CT_FORMATS = (
    *("dense", "pack-quantized", "int-quantized", "naive-quantized", "float-quantized", "mixed-precision"),
    *("nvfp4-pack-quantized", "mxfp4-pack-quantized"),
)


def _compressed_tensors(context: _Context) -> Quantization:
    keys = context.keys
    keys.must_be_empty("transform_config")
    sparsity = keys.inside("sparsity_config").raw
    if sparsity and sparsity.get("format", "dense") != "dense":
        raise keys.refusal("sparsity_config.format", f"is {sparsity['format']!r}; sparse files are not supported")
    keys.word("quantization_status", among=("compressed", "frozen"), default="compressed")
    outer = keys.word("format", among=_CT_FORMATS, default="dense")
    groups = keys.inside("config_groups")
    if not groups.raw:
        raise keys.refusal("config_groups", "is missing or empty, and it holds the number formats")
    everywhere: NumberFormat | None = None
    entries: list[tuple[str, NumberFormat | None]] = []
    activations: set[str] = set()
    for name in groups.raw:
        group = groups.inside(name)
        form = _ct_format(context, group, group.word("format", among=_CT_FORMATS, default=outer))
        targets = group.names("targets")
        if not targets:
            raise group.refusal("targets", "is missing or empty, and it says which modules the group is for")
        for target in targets:
            if re.fullmatch(r"[A-Z]\w*", target) and target != "Linear":
                raise group.refusal("targets", f"holds the class {target!r}; only Linear is understood")
            if target == "Linear":
                everywhere = form
            else:
                entries.append((target, form))
        if group.get("input_activations"):
            activations.add(_ct_kind(group, "input_activations"))
        group.done("output_activations", "weights")
    ignored = keys.names("ignore")
    classes = [name for name in ignored if re.fullmatch(r"[A-Z]\w*", name)]
    if classes:
        raise keys.refusal(
            "ignore", f"holds the class {classes[0]!r}; only module names and expressions are understood"
        )
    cache = _cache_format(keys, "kv_cache_scheme")
    keys.done("quant_method", "global_compression_ratio")
    return context.build(
        "compressed-tensors",
        everywhere,
        Scope(head=True),
        explicit=context.patterns("config_groups", entries),
        ignored=context.ignored("ignore", ignored),
        cache=cache,
        activations=", ".join(sorted(activations)) or None,
    )


def _ct_kind(group: _Keys, key: str) -> str:
    """``int8``, ``fp4``, … of a group's weights or activations."""
    inner = group.inside(key)
    bits, kind = inner.number("num_bits", among=(4, 8)), inner.word("type", among=("int", "float"), default="int")
    return f"{'fp' if kind == 'float' else 'int'}{bits}"


def _ct_format(context: _Context, group: _Keys, packing: str) -> NumberFormat:
    weights = group.inside("weights")
    if not weights.raw:
        raise group.refusal("weights", "is missing or null; a group that only quantises activations is not supported")
    kind = _ct_kind(group, "weights")
    inputs = group.inside("input_activations")
    static = inputs.raw.get("dynamic") is False
    multiply = _ct_kind(group, "input_activations") if inputs.raw else context.sixteen
    size = weights.get("group_size")
    block = _ct_block(weights, size)
    asymmetric = not weights.switch("symmetric", default=True)
    weights.done("strategy", "group_size", "block_structure", "actorder", "scale_dtype", "zp_dtype", "num_bits", "type")
    if kind == "fp4":
        micro = "mxfp4" if packing.startswith("mxfp4") else "nvfp4"
        extra = 0 if micro == "mxfp4" else 32 + (32 if inputs.raw else 0)
        if size not in (None, 32 if micro == "mxfp4" else 16):
            raise weights.refusal("group_size", f"is {size}, which {micro} does not have")
        return replace(FORMATS[micro], multiply=multiply, tensor_bits=extra)
    if asymmetric and kind == "fp8":
        raise weights.refusal("symmetric", "is false for a floating-point type")
    indexed = 32 if weights.get("actorder") in ("group", True) else 0
    if kind == "int4" or (kind == "int8" and packing == "pack-quantized"):
        bits = int(kind[3:])
        form = group_format(_ct_name(kind, block), bits, block[1], scale_bits=context.scale_bits, multiply=multiply)
        form = replace(form, block=block, word_bits=32, column_bits=indexed)
        return replace(form, zero_bits=bits, packed_zeros=True) if asymmetric else form
    return replace(
        FORMATS[kind],
        name=_ct_name(kind, block),
        block=block,
        scale_bits=context.scale_bits,
        zero_bits=8 if asymmetric else 0,
        tensor_bits=context.scale_bits if static else 0,
        column_bits=indexed,
        multiply=multiply,
    )


def _ct_name(kind: str, block: tuple[int | None, int | None]) -> str:
    rows, columns = block
    if rows is None:
        return f"{kind}-tensor"
    if columns is None:
        return {"fp8": "fp8", "int8": "int8"}.get(kind, f"{kind}-channel")
    if rows > 1:
        return f"{kind}-block" if (rows, columns) == (128, 128) else f"{kind}-block-{rows}x{columns}"
    return "int4" if (kind, columns) == ("int4", 128) else f"{kind}-g{columns}"


def _ct_block(weights: _Keys, size: object) -> tuple[int | None, int | None]:
    default = "tensor" if size is None else "channel" if size == -1 else "group"
    strategy = weights.word("strategy", among=("tensor", "channel", "group", "block", "tensor_group"), default=default)
    if strategy == "tensor":
        return None, None
    if strategy == "channel":
        return 1, None
    if strategy == "block":
        structure = weights.get("block_structure")
        if isinstance(structure, str):
            structure = [int(n) if n.isdigit() else 0 for n in structure.split("x")]
        if not (
            isinstance(structure, list) and len(structure) == 2 and all(type(n) is int and n > 0 for n in structure)
        ):
            raise weights.refusal("block_structure", f"is {structure!r}; expected two positive numbers")
        return structure[0], structure[1]
    return 1, weights.group("group_size")


# modelopt ------------------------------------------------------------------------------------------------------------

_MODELOPT_HARMLESS = ("config_groups", "moe_quant_algo")


def _modelopt_format(keys: _Keys, algorithm: str, group: int | None) -> NumberFormat:
    """A tensor in one of modelopt's algorithms; static activations add one fp32 scale per matrix."""
    nvfp4 = replace(
        FORMATS["nvfp4"], block=(1, group or 16), name="nvfp4" if group in (None, 16) else f"nvfp4-g{group}"
    )
    known = {
        "FP8": replace(FORMATS["fp8-tensor"], tensor_bits=32),
        "FP8_PB_WO": replace(FORMATS["fp8-block"], block=(group or 128, group or 128)),
        "NVFP4": replace(nvfp4, tensor_bits=64),
        "NVFP4_AWQ": replace(nvfp4, tensor_bits=64, column_bits=16),
        "W4A16_NVFP4": replace(nvfp4, multiply="bf16"),
        "MXFP8": FORMATS["mxfp8"],
        "W4A16_MXFP4": FORMATS["mxfp4"],
    }
    if algorithm not in known:
        raise keys.refusal(
            "quant_algo", f"is {algorithm!r}; understood are {', '.join(known)}{did_you_mean(algorithm, known)}"
        )
    return known[algorithm]


def _quantized_layers(context: _Context) -> list[tuple[str, NumberFormat | None]]:
    """MIXED_PRECISION: each module with its own algorithm."""
    layers = context.keys.inside("quantized_layers")
    found: list[tuple[str, NumberFormat | None]] = []
    seen: dict[tuple[str, int | None], NumberFormat] = {}
    for name in layers.raw:
        entry = layers.inside(name)
        algorithm, size = entry.get("quant_algo"), entry.get("group_size")
        group = None if size is None else entry.group("group_size")
        if (algorithm, group) not in seen:
            seen[algorithm, group] = _modelopt_format(entry, str(algorithm), group)
            entry.done()
        found.append((name, seen[algorithm, group]))
    return found


def _modelopt(context: _Context) -> Quantization:
    keys = context.keys
    algorithm = keys.get("quant_algo")
    explicit: list[tuple[str, NumberFormat | None]] = []
    everywhere: NumberFormat | None = None
    group = None if keys.get("group_size") is None else keys.group("group_size")
    if group is None:
        group = _group_of_groups(keys)
    if algorithm == "MIXED_PRECISION":
        explicit = _quantized_layers(context)
        if not explicit:
            raise keys.refusal("quantized_layers", "is missing, and MIXED_PRECISION says nothing without it")
    elif algorithm is not None:
        everywhere = _modelopt_format(keys, str(algorithm), group)
    cache = _cache_format(keys, "kv_cache_quant_algo") or _cache_format(keys, "kv_cache_scheme")
    excluded = keys.names("exclude_modules", "ignore")
    keys.done("quant_method", *_MODELOPT_HARMLESS)
    notes = () if excluded or everywhere is None else ("the file lists no excluded modules; LM head and routers kept",)
    return context.build(
        f"modelopt {algorithm}",
        everywhere,
        Scope(),
        explicit=context.patterns("quantized_layers", explicit),
        ignored=context.ignored("exclude_modules", excluded),
        cache=cache,
        activations=None if everywhere is None or everywhere.multiply == "bf16" else everywhere.multiply,
        notes=notes,
    )


def _group_of_groups(keys: _Keys) -> int | None:
    """The group size of a config that repeats modelopt's format as ``config_groups``."""
    groups = keys.get("config_groups", default={})
    found = [
        group["weights"].get("group_size")
        for group in (groups.values() if isinstance(groups, Mapping) else ())
        if isinstance(group, Mapping) and isinstance(group.get("weights"), Mapping)
    ]
    return found[0] if len(found) == 1 and isinstance(found[0], int) else None


def _cache_format(keys: _Keys, key: str) -> NumberFormat | None:
    """The cache's format: a name (``FP8``), a scheme object, or nothing."""
    value = keys.get(key)
    if isinstance(value, Mapping):
        inner = keys.inside(key)
        bits, kind = inner.number("num_bits", among=(4, 8)), inner.word("type", among=("int", "float"), default="int")
        value = {("float", 8): "fp8-tensor", ("int", 8): "int8", ("float", 4): "nvfp4"}.get((kind, bits))
    if value is None:
        return None
    try:
        form = parse_cache_format("fp8-tensor" if str(value).upper() == "FP8" else str(value))
    except PlanError as error:
        raise keys.refusal(key, f"is not understood: {error}") from None
    return form


# the smaller dialects -------------------------------------------------------------------------------------------------


def _hqq(context: _Context) -> Quantization:
    keys = context.keys
    config = keys.inside("quant_config")
    if "weight_quant_params" not in config.raw:
        raise keys.refusal("quant_config", "has no weight_quant_params; formats per module are not supported")
    weights = config.inside("weight_quant_params")
    bits, group = weights.number("nbits", among=(1, 2, 4, 8)), weights.group("group_size", default=64)
    weights.must_be_empty("quant_zero", "quant_scale")
    config.must_be_empty("scale_quant_params", "zero_quant_params")
    weights.done("axis", "channel_wise", "round_zero", "view_as_float")
    skipped = keys.names("skip_modules", "modules_to_not_convert")
    config.done()
    keys.done("quant_method")
    form = group_format(f"hqq-int{bits}-g{group}", bits, group, multiply=context.sixteen)
    form = replace(form, zero_bits=16, word_bits=8 if bits < 8 else 0, packed_zeros=False)
    return context.build(
        "HQQ",
        form,
        Scope(head="lm_head" not in skipped and bool(skipped)),
        ignored=context.ignored("skip_modules", skipped or ["lm_head"]),
    )


def _mlx(context: _Context) -> Quantization:
    keys = context.keys
    base = _mlx_format(context, keys)
    entries: list[tuple[str, NumberFormat | None]] = []
    for name, value in keys.raw.items():
        # MLX stacks a layer's experts under this name.
        module = name.replace(".switch_mlp.", ".experts.*.")
        if isinstance(value, Mapping):
            entries.append((module, _mlx_format(context, keys.inside(name))))
        elif isinstance(value, bool):
            entries.append((module, base if value else None))
            keys.get(name)
    keys.done("quant_method")
    return context.build(
        "MLX",
        base,
        Scope(head=True, router=True, embedding=True, towers=False),
        explicit=context.patterns("quantization", entries),
        whole_groups=True,
    )


def _mlx_format(context: _Context, keys: _Keys) -> NumberFormat:
    mode = keys.word("mode", among=("affine", "mxfp4", "mxfp8", "nvfp4"), default="affine")
    if mode != "affine":
        group, bits = {"mxfp4": (32, 4), "mxfp8": (32, 8), "nvfp4": (16, 4)}[mode]
        keys.number("group_size", among=(group,), default=group)
        keys.number("bits", among=(bits,), default=bits)
        return replace(FORMATS[mode], tensor_bits=0, multiply=context.sixteen)
    bits, size = keys.number("bits", among=(2, 3, 4, 5, 6, 8)), keys.number("group_size", among=(32, 64, 128))
    form = group_format(f"mlx-int{bits}-g{size}", bits, size, multiply=context.sixteen)
    return replace(form, zero_bits=16, packed_zeros=False, word_bits=32)


def _torchao(context: _Context) -> Quantization:
    keys = context.keys
    kind = keys.get("quant_type")
    options = keys.inside("quant_type_kwargs").raw
    if isinstance(kind, Mapping):
        if set(kind) != {"default"}:
            raise keys.refusal("quant_type", "has formats per module, which are not supported for torchao")
        kind, options = _torchao_kind(keys, kind["default"])
    keys.must_be_empty("include_input_output_embeddings", "untie_embedding_weights")
    skipped = keys.names("modules_to_not_convert")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(kind)).lower().removesuffix("_config")
    group = options.get("group_size", 128)
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise keys.refusal("quant_type_kwargs", f"has group_size {group!r}; expected a positive number")
    wide = context.scale_bits
    row = replace(FORMATS["fp8"], scale_bits=32)
    known = {
        "int8_weight_only": replace(FORMATS["int8-weight-only"], scale_bits=wide, multiply=context.sixteen),
        "int8_dynamic_activation_int8_weight": replace(FORMATS["int8"], scale_bits=wide),
        "int4_weight_only": replace(
            group_format(f"int4-g{group}", 4, group, scale_bits=wide, multiply=context.sixteen),
            zero_bits=wide,
            packed_zeros=False,
            word_bits=0,
        ),
        "float8_weight_only": replace(row, multiply=context.sixteen),
        "float8_dynamic_activation_float8_weight": row,
    }
    if name not in known:
        raise keys.refusal("quant_type", f"is {kind!r}; understood are {', '.join(known)}")
    keys.done("quant_method")
    return context.build(
        "torchao",
        known[name],
        Scope(head=False),
        ignored=context.ignored("modules_to_not_convert", skipped),
        activations={"int8": "int8", "fp8": "fp8"}.get(known[name].multiply),
        notes=("torchao layouts are counted from their usual form (scales per row, or scale and zero per group)",),
    )


def _torchao_kind(keys: _Keys, value: object) -> tuple[object, Mapping[str, Any]]:
    if isinstance(value, str):
        return value, {}
    if not isinstance(value, Mapping) or "_type" not in value:
        raise keys.refusal("quant_type.default", f"is {str(value)[:60]!r}; expected an object with _type")
    data = value.get("_data") or {}
    return value["_type"], data if isinstance(data, Mapping) else {}


def _eetq(context: _Context) -> Quantization:
    keys = context.keys
    keys.word("weights", among=("int8",), default="int8")
    skipped = keys.names("modules_to_not_convert")
    keys.done("quant_method")
    form = replace(FORMATS["int8-weight-only"], multiply="fp16")
    return context.build("EETQ", form, Scope(), ignored=context.ignored("modules_to_not_convert", skipped))


def _quanto(context: _Context) -> Quantization:
    keys = context.keys
    kind = keys.word("weights", among=("int8", "float8", "int4", "int2"), default="int8")
    keys.must_be_empty("activations")
    skipped = keys.names("modules_to_not_convert")
    keys.done("quant_method")
    if kind in ("int8", "float8"):
        base = FORMATS["int8-weight-only" if kind == "int8" else "fp8"]
        form = replace(base, scale_bits=context.scale_bits, multiply=context.sixteen)
    else:
        form = group_format(f"quanto-{kind}-g128", int(kind[-1]), 128, scale_bits=context.scale_bits, word_bits=8)
        form = replace(form, zero_bits=context.scale_bits, packed_zeros=False, multiply=context.sixteen)
    return context.build("quanto", form, Scope(), ignored=context.ignored("modules_to_not_convert", skipped))


_DIALECTS: Mapping[str, Callable[[_Context], Quantization]] = {
    "gptq": _gptq,
    "awq": _awq,
    "bitsandbytes": _bitsandbytes,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
    "modelopt_mixed": _modelopt,
    "hqq": _hqq,
    "mlx": _mlx,
    "torchao": _torchao,
    "eetq": _eetq,
    "quanto": _quanto,
}

# --- finding the config -----------------------------------------------------------------------------------------------

_TEXT_CONFIGS = ("text_config", "llm_config", "language_config")
_CONFIG_KEYS = ("quantization_config", "compression_config", "quantization")


def read_quantization(
    raw_config: Mapping[str, Any], hf_quant_config: Mapping[str, Any] | None = None, *, source: str
) -> Quantization | None:
    """The number formats of a checkpoint; None where neither file states any.

    ``raw_config`` is the parsed ``config.json``, ``hf_quant_config`` modelopt's second file of that name, which wins
    where both describe modelopt's format.

    Raises:
        PlanError: an unknown ``quant_method``, or a key or value that cannot be honoured.
    """
    path, found, nested = _find(raw_config, source)
    second = _second_file(hf_quant_config)
    method = None if found is None else _method(found, path, source)
    if second is not None and method in (None, "modelopt", "modelopt_fp4", "modelopt_mixed"):
        path, found, nested, method = "hf_quant_config.quantization", second, False, "modelopt"
    if found is None or method is None:
        return None
    dtype = str(raw_config.get("dtype") or raw_config.get("torch_dtype") or _nested_dtype(raw_config) or "")
    context = _Context(
        _Keys(found, source, path),
        sixteen="fp16" if dtype.removeprefix("torch.") in ("float16", "half") else "bf16",
        scale_bits=32 if dtype.removeprefix("torch.") in ("float32", "float") else 16,
        nested=nested,
        experts=_expert_format(raw_config, source),
    )
    return _DIALECTS[method](context)


def _find(raw: Mapping[str, Any], source: str) -> tuple[str, Mapping[str, Any] | None, bool]:
    places = [(key, raw.get(key), False) for key in _CONFIG_KEYS]
    for outer in _TEXT_CONFIGS:
        inner = raw.get(outer)
        if isinstance(inner, Mapping):
            places += [(f"{outer}.{key}", inner.get(key), True) for key in _CONFIG_KEYS]
    for path, value, nested in places:
        if value is not None and not isinstance(value, Mapping):
            raise PlanError(f"{source}: {path} is {str(value)[:60]!r}; expected an object", field=path)
        if value:
            return path, value, nested
    return "", None, False


def _second_file(value: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if not value:
        return None
    inner = value.get("quantization", value)
    return inner if isinstance(inner, Mapping) and inner else None


def _nested_dtype(raw: Mapping[str, Any]) -> object:
    texts = [raw[key] for key in _TEXT_CONFIGS if isinstance(raw.get(key), Mapping)]
    return next((text.get("dtype") or text.get("torch_dtype") for text in texts), None)


def _method(found: Mapping[str, Any], path: str, source: str) -> str:
    named = found.get("quant_method")
    if isinstance(named, str):
        method = named.lower().replace("compressed_tensors", "compressed-tensors")
        if method in _DIALECTS:
            return method
        raise PlanError(
            f"{source}: {path}.quant_method is {named!r}; understood are {', '.join(sorted(_DIALECTS))}"
            f"{did_you_mean(named, _DIALECTS)}",
            field=f"{path}.quant_method",
        )
    if isinstance(found.get("quant_algo"), str):
        return "modelopt"
    if found.get("load_in_4bit") or found.get("load_in_8bit"):
        return "bitsandbytes"
    if "bits" in found and "group_size" in found and named is None:
        return "mlx"
    if "config_groups" in found:
        return "compressed-tensors"
    raise PlanError(
        f"{source}: {path}.quant_method is {named!r}, and its other keys are of no format that is known here",
        field=f"{path}.quant_method",
    )


def _expert_format(raw: Mapping[str, Any], source: str) -> NumberFormat | None:
    """DeepSeek-V4's ``expert_dtype``: experts in FP4 beside FP8 for the rest."""
    value = raw.get("expert_dtype")
    if value in (None, "fp8", "bf16"):
        return None
    if value != "fp4":
        raise PlanError(f"{source}: expert_dtype is {value!r}; understood are fp4, fp8, bf16", field="expert_dtype")
    return FORMATS["mxfp4"]


# --- from formats to bytes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _EveryLayer:
    """An assignment that changes nothing and keeps layers apart."""

    by_layer: bool = True

    def format_of(self, full_name: str, weight: Weight) -> NumberFormat | None:  # noqa: ARG002 - the protocol's
        return None


_EVERY_LAYER = _EveryLayer()


@dataclass(frozen=True, slots=True)
class AssignedWeight:
    """A tensor of the model with its format, and the number of layers that hold one like it.

    ``name`` is the full module name in the first of these layers.
    """

    name: str
    weight: Weight
    form: NumberFormat
    layers: int = 1


def assigned_weights(
    architecture: Architecture, assignment: Assignment | None, default: NumberFormat
) -> Iterator[AssignedWeight]:
    """Every tensor of the text model (buffers and second uses included) with its format.

    ``default`` is the model's own format, for what the assignment leaves alone. Equal layers come as one, unless the
    assignment tells layers apart.
    """
    by_layer = assignment is not None and assignment.by_layer

    def assigned(name: str, weight: Weight, layers: int = 1) -> AssignedWeight:
        form = None if assignment is None else assignment.format_of(name, weight)
        return AssignedWeight(name, weight, form or default, layers)

    yield assigned(architecture.embedding.name, architecture.embedding)
    for path, stack in (
        (architecture.encoder_names, architecture.encoder),
        (architecture.layer_names, architecture.layers),
    ):
        for index, layer, count in _grouped(stack, by_layer):
            for weight in layer_weights(layer):
                yield assigned(f"{path}.{index}.{weight.name}", weight, count)
    for weight in architecture.outer:
        yield assigned(weight.name, weight)
    if architecture.lm_head is not None:
        yield assigned(architecture.lm_head.name, architecture.lm_head)


def _grouped(layers: tuple[Layer, ...], by_layer: bool) -> list[tuple[int, Layer, int]]:
    if by_layer:
        return [(index, layer, 1) for index, layer in enumerate(layers)]
    counts: dict[Layer, list[int]] = {}
    for index, layer in enumerate(layers):
        counts.setdefault(layer, []).append(index)
    return [(indices[0], layer, len(indices)) for layer, indices in counts.items()]


def component_weights(
    component: Component, assignment: Assignment | None, default: NumberFormat
) -> Iterator[AssignedWeight]:
    """The same for a tower, a projector or an MTP module."""
    for weight in component.weights:
        form = None if assignment is None else assignment.format_of(weight.name, weight)
        yield AssignedWeight(weight.name, weight, form or default)


@dataclass(frozen=True, slots=True)
class ByteCount:
    """Stored bytes of a model's weights.

    ``total`` is the parameters' with their scales, towers with the model; ``scales`` of it are scales, zero points and
    what else stands beside the weights. ``by_part`` and ``by_format`` each sum to ``total``. ``buffers`` and the
    components in ``apart`` (MTP) are not in the total.
    """

    total: int
    scales: int
    by_part: Mapping[Part, int]
    by_format: Mapping[str, int]
    buffers: int = 0
    apart: Mapping[str, int] = field(default_factory=dict)


@lru_cache(maxsize=256)
def stored_bytes(architecture: Architecture, assignment: Assignment | None, default: NumberFormat) -> ByteCount:
    """Sum the exact bytes of every stored tensor once.

    Raises:
        PlanError: the assignment treats experts of one layer differently.
    """
    items = list(assigned_weights(architecture, assignment, default))
    apart: dict[str, int] = {}
    for component in architecture.components:
        found = list(component_weights(component, assignment, default))
        if component.counted:
            items += found
        else:
            apart[component.name] = apart.get(component.name, 0) + sum(
                sum(_bytes(item)) for item in found if item.weight.stored and not item.weight.buffer
            )
    by_part: dict[Part, int] = {}
    by_format: dict[str, int] = {}
    scales = buffers = 0
    for item in items:
        if not item.weight.stored:
            continue
        payload, beside = _bytes(item)
        if item.weight.buffer:
            buffers += payload + beside
            continue
        scales += beside
        by_part[item.weight.part] = by_part.get(item.weight.part, 0) + payload + beside
        by_format[item.form.name] = by_format.get(item.form.name, 0) + payload + beside
    return ByteCount(sum(by_part.values()), scales, by_part, by_format, buffers, apart)


def _bytes(item: AssignedWeight) -> tuple[int, int]:
    """Weights and scales of all copies in all layers."""
    payload, beside = layout(item.weight.shape, item.form)
    times = item.weight.copies * item.layers
    return payload * times, beside * times
