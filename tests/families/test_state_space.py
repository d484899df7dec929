"""Mamba, Mamba-2, and the hybrids that put them beside attention."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from planner.architecture import StateSpace
from planner.counting import state_elements
from planner.errors import PlanError
from planner.families import read_architecture
from planner.state_space_blocks import mamba_1, mamba_2
from tests.families.pinned import Pinned, counted, counts_test

REFERENCE = "transformers 5.24.0 on the meta device"

MAMBA_2_8B = {
    "model_type": "mamba",
    "hidden_size": 2560,
    "intermediate_size": 5120,
    "num_hidden_layers": 64,
    "state_size": 16,
    "conv_kernel": 4,
    "expand": 2,
    "time_step_rank": 160,
    "use_bias": False,
    "use_conv_bias": True,
    "vocab_size": 50280,
}
FALCON_MAMBA = {
    "model_type": "falcon_mamba",
    "hidden_size": 4096,
    "intermediate_size": 8192,
    "num_hidden_layers": 64,
    "state_size": 16,
    "conv_kernel": 4,
    "expand": 16,
    "time_step_rank": 256,
    "vocab_size": 65024,
    "tie_word_embeddings": False,
}
CODESTRAL = {
    "model_type": "mamba2",
    "hidden_size": 4096,
    "num_hidden_layers": 64,
    "num_heads": 128,
    "head_dim": 64,
    "n_groups": 8,
    "state_size": 128,
    "conv_kernel": 4,
    "expand": 2,
    "intermediate_size": 8192,
    "vocab_size": 32768,
    "tie_word_embeddings": False,
    "time_step_limit": [0.0, inf],
}
JAMBA = {
    "model_type": "jamba",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "attn_layer_offset": 4,
    "attn_layer_period": 8,
    "expert_layer_offset": 1,
    "expert_layer_period": 2,
    "num_experts": 16,
    "num_experts_per_tok": 2,
    "mamba_conv_bias": True,
    "mamba_d_conv": 4,
    "mamba_d_state": 16,
    "mamba_dt_rank": 256,
    "mamba_expand": 2,
    "mamba_proj_bias": False,
    "vocab_size": 65536,
    "tie_word_embeddings": False,
}
GRANITE_H_TINY = {
    "model_type": "granitemoehybrid",
    "hidden_size": 1536,
    "num_hidden_layers": 40,
    "layer_types": ["attention" if number in (5, 15, 25, 35) else "mamba" for number in range(40)],
    "num_attention_heads": 12,
    "num_key_value_heads": 4,
    "intermediate_size": 512,
    "shared_intermediate_size": 1024,
    "num_local_experts": 64,
    "num_experts_per_tok": 6,
    "mamba_n_heads": 48,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "vocab_size": 100352,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
GRANITE_H_MICRO = GRANITE_H_TINY | {
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "shared_intermediate_size": 8192,
    "num_local_experts": 0,
    "num_experts_per_tok": 0,
    "mamba_n_heads": 64,
}
GRANITE_MICRO = {
    "model_type": "granitemoehybrid",
    "hidden_size": 2560,
    "num_hidden_layers": 40,
    "layer_types": ["attention"] * 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "shared_intermediate_size": 8192,
    "num_local_experts": 0,
    "vocab_size": 100352,
    "tie_word_embeddings": True,
}
FALCON_H1 = {
    "model_type": "falcon_h1",
    "hidden_size": 1024,
    "num_hidden_layers": 36,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "intermediate_size": 2048,
    "mamba_d_ssm": 1536,
    "mamba_n_heads": 24,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_rms_norm": False,
    "vocab_size": 32784,
    "tie_word_embeddings": False,
}
FALCON_H1_34B = FALCON_H1 | {
    "hidden_size": 5120,
    "num_hidden_layers": 72,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 21504,
    "mamba_d_ssm": 4096,
    "mamba_n_heads": 32,
    "mamba_d_head": 128,
    "mamba_n_groups": 2,
    "mamba_d_state": 256,
    "mamba_rms_norm": True,
    "vocab_size": 261120,
}
BAMBA = {
    "model_type": "bamba",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "attn_layer_indices": [9, 18, 27],
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "mamba_n_heads": 128,
    "mamba_d_head": 64,
    "mamba_n_groups": 1,
    "mamba_d_state": 128,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
# The keys that the whole Nemotron-H family spells alike.
NEMOTRON = {
    "model_type": "nemotron_h",
    "head_dim": 128,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "mamba_ssm_cache_dtype": "float32",
    "time_step_limit": [0.0, inf],
    "attention_bias": False,
    "mlp_bias": False,
    "use_bias": False,
    "use_conv_bias": True,
    "vocab_size": 131072,
    "tie_word_embeddings": False,
    "max_position_embeddings": 262144,
}
NEMOTRON_NANO_2 = NEMOTRON | {
    "hidden_size": 4480,
    "num_hidden_layers": 56,
    "hybrid_override_pattern": "M-M-M-MM-M-M-M*-M-M-M*-M-M-M-M*-M-M-M-M*-M-MM-M-M-M-M-M-",
    "intermediate_size": 15680,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "mamba_num_heads": 128,
    "mamba_head_dim": 80,
}
NEMOTRON_3_NANO = NEMOTRON | {
    "hidden_size": 2688,
    "num_hidden_layers": 52,
    "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    "intermediate_size": 1856,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "mamba_num_heads": 64,
    "mamba_head_dim": 64,
    "moe_intermediate_size": 1856,
    "moe_shared_expert_intermediate_size": 3712,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
}
NEMOTRON_3_SUPER = NEMOTRON_3_NANO | {
    "hidden_size": 4096,
    "num_hidden_layers": 88,
    "hybrid_override_pattern": (
        "MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME"
    ),
    "mamba_num_heads": 128,
    "moe_intermediate_size": 2688,
    "moe_shared_expert_intermediate_size": 5376,
    "moe_latent_size": 1024,
    "n_routed_experts": 512,
    "num_experts_per_tok": 22,
    "num_nextn_predict_layers": 1,
    "mtp_hybrid_override_pattern": "*E",
}
# One of everything, with all biases that the class has.
NEMOTRON_SMALL = NEMOTRON | {
    "hidden_size": 96,
    "layers_block_type": ["mamba", "moe", "attention", "mlp"],
    "intermediate_size": 80,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "mamba_num_heads": 16,
    "mamba_head_dim": 8,
    "moe_intermediate_size": 40,
    "moe_shared_expert_intermediate_size": 56,
    "moe_latent_size": 32,
    "n_routed_experts": 6,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "mlp_bias": True,
    "use_bias": True,
    "vocab_size": 1000,
}
XLSTM = {
    "model_type": "xlstm",
    "embedding_dim": 4096,
    "num_blocks": 32,
    "num_heads": 8,
    "head_dim": 512,
    "qk_dim_factor": 0.5,
    "v_dim_factor": 1.0,
    "ffn_proj_factor": 2.667,
    "ffn_round_up_to_multiple_of": 64,
    "use_bias": False,
    "weight_mode": "single",
    "vocab_size": 50304,
}

PINNED = (
    Pinned(
        name="state-spaces/mamba-2.8b-hf",
        config=MAMBA_2_8B,
        source="safetensors metadata of the published checkpoint: 2,768,345,600",
        total=2_768_345_600,
        parts={"embedding": 128_716_800, "lm_head": 0, "norm": 166_400, "state_space": 2_639_462_400},
        bias=655_360,
        kv_full=0,
        state=23_592_960,
        variants={
            "tie_word_embeddings": [False],
            "use_bias": [True],
            "use_conv_bias": [False],
            "time_step_rank": ["auto", 7, ...],
            "conv_kernel": [3],
            "state_size": [32],
            "intermediate_size": [..., 7680],
        },
    ),
    Pinned(
        name="tiiuae/falcon-mamba-7b",
        config=FALCON_MAMBA,
        source="safetensors metadata of the published checkpoint: 7,272,665,088",
        total=7_272_665_088,
        parts={"embedding": 266_338_304, "lm_head": 266_338_304, "norm": 266_240, "state_space": 6_739_722_240},
        bias=1_048_576,
        decode_read=7_006_326_784,
        state=37_748_736,
        variants={"tie_word_embeddings": [True, ...], "use_bias": [True], "use_conv_bias": [False]},
    ),
    Pinned(
        name="mistralai/Mamba-Codestral-7B-v0.1",
        config=CODESTRAL,
        source=REFERENCE,
        total=7_285_403_648,
        bias=663_552,
        state=273_678_336,
        variants={
            "tie_word_embeddings": [True, ...],
            "use_bias": [True],
            "use_conv_bias": [False],
            "n_groups": [1],
            "state_size": [64],
        },
    ),
    Pinned(
        name="ai21labs/Jamba-v0.1",
        config=JAMBA,
        source="safetensors metadata of the published checkpoint: 51,570,323,328",
        total=51_570_323_328,
        parts={
            "embedding": 268_435_456,
            "lm_head": 268_435_456,
            "attention": 167_772_160,
            "mlp": 2_818_572_288,
            "experts": 45_097_156_608,
            "router": 1_048_576,
            "norm": 274_304,
            "state_space": 2_948_628_480,
        },
        active=12_110_311_296,
        decode_read=11_841_875_840,
        bias=458_752,
        kv_full=16_384,
        state=16_515_072,
        variants={
            "num_experts": [1, 4],
            "expert_layer_offset": [0],
            "attn_layer_period": [5],
            "mamba_dt_rank": ["auto", 100],
            "mamba_proj_bias": [True],
            "mamba_conv_bias": [False],
            "tie_word_embeddings": [True],
            "num_key_value_heads": [4],
        },
    ),
    Pinned(
        name="ibm-granite/granite-4.0-h-tiny",
        config=GRANITE_H_TINY,
        source="safetensors metadata of the published checkpoint: 6,939,037,248",
        total=6_939_037_248,
        parts={
            "embedding": 154_140_672,
            "attention": 25_165_824,
            "experts": 6_039_797_760,
            "shared_experts": 188_743_680,
            "router": 3_932_160,
            "norm": 235_008,
            "state_space": 527_022_144,
        },
        active=1_465_470_528,
        bias=121_536,
        kv_full=8_192,
        state=57_581_568,
        variants={
            "num_local_experts": [0, 32],
            "mamba_d_head": ["auto", ...],
            "mamba_n_groups": [2],
            "mamba_proj_bias": [True],
            "mamba_conv_bias": [False],
            "attention_bias": [True],
            "tie_word_embeddings": [False, ...],
            "num_key_value_heads": [..., 2],
        },
    ),
    Pinned(
        name="ibm-granite/granite-4.0-h-micro",
        config=GRANITE_H_MICRO,
        source="safetensors metadata of the published checkpoint: 3,191,396,096",
        total=3_191_396_096,
        parts={"shared_experts": 2_013_265_920, "mlp": 0, "experts": 0, "state_space": 930_352_896},
        active=3_191_396_096,
        kv_full=8_192,
        state=76_750_848,
    ),
    Pinned(
        name="ibm-granite/granite-4.0-micro",
        config=GRANITE_MICRO,
        source=REFERENCE,
        total=3_402_836_480,
        kv_full=81_920,
        state=0,
    ),
    Pinned(
        name="tiiuae/Falcon-H1-0.5B-Instruct",
        config=FALCON_H1,
        source="safetensors metadata of the published checkpoint: 521,411,104",
        total=521_411_104,
        parts={"attention": 47_185_920, "mlp": 226_492_416, "norm": 74_752, "state_space": 180_516_384},
        decode_read=487_840_288,
        bias=65_376,
        kv_full=18_432,
        state=28_827_648,
        variants={
            "mamba_rms_norm": [True],
            "mamba_proj_bias": [True],
            "projectors_bias": [True],
            "mamba_conv_bias": [False],
            "mlp_bias": [True],
            "attention_bias": [True],
            "mamba_d_head": ["auto"],
            "mamba_n_groups": [2],
            "head_dim": [...],
            "num_key_value_heads": [None, 4],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="tiiuae/Falcon-H1-34B-Instruct",
        config=FALCON_H1_34B,
        source="safetensors metadata of the published checkpoint: 33,642,516,224",
        total=33_642_516_224,
        parts={"attention": 2_264_924_160, "mlp": 23_781_703_680, "norm": 1_037_312, "state_space": 4_920_982_272},
        kv_full=147_456,
        state=304_939_008,
    ),
    Pinned(
        name="Falcon-H1 with channels from the expansion",
        config=FALCON_H1 | {"mamba_d_ssm": None, "mamba_n_heads": 32},
        source=REFERENCE,
        total=578_422_144,
        state=38_412_288,
    ),
    Pinned(
        name="ibm-ai-platform/Bamba-9B",
        config=BAMBA,
        source=REFERENCE,
        total=9_780_235_392,
        kv_full=12_288,
        state=123_594_752,
        variants={
            "attn_layer_indices": [None, [0]],
            "mamba_d_head": ["auto"],
            "mamba_proj_bias": [True],
            "mamba_conv_bias": [False],
            "mlp_bias": [True],
            "attention_bias": [True],
            "tie_word_embeddings": [True],
            "num_key_value_heads": [None],
        },
    ),
    Pinned(
        name="nvidia/NVIDIA-Nemotron-Nano-9B-v2",
        config=NEMOTRON_NANO_2,
        source=REFERENCE,
        total=8_888_227_328,
        parts={"attention": 220_200_960, "mlp": 3_512_320_000, "state_space": 3_980_769_408},
        kv_full=16_384,
        state=144_211_968,
    ),
    Pinned(
        name="nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
        config=NEMOTRON_3_NANO,
        source="safetensors metadata of the published checkpoint: 31,577,937,344",
        total=31_577_937_344,
        parts={
            "attention": 140_378_112,
            "mlp": 0,
            "experts": 29_374_808_064,
            "shared_experts": 458_981_376,
            "router": 7_913_472,
            "norm": 236_672,
            "state_space": 890_976_576,
        },
        active=3_580_073_408,
        decode_read=3_227_751_872,
        bias=142_784,
        buffers=2_944,
        mtp=0,
        kv_full=6_144,
        state=49_364_992,
    ),
    Pinned(
        name="nvidia/NVIDIA-Nemotron-3-Super-120B-A12B",
        config=NEMOTRON_3_SUPER,
        source="safetensors metadata of the published checkpoint: 123,611,012,096 with the MTP module's 2,942,324,736",
        total=120_668_687_360,
        parts={
            "attention": 285_212_672,
            "mlp": 335_544_320,
            "experts": 112_742_891_520,
            "shared_experts": 1_761_607_680,
            "router": 83_886_080,
            "norm": 692_224,
            "state_space": 4_385_111_040,
        },
        active=12_770_216_960,
        buffers=20_480,
        mtp=2_942_324_736,
        kv_full=8_192,
        state=171_048_960,
    ),
    Pinned(
        name="NX-AI/xLSTM-7b",
        config=XLSTM,
        source=REFERENCE,
        total=6_865_424_896,
        bias=512,
        kv_full=0,
        state=4 * 32 * 8 * (256 * 512 + 256 + 1),
        variants={
            "num_blocks": [4],
            "use_bias": [True],
            "weight_mode": ["fused"],
            "ffn_proj_factor": [2.0],
            "qk_dim_factor": [1.0],
            "vocab_size": [1000],
        },
    ),
    Pinned(
        name="small Nemotron-H",
        config=NEMOTRON_SMALL,
        source=REFERENCE,
        total=637_064,
        parts={"mlp": 21_808, "experts": 15_360, "shared_experts": 10_904, "norm": 608},
        buffers=6,
        state=82_944,
        variants={
            "layers_block_type": [["linear_attention", "full_attention", "mlp", "mlp"]],
            "mlp_bias": [False],
            "use_bias": [False],
            "use_conv_bias": [False],
            "moe_latent_size": [None, 24],
            "n_groups": [1],
            "mamba_n_groups": [2],
            "mamba_head_dim": [4],
            "head_dim": [16],
            "num_key_value_heads": [4],
        },
    ),
)

test_counts = counts_test(PINNED)


def refused(config: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PlanError, match=sentence):
        read_architecture(config, source="config.json")


@pytest.mark.parametrize(
    ("config", "changes", "sentence"),
    [
        (MAMBA_2_8B, {"intermediate_size": None, "expand": None}, "intermediate_size and expand are both missing"),
        (MAMBA_2_8B, {"state_size": None}, "state_size is missing"),
        (MAMBA_2_8B, {"time_step_rank": "all"}, "time_step_rank"),
        (CODESTRAL, {"expand": 3}, "expand is 3; times the hidden size that is not the 8,192 channels"),
        (CODESTRAL, {"intermediate_size": 4096}, "intermediate_size is 4096; heads make 8,192 channels"),
        (CODESTRAL, {"n_groups": 3}, "n_groups is 3 and does not divide the 128 heads"),
        (JAMBA, {"attn_layer_offset": 8}, "attn_layer_offset is 8; it must be less than the period, 8"),
        (JAMBA, {"num_experts_per_tok": 17}, "num_experts_per_tok is 17, more than the 16 experts"),
        (JAMBA, {"num_experts_per_tok": None}, "num_experts_per_tok is missing or null, and the model has experts"),
        (JAMBA, {"mamba_inner_layernorms": False}, "mamba_inner_layernorms is false"),
        (JAMBA, {"sliding_window": 4096}, "sliding_window is 4096"),
        (JAMBA, {"num_key_value_heads": 5}, "num_key_value_heads is 5 and does not divide"),
        (GRANITE_H_TINY, {"layer_types": ["mamba"]}, "layer_types has 1 entries for 40 layers"),
        (GRANITE_H_TINY, {"layer_types": ["moe"] * 40}, "layer_types holds 'moe'"),
        (GRANITE_H_TINY, {"mamba_d_head": 32}, "mamba_d_head is 32; 48 heads of it do not make the 3,072 channels"),
        (GRANITE_H_TINY, {"mamba_n_heads": None}, "mamba_n_heads is missing or null, and the model has Mamba layers"),
        (GRANITE_H_TINY, {"num_experts_per_tok": 0}, "num_experts_per_tok is 0, and the model has experts"),
        (FALCON_H1, {"mamba_use_mlp": False}, "mamba_use_mlp is false"),
        (FALCON_H1, {"mamba_n_heads": 7}, "7 heads"),
        (BAMBA, {"attn_layer_indices": [32]}, "attn_layer_indices names layer 32 of 32"),
        (NEMOTRON_3_NANO, {"hybrid_override_pattern": "ME|M"}, r"hybrid_override_pattern holds '\|'"),
        (NEMOTRON_3_NANO, {"hybrid_override_pattern": None}, "are both missing; one names the layers"),
        (NEMOTRON_3_NANO, {"num_hidden_layers": 51}, "num_hidden_layers is 51; 52 layers are described"),
        (NEMOTRON_3_NANO, {"layers_block_type": ["moe"] * 52}, "describe different layers"),
        (NEMOTRON_3_NANO, {"n_shared_experts": 2}, "n_shared_experts is 2; the reference has one shared expert"),
        (NEMOTRON_3_NANO, {"num_experts_per_tok": 0}, "num_experts_per_tok is 0"),
        (NEMOTRON_3_NANO, {"attention_bias": True}, "attention_bias is true"),
        (NEMOTRON_3_NANO, {"sliding_window": 512}, "sliding_window is 512"),
        (NEMOTRON_3_NANO, {"num_key_value_heads": 3}, "num_key_value_heads is 3 and does not divide"),
        (NEMOTRON_3_NANO, {"mamba_ssm_cache_dtype": "int8"}, "mamba_ssm_cache_dtype is 'int8'"),
        (NEMOTRON_3_SUPER, {"mtp_hybrid_override_pattern": None}, "are both missing; an MTP"),
        (XLSTM, {"hidden_size": 2048}, "embedding_dim is 4096, and hidden_size is 2048"),
        (XLSTM, {"num_hidden_layers": 16}, "num_blocks is 32 for 16 layers"),
        (XLSTM, {"num_heads": 7}, "num_heads is 7 and does not divide"),
        (XLSTM, {"head_dim": 256}, "head_dim is 256; the factors make 512"),
        (XLSTM, {"add_out_norm": False}, "add_out_norm is false"),
        (XLSTM, {"tie_word_embeddings": True}, "tie_word_embeddings is true"),
        (NEMOTRON_SMALL, {"layers_block_type": ["conv"]}, "layers_block_type holds 'conv'"),
    ],
)
def test_what_does_not_fit_is_refused(config: dict[str, Any], changes: dict[str, Any], sentence: str) -> None:
    refused(config | changes, sentence)


@pytest.mark.parametrize(
    ("config", "key"),
    [(JAMBA, "num_key_value_heads"), (FALCON_H1, "mamba_d_ssm"), (BAMBA, "attn_layer_indices")],
)
def test_a_key_whose_null_has_a_meaning_may_not_be_absent(config: dict[str, Any], key: str) -> None:
    refused({name: value for name, value in config.items() if name != key}, f"{key} is missing")


def test_a_list_of_layers_counts_as_the_pattern_does() -> None:
    pattern = str(NEMOTRON_3_SUPER["hybrid_override_pattern"])
    words = {"M": "mamba", "E": "moe", "*": "attention"}
    listed = NEMOTRON_3_SUPER | {
        "hybrid_override_pattern": None,
        "layers_block_type": [words[letter] for letter in pattern],
        "mtp_hybrid_override_pattern": None,
        "mtp_layers_block_type": ["attention", "moe"],
        "num_hidden_layers": None,
    }
    super_120b = next(case for case in PINNED if case.config is NEMOTRON_3_SUPER)
    assert counted(replace(super_120b, config=listed)) == counted(super_120b)


def test_a_state_in_sixteen_bits_halves_the_recurrent_part_only() -> None:
    full, half = (
        state_elements(read_architecture(NEMOTRON_3_NANO | {"mamba_ssm_cache_dtype": kind}, source="config.json"))
        for kind in ("float32", "bfloat16")
    )
    assert (2 * half.recurrent_bytes, half.convolution) == (full.recurrent_bytes, full.convolution)


def test_more_mtp_modules_than_published_models_have_are_named_and_not_counted() -> None:
    several = read_architecture(NEMOTRON_3_SUPER | {"num_nextn_predict_layers": 2}, source="config.json")
    assert several.unread == ("MTP modules (num_nextn_predict_layers = 2)",)
    assert several.components == ()


def test_names_are_those_of_the_published_files() -> None:
    nano = read_architecture(NEMOTRON_3_NANO, source="config.json")
    names = {weight.name for layer in nano.layers for block in layer.blocks for weight in block.weights}
    assert {"mixer.in_proj", "mixer.q_proj", "mixer.experts.*.up_proj", "mixer.gate"} <= names
    assert nano.layer_names == "backbone.layers"


@pytest.mark.parametrize(
    ("mixer", "scan"),
    [
        (mamba_1(hidden=8, inner=16, state=4, step_rank=2, kernel=3), 6 * 16 * 4 + 2 * 16 * 3),
        (mamba_2(hidden=8, heads=4, head_dim=4, groups=2, state=4, kernel=3), 5 * 16 * 4 + 2 * 32 * 3),
    ],
)
def test_the_scan_costs_what_its_recurrence_does_and_the_convolution(mixer: StateSpace, scan: int) -> None:
    assert mixer.scan_flops == scan
