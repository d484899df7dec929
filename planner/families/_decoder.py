"""What the plain decoder-only families share: the usual keys, checks of per-layer lists, and the assembled model.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from planner.architecture import Architecture, Attention, Component, Layer, Mlp, Moe, Part, Weight
from planner.blocks import embedding, grouped_query_attention, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch

FULL, SLIDING = "full_attention", "sliding_attention"
DENSE, SPARSE = "dense", "sparse"

Entry = TypeVar("Entry")
Kind = TypeVar("Kind", bound=Hashable)


class Decoder(FamilyConfig):
    """The keys that almost every decoder-only family reads, under their usual names."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None

    @property
    def key_value_heads(self) -> int:
        """Cached heads; those of the queries where the file names none.

        Raises:
            PlanError: they do not divide the query heads.
        """
        heads = self.num_key_value_heads or self.num_attention_heads
        if self.num_attention_heads % heads:
            raise self.refusal(
                "num_key_value_heads", f"is {heads} and does not divide the {self.num_attention_heads} query heads"
            )
        return heads

    @property
    def head_size(self) -> int:
        """Width of one head, ``hidden_size`` / heads where the file does not say."""
        return self.head_dim or self.head_width(self.hidden_size, self.num_attention_heads)


class SparseDecoder(Decoder):
    """A decoder whose first layers are dense and whose later ones hold experts, every one of them."""

    num_experts_per_tok: Count
    moe_layer_freq: Count | None = None


def per_layer(config: Decoder, key: str, values: Sequence[Entry]) -> Sequence[Entry]:
    """A list of the file, checked to have one entry a layer.

    Raises:
        PlanError: it has more or fewer.
    """
    if len(values) != config.num_hidden_layers:
        raise config.refusal(key, f"has {len(values)} entries for {config.num_hidden_layers} layers")
    return values


def windows(
    config: Decoder, kinds: Sequence[str], window: int | None, *, key: str = "sliding_window"
) -> tuple[int | None, ...]:
    """The window of each layer of ``layer_types``, None for full attention.

    A window that reaches the longest context caps nothing and counts as none.

    Raises:
        PlanError: a list of the wrong length, an unknown entry, or sliding layers without a window.
    """
    found: list[int | None] = []
    for kind in per_layer(config, "layer_types", kinds):
        if kind not in (FULL, SLIDING):
            raise config.refusal("layer_types", f"holds {kind!r}, which this family does not have")
        if kind == SLIDING and window is None:
            raise config.refusal(key, "is missing or null, and layer_types holds sliding layers")
        found.append(window if kind == SLIDING else None)
    longest = config.max_position_embeddings
    return tuple(None if size is not None and longest is not None and size >= longest else size for size in found)


def sparse_layers(config: Decoder, kinds: Sequence[str] | None, *, dense_first: int) -> tuple[bool, ...]:
    """Which layers hold experts: by ``mlp_layer_types`` where the file has it, else all but the first few.

    Raises:
        PlanError: a list of the wrong length, an unknown entry, more dense layers than layers, or gaps between sparse
            ones, which no published model of these families has.
    """
    if isinstance(config, SparseDecoder) and (config.moe_layer_freq or 1) != 1:
        raise config.refusal(
            "moe_layer_freq", f"is {config.moe_layer_freq}; this family has experts in every later layer"
        )
    if kinds is None:
        if dense_first > config.num_hidden_layers:
            raise config.refusal(
                "first_k_dense_replace", f"is {dense_first}, more than the {config.num_hidden_layers} layers"
            )
        return tuple(number >= dense_first for number in range(config.num_hidden_layers))
    for kind in per_layer(config, "mlp_layer_types", kinds):
        if kind not in (DENSE, SPARSE):
            raise config.refusal("mlp_layer_types", f"holds {kind!r}; an entry is 'dense' or 'sparse'")
    return tuple(kind == SPARSE for kind in kinds)


def active_experts(config: FamilyConfig, key: str, active: int, experts: int) -> int:
    """The number of experts that a token is routed to.

    Raises:
        PlanError: it is more than there are.
    """
    if active > experts:
        raise config.refusal(key, f"is {active}, more than the {experts} experts")
    return active


def stack(kinds: Iterable[Kind], build: Callable[[Kind], Layer]) -> tuple[Layer, ...]:
    """One layer per entry; equal entries share one object."""
    built: dict[Kind, Layer] = {}
    return tuple(built[kind] if kind in built else built.setdefault(kind, build(kind)) for kind in kinds)


def attention_of(
    config: Decoder,
    *,
    bias: bool = False,
    output_bias: bool = False,
    head_norms: bool = False,
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    window: int | None = None,
    prefix: str = "self_attn",
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
    extra: tuple[Weight, ...] = (),
) -> Attention:
    """Grouped-query attention of the config's widths; ``head_norms``: one norm for each head's query and key."""
    width = config.head_size
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=width,
        bias=bias,
        output_bias=output_bias,
        query_key_norm=(width, width) if head_norms else None,
        norm_names=norm_names,
        window=window,
        prefix=prefix,
        names=names,
        extra=extra,
    )


def fused_attention(
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    names: tuple[str, str],
    bias: bool = False,
    output_bias: bool = False,
    extra: tuple[Weight, ...] = (),
) -> Attention:
    """Attention whose queries, keys and values come from one matrix; ``names``: that matrix and the output's."""
    fused, output = names
    weights = linear(fused, inputs=hidden, outputs=(heads + 2 * kv_heads) * head_dim, part=Part.ATTENTION, bias=bias)
    weights += linear(output, inputs=heads * head_dim, outputs=hidden, part=Part.ATTENTION, bias=output_bias)
    return Attention(heads, kv_heads, head_dim, head_dim, weights + extra)


def fused_mlp(*, hidden: int, width: int, names: tuple[str, str], bias: bool = False) -> Mlp:
    """A gated block whose gate and up matrices are one; ``names``: that matrix and the one down."""
    return Mlp(
        linear(names[0], inputs=hidden, outputs=2 * width, part=Part.MLP, bias=bias)
        + linear(names[1], inputs=width, outputs=hidden, part=Part.MLP, bias=bias)
    )


def norms(names: Iterable[str], width: int, *, bias: bool = False) -> tuple[Weight, ...]:
    """Several normalisations of one width."""
    return tuple(weight for name in names for weight in norm(name, width, bias=bias))


def renamed(moe: Moe, names: Mapping[str, str]) -> Moe:
    """``moe`` with the routed matrices' last names replaced (``gate_proj`` -> ``w1``)."""

    def rename(weight: Weight) -> Weight:
        path, _, last = weight.name.rpartition(".")
        routed = weight.part is Part.EXPERTS and last in names
        return replace(weight, name=f"{path}.{names[last]}") if routed else weight

    return replace(moe, weights=tuple(rename(weight) for weight in moe.weights))


def as_draft(layer: Layer) -> tuple[Weight, ...]:
    """A layer's weights as those of a draft (MTP) module."""
    found = [weight for block in layer.blocks for weight in block.weights]
    return tuple(replace(weight, part=Part.MTP) for weight in (*found, *layer.weights))


def decoder(
    config: Decoder,
    *,
    family: str,
    layers: tuple[Layer, ...],
    outer: tuple[Weight, ...] | None = None,
    embedding_name: str = "model.embed_tokens",
    head_name: str = "lm_head",
    layer_names: str = "model.layers",
    components: tuple[Component, ...] = (),
    notes: tuple[str, ...] = (),
    unread: tuple[str, ...] = (),
) -> Architecture:
    """The whole model around ``layers``; ``outer`` is one final norm unless given."""
    hidden, vocabulary = config.hidden_size, config.vocab_size
    return Architecture(
        family=family,
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=layers,
        embedding=embedding(embedding_name, rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings, name=head_name),
        outer=norm("model.norm", hidden) if outer is None else outer,
        components=components,
        max_context=config.max_position_embeddings,
        notes=notes,
        unread=unread,
        layer_names=layer_names,
        dtype=config.dtype,
    )
