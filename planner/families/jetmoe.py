"""JetMoE: experts for the queries and outputs of attention too, with keys and values common to all of them.

Reference: ``JetMoeForCausalLM`` of transformers. A token's query heads come from its ``num_experts_per_tok`` experts,
so their number follows; the routed half of the attention is a mixture of its own.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Attention, Layer, Moe, Part, Use, Weight
from planner.blocks import linear, vector
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder, active_experts, decoder, norms

MODEL_TYPES = ("jetmoe",)


class Config(Decoder):
    """Keys that decide the counts. The query heads follow from the experts, whatever the file says."""

    num_attention_heads: Count = 1
    num_key_value_heads: Count
    kv_channels: Count = Field(default=128, validation_alias=either("kv_channels", "head_dim"))
    intermediate_size: Count = Field(validation_alias=either("intermediate_size", "ffn_hidden_size"))
    num_local_experts: Count = Field(validation_alias=either("num_local_experts", "moe_num_experts"))
    num_experts_per_tok: Count = Field(validation_alias=either("num_experts_per_tok", "moe_top_k"))
    tie_word_embeddings: Switch = True

    def defaulted(self) -> tuple[str, ...]:
        """Without the heads, which are not read."""
        return tuple(text for text in super().defaulted() if not text.startswith("num_attention_heads"))


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, width = config.hidden_size, config.num_key_value_heads * config.kv_channels
    shared = linear("self_attention.kv_proj", inputs=hidden, outputs=2 * width, part=Part.ATTENTION)
    active = active_experts(config, "num_experts_per_tok", config.num_experts_per_tok, config.num_local_experts)
    heads, kv_heads, channels = active * config.num_key_value_heads, config.num_key_value_heads, config.kv_channels
    blocks = (
        Attention(heads, kv_heads, channels, channels, shared),
        _mixture(config, "self_attention.experts", width, width, Part.ATTENTION),
        _mixture(config, "mlp", 2 * config.intermediate_size, config.intermediate_size, Part.EXPERTS),
    )
    layer = Layer(blocks, norms(("input_layernorm", "post_attention_layernorm"), hidden))
    return decoder(config, family="jetmoe", layers=(layer,) * config.num_hidden_layers)


def _mixture(config: Config, path: str, into: int, back: int, part: Part) -> Moe:
    """All experts of a layer in two tensors, a router, and one bias on what comes back."""
    hidden, experts = config.hidden_size, config.num_local_experts
    router = linear(f"{path}.router.layer", inputs=hidden, outputs=experts, part=Part.ROUTER)
    routed = (
        Weight(f"{path}.input_linear", (into, hidden), part, Use.ROUTED, experts),
        Weight(f"{path}.output_linear", (hidden, back), part, Use.ROUTED, experts),
    )
    bias = vector(f"{path}.bias", hidden, part, is_bias=True)
    return Moe(experts, config.num_experts_per_tok, router + routed + bias)
