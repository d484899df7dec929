"""InternLM 1 and 3, IQuest-Coder and Xverse: Llama's layout, biases under other names.

Reference: ``modeling_internlm.py`` of the published checkpoints (``bias``: queries, keys, values and output), and
``LlamaForCausalLM`` under ``InternLM3Config`` and ``IQuestCoderConfig`` of transformers. Xverse differs from Llama in
name only.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture
from planner.blocks import gated_mlp, pre_norm_layer
from planner.config import Count, Switch, either
from planner.families._decoder import Decoder, attention_of, decoder

MODEL_TYPES = ("internlm", "internlm3", "iquestcoder", "xverse")

OWN_HEAD_WIDTH = ("internlm3", "iquestcoder")


class Config(Decoder):
    """Keys that decide the counts. ``bias`` is the attention's in the first InternLM, the MLP's in the third."""

    intermediate_size: Count
    attention_bias: Switch = Field(default=False, validation_alias=either("attention_bias", "qkv_bias"))
    mlp_bias: Switch = False
    bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    if config.model_type in OWN_HEAD_WIDTH and "head_dim" not in config.model_fields_set:
        raise config.refusal("head_dim", "is missing, and this family does not derive it from hidden_size")
    is_first, is_third = config.model_type == "internlm", config.model_type == "internlm3"
    bias = config.attention_bias or (is_first and config.bias)
    mlp_bias = config.mlp_bias or (is_third and config.bias)
    if is_third and bias != mlp_bias:
        raise config.refusal("qkv_bias", "differs from bias, and no published model shows what the output then has")
    hidden = config.hidden_size
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=mlp_bias)
    layer = pre_norm_layer(attention_of(config, bias=bias, output_bias=bias), mlp, hidden=hidden)
    return decoder(config, family="internlm", layers=(layer,) * config.num_hidden_layers)
