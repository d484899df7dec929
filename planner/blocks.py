"""Builders for the blocks that most families share; a family passes its own widths, switches and names.

Every function takes keywords only and returns the tensors with the names that published checkpoints use, relative to
the layer (``self_attn.q_proj``). Widths are elements.
"""

from __future__ import annotations

from planner.architecture import Attention, LatentAttention, Layer, Mlp, Moe, Part, Use, Weight


def linear(
    name: str, *, inputs: int, outputs: int, part: Part, bias: bool = False, use: Use = Use.MULTIPLIED, copies: int = 1
) -> tuple[Weight, ...]:
    """A matrix of ``outputs`` × ``inputs``, with its bias vector if it has one."""
    matrix = Weight(name, (outputs, inputs), part, use, copies)
    if not bias:
        return (matrix,)
    vector_use = use if use is Use.ROUTED else Use.READ
    return (matrix, Weight(name, (outputs,), part, vector_use, copies, is_bias=True))


def norm(name: str, width: int, *, bias: bool = False) -> tuple[Weight, ...]:
    """A normalisation's weight vector (RMSNorm), with a bias for LayerNorm."""
    weight = Weight(name, (width,), Part.NORM, Use.READ)
    return (weight, Weight(name, (width,), Part.NORM, Use.READ, is_bias=True)) if bias else (weight,)


def vector(name: str, shape: int | tuple[int, ...], part: Part, *, is_bias: bool = False) -> tuple[Weight, ...]:
    """A small tensor that a step reads whole and that costs no arithmetic worth counting."""
    return (Weight(name, (shape,) if isinstance(shape, int) else shape, part, Use.READ, is_bias=is_bias),)


def buffer(name: str, width: int, part: Part) -> tuple[Weight, ...]:
    """A tensor of the checkpoint that is no parameter."""
    return (Weight(name, (width,), part, Use.READ, buffer=True),)


def embedding(name: str, *, rows: int, width: int) -> Weight:
    """The token embedding table; a step reads one row per token."""
    return Weight(name, (rows, width), Part.EMBEDDING, Use.LOOKED_UP)


def lm_head(*, vocabulary: int, hidden: int, tied: bool, name: str = "lm_head") -> Weight | None:
    """The output head, or None where it is the embedding table."""
    return None if tied else Weight(name, (vocabulary, hidden), Part.LM_HEAD)


def grouped_query_attention(
    *,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    value_dim: int | None = None,
    bias: bool = False,
    output_bias: bool = False,
    query_key_norm: tuple[int, int] | None = None,
    norm_bias: bool = False,
    output_gate: bool = False,
    window: int | None = None,
    chunk: int | None = None,
    caches: bool = True,
    shares_key: bool = False,
    prefix: str = "self_attn",
    names: tuple[str, str, str, str] = ("q_proj", "k_proj", "v_proj", "o_proj"),
    norm_names: tuple[str, str] = ("q_norm", "k_norm"),
    extra: tuple[Weight, ...] = (),
) -> Attention:
    """Multi-head, multi-query or grouped-query attention with separate projections.

    ``query_key_norm`` gives the widths of the query's and the key's norm. ``output_gate`` doubles the query
    projection. A layer with ``caches`` False has no key and value projections of its own. ``shares_key``: values are
    the keys, no value projection is stored.
    """
    value_dim = head_dim if value_dim is None else value_dim
    query, key, value, output = (f"{prefix}.{name}" for name in names)
    weights = linear(
        query, inputs=hidden, outputs=heads * head_dim * (2 if output_gate else 1), part=Part.ATTENTION, bias=bias
    )
    if caches:
        weights += linear(key, inputs=hidden, outputs=kv_heads * head_dim, part=Part.ATTENTION, bias=bias)
        if not shares_key:
            weights += linear(value, inputs=hidden, outputs=kv_heads * value_dim, part=Part.ATTENTION, bias=bias)
    weights += linear(output, inputs=heads * value_dim, outputs=hidden, part=Part.ATTENTION, bias=output_bias)
    if query_key_norm is not None:
        weights += norm(f"{prefix}.{norm_names[0]}", query_key_norm[0], bias=norm_bias)
        if caches:
            weights += norm(f"{prefix}.{norm_names[1]}", query_key_norm[1], bias=norm_bias)
    return Attention(heads, kv_heads, head_dim, value_dim, weights + extra, window=window, chunk=chunk, caches=caches)


def latent_attention(
    *,
    hidden: int,
    heads: int,
    query_rank: int | None,
    latent: int,
    nope_dim: int,
    rope_dim: int,
    value_dim: int,
    bias: bool = False,
    prefix: str = "self_attn",
    selected: int | None = None,
    indexer_dim: int = 0,
    indexer_heads: int = 0,
    extra: tuple[Weight, ...] = (),
) -> LatentAttention:
    """Multi-head latent attention; ``query_rank`` None means a full query projection.

    ``bias`` is that of the two down-projections and the output projection. Shapes: DeepSeek-V2, arXiv:2405.04434.
    """
    key_dim = nope_dim + rope_dim

    def attention(name: str, inputs: int, outputs: int, has_bias: bool = False) -> tuple[Weight, ...]:
        return linear(f"{prefix}.{name}", inputs=inputs, outputs=outputs, part=Part.ATTENTION, bias=has_bias)

    if query_rank is None:
        weights = attention("q_proj", hidden, heads * key_dim)
    else:
        weights = attention("q_a_proj", hidden, query_rank, bias)
        weights += norm(f"{prefix}.q_a_layernorm", query_rank)
        weights += attention("q_b_proj", query_rank, heads * key_dim)
    weights += attention("kv_a_proj_with_mqa", hidden, latent + rope_dim, bias)
    weights += norm(f"{prefix}.kv_a_layernorm", latent)
    weights += attention("kv_b_proj", latent, heads * (nope_dim + value_dim))
    weights += attention("o_proj", heads * value_dim, hidden, bias)
    return LatentAttention(
        heads, latent, rope_dim, nope_dim, value_dim, weights + extra, selected, indexer_dim, indexer_heads
    )


def gated_mlp(
    *,
    hidden: int,
    width: int,
    bias: bool = False,
    prefix: str = "mlp",
    part: Part = Part.MLP,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
) -> Mlp:
    """Three matrices: down(act(gate(x)) · up(x))."""
    gate, up, down = names
    return Mlp(
        linear(f"{prefix}.{gate}", inputs=hidden, outputs=width, part=part, bias=bias)
        + linear(f"{prefix}.{up}", inputs=hidden, outputs=width, part=part, bias=bias)
        + linear(f"{prefix}.{down}", inputs=width, outputs=hidden, part=part, bias=bias)
    )


def plain_mlp(
    *,
    hidden: int,
    width: int,
    bias: bool = False,
    prefix: str = "mlp",
    part: Part = Part.MLP,
    names: tuple[str, str] = ("up_proj", "down_proj"),
) -> Mlp:
    """Two matrices: down(act(up(x)))."""
    return Mlp(
        linear(f"{prefix}.{names[0]}", inputs=hidden, outputs=width, part=part, bias=bias)
        + linear(f"{prefix}.{names[1]}", inputs=width, outputs=hidden, part=part, bias=bias)
    )


def mixture_of_experts(
    *,
    hidden: int,
    width: int,
    experts: int,
    active: int,
    bias: bool = False,
    gated: bool = True,
    router_bias: bool = False,
    correction_buffer: bool = False,
    shared_width: int = 0,
    shared_gate: bool = False,
    prefix: str = "mlp",
    router_name: str = "gate",
    shared_name: str = "shared_experts",
    extra: tuple[Weight, ...] = (),
) -> Moe:
    """Routed experts of ``width``, a router, and optionally one shared expert of ``shared_width``.

    ``shared_gate`` adds the 1-wide gate of the shared expert (Qwen2-MoE). ``correction_buffer`` is the per-expert
    routing bias that files store and that is no parameter.
    """
    names = ("gate_proj", "up_proj", "down_proj") if gated else ("up_proj", "down_proj")
    weights: tuple[Weight, ...] = linear(
        f"{prefix}.{router_name}", inputs=hidden, outputs=experts, part=Part.ROUTER, bias=router_bias
    )
    for name in names:
        inputs, outputs = (width, hidden) if name == "down_proj" else (hidden, width)
        weights += linear(
            f"{prefix}.experts.*.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            bias=bias,
            use=Use.ROUTED,
            copies=experts,
        )
    if correction_buffer:
        weights += buffer(f"{prefix}.{router_name}.e_score_correction_bias", experts, Part.ROUTER)
    if shared_width:
        for name in names:
            inputs, outputs = (shared_width, hidden) if name == "down_proj" else (hidden, shared_width)
            weights += linear(
                f"{prefix}.{shared_name}.{name}", inputs=inputs, outputs=outputs, part=Part.SHARED_EXPERTS, bias=bias
            )
    if shared_gate:
        weights += linear(f"{prefix}.{shared_name}_gate", inputs=hidden, outputs=1, part=Part.SHARED_EXPERTS)
    return Moe(experts, active, weights + extra)


def pre_norm_layer(*blocks: Attention | LatentAttention | Mlp | Moe, hidden: int, norm_bias: bool = False) -> Layer:
    """A layer with one norm before attention and one before the feed-forward block."""
    return Layer(
        blocks,
        norm("input_layernorm", hidden, bias=norm_bias) + norm("post_attention_layernorm", hidden, bias=norm_bias),
    )
