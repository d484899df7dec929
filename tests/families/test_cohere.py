"""Command R, Command A and Aya."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

ORACLE = "transformers 5.24.0 on the meta device"

COMMAND_R_PLUS: dict[str, Any] = {
    "model_type": "cohere",
    "hidden_size": 12288,
    "num_hidden_layers": 64,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "intermediate_size": 33792,
    "vocab_size": 256000,
    "use_qk_norm": True,
    "model_max_length": 131072,
    "max_position_embeddings": 8192,
}
COMMAND_R7B: dict[str, Any] = {
    "model_type": "cohere2",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 14336,
    "vocab_size": 256000,
    "sliding_window": 4096,
    "sliding_window_pattern": 4,
}
SMALL_MOE: dict[str, Any] = {
    "model_type": "cohere2_moe",
    "hidden_size": 64,
    "num_hidden_layers": 9,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 24,
    "intermediate_size": 32,
    "prefix_dense_intermediate_size": 96,
    "first_k_dense_replace": 1,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "num_shared_experts": 2,
    "vocab_size": 100,
    "sliding_window": 4096,
}
SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 48,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
    "vision_use_head": False,
}
AYA: dict[str, Any] = {
    "model_type": "aya_vision",
    "text_config": COMMAND_R7B | {"num_hidden_layers": 4, "hidden_size": 256, "head_dim": 8, "vocab_size": 500},
    "vision_config": SIGLIP,
    "alignment_intermediate_size": 64,
    "downsample_factor": 2,
}

SWITCHES: dict[str, list[Any]] = {
    "attention_bias": [True],
    "tie_word_embeddings": [False],
    "num_key_value_heads": [1, ...],
    "head_dim": [64],
    "vocab_size": [1001],
}

PINNED = (
    Pinned(
        name="CohereLabs/c4ai-command-r-plus",
        config=COMMAND_R_PLUS,
        source="safetensors metadata of the published checkpoint: 103,810,674,688",
        total=103_810_674_688,
        parts={
            "embedding": 3_145_728_000,
            "lm_head": 0,
            "attention": 20_937_965_568,
            "mlp": 79_725_330_432,
            "norm": 1_650_688,
        },
        decode_read=103_810_674_688,
        kv_full=262_144,
        variants=SWITCHES | {"use_qk_norm": [False]},
    ),
    Pinned(
        name="CohereLabs/c4ai-command-r-v01",
        config=COMMAND_R_PLUS
        | {"hidden_size": 8192, "num_hidden_layers": 40, "num_attention_heads": 64, "num_key_value_heads": 64}
        | {"intermediate_size": 22528, "use_qk_norm": False},
        source="safetensors metadata of the published checkpoint: 34,980,831,232",
        total=34_980_831_232,
        kv_full=1_310_720,
    ),
    Pinned(
        name="CohereLabs/c4ai-command-r7b-12-2024",
        config=COMMAND_R7B,
        source="safetensors metadata of the published checkpoint: 8,028,033,024",
        total=8_028_033_024,
        parts={"embedding": 1_048_576_000, "attention": 1_342_177_280, "mlp": 5_637_144_576, "norm": 135_168},
        kv_full=32_768,
        kv_windowed=98_304,
        window=4096,
        variants=SWITCHES | {"sliding_window_pattern": [2, ...], "layer_types": [["full_attention"] * 32]},
    ),
    Pinned(
        name="a small cohere2_moe",
        config=SMALL_MOE,
        source=ORACLE,
        total=587_648,
        kv_full=3 * 192,
        kv_windowed=6 * 192,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [False],
            "head_dim": [16, ...],
            "num_key_value_heads": [1, ...],
            "num_experts": [3],
            "num_shared_experts": [0, ...],
            "first_k_dense_replace": [0, 3],
            "mlp_layer_types": [["dense", "sparse", "dense"] * 3],
            "layer_types": [["full_attention"] * 9],
            "prefix_dense_sliding_window_pattern": [2],
            "rms_norm_eps": [1e-5],
        },
    ),
    Pinned(
        name="a small aya_vision",
        config=AYA,
        source=ORACLE,
        total=44_912_496,
        variants={
            "alignment_intermediate_size": [...],
            "downsample_factor": [1],
            "tie_word_embeddings": [False],
            "vision_config.vision_use_head": [True],
        },
    ),
    Pinned(
        name="a small cohere2_vision",
        config=AYA | {"model_type": "cohere2_vision"},
        source=ORACLE,
        total=44_912_112,
        variants={"downsample_factor": [1], "tie_word_embeddings": [False], "alignment_intermediate_size": [128]},
    ),
)

test_counts = counts_test(PINNED)


def test_the_context_is_the_longer_one_that_command_r_states_apart() -> None:
    assert read_architecture(COMMAND_R_PLUS, source="config.json").max_context == 131_072


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (COMMAND_R_PLUS | {"num_key_value_heads": 7}, "does not divide the 96 query heads"),
        (COMMAND_R7B | {"layer_types": ["full_attention"]}, "has 1 entries for 32 layers"),
        (COMMAND_R7B | {"sliding_window": None}, "sliding_window is missing or null"),
        (COMMAND_R7B | {"num_experts": 8}, "num_experts = 8"),
        (SMALL_MOE | {"num_experts_per_tok": 7}, "more than the 6 experts"),
        (SMALL_MOE | {"prefix_dense_intermediate_size": None}, "there are dense layers"),
        (SMALL_MOE | {"first_k_dense_replace": 10}, "more than the 9 layers"),
        (SMALL_MOE | {"mlp_layer_types": ["moe"] * 9}, "holds 'moe'"),
        (AYA | {"model_type": "cohere2_vision", "alignment_intermediate_size": None}, "alignment_intermediate_size is"),
        (AYA | {"vision_config": {"model_type": "clap"}}, "vision_config.model_type is 'clap'"),
    ],
)
def test_what_cannot_be_read_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(config, source="config.json")
