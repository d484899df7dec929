"""Zamba 2: a stack of Mamba-2 mixers; a few shared transformer blocks work before some of them, with adapters by place.

Reference: ``Zamba2Config`` and ``Zamba2ForCausalLM`` of transformers. The shared blocks read the hidden vector beside
the embedding (twice the width); place n uses block n mod ``num_mem_blocks``, stored once, and has its own low-rank
adapters and its own cache.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from planner.architecture import Architecture, Attention, Layer, Mlp, Part, Weight
from planner.blocks import embedding, linear, lm_head, norm
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.state_space_blocks import mamba_2

MODEL_TYPES = ("zamba2",)

MAMBA, HYBRID = ("mamba", "linear_attention"), "hybrid"


class Config(FamilyConfig):
    """Keys that decide the counts of a Zamba 2."""

    # All of these follow from the keys that are read.
    HARMLESS: ClassVar[frozenset[str]] = frozenset(
        {
            "hybrid_layer_ids",
            "attention_hidden_size",
            "kv_channels",
            "num_query_groups",
            "mamba_headdim",
            "ffn_hidden_size",
        }
        | {"use_mem_rope", "use_long_context", "use_mem_eff_path", "chunk_size"}
    )

    hidden_size: Count
    num_hidden_layers: Layers
    layers_block_type: list[str]
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    attention_head_dim: Count | None = None
    intermediate_size: Count | None = None
    vocab_size: Count
    tie_word_embeddings: Switch = True
    mamba_d_state: Count = 64
    mamba_d_conv: Count = 4
    mamba_expand: Count = 2
    mamba_ngroups: Count = 1
    n_mamba_heads: Count = 8
    use_conv_bias: Switch = True
    add_bias_linear: Switch = False
    num_mem_blocks: Count = 1
    adapter_rank: Count = 128
    use_shared_attention_adapter: Switch = False
    use_shared_mlp_adapter: Switch = True
    max_position_embeddings: Count | None = None

    @property
    def inner(self) -> int:
        """Channels of a mixer."""
        return self.mamba_expand * self.hidden_size


def read(config: Config) -> Architecture:
    """Every layer has a mixer; the hybrid ones run a shared block before it."""
    kinds = config.layers_block_type
    if len(kinds) != config.num_hidden_layers:
        raise config.refusal("layers_block_type", f"has {len(kinds)} entries for {config.num_hidden_layers} layers")
    unknown = next((kind for kind in kinds if kind not in (*MAMBA, HYBRID)), None)
    if unknown is not None:
        raise config.refusal("layers_block_type", f"holds {unknown!r}; an entry is 'mamba' or 'hybrid'")
    if not config.use_conv_bias:
        raise config.refusal("use_conv_bias", "is false, and the reference has that bias in any case")
    if not config.use_shared_mlp_adapter or config.inner % config.n_mamba_heads:
        raise config.refusal(
            "use_shared_mlp_adapter", "is false, or n_mamba_heads does not divide the mixer's channels"
        )
    hidden = config.hidden_size
    return Architecture(
        family="zamba2",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=_layers(config, kinds),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=config.tie_word_embeddings),
        outer=norm("model.final_layernorm", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
    )


def _layers(config: Config, kinds: list[str]) -> tuple[Layer, ...]:
    plain, places, found = _mamba_layer(config, ""), 0, []
    hybrid = {stored: _hybrid_layer(config, stored=stored) for stored in (True, False)}
    for kind in kinds:
        if kind in MAMBA:
            found.append(plain)
            continue
        found.append(hybrid[places < config.num_mem_blocks])
        places += 1
    return tuple(found)


def _mamba_layer(config: Config, prefix: str) -> Layer:
    mixer = mamba_2(
        hidden=config.hidden_size,
        heads=config.n_mamba_heads,
        head_dim=config.inner // config.n_mamba_heads,
        groups=config.mamba_ngroups,
        state=config.mamba_d_state,
        kernel=config.mamba_d_conv,
        bias=config.add_bias_linear,
        prefix=f"{prefix}mamba",
    )
    return Layer((mixer,), norm(f"{prefix}input_layernorm", config.hidden_size))


def _hybrid_layer(config: Config, *, stored: bool) -> Layer:
    """A shared block (its tensors ``stored`` or only used again), the place's adapters and matrix, and a mixer."""
    hidden, below = config.hidden_size, _mamba_layer(config, "mamba_decoder.")
    attention, mlp = _attention(config), _mlp(config)
    adapters = _adapter(config, "feed_forward.gate_up_proj", hidden, 2 * _width(config), Part.MLP)
    attention = replace(attention, weights=_shared(attention.weights, stored))
    if config.use_shared_attention_adapter:
        attention = replace(attention, weights=attention.weights + _attention_adapters(config))
    norms = norm("shared_transformer.input_layernorm", 2 * hidden)
    norms += norm("shared_transformer.pre_ff_layernorm", hidden)
    return Layer(
        (attention, Mlp(_shared(mlp.weights, stored) + adapters), *below.blocks),
        _shared(norms, stored) + linear("linear", inputs=hidden, outputs=hidden, part=Part.OTHER) + below.weights,
    )


def _shared(weights: tuple[Weight, ...], stored: bool) -> tuple[Weight, ...]:
    return tuple(replace(weight, stored=stored) for weight in weights)


def _attention(config: Config) -> Attention:
    """Queries, keys and values of the doubled width; only the output comes back to the hidden width."""
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads or config.num_attention_heads
    wide, head_dim = (
        2 * config.hidden_size,
        config.attention_head_dim or 2 * config.hidden_size // config.num_attention_heads,
    )
    if heads % kv_heads:
        raise config.refusal("num_key_value_heads", f"is {kv_heads} and does not divide the {heads} heads")
    weights: tuple[Weight, ...] = ()
    for name, count in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
        path = f"shared_transformer.self_attn.{name}"
        weights += linear(path, inputs=wide, outputs=count * head_dim, part=Part.ATTENTION)
    path = "shared_transformer.self_attn.o_proj"
    weights += linear(path, inputs=heads * head_dim, outputs=config.hidden_size, part=Part.ATTENTION)
    return Attention(heads, kv_heads, head_dim, head_dim, weights)


def _width(config: Config) -> int:
    return config.intermediate_size or 4 * config.hidden_size


def _mlp(config: Config) -> Mlp:
    hidden, width, bias = config.hidden_size, _width(config), config.add_bias_linear
    path = "shared_transformer.feed_forward"
    return Mlp(
        linear(f"{path}.gate_up_proj", inputs=hidden, outputs=2 * width, part=Part.MLP, bias=bias)
        + linear(f"{path}.down_proj", inputs=width, outputs=hidden, part=Part.MLP, bias=bias)
    )


def _attention_adapters(config: Config) -> tuple[Weight, ...]:
    wide = 2 * config.hidden_size
    adapters = (_adapter(config, f"self_attn.linear_{name}", wide, wide, Part.ATTENTION) for name in "qkv")
    return tuple(weight for adapter in adapters for weight in adapter)


def _adapter(config: Config, name: str, inputs: int, outputs: int, part: Part) -> tuple[Weight, ...]:
    path = f"shared_transformer.{name}_adapter_list"
    return linear(f"{path}.0", inputs=inputs, outputs=config.adapter_rank, part=part) + linear(
        f"{path}.1", inputs=config.adapter_rank, outputs=outputs, part=part
    )
