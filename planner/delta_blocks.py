"""Builders for mixers with a constant state: gated delta net, lightning attention, short convolution.

Like ``blocks``: keywords only, widths in elements, tensor names as published checkpoints use them. ``convolution``
holds the kernel's full width, as the reference implementation caches it.
"""

from __future__ import annotations

from planner.architecture import Part, StateSpace, Weight
from planner.blocks import linear, norm, vector


def gated_delta_net(
    *,
    hidden: int,
    key_heads: int,
    value_heads: int,
    key_dim: int,
    value_dim: int,
    kernel: int,
    joined: bool,
    state_bytes: int = 4,
    prefix: str = "linear_attn",
) -> StateSpace:
    """A gated delta net (arXiv:2412.06464) whose queries, keys and values pass one convolution.

    ``joined``: one matrix makes queries, keys, values and the output gate, another both scalars per head (Qwen3-Next);
    otherwise the gate and the scalars have matrices of their own (Qwen 3.5). The scan costs, per value head and token,
    7 × key width × value width FLOP: decay 1, key · state 2, outer product 2, query · state 2.
    """
    keys, values = key_heads * key_dim, value_heads * value_dim
    mixed = 2 * keys + values
    inputs: tuple[tuple[str, int], ...]
    if joined:
        inputs = (("in_proj_qkvz", mixed + values), ("in_proj_ba", 2 * value_heads))
    else:
        inputs = (("in_proj_qkv", mixed), ("in_proj_z", values), ("in_proj_b", value_heads), ("in_proj_a", value_heads))
    weights: tuple[Weight, ...] = ()
    for name, outputs in inputs:
        weights += linear(f"{prefix}.{name}", inputs=hidden, outputs=outputs, part=Part.STATE_SPACE)
    weights += vector(f"{prefix}.conv1d", (mixed, 1, kernel), Part.STATE_SPACE)
    weights += vector(f"{prefix}.dt_bias", value_heads, Part.STATE_SPACE, is_bias=True)
    weights += vector(f"{prefix}.A_log", value_heads, Part.STATE_SPACE)
    weights += norm(f"{prefix}.norm", value_dim)
    weights += linear(f"{prefix}.out_proj", inputs=values, outputs=hidden, part=Part.STATE_SPACE)
    state = value_heads * key_dim * value_dim
    return StateSpace("gated delta net", weights, state, mixed * kernel, 7 * state, state_bytes)


def lightning_attention(*, hidden: int, heads: int, head_dim: int, prefix: str = "self_attn") -> StateSpace:
    """Lightning attention (arXiv:2401.04658) with MiniMax-01's output gate (arXiv:2501.08313); no grouped keys.

    The scan costs, per head and token, 5 × head_dim² FLOP: decay 1, outer product 2, query · state 2.
    """
    width = heads * head_dim
    weights = linear(f"{prefix}.qkv_proj", inputs=hidden, outputs=3 * width, part=Part.STATE_SPACE)
    weights += linear(f"{prefix}.output_gate", inputs=hidden, outputs=width, part=Part.STATE_SPACE)
    weights += linear(f"{prefix}.out_proj", inputs=width, outputs=hidden, part=Part.STATE_SPACE)
    weights += norm(f"{prefix}.norm", width)
    state = heads * head_dim * head_dim
    return StateSpace("lightning attention", weights, state, scan_flops=5 * state)


def short_convolution(*, hidden: int, kernel: int, bias: bool, prefix: str = "conv") -> StateSpace:
    """LFM2's double-gated short convolution (arXiv:2511.23404); its only state is the convolution's window.

    It costs, per channel and token, 2 × kernel FLOP for the convolution and 2 for the gates before and behind it.
    """
    weights = linear(f"{prefix}.in_proj", inputs=hidden, outputs=3 * hidden, part=Part.STATE_SPACE, bias=bias)
    weights += vector(f"{prefix}.conv", (hidden, 1, kernel), Part.STATE_SPACE)
    if bias:
        weights += vector(f"{prefix}.conv", hidden, Part.STATE_SPACE, is_bias=True)
    weights += linear(f"{prefix}.out_proj", inputs=hidden, outputs=hidden, part=Part.STATE_SPACE, bias=bias)
    return StateSpace("short convolution", weights, 0, hidden * kernel, hidden * (2 * kernel + 2))
