"""Builders for what stands in front of a text model: vision and audio towers, and the projectors behind them.

Like ``blocks``: keywords only, widths in elements, tensor names as published checkpoints use them. A tower's layers
are all alike, so one ``Weight`` with ``copies`` stands for the same tensor of every layer and its name has ``*`` in
the layer's place. Everything here is accounted as ``Part.VISION``.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

from planner.architecture import Part, Use, Weight
from planner.blocks import linear

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


def matrix(name: str, *, inputs: int, outputs: int, bias: bool = True, copies: int = 1) -> tuple[Weight, ...]:
    """A linear layer of a tower."""
    return linear(name, inputs=inputs, outputs=outputs, part=Part.VISION, bias=bias, copies=copies)


def table(name: str, *shape: int, copies: int = 1, is_bias: bool = False) -> tuple[Weight, ...]:
    """A tensor that is added or scaled with, not multiplied: positions, class tokens, scales, gates."""
    return (Weight(name, shape, Part.VISION, Use.READ, copies, is_bias=is_bias),)


def scale_norm(name: str, width: int, *, copies: int = 1) -> tuple[Weight, ...]:
    """An RMSNorm."""
    return table(name, width, copies=copies)


def layer_norm(name: str, width: int, *, copies: int = 1) -> tuple[Weight, ...]:
    """A LayerNorm with its bias."""
    return table(name, width, copies=copies) + table(name, width, copies=copies, is_bias=True)


def any_norm(name: str, width: int, *, bias: bool, copies: int = 1) -> tuple[Weight, ...]:
    """A LayerNorm or, without a bias, an RMSNorm."""
    return layer_norm(name, width, copies=copies) if bias else scale_norm(name, width, copies=copies)


def convolution(
    name: str, *, channels: int, kernel: tuple[int, ...], outputs: int, bias: bool = True, copies: int = 1
) -> tuple[Weight, ...]:
    """A convolution; a patch embedding is one whose stride is its kernel."""
    weight = (Weight(name, (outputs, channels, *kernel), Part.VISION, copies=copies),)
    return weight + (table(name, outputs, copies=copies, is_bias=True) if bias else ())


def separate_attention(
    path: str,
    *,
    hidden: int,
    copies: int,
    inner: int | None = None,
    kv_inner: int | None = None,
    bias: bool = True,
    key_bias: bool | None = None,
    output_bias: bool | None = None,
    names: tuple[str, str, str, str] = PROJECTIONS,
) -> tuple[Weight, ...]:
    """Query, key, value and output projections; ``inner`` is heads × head dimension where it is not ``hidden``."""
    inner = hidden if inner is None else inner
    kv_inner = inner if kv_inner is None else kv_inner
    query, key, value, output = (f"{path}.{name}" for name in names)
    key_bias = bias if key_bias is None else key_bias
    output_bias = bias if output_bias is None else output_bias
    return (
        matrix(query, inputs=hidden, outputs=inner, bias=bias, copies=copies)
        + matrix(key, inputs=hidden, outputs=kv_inner, bias=key_bias, copies=copies)
        + matrix(value, inputs=hidden, outputs=kv_inner, bias=bias, copies=copies)
        + matrix(output, inputs=inner, outputs=hidden, bias=output_bias, copies=copies)
    )


def fused_attention(
    path: str,
    *,
    hidden: int,
    copies: int,
    inner: int | None = None,
    bias: bool = True,
    output_bias: bool | None = None,
    names: tuple[str, str] = ("qkv", "proj"),
) -> tuple[Weight, ...]:
    """One matrix for query, key and value, and the output projection."""
    inner = hidden if inner is None else inner
    output_bias = bias if output_bias is None else output_bias
    fused = matrix(f"{path}.{names[0]}", inputs=hidden, outputs=3 * inner, bias=bias, copies=copies)
    return fused + matrix(f"{path}.{names[1]}", inputs=inner, outputs=hidden, bias=output_bias, copies=copies)


def two_layer_mlp(
    path: str, *, hidden: int, width: int, copies: int, bias: bool = True, names: tuple[str, str] = ("fc1", "fc2")
) -> tuple[Weight, ...]:
    """down(act(up(x)))."""
    up = matrix(f"{path}.{names[0]}", inputs=hidden, outputs=width, bias=bias, copies=copies)
    return up + matrix(f"{path}.{names[1]}", inputs=width, outputs=hidden, bias=bias, copies=copies)


def three_matrix_mlp(
    path: str,
    *,
    hidden: int,
    width: int,
    copies: int,
    bias: bool = False,
    outputs: int | None = None,
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
) -> tuple[Weight, ...]:
    """down(act(gate(x)) · up(x)); ``outputs`` is the width behind it where it is not ``hidden``."""
    gate, up, down = (f"{path}.{name}" for name in names)
    return (
        matrix(gate, inputs=hidden, outputs=width, bias=bias, copies=copies)
        + matrix(up, inputs=hidden, outputs=width, bias=bias, copies=copies)
        + matrix(down, inputs=width, outputs=outputs or hidden, bias=bias, copies=copies)
    )


def projector(
    path: str, *, widths: tuple[int, ...], names: tuple[str, ...] = ("linear_1", "linear_2"), bias: bool = True
) -> tuple[Weight, ...]:
    """Linear layers in a row from ``widths[0]`` to ``widths[-1]``."""
    found: tuple[Weight, ...] = ()
    for name, (inputs, outputs) in zip(names, pairwise(widths), strict=True):
        found += matrix(f"{path}.{name}", inputs=inputs, outputs=outputs, bias=bias)
    return found


def transformer_layers(path: str, *, hidden: int, width: int, layers: int) -> tuple[Weight, ...]:
    """Layers of CLIP and SigLIP: LayerNorm, attention with biases, LayerNorm, two-matrix MLP with biases."""
    return (
        separate_attention(f"{path}.self_attn", hidden=hidden, copies=layers)
        + layer_norm(f"{path}.layer_norm1", hidden, copies=layers)
        + two_layer_mlp(f"{path}.mlp", hidden=hidden, width=width, copies=layers)
        + layer_norm(f"{path}.layer_norm2", hidden, copies=layers)
    )


def clip_tower(
    path: str, *, hidden: int, width: int, layers: int, channels: int, patch: tuple[int, int], positions: int
) -> tuple[Weight, ...]:
    """CLIP's vision transformer (arXiv:2103.00020); ``positions`` counts the class token."""
    return (
        table(f"{path}.embeddings.class_embedding", hidden)
        + convolution(f"{path}.embeddings.patch_embedding", channels=channels, kernel=patch, outputs=hidden, bias=False)
        + table(f"{path}.embeddings.position_embedding", positions, hidden)
        + layer_norm(f"{path}.pre_layrnorm", hidden)  # the published name is misspelt
        + transformer_layers(f"{path}.encoder.layers.*", hidden=hidden, width=width, layers=layers)
        + layer_norm(f"{path}.post_layernorm", hidden)
    )


def siglip_tower(
    path: str,
    *,
    hidden: int,
    width: int,
    layers: int,
    channels: int,
    patch: tuple[int, int],
    positions: int,
    pooling_head: bool,
    flat_patches: bool = False,
) -> tuple[Weight, ...]:
    """SigLIP's vision transformer (arXiv:2303.15343); SigLIP 2 (NaFlex) has ``flat_patches``."""
    name = f"{path}.embeddings.patch_embedding"
    if flat_patches:
        embedded = matrix(name, inputs=channels * prod(patch), outputs=hidden)
    else:
        embedded = convolution(name, channels=channels, kernel=patch, outputs=hidden)
    found = (
        embedded
        + table(f"{path}.embeddings.position_embedding", positions, hidden)
        + transformer_layers(f"{path}.encoder.layers.*", hidden=hidden, width=width, layers=layers)
        + layer_norm(f"{path}.post_layernorm", hidden)
    )
    return found + (attention_pooling(f"{path}.head", hidden=hidden, width=width) if pooling_head else ())


def attention_pooling(path: str, *, hidden: int, width: int) -> tuple[Weight, ...]:
    """SigLIP's head: one learned query attends all patches."""
    return (
        table(f"{path}.probe", hidden)
        + fused_attention(f"{path}.attention", hidden=hidden, copies=1, names=("in_proj", "out_proj"))
        + layer_norm(f"{path}.layernorm", hidden)
        + two_layer_mlp(f"{path}.mlp", hidden=hidden, width=width, copies=1)
    )


def pixtral_tower(
    path: str, *, hidden: int, width: int, layers: int, channels: int, patch: tuple[int, int]
) -> tuple[Weight, ...]:
    """Pixtral's vision transformer (arXiv:2410.07073): two-dimensional rotary positions, no bias anywhere."""
    layer = f"{path}.transformer.layers.*"
    names = ("q_proj", "k_proj", "v_proj", "o_proj")
    return (
        convolution(f"{path}.patch_conv", channels=channels, kernel=patch, outputs=hidden, bias=False)
        + scale_norm(f"{path}.ln_pre", hidden)
        + scale_norm(f"{layer}.attention_norm", hidden, copies=layers)
        + separate_attention(f"{layer}.attention", hidden=hidden, copies=layers, bias=False, names=names)
        + scale_norm(f"{layer}.ffn_norm", hidden, copies=layers)
        + three_matrix_mlp(f"{layer}.feed_forward", hidden=hidden, width=width, copies=layers)
    )


def qwen2_vl_tower(
    path: str, *, hidden: int, width: int, layers: int, channels: int, patch: tuple[int, int, int], merge: int, out: int
) -> tuple[Weight, ...]:
    """Qwen2-VL's vision transformer (arXiv:2409.12191) with the merger of ``merge`` × ``merge`` patches behind it."""
    layer, merged = f"{path}.blocks.*", hidden * merge * merge
    return (
        convolution(f"{path}.patch_embed.proj", channels=channels, kernel=patch, outputs=hidden, bias=False)
        + layer_norm(f"{layer}.norm1", hidden, copies=layers)
        + layer_norm(f"{layer}.norm2", hidden, copies=layers)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=width, copies=layers)
        + layer_norm(f"{path}.merger.ln_q", hidden)
        + projector(f"{path}.merger.mlp", widths=(merged, merged, out), names=("0", "2"))
    )


def qwen2_5_vl_tower(
    path: str, *, hidden: int, width: int, layers: int, channels: int, patch: tuple[int, int, int], merge: int, out: int
) -> tuple[Weight, ...]:
    """Qwen2.5-VL's vision transformer (arXiv:2502.13923): RMSNorm and a gated MLP with biases."""
    layer, merged = f"{path}.blocks.*", hidden * merge * merge
    return (
        convolution(f"{path}.patch_embed.proj", channels=channels, kernel=patch, outputs=hidden, bias=False)
        + scale_norm(f"{layer}.norm1", hidden, copies=layers)
        + scale_norm(f"{layer}.norm2", hidden, copies=layers)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers)
        + three_matrix_mlp(f"{layer}.mlp", hidden=hidden, width=width, copies=layers, bias=True)
        + scale_norm(f"{path}.merger.ln_q", hidden)
        + projector(f"{path}.merger.mlp", widths=(merged, merged, out), names=("0", "2"))
    )


def qwen3_vl_tower(
    path: str,
    *,
    hidden: int,
    width: int,
    layers: int,
    channels: int,
    patch: tuple[int, int, int],
    positions: int,
    merge: int,
    out: int,
    deep_mergers: int,
    merger_names: tuple[str, str, str, str],
) -> tuple[Weight, ...]:
    """Qwen3-VL's vision transformer (arXiv:2511.21631); ``deep_mergers`` feed early layers of the text model too."""
    layer, merged = f"{path}.blocks.*", hidden * merge * merge
    names = ("linear_fc1", "linear_fc2")
    merger_norm, first, second, list_name = merger_names
    deep = f"{path}.{list_name}.*"
    found = (
        convolution(f"{path}.patch_embed.proj", channels=channels, kernel=patch, outputs=hidden)
        + table(f"{path}.pos_embed", positions, hidden)
        + layer_norm(f"{layer}.norm1", hidden, copies=layers)
        + layer_norm(f"{layer}.norm2", hidden, copies=layers)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=width, copies=layers, names=names)
        + layer_norm(f"{path}.merger.{merger_norm}", hidden)
        + projector(f"{path}.merger", widths=(merged, merged, out), names=(first, second))
    )
    if not deep_mergers:
        return found
    return (
        found
        + layer_norm(f"{deep}.{merger_norm}", merged, copies=deep_mergers)
        + matrix(f"{deep}.{first}", inputs=merged, outputs=merged, copies=deep_mergers)
        + matrix(f"{deep}.{second}", inputs=merged, outputs=out, copies=deep_mergers)
    )


def moon_tower(
    path: str, *, hidden: int, width: int, layers: int, patch: tuple[int, int], grid: tuple[int, int]
) -> tuple[Weight, ...]:
    """MoonViT (arXiv:2504.07491): SigLIP's layers, a learned ``grid`` of positions and rotary ones besides."""
    layer = f"{path}.encoder.blocks.*"
    return (
        convolution(f"{path}.patch_embed.proj", channels=3, kernel=patch, outputs=hidden)
        + table(f"{path}.patch_embed.pos_emb", *grid, hidden)
        + layer_norm(f"{layer}.norm0", hidden, copies=layers)
        + layer_norm(f"{layer}.norm1", hidden, copies=layers)
        + fused_attention(layer, hidden=hidden, copies=layers, names=("wqkv", "wo"))
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=width, copies=layers, names=("fc0", "fc1"))
        + layer_norm(f"{path}.encoder.final_layernorm", hidden)
    )


def intern_tower(
    path: str,
    *,
    hidden: int,
    width: int,
    layers: int,
    channels: int,
    patch: tuple[int, int],
    positions: int,
    bias: bool,
    query_key_norm: bool,
    norm_bias: bool,
) -> tuple[Weight, ...]:
    """InternViT (arXiv:2312.14238); ``norm_bias`` False means RMSNorm (the 6B tower)."""
    layer = f"{path}.encoder.layers.*"
    found = (
        table(f"{path}.embeddings.class_embedding", hidden)
        + convolution(f"{path}.embeddings.patch_embedding", channels=channels, kernel=patch, outputs=hidden)
        + table(f"{path}.embeddings.position_embedding", positions, hidden)
        + fused_attention(f"{layer}.attn", hidden=hidden, copies=layers, bias=bias, output_bias=True)
        + two_layer_mlp(f"{layer}.mlp", hidden=hidden, width=width, copies=layers)
        + any_norm(f"{layer}.norm1", hidden, bias=norm_bias, copies=layers)
        + any_norm(f"{layer}.norm2", hidden, bias=norm_bias, copies=layers)
        + table(f"{layer}.ls1", hidden, copies=layers)
        + table(f"{layer}.ls2", hidden, copies=layers)
    )
    if query_key_norm:
        found += scale_norm(f"{layer}.attn.q_norm", hidden, copies=layers)
        found += scale_norm(f"{layer}.attn.k_norm", hidden, copies=layers)
    return found


def whisper_layers(path: str, *, hidden: int, width: int, layers: int, key_bias: bool = False) -> tuple[Weight, ...]:
    """Layers of Whisper's audio encoder (arXiv:2212.04356), whose key projection has no bias."""
    return (
        separate_attention(f"{path}.self_attn", hidden=hidden, copies=layers, key_bias=key_bias)
        + layer_norm(f"{path}.self_attn_layer_norm", hidden, copies=layers)
        + two_layer_mlp(path, hidden=hidden, width=width, copies=layers)
        + layer_norm(f"{path}.final_layer_norm", hidden, copies=layers)
    )


def whisper_tower(
    path: str,
    *,
    hidden: int,
    width: int,
    layers: int,
    mel_bins: int,
    positions: int | None,
    final_norm: str = "layer_norm",
) -> tuple[Weight, ...]:
    """Whisper's audio encoder: two convolutions, layers, a norm; ``positions`` None means computed ones."""
    found = (
        convolution(f"{path}.conv1", channels=mel_bins, kernel=(3,), outputs=hidden)
        + convolution(f"{path}.conv2", channels=hidden, kernel=(3,), outputs=hidden)
        + whisper_layers(f"{path}.layers.*", hidden=hidden, width=width, layers=layers)
        + layer_norm(f"{path}.{final_norm}", hidden)
    )
    return found if positions is None else found + table(f"{path}.embed_positions", positions, hidden)
