"""What a model stores, reads and multiplies: the ledger of its tensors, and what a step's work follows from.

An ``Inventory`` is made once per model and number format; the work of a prefill or decode step is then a few products
(``work``). Three counts stay apart for every tensor: stored, read in a step, multiplied per token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import prod
from typing import assert_never

from planner.architecture import (
    Architecture,
    Attention,
    Block,
    CrossAttention,
    LatentAttention,
    Layer,
    Mlp,
    Moe,
    Part,
    StateSpace,
    Use,
    Weight,
    layer_weights,
)
from planner.counting import layer_counts
from planner.precision import NumberFormat, bytes_for

FormatOf = Callable[[str, Weight], NumberFormat]
# Multiplied elements by arithmetic kind ("bf16", "int8"): the fastest that engines may use for the weights' format.
ByArithmetic = tuple[tuple[str, int], ...]


class Stage(StrEnum):
    """When a tensor works."""

    EVERY_TOKEN = "every token"
    PROMPT = "prompt tokens"  # an encoder's, or what turns encoder tokens into keys and values
    HEAD = "last position"
    SKIPPED = "not for text"  # layers that a text-only request skips
    BESIDE = "beside the text model"  # vision tower, projector
    DRAFT = "draft module"  # MTP, apart from the model's total


@dataclass(frozen=True, slots=True)
class Operation:
    """One row of the ledger: ``count`` equal tensors (layers × copies) in one number format.

    ``active``: how many of them one token uses (fewer than ``count`` for routed experts).
    """

    name: str
    part: Part
    use: Use
    stage: Stage
    shape: tuple[int, ...]
    layers: int
    copies: int
    active: int
    format: NumberFormat
    bytes_each: int
    stored: bool
    is_bias: bool

    @property
    def elements(self) -> int:
        """Elements of one tensor."""
        return prod(self.shape)

    @property
    def count(self) -> int:
        """How many equal tensors."""
        return self.layers * self.copies

    @property
    def stored_parameters(self) -> int:
        """Parameters kept in memory."""
        return self.elements * self.count if self.stored else 0

    @property
    def stored_bytes(self) -> int:
        """Bytes kept in memory."""
        return self.bytes_each * self.count if self.stored else 0

    @property
    def read_parameters(self) -> int:
        """Parameters that a decode step of one token reads."""
        if not self.stored or self.stage in (Stage.PROMPT, Stage.SKIPPED, Stage.BESIDE, Stage.DRAFT):
            return 0
        if self.use is Use.LOOKED_UP:
            return self.elements // self.shape[0] * self.layers
        return 0 if self.use is Use.UNUSED else self.elements * self.layers * self.active

    @property
    def multiplied_parameters(self) -> int:
        """Parameters that one generated token multiplies."""
        working = self.stage in (Stage.EVERY_TOKEN, Stage.HEAD) and self.use in (Use.MULTIPLIED, Use.ROUTED)
        return self.elements * self.layers * self.active if working and not self.is_bias else 0


@dataclass(frozen=True, slots=True)
class RoutedExperts:
    """Layers whose experts are alike: the bytes of one expert, how many there are and how many a token uses."""

    layers: int
    experts: int
    active: int
    bytes_per_expert: int


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Attention layers that behave alike.

    ``row``: elements cached per token and layer (0 where another layer's cache is read), ``indexer_row`` besides.
    ``prefill_pair``, ``decode_pair``: FLOP per (query, key) pair over all heads of a layer; ``indexer_pair``: FLOP per
    pair of the sparse indexer. At most ``window`` keys are attended, or those of the query's own ``chunk``, or
    ``selected`` ones (all are cached then).
    """

    kind: str
    layers: int
    row: int
    prefill_pair: int
    decode_pair: int
    window: int | None = None
    chunk: int | None = None
    selected: int | None = None
    indexer_row: int = 0
    indexer_pair: int = 0
    causal: bool = True


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything that a step's work follows from. Bytes are exact; work is in multiplied elements by arithmetic kind.

    ``prompt_multiplied`` runs once per prompt token, ``token_multiplied`` once per generated token and
    ``head_multiplied`` once per sequence and step. ``prefill_bytes`` and ``decode_bytes`` are read whole in such a
    step, ``row_bytes`` per token. ``draft_bytes`` (MTP) are not part of ``stored_bytes``.
    ``main`` is the number format of most parameters,
    ``cache_ratio`` the cache's bits per element as a fraction.
    """

    operations: tuple[Operation, ...]
    stored_bytes: int
    draft_bytes: int
    prefill_bytes: int
    decode_bytes: int
    row_bytes: int
    routed: tuple[RoutedExperts, ...]
    prompt_multiplied: ByArithmetic
    token_multiplied: ByArithmetic
    head_multiplied: ByArithmetic
    attention: tuple[AttentionGroup, ...]
    encoder_attention: tuple[AttentionGroup, ...]
    cross_attention: tuple[AttentionGroup, ...]
    scan_flops: int
    state_bytes: int
    cache_format: NumberFormat
    cache_ratio: tuple[int, int]
    main: NumberFormat
    encoder_decoder: bool

    @property
    def textbook_width(self) -> float:
        """Bytes per parameter that a whiteboard takes: the main format's, scales left out."""
        return float(self.main.bits) / 8

    def cache_bytes(self, elements: int) -> int:
        """Bytes of that many cached elements, scales of a quantised cache included, rounded up."""
        bits, per = self.cache_ratio
        return -(-elements * bits // (8 * per))


def build(
    architecture: Architecture,
    format_of: FormatOf,
    *,
    by_layer: bool,
    cache_format: NumberFormat,
    convolution_bytes: int = 2,
) -> Inventory:
    """The inventory of a model whose tensor ``name`` is stored in ``format_of(name, weight)``.

    ``by_layer``: whether the format can differ between equal layers. ``convolution_bytes``: width of the convolution
    state's elements (the model's own number format).
    """
    operations = tuple(_operations(architecture, format_of, by_layer))
    text = [op for op in operations if op.stage is Stage.EVERY_TOKEN]
    prompt = [op for op in operations if op.stage is Stage.PROMPT]
    head = [op for op in operations if op.stage is Stage.HEAD]
    state_blocks = [(b, n) for b, n in _blocks(architecture.layers) if isinstance(b, StateSpace)]
    return Inventory(
        operations=operations,
        stored_bytes=sum(op.stored_bytes for op in operations if op.stage is not Stage.DRAFT),
        draft_bytes=sum(op.stored_bytes for op in operations if op.stage is Stage.DRAFT),
        prefill_bytes=sum(map(_read_whole, [*text, *prompt])) + _head_bytes(architecture, operations),
        decode_bytes=sum(map(_read_whole, text)) + _head_bytes(architecture, operations),
        row_bytes=sum(op.bytes_each // op.shape[0] * op.layers for op in text if op.use is Use.LOOKED_UP),
        routed=tuple(_routed(text)),
        prompt_multiplied=_multiplied(prompt if architecture.encoder else text),
        token_multiplied=_multiplied(text),
        head_multiplied=_multiplied(head),
        attention=tuple(_attention_groups(architecture.layers)),
        encoder_attention=tuple(_attention_groups(architecture.encoder)),
        cross_attention=tuple(_cross_groups(architecture.layers)),
        scan_flops=sum(block.scan_flops * n for block, n in state_blocks),
        state_bytes=sum((b.state * b.state_bytes + b.convolution * convolution_bytes) * n for b, n in state_blocks),
        cache_format=cache_format,
        cache_ratio=cache_format.bits_per_weight.as_integer_ratio(),
        main=_main_format(operations),
        encoder_decoder=bool(architecture.encoder),
    )


def halved_weights(inventory: Inventory) -> Inventory:
    """The same model with half the weight bytes and unchanged arithmetic, for what-if questions."""
    return replace(
        inventory,
        prefill_bytes=inventory.prefill_bytes // 2,
        decode_bytes=inventory.decode_bytes // 2,
        routed=tuple(replace(group, bytes_per_expert=group.bytes_per_expert // 2) for group in inventory.routed),
    )


def _operations(architecture: Architecture, format_of: FormatOf, by_layer: bool) -> Iterator[Operation]:
    yield _operation(architecture.embedding, architecture.embedding.name, format_of, Stage.EVERY_TOKEN)
    yield from _layer_operations(architecture.encoder, architecture.encoder_names, format_of, by_layer, Stage.PROMPT)
    yield from _layer_operations(architecture.layers, architecture.layer_names, format_of, by_layer, Stage.EVERY_TOKEN)
    for weight in architecture.outer:
        if not weight.buffer:
            yield _operation(weight, weight.name, format_of, Stage.EVERY_TOKEN)
    head = architecture.lm_head
    if head is None:
        tied = architecture.embedding
        head = Weight(tied.name, tied.shape, Part.LM_HEAD, stored=False)
    yield _operation(head, head.name, format_of, Stage.HEAD)
    for component in architecture.components:
        stage = Stage.BESIDE if component.counted else Stage.DRAFT
        for weight in component.weights:
            if not weight.buffer:
                yield _operation(weight, weight.name, format_of, stage)


def _layer_operations(
    layers: tuple[Layer, ...], path: str, format_of: FormatOf, by_layer: bool, stage: Stage
) -> Iterator[Operation]:
    if by_layer:
        found: dict[Operation, int] = {}
        for index, layer in enumerate(layers):
            for operation in _one_layer(layer, f"{path}.{index}", format_of, stage, 1):
                found[operation] = found.get(operation, 0) + 1
        for operation, count in found.items():
            yield _times(operation, count)
        return
    for layer, count in layer_counts(layers):
        yield from _one_layer(layer, f"{path}.0", format_of, stage, count)


def _one_layer(layer: Layer, path: str, format_of: FormatOf, stage: Stage, count: int) -> Iterator[Operation]:
    skipped = any(isinstance(block, CrossAttention) and block.optional for block in layer.blocks)
    own = Stage.SKIPPED if skipped else stage
    memory = {w for b in layer.blocks if isinstance(b, CrossAttention) for w in b.memory_weights}
    active = {w: b.active for b in layer.blocks if isinstance(b, Moe) for w in b.weights if w.use is Use.ROUTED}
    for weight in layer_weights(layer):
        if weight.buffer:
            continue
        at = Stage.PROMPT if weight in memory and not skipped else own
        operation = _operation(weight, f"{path}.{weight.name}", format_of, at, active.get(weight))
        yield _times(operation, count, weight.name)


def _times(operation: Operation, layers: int, name: str | None = None) -> Operation:
    return Operation(
        name or operation.name,
        operation.part,
        operation.use,
        operation.stage,
        operation.shape,
        layers,
        operation.copies,
        operation.active,
        operation.format,
        operation.bytes_each,
        operation.stored,
        operation.is_bias,
    )


def _operation(
    weight: Weight, full_name: str, format_of: FormatOf, stage: Stage, active: int | None = None
) -> Operation:
    number_format = format_of(full_name, weight)
    return Operation(
        name=weight.name,
        part=weight.part,
        use=weight.use,
        stage=stage,
        shape=weight.shape,
        layers=1,
        copies=weight.copies,
        active=weight.copies if active is None else min(active, weight.copies),
        format=number_format,
        bytes_each=bytes_for(weight.shape, number_format),
        stored=weight.stored,
        is_bias=weight.is_bias,
    )


def _main_format(operations: Iterable[Operation]) -> NumberFormat:
    """The format that most parameters are stored in."""
    found: dict[NumberFormat, int] = {}
    for op in operations:
        found[op.format] = found.get(op.format, 0) + op.stored_parameters
    return max(found, key=lambda number_format: found[number_format])


def _read_whole(operation: Operation) -> int:
    """Bytes that every step reads whatever its tokens are."""
    return operation.stored_bytes if operation.use in (Use.MULTIPLIED, Use.READ) else 0


def _head_bytes(architecture: Architecture, operations: tuple[Operation, ...]) -> int:
    wanted = Part.EMBEDDING if architecture.tied else Part.LM_HEAD
    stage = Stage.EVERY_TOKEN if architecture.tied else Stage.HEAD
    named = architecture.vocabulary_head.name
    return sum(op.stored_bytes for op in operations if op.part is wanted and op.stage is stage and op.name == named)


def _multiplied(operations: Iterable[Operation]) -> ByArithmetic:
    found: dict[str, int] = {}
    for op in operations:
        if op.use in (Use.MULTIPLIED, Use.ROUTED) and not op.is_bias:
            found[op.format.fastest] = found.get(op.format.fastest, 0) + op.elements * op.layers * op.active
    return tuple(found.items())


def _routed(operations: Iterable[Operation]) -> Iterator[RoutedExperts]:
    found: dict[tuple[int, int, int], int] = {}
    for op in operations:
        if op.use is Use.ROUTED:
            key = (op.layers, op.copies, op.active)
            found[key] = found.get(key, 0) + op.bytes_each
    for (layers, experts, active), size in found.items():
        yield RoutedExperts(layers, experts, active, size)


def _blocks(layers: tuple[Layer, ...]) -> Iterator[tuple[Block, int]]:
    for layer, count in layer_counts(layers):
        for block in layer.blocks:
            yield block, count


def _attention_groups(layers: tuple[Layer, ...]) -> Iterator[AttentionGroup]:
    for block, count in _blocks(layers):
        match block:
            case Attention():
                yield _grouped(block, count)
            case LatentAttention():
                yield _latent(block, count)
            case CrossAttention() | StateSpace() | Mlp() | Moe():
                pass
            case _:
                assert_never(block)


def _grouped(block: Attention, layers: int) -> AttentionGroup:
    pair = 2 * block.heads * (block.key_dim + block.value_dim)
    kind = "sliding window" if block.window else "chunked attention" if block.chunk else "full attention"
    return AttentionGroup(
        kind=kind if block.caches else f"{kind}, shared cache",
        layers=layers,
        row=block.kv_heads * (block.key_dim + block.value_dim) if block.caches else 0,
        prefill_pair=pair,
        decode_pair=pair,
        window=block.window,
        chunk=block.chunk,
        selected=block.selected,
        indexer_row=block.indexer_dim,
        indexer_pair=2 * block.indexer_heads * block.indexer_dim,
        causal=block.causal,
    )


def _latent(block: LatentAttention, layers: int) -> AttentionGroup:
    """MLA: expanded heads in prefill, absorbed (everything in the latent) in decode; arXiv:2405.04434."""
    row = block.latent + block.rope_dim
    return AttentionGroup(
        kind="latent attention" if block.selected is None else "sparse latent attention",
        layers=layers,
        row=row,
        prefill_pair=2 * block.heads * (block.nope_dim + block.rope_dim + block.value_dim),
        decode_pair=2 * block.heads * (row + block.latent),
        selected=block.selected,
        indexer_row=block.indexer_dim,
        indexer_pair=2 * block.indexer_heads * block.indexer_dim,
    )


def _cross_groups(layers: tuple[Layer, ...]) -> Iterator[AttentionGroup]:
    for block, count in _blocks(layers):
        if isinstance(block, CrossAttention) and not block.optional:
            pair = 2 * block.heads * (block.key_dim + block.value_dim)
            row = block.kv_heads * (block.key_dim + block.value_dim)
            yield AttentionGroup("cross-attention", count, row, pair, pair, causal=False)
