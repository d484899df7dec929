"""Phi 1 to 4, StarCoder 2, StableLM, Persimmon."""

from __future__ import annotations

from typing import Any

import pytest

from planner.counting import cache_layers
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

PHI_2_MSFT = {
    "model_type": "phi-msft",
    "n_embd": 2560,
    "n_head": 32,
    "n_head_kv": None,
    "n_inner": None,
    "n_layer": 32,
    "n_positions": 2048,
    "rotary_dim": 32,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "vocab_size": 51200,
}
PHI_2 = {
    "model_type": "phi",
    "hidden_size": 2560,
    "intermediate_size": 10240,
    "max_position_embeddings": 2048,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": None,
    "qk_layernorm": False,
    "tie_word_embeddings": False,
    "vocab_size": 51200,
}
PHI_3_MINI = {
    "model_type": "phi3",
    "attention_bias": False,
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "original_max_position_embeddings": 4096,
    "sliding_window": 2047,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
PHI_MINI_MOE = {
    "model_type": "phimoe",
    "attention_bias": True,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 960,
    "lm_head_bias": True,
    "num_attention_heads": 32,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 16,
    "sliding_window": 2047,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
STARCODER2_3B = {
    "model_type": "starcoder2",
    "hidden_size": 3072,
    "intermediate_size": 12288,
    "max_position_embeddings": 16384,
    "num_attention_heads": 24,
    "num_hidden_layers": 30,
    "num_key_value_heads": 2,
    "sliding_window": 4096,
    "use_bias": True,
    "vocab_size": 49152,
}
STABLELM_2_12B = {
    "model_type": "stablelm",
    "hidden_size": 5120,
    "intermediate_size": 13824,
    "num_attention_heads": 32,
    "num_hidden_layers": 40,
    "num_key_value_heads": 8,
    "qk_layernorm": True,
    "tie_word_embeddings": False,
    "use_parallel_residual": True,
    "use_qkv_bias": False,
    "vocab_size": 100352,
}
STABLELM_ZEPHYR_3B = STABLELM_2_12B | {
    "hidden_size": 2560,
    "intermediate_size": 6912,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "qk_layernorm": False,
    "use_parallel_residual": False,
    "vocab_size": 50304,
}
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "pad_token_id": 0,
}

PINNED = (
    Pinned(
        name="microsoft/phi-2, first published form",
        config=PHI_2_MSFT,
        source="safetensors metadata of the published checkpoint: 2,779,683,840",
        total=2_779_683_840,
        parts={"embedding": 131_072_000, "lm_head": 131_123_200, "attention": 839_188_480, "mlp": 1_678_131_200},
        decode_read=2_648_611_840,
        bias=872_960,
        kv_full=327_680,
        reference=False,
    ),
    Pinned(
        name="microsoft/phi-2",
        config=PHI_2,
        source="safetensors metadata of the published checkpoint: 2,779,683,840",
        total=2_779_683_840,
        parts={"lm_head": 131_123_200, "norm": 168_960},
        bias=872_960,
        variants={"num_key_value_heads": [8], "qk_layernorm": [True], "tie_word_embeddings": [True]},
    ),
    Pinned(
        name="microsoft/Phi-3-mini-4k-instruct",
        config=PHI_3_MINI,
        source="safetensors metadata of the published checkpoint: 3,821,079,552",
        total=3_821_079_552,
        parts={"attention": 1_207_959_552, "mlp": 2_415_919_104, "norm": 199_680},
        kv_full=0,
        kv_windowed=393_216,
        window=2047,
    ),
    Pinned(
        name="microsoft/Phi-4-mini-instruct",
        config=PHI_3_MINI
        | {"num_attention_heads": 24, "num_key_value_heads": 8, "tie_word_embeddings": True, "vocab_size": 200064}
        | {"max_position_embeddings": 131072, "sliding_window": 262144, "lm_head_bias": False, "mlp_bias": False},
        source="safetensors metadata of the published checkpoint: 3,836,021,760",
        total=3_836_021_760,
        kv_windowed=131_072,
    ),
    Pinned(
        name="microsoft/Phi-mini-MoE-instruct",
        config=PHI_MINI_MOE,
        source="safetensors metadata of the published checkpoint: 7,647,632,704",
        total=7_647_632_704,
        parts={"lm_head": 131_366_208, "attention": 1_342_504_960, "experts": 6_039_797_760, "router": 2_097_152},
        active=2_362_809_664,
        decode_read=2_231_475_520,
        bias=625_984,
        kv_windowed=131_072,
        window=2047,
    ),
    Pinned(
        name="bigcode/starcoder2-3b",
        config=STARCODER2_3B,
        source="safetensors metadata of the published checkpoint: 3,030,371,328",
        total=3_030_371_328,
        parts={"attention": 613_616_640, "mlp": 2_265_384_960, "norm": 374_784},
        bias=847_872,
        kv_windowed=30_720,
        window=4096,
    ),
    Pinned(
        name="stabilityai/stablelm-2-12b",
        config=STABLELM_2_12B,
        source="safetensors metadata of the published checkpoint: 12,143,185,920",
        total=12_143_185_920,
        parts={"attention": 2_621_440_000, "mlp": 8_493_465_600, "norm": 675_840},
        bias=209_920,
        kv_full=204_800,
    ),
    Pinned(
        name="stabilityai/stablelm-zephyr-3b",
        config=STABLELM_ZEPHYR_3B,
        source="safetensors metadata of the published checkpoint: 2,795,443,200",
        total=2_795_443_200,
        bias=166_400,
        kv_full=327_680,
    ),
    Pinned(
        name="stabilityai/stablelm-2-1_6b, first published form",
        config=STABLELM_ZEPHYR_3B
        | {"model_type": "stablelm_epoch", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24}
        | {"use_qkv_bias": True, "vocab_size": 100352},
        source="safetensors metadata of the published checkpoint: 1,644,515,328",
        total=1_644_515_328,
        reference=False,
    ),
    Pinned(
        name="adept/persimmon-8b-base",
        config=SMALL
        | {"model_type": "persimmon", "hidden_size": 4096, "intermediate_size": 16384, "num_attention_heads": 64}
        | {"num_hidden_layers": 36, "num_key_value_heads": None, "vocab_size": 262144},
        source="transformers 5.24.0 on the meta device",
        total=9_397_175_296,
        kv_full=589_824,
        variants={"qk_layernorm": [False], "tie_word_embeddings": [True]},
    ),
    Pinned(
        name="a small Phi 3",
        config=SMALL | {"model_type": "phi3"},
        source="transformers 5.24.0 on the meta device",
        total=105_408,
        kv_full=3 * 128,
        variants={
            "head_dim": [24],
            "num_key_value_heads": [1, None],
            "sliding_window": [8],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="a small Phi-MoE",
        config=SMALL | {"model_type": "phimoe", "num_local_experts": 6, "num_experts_per_tok": 2},
        source="transformers 5.24.0 on the meta device",
        total=383_488,
        variants={
            "attention_bias": [True],
            "head_dim": [24],
            "lm_head_bias": [True],
            "num_local_experts": [3],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="a small StarCoder 2",
        config=SMALL | {"model_type": "starcoder2"},
        source="transformers 5.24.0 on the meta device",
        total=82_080,
        kv_full=3 * 128,
        variants={"head_dim": [24], "tie_word_embeddings": [False], "use_bias": [False], "num_key_value_heads": [1]},
    ),
    Pinned(
        name="a small StableLM",
        config=SMALL | {"model_type": "stablelm"},
        source="transformers 5.24.0 on the meta device",
        total=105_856,
        variants={
            "num_key_value_heads": [1, 4],
            "qk_layernorm": [True],
            "tie_word_embeddings": [True],
            "use_parallel_residual": [True],
            "use_qkv_bias": [True],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_the_heads_bias_stays_where_the_matrix_is_tied() -> None:
    tied = read_architecture(PHI_2 | {"tie_word_embeddings": True}, source="config.json")
    assert tied.lm_head is None
    assert [weight.shape for weight in tied.outer if weight.name == "lm_head"] == [(51200,)]


def test_phi_3_without_a_window_sees_everything() -> None:
    groups = cache_layers(read_architecture(PHI_3_MINI | {"sliding_window": None}, source="config.json"))
    assert [group.window for group in groups] == [None]


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (PHI_2_MSFT, {"tie_word_embeddings": True}, "tie_word_embeddings is true; this model's head"),
        (PHI_2_MSFT, {"n_head_kv": 5}, "n_head_kv is 5, which does not divide the 32 attention heads"),
        (PHI_3_MINI, {"mlp_bias": True}, "mlp_bias = True changes what the model is made of"),
        (PHI_3_MINI, {"lm_head_bias": True}, "lm_head_bias = True changes what the model is made of"),
        (PHI_MINI_MOE, {"num_experts_per_tok": 17}, "more than the 16 experts"),
        (STABLELM_2_12B, {"head_dim": 64}, "head_dim is 64; a StableLM's heads"),
    ],
)
def test_what_is_refused(base: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(base | change, source="config.json")
