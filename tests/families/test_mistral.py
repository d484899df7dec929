"""Mistral, Ministral, Mixtral."""

from __future__ import annotations

from typing import Any

import pytest

from planner.counting import cache_layers, count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

MISTRAL_7B = {
    "model_type": "mistral",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "vocab_size": 32000,
}
DEVSTRAL_2 = MISTRAL_7B | {
    "model_type": "ministral3",
    "head_dim": 128,
    "hidden_size": 12288,
    "intermediate_size": 28672,
    "max_position_embeddings": 262144,
    "num_attention_heads": 96,
    "num_hidden_layers": 88,
    "sliding_window": None,
    "vocab_size": 131072,
}
MIXTRAL_8X7B = MISTRAL_7B | {
    "model_type": "mixtral",
    "num_experts_per_tok": 2,
    "num_local_experts": 8,
    "sliding_window": None,
}
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
DENSE_SWITCHES: dict[str, Any] = {
    "tie_word_embeddings": [True],
    "head_dim": [24],
    "num_key_value_heads": [1, 4],
    "sliding_window": [None, 16],
}

PINNED = (
    Pinned(
        name="mistralai/Mistral-7B-v0.1",
        config=MISTRAL_7B | {"sliding_window_size": 4096, "attention_sink_size": 4},
        source="safetensors metadata of the published checkpoint: 7,241,732,096",
        total=7_241_732_096,
        parts={"embedding": 131_072_000, "lm_head": 131_072_000, "attention": 1_342_177_280, "mlp": 5_637_144_576},
        decode_read=7_110_660_096,
        kv_full=0,
        kv_windowed=131_072,
        window=4096,
    ),
    Pinned(
        name="mistralai/Mistral-Nemo-Instruct-2407",
        config=MISTRAL_7B
        | {"head_dim": 128, "hidden_size": 5120, "num_hidden_layers": 40, "vocab_size": 131072}
        | {"sliding_window": None},
        source="safetensors metadata of the published checkpoint: 12,247,782,400",
        total=12_247_782_400,
        parts={"attention": 2_097_152_000, "mlp": 8_808_038_400, "norm": 414_720},
        kv_full=163_840,
        kv_windowed=0,
    ),
    Pinned(
        name="mistralai/Devstral-2-123B-Instruct-2512",
        config=DEVSTRAL_2,
        source="transformers 5.24.0 on the meta device",
        total=125_025_988_608,
        parts={"attention": 28_789_702_656, "mlp": 93_012_885_504, "norm": 2_174_976},
        kv_full=360_448,
        kv_windowed=0,
    ),
    Pinned(
        name="mistralai/Mixtral-8x7B-v0.1",
        config=MIXTRAL_8X7B,
        source="safetensors metadata of the published checkpoint: 46,702,792,704",
        total=46_702_792_704,
        parts={"attention": 1_342_177_280, "experts": 45_097_156_608, "router": 1_048_576, "norm": 266_240, "mlp": 0},
        active=12_879_925_248,
        decode_read=12_748_853_248,
        kv_full=131_072,
    ),
    Pinned(
        name="mistralai/Mixtral-8x22B-Instruct-v0.1",
        config=MIXTRAL_8X7B
        | {"hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 56, "num_attention_heads": 48}
        | {"vocab_size": 32768},
        source="safetensors metadata of the published checkpoint: 140,630,071,296",
        total=140_630_071_296,
    ),
    Pinned(
        name="a small Mistral",
        config=SMALL | {"model_type": "mistral"},
        source="transformers 5.24.0 on the meta device",
        total=136_256,
        kv_windowed=4 * 2 * 2 * 2 * 16,
        window=4096,
        variants=DENSE_SWITCHES,
    ),
    Pinned(
        name="a small Ministral",
        config=SMALL
        | {"model_type": "ministral", "head_dim": 16, "sliding_window": 8}
        | {"layer_types": ["sliding_attention", "full_attention"] * 2},
        source="transformers 5.24.0 on the meta device",
        total=136_256,
        kv_full=256,
        kv_windowed=256,
        window=8,
        variants={"tie_word_embeddings": [True], "num_key_value_heads": [1], "layer_types": [...]},
    ),
    Pinned(
        name="a small Ministral 3",
        config=SMALL | {"model_type": "ministral3", "head_dim": 16},
        source="transformers 5.24.0 on the meta device",
        total=136_256,
        kv_full=512,
        variants=DENSE_SWITCHES | {"head_dim": [24, ...]},
    ),
    Pinned(
        name="a small Mixtral",
        config=SMALL | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2},
        source="transformers 5.24.0 on the meta device",
        total=358_464,
        variants=DENSE_SWITCHES | {"num_local_experts": [3], "num_experts_per_tok": [1]},
    ),
)

test_counts = counts_test(PINNED)


def test_experts_carry_the_names_of_published_checkpoints() -> None:
    layer = read_architecture(MIXTRAL_8X7B, source="config.json").layers[0]
    names = [weight.name for weight in layer.blocks[1].weights]
    assert names == [f"block_sparse_moe.{name}" for name in ("gate", "experts.*.w1", "experts.*.w3", "experts.*.w2")]


def test_an_absent_window_is_the_default_of_the_class_and_null_is_none() -> None:
    absent = read_architecture(MISTRAL_7B, source="config.json")
    assert cache_layers(absent)[0].window == 4096
    assert any("sliding_window = 4,096" in text for text in absent.assumed)
    null = read_architecture(MISTRAL_7B | {"sliding_window": None}, source="config.json")
    assert cache_layers(null)[0].window is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_key_value_heads": 5}, "num_key_value_heads is 5, which does not divide the 32 attention heads"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries for 32 layers"),
        ({"layer_types": ["linear_attention"] * 32}, "unknown entry 'linear_attention'"),
        ({"layer_types": ["sliding_attention"] * 32, "sliding_window": None}, "no sliding window is set"),
        ({"num_local_experts": 8}, "num_local_experts = 8 changes what the model is made of"),
        ({"attention_bias": True}, "attention_bias = True changes what the model is made of"),
    ],
)
def test_what_a_mistral_cannot_be_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(MISTRAL_7B | change, source="config.json")


def test_a_mixtral_cannot_route_to_more_experts_than_it_has() -> None:
    with pytest.raises(PlanError, match="num_experts_per_tok is 9, more than the 8 experts"):
        read_architecture(MIXTRAL_8X7B | {"num_experts_per_tok": 9}, source="config.json")


def test_experts_of_a_mixtral_may_be_called_num_experts() -> None:
    config = {key: value for key, value in MIXTRAL_8X7B.items() if key != "num_local_experts"} | {"num_experts": 8}
    assert count_parameters(read_architecture(config, source="config.json")).total == 46_702_792_704
