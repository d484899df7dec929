"""What a model is made of, independent of any ``config.json`` dialect.

A model is a tuple of layers, written out per layer (equal layers share one object). A layer is a tuple of blocks
(attention, state space, MLP, mixture of experts, …) plus its own small weights (norms). Every block names the tensors
it stores, so counting is a sum over shapes, and a number format can be assigned tensor by tensor.

Blocks form a union, not a class tree: ``inventory`` matches on it and the type checker finds every place that a new
block needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod


class Part(StrEnum):
    """Where a parameter is accounted. The parts of a model sum to its total."""

    EMBEDDING = "embedding"
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    MLP = "mlp"
    EXPERTS = "experts"
    SHARED_EXPERTS = "shared_experts"
    ROUTER = "router"
    NORM = "norm"
    STATE_SPACE = "state_space"
    VISION = "vision"
    MTP = "mtp"
    OTHER = "other"


class Use(StrEnum):
    """What a step does with a weight."""

    MULTIPLIED = "multiplied"  # read whole, 2 FLOP per element and token
    ROUTED = "routed"  # an expert's: read when a token is routed to it
    LOOKED_UP = "looked up"  # one row per token (embedding tables)
    READ = "read"  # read whole, arithmetic not worth counting (norms, biases)
    UNUSED = "unused"  # stored, not touched by a text step


@dataclass(frozen=True, slots=True)
class Weight:
    """One tensor, or ``copies`` equal tensors (experts).

    ``name`` is the module path inside its owner as published checkpoints spell it (``self_attn.q_proj``), without
    ``.weight``. ``shape`` is ``(outputs, inputs)`` for a linear layer. ``stored`` is False for a further use of a
    tensor that is stored elsewhere (shared blocks): it is multiplied again, but neither stored nor read twice.
    ``buffer`` marks a tensor of the file that is no parameter (router correction bias).
    """

    name: str
    shape: tuple[int, ...]
    part: Part
    use: Use = Use.MULTIPLIED
    copies: int = 1
    is_bias: bool = False
    stored: bool = True
    buffer: bool = False

    @property
    def size(self) -> int:
        """Elements of one copy."""
        return prod(self.shape)

    @property
    def elements(self) -> int:
        """Elements of all copies."""
        return self.size * self.copies


@dataclass(frozen=True, slots=True)
class Attention:
    """Softmax attention over cached keys and values; ``key_dim`` and ``value_dim`` are per head.

    ``window``: a query attends at most that many keys, itself included. ``chunk``: it attends the keys of its own
    chunk of that length. ``caches`` is False where the layer reads another layer's cache. ``causal`` is False in
    encoders. ``selected``: the number of tokens that a sparse indexer lets a query attend, ``indexer_dim`` elements
    per token of the indexer's own key cache, ``indexer_heads`` its query heads.
    """

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    weights: tuple[Weight, ...]
    window: int | None = None
    chunk: int | None = None
    caches: bool = True
    causal: bool = True
    selected: int | None = None
    indexer_dim: int = 0
    indexer_heads: int = 0


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA, DeepSeek-V2, arXiv:2405.04434): one latent row per token is cached.

    The cached row holds ``latent`` + ``rope_dim`` elements. Decode runs absorbed (scores and values in the latent),
    prefill expanded (``nope_dim`` + ``rope_dim`` wide keys, ``value_dim`` wide values per head). ``selected``: the
    number of tokens that a sparse indexer lets a query attend; ``indexer_dim``: elements per token of the indexer's
    own key cache; ``indexer_heads``: its query heads. ``low_rank_query`` says that queries come from a latent too.
    """

    heads: int
    latent: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    weights: tuple[Weight, ...]
    selected: int | None = None
    indexer_dim: int = 0
    indexer_heads: int = 0


@dataclass(frozen=True, slots=True)
class CrossAttention:
    """Attention over the tokens of an encoder or a picture; its keys and values are made once per sequence.

    ``memory_weights`` turn encoder tokens into keys and values; ``weights`` work on the decoder's own tokens.
    ``optional`` is True where a text-only request skips the layer (Llama 3.2 Vision).
    """

    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    weights: tuple[Weight, ...]
    memory_weights: tuple[Weight, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class StateSpace:
    """A mixer with a constant state per sequence: Mamba, gated delta net, lightning attention, RWKV, short conv.

    ``state`` elements are kept in ``state_bytes`` bytes each (fp32 unless the family says otherwise);
    ``convolution`` elements (channels × kernel width) in the model's own number format. ``scan_flops`` is the
    arithmetic per token besides the weights.
    """

    kind: str
    weights: tuple[Weight, ...]
    state: int
    convolution: int = 0
    scan_flops: int = 0
    state_bytes: int = 4


@dataclass(frozen=True, slots=True)
class Mlp:
    """A dense feed-forward block, gated or not."""

    weights: tuple[Weight, ...]


@dataclass(frozen=True, slots=True)
class Moe:
    """A mixture of experts: ``active`` of ``experts`` routed experts per token.

    ``weights`` holds the routed matrices (``use`` ROUTED, ``copies`` = experts), the router, and shared experts.
    """

    experts: int
    active: int
    weights: tuple[Weight, ...]


Block = Attention | LatentAttention | CrossAttention | StateSpace | Mlp | Moe


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its blocks in order, and the weights that belong to none of them (norms, scales)."""

    blocks: tuple[Block, ...]
    weights: tuple[Weight, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """A part beside the text model (vision tower, projector, MTP module, adapter).

    ``counted``: whether its parameters belong to the model's total (a vision tower's do, an MTP module's do not).
    """

    name: str
    weights: tuple[Weight, ...]
    counted: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Architecture:
    """A whole model. Compared by identity, so that it is a cheap key of caches.

    ``lm_head`` is None where the head is tied to the embedding. ``outer`` are weights outside all layers (final
    norm, learned positions, embedding projections). ``encoder`` holds the encoder's layers of an encoder-decoder.
    ``unread`` names parts that the config describes and that are not counted. ``assumed`` lists what was taken from
    the family's defaults because the config does not say. ``layer_names`` is the path of the layer list in published
    checkpoints.
    """

    family: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[Layer, ...]
    embedding: Weight
    lm_head: Weight | None
    outer: tuple[Weight, ...] = ()
    encoder: tuple[Layer, ...] = ()
    components: tuple[Component, ...] = ()
    max_context: int | None = None
    unread: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    layer_names: str = "model.layers"
    encoder_names: str = "encoder.block"
    dtype: str | None = None

    @property
    def tied(self) -> bool:
        """Whether the LM head is the embedding table."""
        return self.lm_head is None

    @property
    def vocabulary_head(self) -> Weight:
        """The matrix that makes logits, tied or not."""
        return self.embedding if self.lm_head is None else self.lm_head


def layer_weights(layer: Layer) -> tuple[Weight, ...]:
    """Every weight of a layer, its blocks' and its own."""
    found: list[Weight] = []
    for block in layer.blocks:
        found.extend(block.weights)
        if isinstance(block, CrossAttention):
            found.extend(block.memory_weights)
    found.extend(layer.weights)
    return tuple(found)
