"""GPT-Neo: learned positions, layers that take turns in seeing everything and a window, biases except on q, k and v.

Reference: ``GPTNeoConfig`` and ``GPTNeoForCausalLM`` of transformers.
"""

from __future__ import annotations

from pydantic import Field

from planner.architecture import Architecture, Layer
from planner.blocks import embedding, grouped_query_attention, lm_head, norm, plain_mlp
from planner.config import Count, FamilyConfig, Layers, Switch, either
from planner.families._dense import positions

MODEL_TYPES = ("gpt_neo",)


class Config(FamilyConfig):
    """Keys that decide the counts. ``attention_types`` holds pairs: a pattern and how often it repeats."""

    hidden_size: Count
    num_layers: Layers = Field(validation_alias=either("num_layers", "num_hidden_layers"))
    num_heads: Count = Field(validation_alias=either("num_heads", "num_attention_heads"))
    intermediate_size: Count | None = None
    attention_types: list[tuple[list[str], Count]]
    attention_layers: list[str] | None = None
    window_size: Count = 256
    max_position_embeddings: Count
    vocab_size: Count
    tie_word_embeddings: Switch = True

    def kinds(self) -> list[str]:
        """``global`` or ``local`` for every layer."""
        kinds = [kind for pattern, times in self.attention_types for kind in pattern * min(times, self.num_layers)]
        if len(kinds) != self.num_layers or (self.attention_layers or kinds) != kinds:
            raise self.refusal("attention_types", f"makes {len(kinds)} layers of {self.num_layers}, or other ones")
        if unknown := set(kinds) - {"global", "local"}:
            raise self.refusal("attention_types", f"has the unknown entry {min(unknown)!r}")
        return kinds


def read(config: Config) -> Architecture:
    """Layers that differ in their window only."""
    hidden, vocabulary, rows = config.hidden_size, config.vocab_size, config.max_position_embeddings
    layers = {"global": _layer(config, None), "local": _layer(config, config.window_size)}
    return Architecture(
        family="gpt_neo",
        model_type=config.model_type,
        hidden=hidden,
        vocabulary=vocabulary,
        layers=tuple(layers[kind] for kind in config.kinds()),
        embedding=embedding("transformer.wte", rows=vocabulary, width=hidden),
        lm_head=lm_head(vocabulary=vocabulary, hidden=hidden, tied=config.tie_word_embeddings),
        outer=(*norm("transformer.ln_f", hidden, bias=True), positions("transformer.wpe", rows=rows, width=hidden)),
        max_context=rows,
        layer_names="transformer.h",
        dtype=config.dtype,
    )


def _layer(config: Config, window: int | None) -> Layer:
    hidden, heads = config.hidden_size, config.num_heads
    attention = grouped_query_attention(
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=config.head_width(hidden, heads),
        output_bias=True,
        window=window,
        prefix="attn.attention",
        names=("q_proj", "k_proj", "v_proj", "out_proj"),
    )
    width = config.intermediate_size or 4 * hidden
    mlp = plain_mlp(hidden=hidden, width=width, bias=True, names=("c_fc", "c_proj"))
    return Layer((attention, mlp), norm("ln_1", hidden, bias=True) + norm("ln_2", hidden, bias=True))
