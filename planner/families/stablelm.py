"""StableLM 3B, Zephyr 3B, 2-1.6B and 2-12B: LayerNorms with biases, optional biases and per-head norms.

Reference: ``StableLmConfig`` and ``StableLmForCausalLM`` of transformers; ``stablelm_epoch`` is the same layout as
first published.
"""

from __future__ import annotations

from planner.architecture import Architecture, Layer
from planner.blocks import gated_mlp, grouped_query_attention, norm
from planner.config import Count, Switch
from planner.families._dense import DenseConfig, decoder

MODEL_TYPES = ("stablelm", "stablelm_epoch")


class Config(DenseConfig):
    """Keys that decide the counts of a StableLM."""

    num_key_value_heads: Count
    use_qkv_bias: Switch = False
    qk_layernorm: Switch = False
    use_parallel_residual: Switch = False


def read(config: Config) -> Architecture:
    """A stack of equal layers; a parallel residual needs one norm, not two."""
    hidden, heads = config.hidden_size, config.num_attention_heads
    head_dim = config.head_width(hidden, heads)
    if config.head_dim not in (None, head_dim):
        raise config.refusal("head_dim", f"is {config.head_dim}; a StableLM's heads are hidden_size / heads wide")
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=config.kv_heads,
        head_dim=head_dim,
        bias=config.use_qkv_bias,
        query_key_norm=(heads * head_dim, config.kv_heads * head_dim) if config.qk_layernorm else None,
        norm_names=("q_layernorm", "k_layernorm"),
    )
    mlp = gated_mlp(hidden=hidden, width=config.intermediate_size)
    norms = norm("input_layernorm", hidden, bias=True)
    if not config.use_parallel_residual:
        norms += norm("post_attention_layernorm", hidden, bias=True)
    layer = Layer((attention, mlp), norms)
    return decoder(config, family="stablelm", layers=(layer,) * config.num_hidden_layers, norm_bias=True)
