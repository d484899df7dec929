"""Llama and its look-alikes."""

from __future__ import annotations

import pytest

from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

LLAMA_31_8B = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}

PINNED = (
    Pinned(
        name="meta-llama/Llama-3.1-8B-Instruct",
        config=LLAMA_31_8B,
        source="safetensors metadata of the published checkpoint: 8,030,261,248",
        total=8_030_261_248,
        parts={"embedding": 525_336_576, "lm_head": 525_336_576, "attention": 32 * 41_943_040, "mlp": 32 * 176_160_768},
        kv_full=131_072,
        variants={
            "tie_word_embeddings": [True],
            "head_dim": [64, None],
            "num_key_value_heads": [1, None, ...],
            "attention_bias": [True],
            "mlp_bias": [True],
            "vocab_size": [32001],
        },
    ),
    Pinned(
        name="meta-llama/Llama-3.2-1B-Instruct",
        config=LLAMA_31_8B
        | {"hidden_size": 2048, "num_hidden_layers": 16, "intermediate_size": 8192, "head_dim": 64}
        | {"tie_word_embeddings": True},
        source="safetensors metadata of the published checkpoint: 1,235,814,400",
        total=1_235_814_400,
        decode_read=1_235_814_400,
        kv_full=32_768,
    ),
)

test_counts = counts_test(PINNED)


def test_a_width_that_heads_do_not_divide_needs_an_explicit_head_dim() -> None:
    with pytest.raises(PlanError, match="hidden size 4,096 does not divide by 33 heads"):
        read_architecture(LLAMA_31_8B | {"num_attention_heads": 33}, source="config.json")
