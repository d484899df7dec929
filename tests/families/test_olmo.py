"""OLMo in all its generations, with experts and with a delta net."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import StateSpace
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

ORACLE = "transformers 5.24.0 on the meta device"

OLMO_7B: dict[str, Any] = {
    "model_type": "olmo",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 50304,
    "tie_word_embeddings": False,
    "clip_qkv": 8.0,
}
OLMO_2_32B: dict[str, Any] = {
    "model_type": "olmo2",
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "intermediate_size": 27648,
    "vocab_size": 100352,
    "max_position_embeddings": 4096,
}
OLMO_3_7B: dict[str, Any] = OLMO_7B | {
    "model_type": "olmo3",
    "vocab_size": 100278,
    "sliding_window": 4096,
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 8,
    "max_position_embeddings": 8192,
}
OLMOE_1B_7B: dict[str, Any] = {
    "model_type": "olmoe",
    "hidden_size": 2048,
    "num_hidden_layers": 16,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 1024,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "vocab_size": 50304,
    "tie_word_embeddings": False,
}
SMALL_FLEX: dict[str, Any] = {
    "model_type": "flex_olmo",
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "num_experts": 7,
    "num_experts_per_tok": 5,
    "vocab_size": 100,
    "pad_token_id": 1,
}
HYBRID: dict[str, Any] = {
    "model_type": "olmo_hybrid",
    "hidden_size": 3840,
    "num_hidden_layers": 32,
    "num_attention_heads": 30,
    "intermediate_size": 11008,
    "vocab_size": 100352,
    "max_position_embeddings": 65536,
}

SWITCHES: dict[str, list[Any]] = {
    "attention_bias": [True],
    "tie_word_embeddings": [True],
    "num_key_value_heads": [1, ...],
    "vocab_size": [1001],
}

PINNED = (
    Pinned(
        name="allenai/OLMo-7B-hf",
        config=OLMO_7B,
        source="safetensors metadata of the published checkpoint: 6,888,095,744",
        total=6_888_095_744,
        parts={"embedding": 206_045_184, "attention": 2_147_483_648, "mlp": 4_328_521_728, "norm": 0},
        kv_full=524_288,
        variants=SWITCHES | {"head_dim": [64]},
    ),
    Pinned(
        name="allenai/OLMo-2-0325-32B",
        config=OLMO_2_32B,
        source="safetensors metadata of the published checkpoint: 32,234,279,936",
        total=32_234_279_936,
        parts={
            "embedding": 513_802_240,
            "lm_head": 513_802_240,
            "attention": 4_026_531_840,
            "mlp": 27_179_089_920,
            "norm": 1_053_696,
        },
        decode_read=31_720_477_696,
        kv_full=262_144,
        variants=SWITCHES | {"head_dim": [64]},
    ),
    Pinned(
        name="allenai/Olmo-3-7B-Instruct",
        config=OLMO_3_7B,
        source="safetensors metadata of the published checkpoint: 7,298,011,136",
        total=7_298_011_136,
        parts={"embedding": 410_738_688, "attention": 2_147_483_648, "mlp": 4_328_521_728, "norm": 528_384},
        kv_full=131_072,
        kv_windowed=393_216,
        window=4096,
        variants=SWITCHES | {"layer_types": [...]},
    ),
    Pinned(
        name="allenai/OLMoE-1B-7B-0924",
        config=OLMOE_1B_7B,
        source="safetensors metadata of the published checkpoint: 6,919,161,856",
        total=6_919_161_856,
        parts={
            "embedding": 103_022_592,
            "attention": 268_435_456,
            "mlp": 0,
            "experts": 6_442_450_944,
            "router": 2_097_152,
            "norm": 133_120,
        },
        active=1_282_017_280,
        decode_read=1_178_994_688,
        kv_full=131_072,
        variants=SWITCHES | {"num_experts": [8], "intermediate_size": [512]},
    ),
    Pinned(
        name="a small flex_olmo",
        config=SMALL_FLEX,
        source=ORACLE,
        total=438_816,
        kv_full=384,
        variants=SWITCHES | {"num_experts": [6], "head_dim": [32]},
    ),
    Pinned(
        name="allenai/Olmo-Hybrid-7B by the class's defaults",
        config=HYBRID,
        source=ORACLE,
        total=7_430_870_688,
        kv_full=8 * 2 * 2 * 3840,
        state=24 * (4 * 30 * 96 * 192 + 2 * 4 * 30 * (96 + 96 + 192)),
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [True],
            "num_key_value_heads": [6],
            "num_hidden_layers": [3, 9],
            "layer_types": [["full_attention", "linear_attention"] * 16],
            "linear_num_key_heads": [15],
            "linear_num_value_heads": [60],
            "linear_key_head_dim": [64],
            "linear_value_head_dim": [64],
            "linear_conv_kernel_dim": [2],
            "head_dim": [64],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_a_delta_net_says_what_its_scan_costs() -> None:
    block = read_architecture(HYBRID, source="config.json").layers[0].blocks[0]
    assert isinstance(block, StateSpace)
    assert block.scan_flops == 7 * 30 * 96 * 192


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (OLMO_7B | {"num_key_value_heads": 3}, "does not divide the 32 query heads"),
        (OLMO_7B | {"sliding_window": 4096}, "sliding_window = 4096"),
        (OLMO_2_32B | {"sliding_window": 4096}, "olmo2 has no such part"),
        (OLMO_2_32B | {"num_experts": 7}, "olmo2 has no such part"),
        (OLMO_3_7B | {"layer_types": ["full_attention"]}, "has 1 entries for 32 layers"),
        (OLMO_3_7B | {"sliding_window": None}, "sliding_window is missing or null"),
        (OLMOE_1B_7B | {"num_experts_per_tok": 65}, "more than the 64 experts"),
        (OLMOE_1B_7B | {"head_dim": 64}, "make up the hidden size 2,048"),
        (SMALL_FLEX | {"num_experts": None}, "num_experts is missing or null"),
        (SMALL_FLEX | {"num_experts_per_tok": 8}, "more than the 7 experts"),
        (HYBRID | {"layer_types": ["full_attention"] * 32}, "has no 'linear_attention' layer"),
        (HYBRID | {"layer_types": ["full_attention", "linear_attention", "mamba", "mamba"] * 8}, "holds 'mamba'"),
        (HYBRID | {"linear_num_key_heads": 7}, "does not divide the 30 value heads"),
    ],
)
def test_what_cannot_be_read_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(config, source="config.json")
