"""Kimi K3: Kimi Delta Attention and latent attention in turn, experts in a latent space, attention over depth.

No reference class exists. The layout follows the config's keys and Kimi-Linear's class (``KimiLinearForCausalLM`` of
transformers); the parts new in K3 are fixed by the published total, which they explain to the last parameter:
2,779,931,837,184 elements with the routers' correction biases. Inferred from it are the smallest tensors: a query and
a norm before every block and at the end (attention residuals), decay rates stored for 128 heads instead of 96, and a
projector without biases behind which an RMSNorm stands.
"""

from __future__ import annotations

from typing import Any, ClassVar

from planner.architecture import Architecture, Component, LatentAttention, Layer, Moe, Part, StateSpace, Use, Weight
from planner.blocks import buffer, embedding, gated_mlp, latent_attention, linear, lm_head, norm, vector
from planner.config import Count, CountOrZero, FamilyConfig, Layers, Switch
from planner.families._multimodal import Piece, Wrapper, around
from planner.vision_blocks import convolution, fused_attention, projector, scale_norm, table, two_layer_mlp

MODEL_TYPES = ("kimi_k3",)

STORED_RATES = 128
NOTE = (
    "Kimi K3 has no public reference class; the published total fixes the count, and the smallest tensors "
    "(attention residuals, decay rates, the projector's norm) are inferred from it"
)


class DeltaAttention(Piece):
    """``linear_attn_config``; layers are counted from 1."""

    full_attn_layers: list[int]
    kda_layers: list[int]
    head_dim: Count
    num_heads: Count
    short_conv_kernel_size: Count
    use_full_rank_gate: Switch


class Text(FamilyConfig):
    """Keys of the text; ``num_key_value_heads`` says nothing beside the latent's."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"num_key_value_heads", "mla_use_nope", "moe_renormalize"})

    hidden_size: Count
    num_hidden_layers: Layers
    num_attention_heads: Count
    q_lora_rank: Count
    kv_lora_rank: Count
    qk_nope_head_dim: Count
    qk_rope_head_dim: Count
    v_head_dim: Count
    mla_use_output_gate: Switch
    linear_attn_config: DeltaAttention
    attn_res_block_size: Count
    intermediate_size: Count
    moe_intermediate_size: Count
    routed_expert_hidden_size: Count
    latent_moe_use_norm: Switch
    moe_router_activation_func: str = "sigmoid"
    num_experts: Count
    num_experts_per_token: Count
    num_shared_experts: CountOrZero
    first_k_dense_replace: CountOrZero
    moe_layer_freq: Count = 1
    vocab_size: Count
    tie_word_embeddings: Switch = False
    max_position_embeddings: Count | None = None


class Tower(Piece):
    """MoonViT without biases, wider inside its attention than outside."""

    HARMLESS: ClassVar[frozenset[str]] = Piece.HARMLESS | {"mm_hidden_size", "text_hidden_size"}

    vt_hidden_size: Count
    vt_intermediate_size: Count
    vt_num_hidden_layers: Layers
    vt_num_attention_heads: Count
    qkv_hidden_size: Count
    patch_size: Count
    init_pos_emb_height: Count
    init_pos_emb_width: Count
    merge_kernel_size: tuple[Count, Count]
    mm_projector_type: str
    norm_type: str
    mlp_type: str
    attn_bias: Switch
    linear_bias: Switch
    patch_embed_proj_bias: Switch


class Config(Wrapper):
    """Keys of the wrapper."""

    vision_config: dict[str, Any]


def read(config: Config) -> Architecture:
    """Text model, tower, projector."""
    text = Text.parse(config.text_config, source=config.source, prefix="text_config.")
    tower = Tower.parse(config.vision_config, source=config.source, prefix="vision_config.")
    _check(text, tower)
    rows, columns = tower.merge_kernel_size
    merged, hidden = tower.vt_hidden_size * rows * columns, text.hidden_size
    found = projector("mm_projector.proj", widths=(merged, merged, hidden), names=("0", "2"), bias=False)
    found += scale_norm("mm_projector.post_norm", hidden)
    return around(
        config,
        _text_model(text, tied=text.tie_word_embeddings or bool(config.tie_word_embeddings)),
        family="kimi_k3",
        components=(Component("vision tower", _tower(tower)), Component("projector", found)),
        layout=("language_model.model", "language_model.lm_head"),
    )


def _check(text: Text, tower: Tower) -> None:
    """Refuse what the published total says nothing about."""
    published = {
        "mm_projector_type": "patchmergerv2",
        "norm_type": "rmsnorm",
        "mlp_type": "mlp2",
        "attn_bias": False,
        "linear_bias": False,
        "patch_embed_proj_bias": False,
    }
    for key, value in published.items():
        if getattr(tower, key) != value:
            raise tower.refusal(key, f"is {getattr(tower, key)!r}; only {value!r} is known, as in the published file")
    if not text.mla_use_output_gate or not text.linear_attn_config.use_full_rank_gate:
        raise text.refusal("mla_use_output_gate", "or use_full_rank_gate is false; only gated attention is known")
    if not text.latent_moe_use_norm or text.moe_layer_freq != 1:
        raise text.refusal("latent_moe_use_norm", "and moe_layer_freq must be true and 1, as in the published file")
    if text.num_experts_per_token > text.num_experts:
        raise text.refusal("num_experts_per_token", f"exceeds the {text.num_experts} experts")
    if text.linear_attn_config.num_heads > STORED_RATES:
        raise text.refusal("linear_attn_config", f"has more than {STORED_RATES} heads, the number of stored rates")
    listed = text.linear_attn_config.full_attn_layers + text.linear_attn_config.kda_layers
    if sorted(listed) != list(range(1, text.num_hidden_layers + 1)):
        raise text.refusal(
            "linear_attn_config", f"must list each of the layers 1 to {text.num_hidden_layers} exactly once"
        )


def _text_model(config: Text, *, tied: bool) -> Architecture:
    hidden, full = config.hidden_size, set(config.linear_attn_config.full_attn_layers)
    latent, delta = _latent_attention(config), _delta_attention(config)
    dense = gated_mlp(hidden=hidden, width=config.intermediate_size)
    experts = _experts(config)
    norms = norm("input_layernorm", hidden) + norm("post_attention_layernorm", hidden)
    norms += _residual("self_attention_res", hidden) + _residual("mlp_res", hidden)
    return Architecture(
        family="kimi_k3",
        model_type="kimi_linear",
        hidden=hidden,
        vocabulary=config.vocab_size,
        layers=tuple(
            Layer(
                (latent if layer + 1 in full else delta, dense if layer < config.first_k_dense_replace else experts),
                norms,
            )
            for layer in range(config.num_hidden_layers)
        ),
        embedding=embedding("model.embed_tokens", rows=config.vocab_size, width=hidden),
        lm_head=lm_head(vocabulary=config.vocab_size, hidden=hidden, tied=tied),
        outer=norm("model.norm", hidden) + _residual("model.output_res", hidden),
        max_context=config.max_position_embeddings,
        dtype=config.dtype,
        notes=(NOTE,),
    )


def _residual(path: str, hidden: int) -> tuple[Weight, ...]:
    """Attention over the outputs of earlier blocks of layers: a learned query and a norm of the keys."""
    return vector(f"{path}.query", hidden, Part.OTHER) + norm(f"{path}.norm", hidden)


def _latent_attention(config: Text) -> LatentAttention:
    heads, hidden = config.num_attention_heads, config.hidden_size
    gate = linear("self_attn.g_proj", inputs=hidden, outputs=heads * config.v_head_dim, part=Part.ATTENTION)
    return latent_attention(
        hidden=hidden,
        heads=heads,
        query_rank=config.q_lora_rank,
        latent=config.kv_lora_rank,
        nope_dim=config.qk_nope_head_dim,
        rope_dim=config.qk_rope_head_dim,
        value_dim=config.v_head_dim,
        extra=gate,
    )


def _delta_attention(config: Text) -> StateSpace:
    """Kimi Delta Attention (arXiv:2510.26692): a delta rule with a decay per channel.

    Its scan costs, per head and token, 7 × head_dim² FLOP: decay 1, keys · state 2, outer product 2, query · state 2.
    """
    delta = config.linear_attn_config
    hidden, heads, head_dim = config.hidden_size, delta.num_heads, delta.head_dim
    width, kernel = heads * head_dim, delta.short_conv_kernel_size

    def weight(name: str, inputs: int, outputs: int) -> tuple[Weight, ...]:
        return linear(f"self_attn.{name}", inputs=inputs, outputs=outputs, part=Part.STATE_SPACE)

    weights: tuple[Weight, ...] = ()
    for name in ("q", "k", "v"):
        weights += weight(f"{name}_proj", hidden, width)
        weights += vector(f"self_attn.{name}_conv1d", (width, kernel), Part.STATE_SPACE)
    weights += weight("f_a_proj", hidden, head_dim) + weight("f_b_proj", head_dim, width)
    weights += vector("self_attn.A_log", STORED_RATES, Part.STATE_SPACE)
    weights += vector("self_attn.dt_bias", width, Part.STATE_SPACE, is_bias=True)
    weights += weight("b_proj", hidden, heads) + weight("g_proj", hidden, width)
    weights += norm("self_attn.o_norm", head_dim) + weight("o_proj", width, hidden)
    return StateSpace(
        kind="kimi delta attention",
        weights=weights,
        state=heads * head_dim * head_dim,
        convolution=3 * width * kernel,
        scan_flops=7 * heads * head_dim * head_dim,
    )


def _experts(config: Text) -> Moe:
    """Routed experts work on a narrower vector; the shared one on the full width."""
    hidden, latent, width = config.hidden_size, config.routed_expert_hidden_size, config.moe_intermediate_size
    path = "block_sparse_moe"
    weights = linear(f"{path}.gate", inputs=hidden, outputs=config.num_experts, part=Part.ROUTER)
    weights += buffer(f"{path}.gate.e_score_correction_bias", config.num_experts, Part.ROUTER)
    for name, inputs, outputs in (("w1", latent, width), ("w3", latent, width), ("w2", width, latent)):
        weights += linear(
            f"{path}.experts.*.{name}",
            inputs=inputs,
            outputs=outputs,
            part=Part.EXPERTS,
            use=Use.ROUTED,
            copies=config.num_experts,
        )
    weights += linear(f"{path}.routed_expert_in", inputs=hidden, outputs=latent, part=Part.OTHER)
    weights += linear(f"{path}.routed_expert_out", inputs=latent, outputs=hidden, part=Part.OTHER)
    weights += norm(f"{path}.routed_expert_norm", latent)
    if config.num_shared_experts:
        weights += gated_mlp(
            hidden=hidden,
            width=width * config.num_shared_experts,
            prefix=f"{path}.shared_experts",
            part=Part.SHARED_EXPERTS,
        ).weights
    return Moe(config.num_experts, config.num_experts_per_token, weights)


def _tower(config: Tower) -> tuple[Weight, ...]:
    path, hidden, layers, patch = "vision_tower", config.vt_hidden_size, config.vt_num_hidden_layers, config.patch_size
    layer = f"{path}.encoder.blocks.*"
    return (
        convolution(f"{path}.patch_embed.proj", channels=3, kernel=(patch, patch), outputs=hidden, bias=False)
        + table(f"{path}.patch_embed.pos_emb", config.init_pos_emb_height, config.init_pos_emb_width, hidden)
        + scale_norm(f"{layer}.norm0", hidden, copies=layers)
        + scale_norm(f"{layer}.norm1", hidden, copies=layers)
        + fused_attention(
            layer, hidden=hidden, inner=config.qkv_hidden_size, copies=layers, bias=False, names=("wqkv", "wo")
        )
        + two_layer_mlp(
            f"{layer}.mlp",
            hidden=hidden,
            width=config.vt_intermediate_size,
            copies=layers,
            bias=False,
            names=("fc0", "fc1"),
        )
        + scale_norm(f"{path}.encoder.final_layernorm", hidden)
    )
