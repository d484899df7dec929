"""What Qwen3-Next and Qwen 3.5 share: gated delta nets in most layers, gated attention in the others, a draft module.

No dialect by itself (the name begins with an underscore).
"""

from __future__ import annotations

from dataclasses import replace

from planner.architecture import Attention, Component, Layer, Mlp, Moe, Part, StateSpace, Weight
from planner.blocks import grouped_query_attention, linear, mixture_of_experts, norm
from planner.config import Count, CountOrZero, FamilyConfig, Switch
from planner.delta_blocks import gated_delta_net
from planner.families._decoder import FULL, Decoder, active_experts, norms, per_layer

RECURRENT = "linear_attention"
LAYER_NORMS = ("input_layernorm", "post_attention_layernorm")
STATE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class HybridConfig(Decoder):
    """Keys of the mixers; ``layer_types`` wins over ``full_attention_interval``."""

    num_key_value_heads: Count
    head_dim: Count
    attention_bias: Switch = False
    attn_output_gate: Switch = True
    layer_types: list[str] | None = None
    full_attention_interval: Count = 4
    linear_num_key_heads: Count
    linear_num_value_heads: Count
    linear_key_head_dim: Count
    linear_value_head_dim: Count
    linear_conv_kernel_dim: Count
    mamba_ssm_dtype: str = "float32"
    mtp_num_hidden_layers: CountOrZero = 0
    mtp_use_dedicated_embeddings: Switch = False


class ExpertKeys(FamilyConfig):
    """Keys of the experts."""

    num_experts: Count
    num_experts_per_tok: Count
    moe_intermediate_size: Count
    shared_expert_intermediate_size: Count


def mixer_kinds(config: HybridConfig) -> tuple[str, ...]:
    """The mixer of every layer.

    Raises:
        PlanError: a list of the wrong length or with an unknown entry.
    """
    if not config.layer_types:
        interval = config.full_attention_interval
        return tuple(RECURRENT if (index + 1) % interval else FULL for index in range(config.num_hidden_layers))
    for kind in per_layer(config, "layer_types", config.layer_types):
        if kind not in (FULL, RECURRENT):
            raise config.refusal("layer_types", f"holds {kind!r}; an entry is {FULL!r} or {RECURRENT!r}")
    return tuple(config.layer_types)


def gated_attention(config: HybridConfig) -> Attention:
    """Grouped-query attention whose query projection makes an output gate too."""
    if not config.attn_output_gate:
        raise config.refusal("attn_output_gate", "is false, and this family's attention always has an output gate")
    return grouped_query_attention(
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        kv_heads=config.key_value_heads,
        head_dim=config.head_dim,
        bias=config.attention_bias,
        output_bias=config.attention_bias,
        query_key_norm=(config.head_dim, config.head_dim),
        output_gate=True,
    )


def delta_net(config: HybridConfig, *, joined: bool) -> StateSpace:
    """The gated delta net; ``joined`` says how its input matrices are stored."""
    keys, values = config.linear_num_key_heads, config.linear_num_value_heads
    if values % keys:
        raise config.refusal("linear_num_key_heads", f"is {keys} and does not divide the {values} value heads")
    if config.mamba_ssm_dtype not in STATE_BYTES:
        known = ", ".join(STATE_BYTES)
        raise config.refusal("mamba_ssm_dtype", f"is {config.mamba_ssm_dtype!r}; a state is kept in one of {known}")
    return gated_delta_net(
        hidden=config.hidden_size,
        key_heads=keys,
        value_heads=values,
        key_dim=config.linear_key_head_dim,
        value_dim=config.linear_value_head_dim,
        kernel=config.linear_conv_kernel_dim,
        joined=joined,
        state_bytes=STATE_BYTES[config.mamba_ssm_dtype],
    )


def experts_of(config: ExpertKeys, *, hidden: int) -> Moe:
    """Routed experts and one shared expert behind a gate."""
    return mixture_of_experts(
        hidden=hidden,
        width=config.moe_intermediate_size,
        experts=config.num_experts,
        active=active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_experts),
        shared_width=config.shared_expert_intermediate_size,
        shared_gate=True,
        shared_name="shared_expert",
    )


def hybrid_layer(config: HybridConfig, mixer: Attention | StateSpace, feed_forward: Mlp | Moe) -> Layer:
    """A mixer and a feed-forward block, each behind a norm."""
    return Layer((mixer, feed_forward), norms(LAYER_NORMS, config.hidden_size))


def draft_module(config: HybridConfig, feed_forward: Mlp | Moe) -> tuple[Component, ...]:
    """The MTP module of published files: layers of full attention behind a join of embedding and hidden state.

    It uses the model's own embedding and head.
    """
    if config.mtp_use_dedicated_embeddings:
        raise config.refusal(
            "mtp_use_dedicated_embeddings", "is true, and no published checkpoint shows what is then stored"
        )
    if not config.mtp_num_hidden_layers:
        return ()
    hidden = config.hidden_size
    layer = hybrid_layer(config, gated_attention(config), feed_forward)
    one = [weight for block in layer.blocks for weight in block.weights] + list(layer.weights)
    found: list[Weight] = [
        replace(weight, name=f"mtp.layers.{index}.{weight.name}")
        for index in range(config.mtp_num_hidden_layers)
        for weight in one
    ]
    found += linear("mtp.fc", inputs=2 * hidden, outputs=hidden, part=Part.MTP)
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        found += norm(f"mtp.{name}", hidden)
    weights = tuple(replace(weight, part=Part.MTP) for weight in found)
    return (Component("multi-token prediction", weights, counted=False),)
