"""Random small models, machines and workloads, for the property tests.

Widths are small on purpose: every law under test is about how counts combine, and small ones can be counted by hand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

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
)
from planner.blocks import (
    embedding,
    gated_mlp,
    grouped_query_attention,
    latent_attention,
    linear,
    lm_head,
    mixture_of_experts,
    norm,
    plain_mlp,
    pre_norm_layer,
)
from planner.inventory import AttentionGroup, Inventory, build
from planner.models import Model
from planner.precision import FORMATS
from planner.roofline import Machine
from planner.workload import Workload

# The same examples on every machine, none of them timed, nothing left on disk.
checked = settings(deadline=None, max_examples=60, derandomize=True, database=None)

ARITHMETIC = ("bf16", "fp8", "fp16", "fp32", "int8")


def inventory(architecture: Architecture, *, weights: str = "bf16", cache: str = "bf16") -> Inventory:
    """The inventory of a model whose every tensor is stored in one format."""
    return build(architecture, lambda _name, _weight: FORMATS[weights], by_layer=False, cache_format=FORMATS[cache])


def model(architecture: Architecture, name: str = "test/model") -> Model:
    """The model of an architecture, as if its config had been read."""
    return Model(name, f"{name}/config.json", {}, architecture)


def transformer(
    *blocks: Block,
    hidden: int,
    vocabulary: int,
    layers: int,
    tied: bool = False,
    dtype: str = "bfloat16",
    **others: Any,
) -> Architecture:
    """A stack of equal pre-norm layers around ``blocks``."""
    mixing = [block for block in blocks if isinstance(block, Attention | LatentAttention | Mlp | Moe)]
    assert len(mixing) == len(blocks)
    return Architecture(
        family="test",
        model_type="test",
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(pre_norm_layer(*mixing, hidden=hidden),) * layers,
        embedding=embedding("model.embed_tokens", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=tied),
        outer=norm("model.norm", hidden),
        dtype=dtype,
        **others,
    )


def llama(
    *, hidden: int, layers: int, heads: int, kv_heads: int, width: int, vocabulary: int, tied: bool = False
) -> Architecture:
    """A Llama of these widths."""
    attention = grouped_query_attention(hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=hidden // heads)
    mlp = gated_mlp(hidden=hidden, width=width)
    return transformer(attention, mlp, hidden=hidden, vocabulary=vocabulary, layers=layers, tied=tied)


LLAMA_8B = llama(hidden=4096, layers=32, heads=32, kv_heads=8, width=14336, vocabulary=128256)


# --- Parts ------------------------------------------------------------------------------------------------------------

caps = st.integers(1, 40)


@st.composite
def grouped(draw: st.DrawFn, hidden: int) -> Attention:
    """Full, windowed or chunked attention with any head layout, with or without a cache of its own."""
    kv_heads = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(("full", "window", "chunk")))
    return grouped_query_attention(
        hidden=hidden,
        heads=kv_heads * draw(st.integers(1, 4)),
        kv_heads=kv_heads,
        head_dim=4 * draw(st.integers(1, 4)),
        bias=draw(st.booleans()),
        window=draw(caps) if kind == "window" else None,
        chunk=draw(caps) if kind == "chunk" else None,
        caches=draw(st.integers(0, 4)) > 0,
    )


@st.composite
def latent(draw: st.DrawFn, hidden: int) -> LatentAttention:
    """Multi-head latent attention, with or without a sparse indexer."""
    sparse = draw(st.booleans())
    return latent_attention(
        hidden=hidden,
        heads=draw(st.integers(1, 4)),
        query_rank=draw(st.sampled_from((None, 8))),
        latent=draw(st.integers(4, 16)),
        nope_dim=8,
        rope_dim=4,
        value_dim=8,
        selected=draw(caps) if sparse else None,
        indexer_dim=8 if sparse else 0,
        indexer_heads=2 if sparse else 0,
    )


@st.composite
def state_space(draw: st.DrawFn, hidden: int) -> StateSpace:
    """A mixer with a constant state."""
    weights = linear("mixer.in_proj", inputs=hidden, outputs=3 * hidden, part=Part.STATE_SPACE)
    weights += linear("mixer.out_proj", inputs=hidden, outputs=hidden, part=Part.STATE_SPACE)
    return StateSpace(
        "mamba",
        weights,
        state=draw(st.integers(1, 500)),
        convolution=draw(st.integers(0, 100)),
        scan_flops=draw(st.integers(0, 500)),
    )


@st.composite
def experts(draw: st.DrawFn, hidden: int) -> Moe:
    """Routed experts with or without a shared one."""
    count = draw(st.integers(2, 16))
    return mixture_of_experts(
        hidden=hidden,
        width=draw(st.integers(4, 32)),
        experts=count,
        active=draw(st.integers(1, count)),
        gated=draw(st.booleans()),
        shared_width=draw(st.sampled_from((0, 16))),
        correction_buffer=draw(st.booleans()),
    )


@st.composite
def feed_forward(draw: st.DrawFn, hidden: int) -> Mlp | Moe:
    """A dense block, gated or not, or a mixture of experts."""
    kind = draw(st.sampled_from(("gated", "plain", "experts")))
    if kind == "experts":
        return draw(experts(hidden))
    width = draw(st.integers(4, 64))
    return gated_mlp(hidden=hidden, width=width) if kind == "gated" else plain_mlp(hidden=hidden, width=width)


@st.composite
def layer(draw: st.DrawFn, hidden: int) -> Layer:
    """One layer: a sequence mixer and a feed-forward block."""
    mixer: Block = draw(st.one_of(grouped(hidden), latent(hidden), state_space(hidden)))
    return Layer((mixer, draw(feed_forward(hidden))), norm("input_layernorm", hidden))


@st.composite
def architectures(draw: st.DrawFn) -> Architecture:
    """A decoder of one to three kinds of layer, each a few times."""
    hidden = 8 * draw(st.integers(1, 6))
    vocabulary = draw(st.integers(2, 300))
    kinds = draw(st.lists(st.tuples(layer(hidden), st.integers(1, 3)), min_size=1, max_size=3))
    return Architecture(
        family="test",
        model_type="test",
        hidden=hidden,
        vocabulary=vocabulary,
        layers=tuple(kind for kind, times in kinds for _ in range(times)),
        embedding=embedding("embed", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=draw(st.booleans())),
        outer=norm("norm", hidden),
        dtype="bfloat16",
    )


@st.composite
def encoder_decoders(draw: st.DrawFn) -> Architecture:
    """An encoder over the prompt and a decoder that attends its output."""
    hidden, vocabulary = 16, draw(st.integers(2, 200))
    own = replace(draw(grouped(hidden)), window=None, chunk=None)
    memory = linear("cross.k_proj", inputs=hidden, outputs=16, part=Part.ATTENTION)
    memory += linear("cross.v_proj", inputs=hidden, outputs=16, part=Part.ATTENTION)
    queries = linear("cross.q_proj", inputs=hidden, outputs=16, part=Part.ATTENTION)
    cross = CrossAttention(4, 4, 4, 4, queries, memory)
    mlp = gated_mlp(hidden=hidden, width=draw(st.integers(4, 32)))
    return Architecture(
        family="test",
        model_type="test",
        hidden=hidden,
        vocabulary=vocabulary,
        layers=(Layer((own, cross, mlp)),) * draw(st.integers(1, 4)),
        encoder=(Layer((replace(own, causal=False, caches=True), mlp)),) * draw(st.integers(1, 4)),
        embedding=embedding("embed", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=draw(st.booleans())),
        dtype="bfloat16",
    )


@st.composite
def attention_groups(draw: st.DrawFn) -> AttentionGroup:
    """Layers that attend everything, a window, a chunk, a selection, or both ways."""
    kind = draw(st.sampled_from(("full", "window", "chunk", "selected", "both ways")))
    return AttentionGroup(
        kind,
        layers=1,
        row=1,
        prefill_pair=1,
        decode_pair=1,
        window=draw(caps) if kind == "window" else None,
        chunk=draw(caps) if kind == "chunk" else None,
        selected=draw(caps) if kind == "selected" else None,
        causal=kind != "both ways",
    )


rates = st.floats(1e3, 1e13)


@st.composite
def machines(draw: st.DrawFn, *, cache: bool = True, devices: int = 4, compute: bool = True) -> Machine:
    """Ceilings from a pocket calculator's to a rack's; ``compute`` False: without a compute ceiling."""
    count = draw(st.integers(1, devices))
    return Machine(
        bandwidth=draw(rates),
        peaks=dict.fromkeys(ARITHMETIC, draw(rates) if compute else None),
        attention_peak=draw(rates) if compute else None,
        last_level_cache=draw(st.sampled_from((0, 1_000, 100_000))) if cache else 0,
        devices=count,
        link=draw(st.one_of(st.none(), rates)) if count > 1 else None,
        message_bytes=draw(st.integers(0, 10_000)),
    )


batches = st.integers(1, 300)
prompts = st.integers(1, 200)
outputs = st.integers(1, 120)
workloads = st.builds(Workload, prompt=prompts, out=outputs, batch=batches)
