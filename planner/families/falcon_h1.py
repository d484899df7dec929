"""Falcon-H1: attention and a Mamba-2 mixer side by side in every layer, then a gated MLP.

Reference: ``FalconH1ForCausalLM`` of transformers. The many multipliers cost nothing.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp, norm
from planner.config import Count, Switch
from planner.families._decoder import attention_of, decoder, norms
from planner.families._mamba import HybridDecoder, mixer_of, stated

MODEL_TYPES = ("falcon_h1",)


class Config(HybridDecoder):
    """Keys that decide the counts; a null ``mamba_d_ssm`` means ``mamba_expand`` × ``hidden_size`` channels."""

    intermediate_size: Count
    mamba_d_ssm: Count | None = None
    mamba_rms_norm: Switch = False
    mamba_use_mlp: Switch = True
    mlp_bias: Switch = False
    projectors_bias: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers."""
    hidden, bias = config.hidden_size, config.attention_bias
    stated(config, "num_key_value_heads", "mamba_d_ssm")
    if not config.mamba_use_mlp:
        raise config.refusal("mamba_use_mlp", "is false, and the reference has an MLP in every layer")
    mixer = mixer_of(
        config,
        inner=config.mamba_d_ssm,
        gated_norm=config.mamba_rms_norm,
        output_bias=config.projectors_bias,
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size, bias=config.mlp_bias, prefix="feed_forward")
    layer = Layer(
        (mixer, attention_of(config, bias=bias, output_bias=bias), mlp),
        norms(("input_layernorm", "pre_ff_layernorm"), hidden),
    )
    return decoder(
        config,
        family="falcon_h1",
        layers=(layer,) * config.num_hidden_layers,
        outer=norm("model.final_layernorm", hidden),
    )
