"""Dense decoders that differ from Llama in a switch, a norm or a name."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Attention
from planner.counting import cache_layers, count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 640,
    "vocab_size": 1000,
    "max_position_embeddings": 4096,
}
MULTI_HEAD = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}

SEED_OSS = {
    "model_type": "seed_oss",
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 80,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 27648,
    "vocab_size": 155136,
    "attention_bias": True,
    "attention_out_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "max_position_embeddings": 524288,
}

EXAONE_4_32B = {
    "model_type": "exaone4",
    "hidden_size": 5120,
    "num_hidden_layers": 64,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 27392,
    "vocab_size": 102400,
    "sliding_window": 4096,
    "sliding_window_pattern": "LLLG",
    "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 16,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}

ERNIE_03B = {
    "model_type": "ernie4_5",
    "hidden_size": 1024,
    "num_hidden_layers": 18,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 3072,
    "vocab_size": 103424,
    "use_bias": False,
    "tie_word_embeddings": True,
}

HUNYUAN_7B = {
    "model_type": "hunyuan_v1_dense",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 14336,
    "vocab_size": 128167,
    "attention_bias": False,
    "tie_word_embeddings": True,
}

MINICPM_2B = {
    "model_type": "minicpm",
    "hidden_size": 2304,
    "num_hidden_layers": 40,
    "num_attention_heads": 36,
    "num_key_value_heads": 36,
    "intermediate_size": 5760,
    "vocab_size": 122760,
    "dim_model_base": 256,
    "scale_depth": 1.4,
    "scale_emb": 12,
    "tie_word_embeddings": False,
    "max_position_embeddings": 65536,
}

BAICHUAN_7B = {
    "model_type": "baichuan",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 11008,
    "vocab_size": 125696,
    "tie_word_embeddings": False,
    "model_max_length": 4096,
}

ORION_14B = {
    "model_type": "orion",
    "hidden_size": 5120,
    "num_hidden_layers": 40,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "intermediate_size": 15360,
    "vocab_size": 84608,
    "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}

EXAONE_35_78B = {
    "model_type": "exaone",
    "hidden_size": 4096,
    "num_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 14336,
    "vocab_size": 102400,
    "tie_word_embeddings": False,
    "max_position_embeddings": 32768,
}

REFERENCE = "transformers 5.24.0 on the meta device"
WIDTHS: dict[str, list[Any]] = {"num_key_value_heads": [1, 8], "tie_word_embeddings": [True, False]}
BIASES: dict[str, list[Any]] = {"attention_bias": [True, False], "mlp_bias": [True, False]}
SLIDING = ["sliding_attention", "full_attention"] * 4

PINNED = (
    Pinned(
        name="ByteDance-Seed/Seed-OSS-36B-Instruct",
        config=SEED_OSS,
        source="safetensors metadata of the published checkpoint: 36,151,104,512",
        total=36_151_104_512,
        parts={"attention": 7_382_761_472, "mlp": 27_179_089_920, "norm": 660_480},
        bias=786_432,
        decode_read=35_356_808_192,
        kv_full=262_144,
        variants={
            "attention_bias": [False, ...],
            "attention_out_bias": [True, ...],
            "mlp_bias": [True],
            "tie_word_embeddings": [True],
            "head_dim": [64, None, ...],
            "num_key_value_heads": [1],
        },
    ),
    Pinned(
        name="LGAI-EXAONE/EXAONE-4.0-32B",
        config=EXAONE_4_32B,
        source="safetensors metadata of the published checkpoint: 32,003,216,384",
        total=32_003_216_384,
        parts={"attention": 4_026_531_840, "mlp": 26_927_431_680, "norm": 676_864},
        kv_full=65_536,
        kv_windowed=196_608,
        window=4096,
        variants={"tie_word_embeddings": [True], "head_dim": [64, ...], "num_key_value_heads": [40]},
    ),
    Pinned(
        name="LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct",
        config=EXAONE_35_78B,
        source="safetensors metadata of the published checkpoint: 7,818,448,896",
        total=7_818_448_896,
        kv_full=131_072,
        variants=BIASES | {"tie_word_embeddings": [True], "head_dim": [...], "num_key_value_heads": [32]},
    ),
    Pinned(
        name="baidu/ERNIE-4.5-0.3B-PT",
        config=ERNIE_03B,
        source="safetensors metadata of the published checkpoint: 360,748,032",
        total=360_748_032,
        parts={"embedding": 105_906_176, "attention": 84_934_656, "mlp": 169_869_312, "norm": 37_888},
        decode_read=360_748_032,
        kv_full=18_432,
        variants={"use_bias": [True], "tie_word_embeddings": [False, ...], "head_dim": [64, None, ...]},
    ),
    Pinned(
        name="tencent/Hunyuan-7B-Instruct",
        config=HUNYUAN_7B,
        source="safetensors metadata of the published checkpoint: 7,504,568,320",
        total=7_504_568_320,
        parts={"attention": 1_342_177_280, "mlp": 5_637_144_576, "norm": 274_432},
        kv_full=131_072,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [False, ...],
            "head_dim": [64],
            "num_key_value_heads": [None, 4],
        },
    ),
    Pinned(
        name="openbmb/MiniCPM-2B-dpo-bf16",
        config=MINICPM_2B,
        source="transformers 5.24.0 on the meta device, as a Llama",
        total=3_007_736_064,
        parts={"attention": 849_346_560, "mlp": 1_592_524_800, "norm": 186_624},
        kv_full=368_640,
        reference=False,
    ),
    Pinned(
        name="openbmb/MiniCPM-MoE-8x2B",
        config=MINICPM_2B
        | {"num_experts": 8, "num_experts_per_tok": 2, "vocab_size": 122753, "tie_word_embeddings": True},
        source="transformers 5.24.0 on the meta device, as a Mixtral",
        total=13_873_291_776,
        parts={"experts": 12_740_198_400, "router": 737_280, "mlp": 0},
        active=4_318_142_976,
        reference=False,
    ),
    Pinned(
        name="baichuan-inc/Baichuan2-7B-Chat",
        config=BAICHUAN_7B,
        source="transformers 5.24.0 on the meta device, as a Llama",
        total=7_505_973_248,
        parts={"attention": 2_147_483_648, "mlp": 4_328_521_728, "norm": 266_240},
        kv_full=524_288,
        reference=False,
    ),
    Pinned(
        name="OrionStarAI/Orion-14B-Chat",
        config=ORION_14B,
        source="transformers 5.24.0 on the meta device, as a Llama with LayerNorm biases added",
        total=14_498_703_360,
        parts={"attention": 4_194_304_000, "mlp": 9_437_184_000, "norm": 829_440},
        bias=414_720,
        kv_full=819_200,
        reference=False,
    ),
    Pinned(
        name="a small exaone4",
        config=SMALL | {"model_type": "exaone4", "sliding_window": 512, "sliding_window_pattern": 4},
        source=REFERENCE,
        total=5_759_744,
        kv_full=2 * 256,
        kv_windowed=6 * 256,
        window=512,
        variants=WIDTHS | {"layer_types": [SLIDING]},
    ),
    Pinned(
        name="a small smollm3",
        config=SMALL | {"model_type": "smollm3", "no_rope_layers": [1, 1, 1, 0] * 2, "pad_token_id": 0},
        source=REFERENCE,
        total=5_503_232,
        kv_full=8 * 256,
        kv_windowed=0,
        variants=WIDTHS | BIASES | {"tie_word_embeddings": [False], "head_dim": [48]},
    ),
    Pinned(
        name="a small helium",
        config=SMALL | {"model_type": "helium", "head_dim": 32},
        source=REFERENCE,
        total=5_759_232,
        variants=WIDTHS | BIASES,
    ),
    Pinned(
        name="a small nemotron",
        config=SMALL | {"model_type": "nemotron", "norm_eps": 1e-5},
        source=REFERENCE,
        total=4_452_864,
        variants=WIDTHS | BIASES | {"head_dim": [48]},
    ),
    Pinned(
        name="a small jais2",
        config=SMALL | {"model_type": "jais2"},
        source=REFERENCE,
        total=4_465_152,
        variants=WIDTHS | BIASES | {"head_dim": [48]},
    ),
    Pinned(
        name="a small arcee",
        config=SMALL | {"model_type": "arcee"},
        source=REFERENCE,
        total=4_448_512,
        variants=WIDTHS | BIASES | {"head_dim": [48]},
    ),
    Pinned(
        name="a small apertus",
        config=SMALL | {"model_type": "apertus", "qk_norm": True, "post_norm": False},
        source=REFERENCE,
        total=4_449_040,
        variants=WIDTHS | {"attention_bias": [True], "hidden_act": ["silu"], "head_dim": [48]},
    ),
    Pinned(
        name="a small apertus1p5_text",
        config=SMALL | {"model_type": "apertus1p5_text", "output_vocab_size": 600},
        source=REFERENCE,
        total=4_346_640,
        variants={"attention_bias": [True], "output_vocab_size": [None, 1000, ...]},
    ),
    Pinned(
        name="a small diffllama",
        config=SMALL | {"model_type": "diffllama"},
        source=REFERENCE,
        total=5_760_256,
        variants={"attention_bias": [True], "head_dim": [48], "num_key_value_heads": [8, None]},
    ),
    Pinned(
        name="a small hyperclovax",
        config=SMALL | {"model_type": "hyperclovax"},
        source=REFERENCE,
        total=5_763_328,
        variants=WIDTHS | BIASES | {"use_post_norm": [False], "head_dim": [48]},
    ),
    Pinned(
        name="a small internlm3",
        config=SMALL | {"model_type": "internlm3", "head_dim": 48, "qkv_bias": True, "bias": True},
        source=REFERENCE,
        total=6_433_536,
        variants=WIDTHS,
    ),
    Pinned(
        name="a small iquestcoder",
        config=SMALL | {"model_type": "iquestcoder", "head_dim": 48},
        source=REFERENCE,
        total=6_414_592,
        variants=WIDTHS | BIASES,
    ),
    Pinned(
        name="a small cwm",
        config=SMALL | {"model_type": "cwm", "head_dim": 48, "sliding_window": 512},
        source=REFERENCE,
        total=6_414_592,
        kv_full=2 * 384,
        kv_windowed=6 * 384,
        window=512,
        variants=WIDTHS | {"mlp_bias": [True], "layer_types": [SLIDING], "head_dim": [...]},
    ),
    Pinned(
        name="a small doge",
        config=SMALL | {"model_type": "doge"},
        source=REFERENCE,
        total=5_764_880,
        variants=WIDTHS | BIASES,
    ),
    Pinned(
        name="a small doge with experts",
        config=SMALL | {"model_type": "doge", "is_moe": True, "num_experts": 150, "num_experts_per_tok": 8},
        source=REFERENCE,
        total=6_428_432,
        variants={"num_experts": [64], "mlp_bias": [True]},
    ),
    Pinned(
        name="a small nanochat",
        config=SMALL | {"model_type": "nanochat"},
        source=REFERENCE,
        total=4_444_160,
        variants=WIDTHS | {"attention_bias": [True], "head_dim": [48]},
    ),
    Pinned(
        name="a small persimmon",
        config=MULTI_HEAD | {"model_type": "persimmon"},
        source=REFERENCE,
        total=5_255_680,
        variants={"tie_word_embeddings": [True], "qk_layernorm": [False, ...]},
    ),
    Pinned(
        name="a small bitnet",
        config=SMALL | {"model_type": "bitnet"},
        source=REFERENCE,
        total=5_766_400,
        variants=WIDTHS | {"attention_bias": [True]},
    ),
    Pinned(
        name="internlm/internlm2-chat-7b",
        config={
            "model_type": "internlm2",
            "hidden_size": 4096,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "intermediate_size": 14336,
            "vocab_size": 92544,
            "bias": False,
            "tie_word_embeddings": False,
            "max_position_embeddings": 32768,
        },
        source="safetensors metadata of the published checkpoint: 7,737,708,544",
        total=7_737_708_544,
        kv_full=131_072,
        reference=False,
    ),
    Pinned(
        name="internlm/internlm-7b",
        config=BAICHUAN_7B | {"model_type": "internlm", "vocab_size": 103168, "bias": True},
        source="a Llama of these widths with biases on queries, keys, values and output",
        total=7_321_423_872 + 32 * 4 * 4096,
        bias=32 * 4 * 4096,
        reference=False,
    ),
    Pinned(
        name="a small dory",
        config=SMALL | {"model_type": "dory", "head_dim": 48, "n_input_layers": 2, "n_output_layers": 2},
        source=REFERENCE,
        total=7_218_152,
        variants=WIDTHS | BIASES | {"layer_types": [SLIDING, ["sliding_attention", "mlp"] * 4]} | {"head_dim": [...]},
    ),
    Pinned(
        name="a small hrm_text",
        config=MULTI_HEAD | {"model_type": "hrm_text", "num_hidden_layers": 2, "head_dim": 48},
        source=REFERENCE,
        total=4_444_416,
        kv_full=2 * 2 * 4 * 2 * 8 * 48 * 2,
        variants=BIASES | {"tie_word_embeddings": [True], "H_cycles": [1, 3], "L_cycles": [1], "head_dim": [...]},
    ),
    Pinned(
        name="meta-models/Muse-Glimmer-30B",
        config={
            "model_type": "muse_glimmer",
            "text_config": {
                "hidden_size": 6656,
                "num_hidden_layers": 52,
                "num_attention_heads": 32,
                "num_key_value_heads": 2,
                "head_dim": 128,
                "intermediate_size": 19968,
                "sliding_window": 2048,
                "vocab_size": 202048,
                "max_position_embeddings": 131072,
            },
            "vision_config": {"hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 50},
            "tie_word_embeddings": False,
        },
        source="safetensors metadata of the published checkpoint: 29,776,626,688",
        total=29_776_626_688,
        kv_full=13 * 2 * 2 * 128 * 2,
        kv_windowed=39 * 2 * 2 * 128 * 2,
        window=2048,
        variants={
            "tie_word_embeddings": [True],
            "text_config.attention_bias": [True],
            "text_config.head_dim": [64, ...],
            "vision_config.pos_emb_height": [16],
            "vision_config.patch_temporal": [1],
            "projector_hidden_size": [1024],
            "out_hidden_size": [4096],
        },
    ),
    Pinned(
        name="openai-community/openai-gpt",
        config={
            "model_type": "openai-gpt",
            "n_embd": 768,
            "n_head": 12,
            "n_layer": 12,
            "n_positions": 512,
            "n_ctx": 512,
            "vocab_size": 40478,
        },
        source=REFERENCE,
        total=116_534_784,
        kv_full=12 * 2 * 768 * 2,
        variants={"tie_word_embeddings": [False], "n_positions": [1024]},
    ),
    Pinned(
        name="Salesforce/ctrl",
        config={
            "model_type": "ctrl",
            "n_embd": 1280,
            "n_head": 16,
            "n_layer": 48,
            "dff": 8192,
            "n_positions": 256,
            "vocab_size": 246534,
        },
        source=REFERENCE,
        total=1_637_964_550,
        variants={"tie_word_embeddings": [False]},
    ),
    Pinned(
        name="HuggingFaceTB/SmolLM3-3B",
        config={
            "model_type": "smollm3",
            "vocab_size": 128256,
            "hidden_size": 2048,
            "intermediate_size": 11008,
            "num_hidden_layers": 36,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "max_position_embeddings": 32768,
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": True,
        },
        source="safetensors metadata of the published checkpoint: 3,075,098,624",
        total=3_075_098_624,
    ),
    Pinned(
        name="kyutai/helium-1-preview-2b",
        config={
            "model_type": "helium",
            "vocab_size": 48000,
            "hidden_size": 2560,
            "intermediate_size": 7040,
            "num_hidden_layers": 24,
            "num_attention_heads": 20,
            "num_key_value_heads": 20,
            "head_dim": 128,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
        },
        source="safetensors metadata of the published checkpoint: 2,172,643,840",
        total=2_172_643_840,
    ),
    Pinned(
        name="swiss-ai/Apertus-8B-2509",
        config={
            "model_type": "apertus",
            "vocab_size": 131072,
            "hidden_size": 4096,
            "intermediate_size": 21504,
            "num_hidden_layers": 32,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 65536,
            "tie_word_embeddings": False,
            "attention_bias": False,
        },
        source="safetensors metadata of the published checkpoint: 8,053,338,176",
        total=8_053_338_176,
    ),
    Pinned(
        name="arcee-ai/AFM-4.5B",
        config={
            "model_type": "arcee",
            "vocab_size": 128005,
            "hidden_size": 2560,
            "intermediate_size": 18432,
            "num_hidden_layers": 36,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "max_position_embeddings": 65536,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 4,619,189,760",
        total=4_619_189_760,
    ),
    Pinned(
        name="IQuestLab/IQuest-Coder-V1-40B-Base",
        config={
            "model_type": "iquestcoder",
            "vocab_size": 76800,
            "hidden_size": 5120,
            "intermediate_size": 27648,
            "num_hidden_layers": 80,
            "num_attention_heads": 40,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 39,794,283,520",
        total=39_794_283_520,
    ),
    Pinned(
        name="naver-hyperclovax/HyperCLOVAX-SEED-Think-14B",
        config={
            "model_type": "hyperclovax",
            "vocab_size": 110592,
            "hidden_size": 6144,
            "intermediate_size": 14336,
            "num_hidden_layers": 38,
            "num_attention_heads": 48,
            "num_key_value_heads": 8,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "head_dim": 128,
            "use_post_norm": True,
        },
        source="safetensors metadata of the published checkpoint: 14,748,112,896",
        total=14_748_112_896,
    ),
    Pinned(
        name="internlm/internlm3-8b-instruct",
        config={
            "model_type": "internlm3",
            "vocab_size": 128512,
            "hidden_size": 4096,
            "intermediate_size": 10240,
            "num_hidden_layers": 48,
            "num_attention_heads": 32,
            "num_key_value_heads": 2,
            "max_position_embeddings": 32768,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 8,804,241,408",
        total=8_804_241_408,
    ),
    Pinned(
        name="microsoft/bitnet-b1.58-2B-4T-bf16",
        config={
            "model_type": "bitnet",
            "vocab_size": 128256,
            "hidden_size": 2560,
            "intermediate_size": 6912,
            "num_hidden_layers": 30,
            "num_attention_heads": 20,
            "num_key_value_heads": 5,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": True,
            "attention_bias": False,
        },
        source="safetensors metadata of the published checkpoint: 2,412,820,480",
        total=2_412_820_480,
    ),
    Pinned(
        name="inceptionai/Jais-2-8B-Chat",
        config={
            "model_type": "jais2",
            "vocab_size": 150272,
            "hidden_size": 3328,
            "intermediate_size": 26624,
            "num_hidden_layers": 32,
            "num_attention_heads": 26,
            "num_key_value_heads": 26,
            "max_position_embeddings": 8192,
            "tie_word_embeddings": False,
            "attention_bias": True,
            "mlp_bias": True,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 8,090,401,280",
        total=8_090_401_280,
    ),
    Pinned(
        name="LGAI-EXAONE/EXAONE-3.5-2.4B-Instruct",
        config={
            "model_type": "exaone",
            "vocab_size": 102400,
            "hidden_size": 2560,
            "intermediate_size": 7168,
            "num_hidden_layers": 30,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "mlp_bias": False,
            "head_dim": 80,
        },
        source="safetensors metadata of the published checkpoint: 2,405,327,360",
        total=2_405_327_360,
    ),
)

test_counts = counts_test(PINNED)


def counts_of(config: dict[str, Any], **changes: Any) -> int:
    return count_parameters(read_architecture(config | changes, source="config.json")).total


def windows_of(config: dict[str, Any]) -> list[int | None]:
    layers = read_architecture(config, source="config.json").layers
    return [block.window for layer in layers for block in layer.blocks if isinstance(block, Attention)]


def test_exaone4_without_a_window_attends_everything() -> None:
    assert windows_of(SMALL | {"model_type": "exaone4", "sliding_window": None}) == [None] * 8


def test_a_window_longer_than_the_context_caps_nothing() -> None:
    assert windows_of(SMALL | {"model_type": "cwm", "sliding_window": 4096}) == [None] * 8


def test_smollm3_slides_where_it_has_no_positions_and_only_when_told_to() -> None:
    config = SMALL | {"model_type": "smollm3", "sliding_window": 512}
    assert windows_of(config) == [None] * 8
    assert windows_of(config | {"use_sliding_window": True}) == [None, None, None, 512] * 2


def test_minicpm_is_tied_unless_the_file_says_otherwise() -> None:
    silent = {key: value for key, value in MINICPM_2B.items() if key != "tie_word_embeddings"}
    assert counts_of(MINICPM_2B) - counts_of(silent) == 122760 * 2304


def test_dory_caches_each_pass_unless_told_otherwise() -> None:
    config = SMALL | {"model_type": "dory", "head_dim": 48, "n_input_layers": 2, "n_output_layers": 2}
    counts = count_parameters(read_architecture(config, source="config.json"))
    thrice = read_architecture(config | {"n_recurrent_loops": 3}, source="config.json")
    assert count_parameters(thrice).total == counts.total
    assert sum(group.layers for group in cache_layers(thrice)) == 2 + 3 * 4 + 2
    last = read_architecture(config | {"recurrent_kv_cache_mode": "last_loop"}, source="config.json")
    assert sum(group.layers for group in cache_layers(last)) == 8


def test_telechat_has_biases_where_it_returns_to_the_residual() -> None:
    config = {
        "model_type": "telechat",
        "hidden_size": 256,
        "n_layer": 2,
        "n_head": 8,
        "ffn_hidden_size": 640,
        "vocab_size": 1000,
        "tie_word_embeddings": False,
    }
    counts = count_parameters(read_architecture(config, source="config.json"))
    assert counts.bias == 2 * 2 * 256
    assert counts.total - counts.bias == counts_of(MULTI_HEAD | {"model_type": "xverse", "num_hidden_layers": 2})


def test_hunyuan_files_carry_keys_of_models_that_they_are_not() -> None:
    noise = {"num_experts": 1, "moe_topk": 1, "num_shared_expert": 1, "dense_list": [4096, 0], "cla_share_factor": 2}
    assert counts_of(HUNYUAN_7B, **noise, attention_head_dim=128, use_qk_norm=True) == 7_504_568_320
    assert counts_of(HUNYUAN_7B, use_qk_norm=False) == 7_504_568_320 - 32 * 2 * 128


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (EXAONE_4_32B, {"layer_types": None}, "layer_types is missing"),
        (EXAONE_4_32B, {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 64 layers"),
        (EXAONE_4_32B, {"layer_types": ["chunked_attention"] * 64}, "layer_types holds 'chunked_attention'"),
        (EXAONE_4_32B, {"sliding_window": None}, "sliding_window is missing or null"),
        (HUNYUAN_7B, {"use_cla": True}, "use_cla is true"),
        (HUNYUAN_7B, {"num_experts": 64}, "num_experts is 64"),
        (MINICPM_2B, {"num_experts": 8}, "num_experts_per_tok is missing"),
        (BAICHUAN_7B, {"num_key_value_heads": 8}, "num_key_value_heads is 8"),
        (SMALL, {"model_type": "apertus", "qk_norm": False}, "qk_norm differs"),
        (SMALL, {"model_type": "apertus", "post_norm": True}, "post_norm differs"),
        (SMALL, {"model_type": "diffllama", "num_key_value_heads": 1}, "num_key_value_heads is 1"),
        (SMALL, {"model_type": "helium", "head_dim": 64}, "head_dim is 64"),
        (SMALL, {"model_type": "internlm3"}, "head_dim is missing"),
        (SMALL, {"model_type": "internlm3", "head_dim": 32, "bias": True}, "qkv_bias differs"),
        (
            SMALL,
            {"model_type": "dory", "n_recurrent_layers": 3, "n_input_layers": 2, "n_output_layers": 2},
            "is 3; with 2",
        ),
        (SMALL, {"model_type": "hrm_text"}, "num_key_value_heads differs"),
        (MULTI_HEAD, {"model_type": "hrm_text", "num_layers_per_stack": 3}, "not 3 layers × 8 passes"),
        (
            MULTI_HEAD,
            {"model_type": "openai-gpt", "max_position_embeddings": None, "intermediate_size": 0},
            "n_positions",
        ),
        (MULTI_HEAD, {"model_type": "ctrl", "intermediate_size": 0}, "dff is missing"),
        (SMALL, {"model_type": "persimmon"}, "num_key_value_heads is 2"),
        (SMALL, {"model_type": "glm4v_text", "attention_bias": False}, "attention_bias is false"),
        (SMALL, {"model_type": "apertus1p5_text", "output_vocab_size": 9, "tie_word_embeddings": True}, "tied head"),
        (
            SMALL,
            {"model_type": "smollm3", "use_sliding_window": True, "sliding_window": 9, "no_rope_layers": [1]},
            "1 entr",
        ),
    ],
)
def test_refusals(config: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(config | changes, source="config.json")
