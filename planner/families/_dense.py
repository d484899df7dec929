"""What the plain decoder families share: the usual keys, per-layer windows, fused projections, the outer tensors.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from planner.architecture import Architecture, Attention, Component, Layer, Mlp, Part, Use, Weight
from planner.blocks import embedding, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch


class DenseConfig(FamilyConfig):
    """Keys that Llama's descendants spell alike."""

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    intermediate_size: Count
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None

    @property
    def kv_heads(self) -> int:
        """Key and value heads: as many as query heads where the file gives none."""
        kv_heads = self.num_key_value_heads or self.num_attention_heads
        return grouped(self, self.num_attention_heads, kv_heads)

    @property
    def head_size(self) -> int:
        """The width of a head, from the hidden size where the file does not state it."""
        return self.head_dim or self.head_width(self.hidden_size, self.num_attention_heads)


def grouped(config: FamilyConfig, heads: int, kv_heads: int, key: str = "num_key_value_heads") -> int:
    """``kv_heads``, once it is clear that every one serves the same number of query heads.

    Raises:
        PlanError: the division leaves a remainder.
    """
    if heads % kv_heads:
        raise config.refusal(key, f"is {kv_heads}, which does not divide the {heads} attention heads")
    return kv_heads


def routed(config: FamilyConfig, active: int, experts: int, key: str = "num_experts_per_tok") -> int:
    """``active``, once it is clear that there are that many experts.

    Raises:
        PlanError: a token would be routed to more experts than there are.
    """
    if active > experts:
        raise config.refusal(key, f"is {active}, more than the {experts} experts of a layer")
    return active


def windows(
    config: FamilyConfig,
    layer_types: list[str] | None,
    *,
    layers: int,
    window: int | None,
    slides: Callable[[int], bool],
) -> tuple[int | None, ...]:
    """The sliding window of every layer, None where a layer sees all tokens.

    ``layer_types`` decides where the file has it, otherwise ``slides`` by the layer's index.

    Raises:
        PlanError: the list has another length than the stack, an unknown entry, or slides without a window.
    """
    if not layer_types:
        return tuple(window if slides(index) else None for index in range(layers))
    if len(layer_types) != layers:
        raise config.refusal("layer_types", f"has {len(layer_types)} entries for {layers} layers")
    for kind in layer_types:
        if kind not in ("full_attention", "sliding_attention"):
            raise config.refusal("layer_types", f"has the unknown entry {kind!r}")
    if window is None and "sliding_attention" in layer_types:
        raise config.refusal("layer_types", "has sliding layers, but no sliding window is set")
    return tuple(window if kind == "sliding_attention" else None for kind in layer_types)


def fused_attention(
    names: tuple[str, str],
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    bias: bool = False,
    output_bias: bool = False,
    window: int | None = None,
    extra: tuple[Weight, ...] = (),
) -> Attention:
    """Attention of checkpoints that hold query, key and value in one matrix; ``names``: that matrix, the output's."""
    width = (heads + 2 * kv_heads) * head_dim
    weights = linear(names[0], inputs=hidden, outputs=width, part=Part.ATTENTION, bias=bias)
    weights += linear(names[1], inputs=heads * head_dim, outputs=hidden, part=Part.ATTENTION, bias=output_bias)
    return Attention(heads, kv_heads, head_dim, head_dim, weights + extra, window=window)


def bare_mlp(*, hidden: int, width: int, bias: bool = True) -> Mlp:
    """The two matrices of fairseq's descendants, which sit in the layer itself: ``fc1`` and ``fc2``."""
    return Mlp(
        linear("fc1", inputs=hidden, outputs=width, part=Part.MLP, bias=bias)
        + linear("fc2", inputs=width, outputs=hidden, part=Part.MLP, bias=bias)
    )


def positions(name: str, *, rows: int, width: int) -> Weight:
    """A learned position table; a step reads one row per token."""
    return Weight(name, (rows, width), Part.OTHER, Use.LOOKED_UP)


def head_bias(name: str, vocabulary: int) -> tuple[Weight, ...]:
    """The bias of an output head; it is there whether the matrix is tied or not."""
    return (Weight(name, (vocabulary,), Part.LM_HEAD, Use.READ, is_bias=True),)


def decoder(
    config: DenseConfig,
    *,
    family: str,
    layers: Iterable[Layer],
    final_norm: str = "model.norm",
    norm_bias: bool = False,
    has_head_bias: bool = False,
    components: tuple[Component, ...] = (),
    notes: tuple[str, ...] = (),
) -> Architecture:
    """The layers with Llama's outer tensors around them: ``model.embed_tokens``, a final norm, ``lm_head``."""
    hidden, vocabulary = config.hidden_size, config.vocab_size
    outer = norm(final_norm, hidden, bias=norm_bias)
    return Architecture(
        family=family,
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=tuple(layers),
        embedding=embedding("model.embed_tokens", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=outer + (head_bias("lm_head", vocabulary) if has_head_bias else ()),
        components=components,
        max_context=config.max_position_embeddings,
        notes=notes,
        dtype=config.dtype,
    )
