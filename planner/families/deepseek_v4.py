"""DeepSeek-V4: a window of keys and values that are one and the same, compressed ones behind it, mixed streams.

Reference: ``DeepseekV4ForCausalLM`` of transformers; names as in the published files. A layer has one of three kinds
(``compress_ratios``): 0, a window alone; 4, besides it one row per 4 tokens, of which an indexer picks some; 128,
besides it one row per 128 tokens, all attended.

How that is told with the blocks at hand, exactly but for unfinished rows: the window's row serves as key and as value,
so the block's values have no width; that leaves out the arithmetic of the values, at most ``sliding_window`` rows a
query. A compressed row is a latent that both sides of the attention read, spread evenly over the tokens it stands for.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from planner.architecture import Architecture, Attention, Component, LatentAttention, Layer, Moe, Part, Use, Weight
from planner.blocks import buffer, embedding, gated_mlp, linear, lm_head, norm, vector
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch, either
from planner.families._deepseek import listed, module

MODEL_TYPES = ("deepseek_v4", "deepseek_ref")

WINDOWED, SPARSE, HEAVY = "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"
KIND_OF_RATIO = {0: WINDOWED, 4: SPARSE, 128: HEAVY}
RATIOS = {SPARSE: 4, HEAVY: 128}
UNREAD = "the state of unfinished compressed rows (constant per sequence) and the values' arithmetic inside the window"


class Config(FamilyConfig):
    """Keys that decide the counts; keys and values are one head, whatever the class's default list of layers is."""

    # The type of the experts' numbers is the quantization's business.
    HARMLESS: ClassVar[frozenset[str]] = frozenset({"expert_dtype", "hc_sinkhorn_iters", "qk_rope_head_dim"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    num_key_value_heads: Count = 1
    head_dim: Count
    q_lora_rank: Count
    o_groups: Count
    o_lora_rank: Count
    sliding_window: Count
    compress_ratios: list[CountOrZero] | None = None
    compress_rates: dict[str, Count] | None = None
    layer_types: list[str] | None = None
    index_n_heads: Count
    index_head_dim: Count
    index_topk: Count
    hc_mult: Count
    moe_intermediate_size: Count
    n_routed_experts: Count = Field(validation_alias=either("n_routed_experts", "num_local_experts"))
    num_experts_per_tok: Count
    n_shared_experts: Count
    num_hash_layers: CountOrZero = 3
    mlp_layer_types: list[str] | None = None
    attention_bias: Switch = False
    num_nextn_predict_layers: CountOrZero = 0
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


def read(config: Config) -> Architecture:
    """Layers by their kind and by their router."""
    _check(config)
    hidden = config.hidden_size
    kinds, routers = _kinds(config), _routers(config)
    return Architecture(
        family="deepseek_v4",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(_layer(config, kind, router) for kind, router in zip(kinds, routers, strict=True)),
        embedding=embedding("embed", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings, name="head"),
        outer=norm("norm", hidden) + _stream_head(config),
        components=_modules(config),
        unread=(UNREAD,) if set(kinds) != {WINDOWED} else (),
        max_context=config.max_position_embeddings,
        layer_names="layers",
        dtype=config.dtype,
    )


def _check(config: Config) -> None:
    """Refuse what the reference cannot be."""
    if config.num_key_value_heads != 1:
        raise config.refusal("num_key_value_heads", f"is {config.num_key_value_heads}; the reference has one")
    if config.attention_bias:
        raise config.refusal("attention_bias", "is true, and the reference has no biases in attention")
    if config.n_shared_experts != 1:
        raise config.refusal("n_shared_experts", f"is {config.n_shared_experts}; the reference has one shared expert")
    if config.num_experts_per_tok > config.n_routed_experts:
        raise config.refusal("num_experts_per_tok", f"exceeds the {config.n_routed_experts} experts")
    if config.num_attention_heads * config.head_dim % config.o_groups:
        raise config.refusal("o_groups", f"is {config.o_groups} and does not divide the width of the heads")


def _kinds(config: Config) -> tuple[str, ...]:
    """Per layer; the published list goes on into the MTP modules."""
    count, ratios, kinds = config.num_hidden_layers, config.compress_ratios, config.layer_types
    if kinds is None:
        if ratios is None:
            raise config.refusal("compress_ratios", "is missing, and so is layer_types")
        for ratio in ratios:
            if ratio not in KIND_OF_RATIO:
                raise config.refusal("compress_ratios", f"holds {ratio}; known are 0, 4 and 128")
        if len(ratios) not in (count, count + config.num_nextn_predict_layers):
            raise config.refusal("compress_ratios", f"has {len(ratios)} entries for {count} layers")
        kinds = [KIND_OF_RATIO[ratio] for ratio in ratios[:count]]
    return listed(config, "layer_types", kinds, known=tuple(KIND_OF_RATIO.values()), count=count)


def _routers(config: Config) -> tuple[str, ...]:
    """``hash_moe``: the token decides; ``moe``: the router does."""
    count = config.num_hidden_layers
    if config.mlp_layer_types is not None:
        return listed(config, "mlp_layer_types", config.mlp_layer_types, known=("hash_moe", "moe"), count=count)
    return tuple("hash_moe" if layer < config.num_hash_layers else "moe" for layer in range(count))


def _layer(config: Config, kind: str, router: str) -> Layer:
    window = _window(config)
    blocks = (window,) if kind == WINDOWED else (window, _compressed(config, kind))
    weights = norm("attn_norm", config.hidden_size) + norm("ffn_norm", config.hidden_size)
    weights += _streams(config, "hc_attn") + _streams(config, "hc_ffn")
    return Layer((*blocks, _experts(config, router)), weights)


def _attention(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
    return linear(f"attn.{name}", inputs=inputs, outputs=outputs, part=Part.ATTENTION)


def _window(config: Config) -> Attention:
    """The attention's own matrices; the output projection's first half works in groups of heads."""
    hidden, heads, head_dim = config.hidden_size, config.num_attention_heads, config.head_dim
    grouped = config.o_groups * config.o_lora_rank
    weights = _attention("wq_a", hidden, config.q_lora_rank) + norm("attn.q_norm", config.q_lora_rank)
    weights += _attention("wq_b", config.q_lora_rank, heads * head_dim)
    weights += _attention("wkv", hidden, head_dim) + norm("attn.kv_norm", head_dim)
    weights += _attention("wo_a", heads * head_dim // config.o_groups, grouped)
    weights += _attention("wo_b", grouped, hidden)
    weights += vector("attn.attn_sink", heads, Part.ATTENTION)
    return Attention(heads, 1, head_dim, 0, weights, window=config.sliding_window)


def _ratio(config: Config, kind: str) -> int:
    ratio = (config.compress_rates or {}).get(kind, RATIOS[kind])
    if config.head_dim % ratio or (kind == SPARSE and config.index_head_dim % ratio):
        raise config.refusal("compress_rates", f"is {ratio} for {kind} and does not divide the width of a row")
    return ratio


def _compressed(config: Config, kind: str) -> LatentAttention:
    """Per token a ``ratio``-th of a row: the same bytes, and the same arithmetic per row."""
    ratio = _ratio(config, kind)
    share = config.head_dim // ratio
    if kind == HEAVY:
        weights = _compressor(config, "attn.compressor", width=config.head_dim, ratio=ratio, overlap=1)
        return LatentAttention(config.num_attention_heads, share, 0, share, share, weights)
    weights = _compressor(config, "attn.compressor", width=config.head_dim, ratio=ratio, overlap=2)
    return LatentAttention(
        config.num_attention_heads,
        share,
        0,
        share,
        share,
        weights + _indexer(config, ratio),
        selected=config.index_topk * ratio,
        indexer_dim=config.index_head_dim // ratio,
        indexer_heads=config.index_n_heads,
    )


def _compressor(config: Config, path: str, *, width: int, ratio: int, overlap: int) -> tuple[Weight, ...]:
    """A gated mean of ``ratio`` tokens' rows; with an overlap of 2, the previous ``ratio`` tokens take part."""
    hidden, inner = config.hidden_size, overlap * width
    return (
        vector(f"{path}.ape", (ratio, inner), Part.ATTENTION, is_bias=True)
        + linear(f"{path}.wkv", inputs=hidden, outputs=inner, part=Part.ATTENTION)
        + linear(f"{path}.wgate", inputs=hidden, outputs=inner, part=Part.ATTENTION)
        + norm(f"{path}.norm", width)
    )


def _indexer(config: Config, ratio: int) -> tuple[Weight, ...]:
    heads, head_dim = config.index_n_heads, config.index_head_dim
    weights = _attention("indexer.wq_b", config.q_lora_rank, heads * head_dim)
    weights += _attention("indexer.weights_proj", config.hidden_size, heads)
    return weights + _compressor(config, "attn.indexer.compressor", width=head_dim, ratio=ratio, overlap=2)


def _streams(config: Config, name: str) -> tuple[Weight, ...]:
    """A hyper-connection (arXiv:2409.19606): ``hc_mult`` streams are mixed into a block's input and with its output."""
    streams = config.hc_mult
    mixed = (2 + streams) * streams
    return (
        linear(f"{name}_fn", inputs=streams * config.hidden_size, outputs=mixed, part=Part.OTHER)
        + vector(f"{name}_base", mixed, Part.OTHER)
        + vector(f"{name}_scale", 3, Part.OTHER)
    )


def _stream_head(config: Config) -> tuple[Weight, ...]:
    """What makes one vector of the streams before the head."""
    streams = config.hc_mult
    return (
        linear("hc_head_fn", inputs=streams * config.hidden_size, outputs=streams, part=Part.OTHER)
        + vector("hc_head_base", streams, Part.OTHER)
        + vector("hc_head_scale", 1, Part.OTHER)
    )


def _experts(config: Config, router: str) -> Moe:
    """A hash router has a table from tokens to experts in the place of the correction bias; both are buffers."""
    hidden, width, experts = config.hidden_size, config.moe_intermediate_size, config.n_routed_experts
    weights = linear("ffn.gate", inputs=hidden, outputs=experts, part=Part.ROUTER)
    if router == "hash_moe":
        table = (config.vocab_size, config.num_experts_per_tok)
        weights += (Weight("ffn.gate.tid2eid", table, Part.ROUTER, Use.LOOKED_UP, buffer=True),)
    else:
        weights += buffer("ffn.gate.bias", experts, Part.ROUTER)
    for name, inputs, outputs in (("w1", hidden, width), ("w3", hidden, width), ("w2", width, hidden)):
        weights += linear(
            f"ffn.experts.*.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            use=Use.ROUTED,
            copies=experts,
        )
    shared = gated_mlp(
        hidden=hidden,
        width=width,
        prefix="ffn.shared_experts",
        part=Part.SHARED_EXPERTS,
        names=("w1", "w3", "w2"),
    )
    return Moe(experts, config.num_experts_per_tok, weights + shared.weights)


def _modules(config: Config) -> tuple[Component, ...]:
    """MTP modules: a layer with a window alone, two square matrices, three norms, and a head over the streams.

    No class holds them; that layout gives the published total of DeepSeek-V4-Flash to the last parameter.
    """
    hidden, count = config.hidden_size, config.num_hidden_layers
    ratios = (config.compress_ratios or [])[count:]
    if any(ratio != 0 for ratio in ratios):
        raise config.refusal("compress_ratios", "gives an MTP module compressed keys; only a window alone is known")
    around = linear("e_proj", inputs=hidden, outputs=hidden, part=Part.MTP)
    around += linear("h_proj", inputs=hidden, outputs=hidden, part=Part.MTP)
    around += norm("enorm", hidden) + norm("hnorm", hidden) + norm("norm", hidden) + _stream_head(config)
    layer = _layer(config, WINDOWED, "moe")
    return tuple(module(layer, around, path=f"mtp.{index}") for index in range(config.num_nextn_predict_layers))
