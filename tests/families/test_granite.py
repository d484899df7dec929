"""Granite transformers: dense, with experts, with windows and sinks."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

GRANITE_3_8B = {
    "model_type": "granite",
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 12800,
    "vocab_size": 49159,
    "attention_bias": False,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}

GRANITE_3_A800M = {
    "model_type": "granitemoe",
    "hidden_size": 1536,
    "num_hidden_layers": 32,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "intermediate_size": 512,
    "num_local_experts": 40,
    "num_experts_per_tok": 8,
    "vocab_size": 49155,
    "attention_bias": False,
    "tie_word_embeddings": True,
}

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 6,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
    "max_position_embeddings": 4096,
}

SWITCHES: dict[str, list[Any]] = {
    "tie_word_embeddings": [False],
    "attention_bias": [True],
    "num_key_value_heads": [1, None, ...],
    "head_dim": [48],
}
EXPERTS = {"num_local_experts": 8, "num_experts_per_tok": 2}
SLIDING = ["sliding_attention", "full_attention"] * 3

REFERENCE = "transformers 5.24.0 on the meta device"

PINNED = (
    Pinned(
        name="ibm-granite/granite-3.3-8b-instruct",
        config=GRANITE_3_8B,
        source="safetensors metadata of the published checkpoint: 8,170,864,640",
        total=8_170_864_640,
        parts={
            "embedding": 201_355_264,
            "lm_head": 0,
            "attention": 1_677_721_600,
            "mlp": 6_291_456_000,
            "norm": 331_776,
        },
        decode_read=8_170_864_640,
        kv_full=163_840,
        variants=SWITCHES | {"mlp_bias": [True], "vocab_size": [49152, 49155]},
    ),
    Pinned(
        name="ibm-granite/granite-3.1-3b-a800m-instruct",
        config=GRANITE_3_A800M,
        source="safetensors metadata of the published checkpoint: 3,298,793,472",
        total=3_298_793_472,
        parts={
            "attention": 201_326_592,
            "experts": 3_019_898_880,
            "shared_experts": 0,
            "router": 1_966_080,
            "norm": 99_840,
        },
        active=882_874_368,
        decode_read=882_874_368,
        kv_full=65_536,
    ),
    Pinned(
        name="a small granitemoe",
        config=SMALL | EXPERTS | {"model_type": "granitemoe"},
        source=REFERENCE,
        total=4_793_600,
        variants=SWITCHES | {"num_local_experts": [4]},
    ),
    Pinned(
        name="a small granitemoeshared",
        config=SMALL | EXPERTS | {"model_type": "granitemoeshared", "shared_intermediate_size": 160},
        source=REFERENCE,
        total=5_530_880,
        variants=SWITCHES | {"shared_intermediate_size": [0, ...]},
    ),
    Pinned(
        name="a small granite_swa",
        config=SMALL | {"model_type": "granite_swa", "sliding_window": 128, "layer_types": SLIDING},
        source=REFERENCE,
        total=1_684_784,
        kv_full=3 * 256,
        kv_windowed=3 * 256,
        window=128,
        variants=SWITCHES | {"num_key_value_heads": [1], "mlp_bias": [True], "layer_types": [...]},
    ),
    Pinned(
        name="a small granitemoe_swa",
        config=SMALL | EXPERTS | {"model_type": "granitemoe_swa", "shared_intermediate_size": 160},
        source=REFERENCE,
        total=5_530_928,
        kv_full=2 * 256,
        kv_windowed=4 * 256,
        window=128,
        variants=SWITCHES | {"shared_intermediate_size": [0, ...], "layer_types": [SLIDING]},
    ),
    Pinned(
        name="ibm-granite/granite-swash-2b",
        config={
            "model_type": "granite_swa",
            "vocab_size": 100352,
            "hidden_size": 2560,
            "intermediate_size": 8192,
            "num_hidden_layers": 24,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "sliding_window": 128,
        },
        source="safetensors metadata of the published checkpoint: 2,144,463,840",
        total=2_144_463_840,
    ),
)

test_counts = counts_test(PINNED)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts_per_tok": 41}, "num_experts_per_tok is 41, more than the 40 experts"),
        ({"shared_intermediate_size": 1024}, "shared_intermediate_size is set"),
        ({"num_key_value_heads": 7}, "num_key_value_heads is 7 and does not divide the 24 query heads"),
        ({"num_local_experts": None}, "num_local_experts is missing or null"),
        ({"model_type": "granite"}, "num_local_experts|num_experts_per_tok"),
        (
            {"model_type": "granitemoe_swa", "layer_types": ["full_attention"]},
            "layer_types has 1 entries for 32 layers",
        ),
        ({"model_type": "granitemoe_swa", "layer_types": ["mamba"] * 32}, "layer_types holds 'mamba'"),
        ({"model_type": "granitemoe_swa", "sliding_window": None}, "sliding_window is missing or null"),
    ],
)
def test_refusals(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(GRANITE_3_A800M | changes, source="config.json")


def test_a_window_that_the_config_does_not_state_is_reported() -> None:
    assumed = read_architecture(SMALL | {"model_type": "granite_swa"}, source="config.json").assumed
    assert [text for text in assumed if "sliding_window = 128" in text]
    assert not read_architecture(SMALL | {"model_type": "granite"}, source="config.json").assumed
