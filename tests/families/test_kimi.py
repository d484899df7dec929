"""Kimi K2, Moonlight and Kimi Linear."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import LatentAttention, StateSpace
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

MOONLIGHT = {
    "model_type": "deepseek_v3",
    "hidden_size": 2048,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "intermediate_size": 11264,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "num_nextn_predict_layers": 0,
    "vocab_size": 163840,
    "max_position_embeddings": 8192,
}

K2 = MOONLIGHT | {
    "model_type": "kimi_k2",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "q_lora_rank": 1536,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 384,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "max_position_embeddings": 131072,
}

FULL = [4, 8, 12, 16, 20, 24, 27]

LINEAR = {
    "model_type": "kimi_linear",
    "hidden_size": 2304,
    "num_hidden_layers": 27,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "q_lora_rank": None,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "linear_attn_config": {
        "full_attn_layers": FULL,
        "kda_layers": [layer for layer in range(1, 28) if layer not in FULL],
        "head_dim": 128,
        "num_heads": 32,
        "short_conv_kernel_size": 4,
    },
    "mla_use_nope": True,
    "moe_renormalize": True,
    "moe_router_activation_func": "sigmoid",
    "intermediate_size": 9216,
    "moe_intermediate_size": 1024,
    "num_experts": 256,
    "num_experts_per_token": 8,
    "num_shared_experts": 1,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "vocab_size": 163840,
    "model_max_length": 1048576,
}

SMALL_LINEAR = {key: value for key, value in LINEAR.items() if key != "linear_attn_config"} | {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 32,
    "layer_types": ["linear_attention", "linear_attention", "full_attention", "linear_attention"],
    "linear_head_dim": 32,
    "linear_num_heads": 8,
    "linear_conv_kernel_dim": 4,
    "intermediate_size": 512,
    "moe_intermediate_size": 64,
    "num_experts": 8,
    "num_experts_per_token": 2,
    "vocab_size": 1000,
    "pad_token_id": 0,
}

PINNED = (
    Pinned(
        name="moonshotai/Moonlight-16B-A3B-Instruct",
        config=MOONLIGHT,
        source="safetensors metadata of the published checkpoint, less 3,392 buffers: 15,960,108,544",
        total=15_960_108_544,
        parts={"attention": 371_589_120, "mlp": 69_206_016, "experts": 14_394_851_328},
        active=2_914_774_528,
        buffers=1_664,
        kv_full=31_104,
        variants={"q_lora_rank": [..., 512]},
    ),
    Pinned(
        name="moonshotai/Kimi-K2-Instruct",
        config=K2,
        source="safetensors metadata of the published checkpoint, less 26,456 buffers: 1,026,408,209,408",
        total=1_026_408_209_408,
        parts={"attention": 6_168_444_928, "router": 165_150_720, "norm": 1_006_592},
        active=32_861_477_888,
        buffers=23_040,
        mtp=0,
        kv_full=70_272,
        reference=False,
    ),
    Pinned(
        name="moonshotai/Kimi-Linear-48B-A3B-Instruct",
        config=LINEAR,
        source="safetensors metadata of the published checkpoint, less 6,656 buffers: 49,122,675,072",
        total=49_122_675_072,
        parts={
            "attention": 203_800_576,
            "mlp": 63_700_992,
            "experts": 47_110_422_528,
            "shared_experts": 184_025_088,
            "router": 15_335_424,
            "norm": 132_864,
            "state_space": 790_282_880,
        },
        active=3_484_453_248,
        decode_read=3_106_965_888,
        bias=81_920,
        buffers=6_656,
        kv_full=8_064,
        state=43_909_120,
    ),
    Pinned(
        name="a small Kimi Linear",
        config=SMALL_LINEAR,
        source="transformers 5.24.0 on the meta device",
        total=3_358_904,
        variants={
            "q_lora_rank": [48],
            "attention_bias": [True],
            "layer_types": [["full_attention"] * 4],
            "linear_head_dim": [64],
            "linear_num_heads": [4],
            "linear_conv_kernel_dim": [3],
            "num_experts": [4],
            "num_shared_experts": [2],
            "first_k_dense_replace": [0, 2],
            "mlp_layer_types": [["sparse", "dense", "sparse", "dense"]],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_layers_are_listed_from_one_and_take_either_mixer() -> None:
    layers = read_architecture(LINEAR, source="config.json").layers
    kinds = [type(layer.blocks[0]) for layer in layers]
    assert [index + 1 for index, kind in enumerate(kinds) if kind is LatentAttention] == FULL
    assert kinds.count(StateSpace) == 20


def test_the_context_may_be_called_model_max_length() -> None:
    assert read_architecture(LINEAR, source="config.json").max_context == 1_048_576


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"linear_attn_config": LINEAR["linear_attn_config"] | {"kda_layers": None}},  # type: ignore[operator]
            "layer_types is missing, and so are the lists",
        ),
        ({"linear_attn_config": None}, "linear_attn_config.head_dim is missing"),
        (
            {"linear_attn_config": LINEAR["linear_attn_config"] | {"kda_layers": [1]}},  # type: ignore[operator]
            "must list each of the layers 1 to 27 exactly once",
        ),
        (
            {"linear_attn_config": LINEAR["linear_attn_config"] | {"head_dim": None}},  # type: ignore[operator]
            "linear_attn_config.head_dim is missing, and so is linear_head_dim",
        ),
        (
            {"linear_attn_config": LINEAR["linear_attn_config"] | {"use_full_rank_gate": True}},  # type: ignore[operator]
            "use_full_rank_gate is true",
        ),
        ({"tie_word_embeddings": True}, "tie_word_embeddings is true, and the reference"),
        ({"first_k_dense_replace": None}, "first_k_dense_replace is missing, and so is mlp_layer_types"),
        ({"mla_use_output_gate": True}, "mla_use_output_gate is True"),
        ({"attn_res_block_size": 12}, "attn_res_block_size is 12"),
        ({"num_nextn_predict_layers": 1}, "num_nextn_predict_layers is 1"),
        ({"num_experts_per_token": 300}, "num_experts_per_token exceeds the 256 experts"),
        ({"layer_types": ["mamba"] * 27}, "layer_types names 'mamba'"),
        ({"mlp_layer_types": ["dense"]}, "mlp_layer_types has 1 entries for 27 layers"),
    ],
)
def test_what_cannot_be_honoured_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(LINEAR | change, source="config.json")
