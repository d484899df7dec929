"""What the Gemma dialects share: their key set, their layer pattern, norms on both sides of a block.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.architecture import Attention, Layer, Mlp, Weight
from planner.blocks import grouped_query_attention
from planner.config import Count, Switch
from planner.families._decoder import Decoder, norms

BOTH_SIDES = ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm")


class GemmaDecoder(Decoder):
    """Keys of every Gemma; published files leave out the head dimension, the biases and the tie flag."""

    head_dim: Count = 256
    intermediate_size: Count
    attention_bias: Switch = False
    tie_word_embeddings: Switch = True
    use_bidirectional_attention: Switch | str | None = None


def causal(config: GemmaDecoder) -> None:
    """Let a decoder pass, where every text token sees the earlier ones only.

    Raises:
        PlanError: all tokens see each other, as in embedding models.
    """
    if config.use_bidirectional_attention in (True, "all"):
        raise config.refusal(
            "use_bidirectional_attention",
            f"is {config.use_bidirectional_attention!r}: text tokens see later ones, so this model does not generate",
        )


def attention_of(config: GemmaDecoder, *, head_norms: bool = False, window: int | None = None) -> Attention:
    """Grouped-query attention whose one bias flag is that of all four projections."""
    width = config.head_dim
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=width,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(width, width) if head_norms else None,
        window=window,
    )


def sandwich(*blocks: Attention | Mlp, hidden: int, extra: tuple[Weight, ...] = ()) -> Layer:
    """A layer with a norm before and after each of its two blocks."""
    return Layer(blocks, norms(BOTH_SIDES, hidden) + extra)


def shares_cache(config: Decoder, kinds: Sequence[str], shared: int) -> tuple[bool, ...]:
    """Which layers read the cache of an earlier layer of their kind: the last ``shared`` ones.

    Raises:
        PlanError: no layer is left to fill the cache of a kind.
    """
    first = len(kinds) - shared
    if shared and (first <= 0 or set(kinds[:first]) != set(kinds)):
        raise config.refusal(
            "num_kv_shared_layers",
            f"is {shared} of {len(kinds)} layers: the others fill no cache for some kind of layer that reads one",
        )
    return tuple(number >= first for number in range(len(kinds)))


def unused_projections(layers: Sequence[tuple[Attention, Attention]]) -> tuple[str, ...]:
    """A note on what published files hold besides, from pairs of a sharing attention and its like that caches."""
    surplus = sum(
        sum(w.elements for w in whole.weights) - sum(w.elements for w in shared.weights) for shared, whole in layers
    )
    if not surplus:
        return ()
    return (
        f"published files also hold key and value projections of the {len(layers)} layers that read another layer's "
        f"cache ({surplus:,} elements that nothing uses, not counted)",
    )
