"""BitNet b1.58: a Llama with one more norm inside each block.

Reference: ``BitNetForCausalLM`` of transformers. How many bits a weight takes is ``quantization_config``'s matter.
"""

from __future__ import annotations

from planner.architecture import Architecture, Mlp
from planner.blocks import gated_mlp, norm, pre_norm_layer
from planner.config import Count, Switch
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("bitnet",)


class Config(Decoder):
    """Keys that decide the counts."""

    num_key_value_heads: Count
    intermediate_size: Count
    attention_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, width, bias = config.hidden_size, config.intermediate_size, config.attention_bias
    attention = attention_of(config, bias=bias, output_bias=bias, extra=norm("self_attn.attn_sub_norm", hidden))
    mlp = Mlp(gated_mlp(hidden=hidden, width=width).weights + norm("mlp.ffn_sub_norm", width))
    layer = pre_norm_layer(attention, mlp, hidden=hidden)
    return decoder(config, family="bitnet", layers=(layer,) * config.num_hidden_layers)
