"""GLM, ChatGLM, and the models that keep GLM-4.5's layout."""

from __future__ import annotations

from typing import Any

import pytest

from planner.counting import cache_elements, count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

GLM_4_9B = {
    "model_type": "glm",
    "hidden_size": 4096,
    "num_hidden_layers": 40,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "head_dim": 128,
    "intermediate_size": 13696,
    "vocab_size": 151552,
    "attention_bias": True,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}

GLM_4_5 = {
    "model_type": "glm4_moe",
    "hidden_size": 5120,
    "num_hidden_layers": 92,
    "num_attention_heads": 96,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "n_routed_experts": 160,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
    "attention_bias": True,
    "use_qk_norm": True,
    "vocab_size": 151552,
    "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}

GLM_4_5_AIR = GLM_4_5 | {
    "hidden_size": 4096,
    "num_hidden_layers": 46,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 128,
    "first_k_dense_replace": 1,
    "use_qk_norm": False,
}

SMALL_SPARSE = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 48,
    "intermediate_size": 640,
    "moe_intermediate_size": 96,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}

GLM_4_7_FLASH = {
    "model_type": "glm4_moe_lite",
    "hidden_size": 2048,
    "num_hidden_layers": 47,
    "num_attention_heads": 20,
    "num_key_value_heads": 20,
    "q_lora_rank": 768,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "intermediate_size": 10240,
    "moe_intermediate_size": 1536,
    "n_routed_experts": 64,
    "n_shared_experts": 1,
    "num_experts_per_tok": 4,
    "vocab_size": 154880,
    "tie_word_embeddings": False,
    "max_position_embeddings": 202752,
}

SMALL_LATENT = {key: value for key, value in SMALL_SPARSE.items() if key != "head_dim"} | {
    "num_key_value_heads": 8,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 16,
    "v_head_dim": 40,
}

CHATGLM3 = {
    "model_type": "chatglm",
    "hidden_size": 4096,
    "num_layers": 28,
    "num_attention_heads": 32,
    "kv_channels": 128,
    "multi_query_attention": True,
    "multi_query_group_num": 2,
    "padded_vocab_size": 65024,
    "ffn_hidden_size": 13696,
    "add_bias_linear": False,
    "add_qkv_bias": True,
    "apply_residual_connection_post_layernorm": False,
    "post_layer_norm": True,
    "rmsnorm": True,
    "seq_length": 8192,
    "tie_word_embeddings": False,
}

LING_LITE = {
    "model_type": "bailing_moe",
    "hidden_size": 2048,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "intermediate_size": 5632,
    "moe_intermediate_size": 1408,
    "num_experts": 64,
    "num_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 0,
    "norm_head": True,
    "use_bias": False,
    "use_qkv_bias": False,
    "vocab_size": 126464,
    "tie_word_embeddings": False,
    "max_position_embeddings": 16384,
}

LING_MINI_2 = LING_LITE | {
    "architectures": ["BailingMoeV2ForCausalLM"],
    "num_hidden_layers": 20,
    "head_dim": 128,
    "intermediate_size": 5120,
    "moe_intermediate_size": 512,
    "num_experts": 256,
    "num_shared_experts": 1,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 1,
    "use_qk_norm": True,
    "moe_router_enable_expert_bias": True,
    "norm_head": False,
    "vocab_size": 157184,
}

REFERENCE = "transformers 5.24.0 on the meta device"
SPARSE_VARIANTS: dict[str, list[Any]] = {
    "tie_word_embeddings": [True],
    "attention_bias": [True],
    "head_dim": [64],
    "num_key_value_heads": [1, 8],
    "n_routed_experts": [16],
    "n_shared_experts": [2],
    "moe_intermediate_size": [128],
    "first_k_dense_replace": [0, 2],
}

PINNED = (
    Pinned(
        name="zai-org/glm-4-9b-chat-hf",
        config=GLM_4_9B,
        source="safetensors metadata of the published checkpoint: 9,399,951,360",
        total=9_399_951_360,
        parts={
            "embedding": 620_756_992,
            "lm_head": 620_756_992,
            "attention": 1_426_247_680,
            "mlp": 6_731_857_920,
            "norm": 331_776,
        },
        bias=184_320,
        decode_read=8_779_194_368,
        kv_full=40_960,
        variants={
            "attention_bias": [False, ...],
            "tie_word_embeddings": [True],
            "head_dim": [64, ...],
            "num_key_value_heads": [4],
        },
    ),
    Pinned(
        name="zai-org/GLM-4-32B-0414",
        config=GLM_4_9B
        | {"model_type": "glm4", "hidden_size": 6144, "num_hidden_layers": 61, "num_attention_heads": 48}
        | {"intermediate_size": 23040, "attention_bias": False, "max_position_embeddings": 32768},
        source="safetensors metadata of the published checkpoint: 32,566,081,536",
        total=32_566_081_536,
        parts={"attention": 4_797_235_200, "mlp": 25_905_070_080, "norm": 1_505_280},
        kv_full=62_464,
        variants={"attention_bias": [True, ...], "tie_word_embeddings": [True], "head_dim": [64, ...]},
    ),
    Pinned(
        name="zai-org/GLM-4.5",
        config=GLM_4_5,
        source="safetensors metadata of the published checkpoint: 358,337,791,296, which is this total, 14,240 of "
        "routing correction, an MTP module of 3,988,069,792 (160 of it correction), copies of embedding and head",
        total=352_797_814_784,
        parts={
            "attention": 12_542_287_872,
            "mlp": 566_231_040,
            "experts": 335_963_750_400,
            "shared_experts": 2_099_773_440,
            "router": 72_908_800,
            "norm": 970_752,
        },
        active=33_632_251_904,
        decode_read=32_856_305_664,
        bias=1_318_912,
        buffers=14_240,
        mtp=3_988_069_792 - 160,
        kv_full=376_832,
    ),
    Pinned(
        name="zai-org/GLM-4.5-Air",
        config=GLM_4_5_AIR,
        source="safetensors metadata of the published checkpoint: 110,468,824,832, which is this total, 5,760 of "
        "routing correction, an MTP module of 2,375,059,584 (128 of it correction), copies of embedding and head",
        total=106_852_245_504,
        buffers=5_760,
        mtp=2_375_059_584 - 128,
    ),
    Pinned(
        name="a small glm4_moe",
        config=SMALL_SPARSE | {"model_type": "glm4_moe", "attention_bias": True, "use_qk_norm": True},
        source=REFERENCE,
        total=3_988_352,
        buffers=24,
        kv_full=4 * 2 * 2 * 48 * 2,
        variants=SPARSE_VARIANTS | {"use_qk_norm": [False, ...], "attention_bias": [False, ...]},
    ),
    Pinned(
        name="the text of a small GLM-4.1V",
        config={k: v for k, v in GLM_4_9B.items() if k not in ("head_dim", "attention_bias")}
        | {"model_type": "glm4v_text", "num_hidden_layers": 2, "num_attention_heads": 64, "vocab_size": 1000},
        source="transformers 5.24.0 on the meta device (Glm4vTextModel has no head; this total has)",
        total=414_036_480,
        reference=False,
    ),
    Pinned(
        name="a small solar_open",
        config={k: v for k, v in SMALL_SPARSE.items() if k not in ("first_k_dense_replace", "intermediate_size")}
        | {"model_type": "solar_open"},
        source=REFERENCE,
        total=4_159_744,
        variants={k: v for k, v in SPARSE_VARIANTS.items() if k != "first_k_dense_replace"} | {"head_dim": [64, ...]},
    ),
    Pinned(
        name="zai-org/GLM-4.7-Flash",
        config=GLM_4_7_FLASH | {"num_nextn_predict_layers": 1},
        source="safetensors metadata of the published checkpoint: 31,221,488,576, which is this total, "
        "2,944 of routing correction, an MTP module of 643,706,176 (64 of it correction), copies of embedding and head",
        total=29_943_390_976,
        buffers=2_944,
        mtp=643_706_176 - 64,
        kv_full=54_144,
    ),
    Pinned(
        name="a small glm4_moe_lite",
        config=SMALL_LATENT | {"model_type": "glm4_moe_lite"},
        source=REFERENCE,
        total=3_592_832,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [True],
            "q_lora_rank": [None],
            "n_shared_experts": [2],
            "mlp_layer_types": [["dense", "sparse", "sparse", "dense"]],
        },
    ),
    Pinned(
        name="a small axk1",
        config=SMALL_LATENT | {"model_type": "axk1", "n_group": 4, "topk_group": 2},
        source=REFERENCE,
        total=3_593_600,
        variants={"attention_bias": [True], "first_k_dense_replace": [0, 2], "n_shared_experts": [2]},
    ),
    Pinned(
        name="a small axk2",
        config=SMALL_LATENT
        | {"model_type": "axk2", "index_topk": 64, "index_head_dim": 32, "index_n_heads": 4, "gated_norm_rank": 8},
        source=REFERENCE,
        total=3_937_152,
        kv_full=4 * (32 + 16) * 2,
        variants={
            "attention_bias": [True],
            "first_k_dense_replace": [0, 2],
            "index_n_heads": [8],
            "gated_norm_rank": [4, ...],
            "mlp_layer_types": [["dense", "sparse", "sparse", "dense"]],
        },
    ),
    Pinned(
        name="a small sarvam_mla",
        config=SMALL_LATENT | {"model_type": "sarvam_mla"},
        source=REFERENCE,
        total=3_592_832,
        variants={"attention_bias": [True], "first_k_dense_replace": [0, 2], "q_lora_rank": [None]},
    ),
    Pinned(
        name="a small youtu",
        config={
            "model_type": "youtu",
            "hidden_size": 256,
            "num_hidden_layers": 4,
            "num_attention_heads": 8,
            "num_key_value_heads": 8,
            "q_lora_rank": 64,
            "kv_lora_rank": 32,
            "qk_nope_head_dim": 24,
            "qk_rope_head_dim": 16,
            "v_head_dim": 40,
            "intermediate_size": 640,
            "vocab_size": 1000,
            "max_position_embeddings": 4096,
        },
        source=REFERENCE,
        total=2_814_592,
        variants={"attention_bias": [True], "tie_word_embeddings": [False], "q_lora_rank": [None]},
    ),
    Pinned(
        name="zai-org/chatglm3-6b",
        config=CHATGLM3,
        source="the published widths; the published file has 32 rotary frequencies more",
        total=6_243_584_000,
        kv_full=28_672,
        reference=False,
    ),
    Pinned(
        name="zai-org/glm-4-9b-chat, first publication",
        config=CHATGLM3
        | {"num_layers": 40, "padded_vocab_size": 151552, "seq_length": 131072, "rope_ratio": 500, "kv_channels": 128},
        source="safetensors metadata of the published checkpoint: 9,399,951,392, of which 32 are rotary frequencies",
        total=9_399_951_360,
        kv_full=40_960,
        reference=False,
    ),
    Pinned(
        name="inclusionAI/Ling-lite",
        config=LING_LITE,
        source="safetensors metadata of the published checkpoint: 16,801,974,272",
        total=16_801_974_272,
        buffers=0,
        reference=False,
    ),
    Pinned(
        name="inclusionAI/Ling-mini-2.0",
        config=LING_MINI_2,
        source="safetensors metadata of the published checkpoint: 16,255,643,392, 4,864 of it correction",
        total=16_255_643_392 - 4_864,
        buffers=4_864,
        reference=False,
    ),
    Pinned(
        name="a small sarvam_moe",
        config=SMALL_SPARSE | {"model_type": "sarvam_moe"},
        source=REFERENCE,
        total=3_986_048,
        variants=SPARSE_VARIANTS | {"use_qk_norm": [False]},
    ),
    Pinned(
        name="tencent/Youtu-LLM-2B",
        config={
            "model_type": "youtu",
            "vocab_size": 128256,
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "num_hidden_layers": 32,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "qk_nope_head_dim": 128,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": True,
            "attention_bias": False,
            "head_dim": 64,
        },
        source="safetensors metadata of the published checkpoint: 1,961,560,064",
        total=1_961_560_064,
    ),
    Pinned(
        name="upstage/Solar-Open-100B",
        config={
            "model_type": "solar_open",
            "vocab_size": 196608,
            "hidden_size": 4096,
            "num_hidden_layers": 48,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "moe_intermediate_size": 1280,
            "num_experts_per_tok": 8,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 102,651,793,408",
        total=102_651_793_408,
        buffers=6_144,
    ),
    Pinned(
        name="sarvamai/sarvam-30b",
        config={
            "model_type": "sarvam_moe",
            "vocab_size": 262144,
            "hidden_size": 4096,
            "intermediate_size": 8192,
            "num_hidden_layers": 19,
            "num_attention_heads": 64,
            "num_key_value_heads": 4,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "moe_intermediate_size": 1024,
            "num_experts_per_tok": 6,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "first_k_dense_replace": 1,
            "use_qk_norm": True,
            "num_nextn_predict_layers": 0,
            "head_dim": 64,
        },
        source="safetensors metadata of the published checkpoint: 32,152,650,368, with the routing correction",
        total=32_152_648_064,
        buffers=2_304,
    ),
    Pinned(
        name="sarvamai/sarvam-105b",
        config={
            "model_type": "sarvam_mla",
            "vocab_size": 262144,
            "hidden_size": 4096,
            "intermediate_size": 16384,
            "moe_intermediate_size": 2048,
            "num_hidden_layers": 32,
            "num_attention_heads": 64,
            "num_key_value_heads": 64,
            "n_shared_experts": 1,
            "n_routed_experts": 128,
            "kv_lora_rank": 512,
            "qk_rope_head_dim": 64,
            "v_head_dim": 128,
            "qk_nope_head_dim": 128,
            "num_experts_per_tok": 8,
            "first_k_dense_replace": 1,
            "max_position_embeddings": 4096,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "num_nextn_predict_layers": 0,
            "head_dim": 64,
        },
        source="safetensors metadata of the published checkpoint: 106,031,767,424, with the routing correction",
        total=106_031_763_456,
        buffers=3_968,
    ),
)

test_counts = counts_test(PINNED)


def test_the_first_chatglm_is_another_layout() -> None:
    with pytest.raises(PlanError, match="inner_hidden_size"):
        read_architecture(CHATGLM3 | {"inner_hidden_size": 16384}, source="config.json")


def test_chatglm_groups_divide_the_heads() -> None:
    with pytest.raises(PlanError, match="multi_query_group_num is 3 and does not divide the 32 query heads"):
        read_architecture(CHATGLM3 | {"multi_query_group_num": 3}, source="config.json")


def test_the_text_of_glm_4_5v_has_biases_unless_switched_off() -> None:
    text = SMALL_SPARSE | {"model_type": "glm4v_moe_text"}
    biases = count_parameters(read_architecture(text, source="config.json")).bias
    assert biases == 4 * (8 + 2 + 2) * 48
    assert count_parameters(read_architecture(text | {"attention_bias": False}, source="config.json")).bias == 0


def test_chatglm_caches_the_groups_that_it_names_itself() -> None:
    few = {key: CHATGLM3[key] for key in CHATGLM3 if key not in ("padded_vocab_size", "ffn_hidden_size")}
    architecture = read_architecture(few, source="config.json")
    assert cache_elements(architecture, 1) * 2 == 28_672
    assert len(architecture.assumed) == 2


def test_chatglm_without_groups_caches_every_head() -> None:
    every = CHATGLM3 | {"multi_query_attention": False}
    assert cache_elements(read_architecture(every, source="config.json"), 1) == 28 * 2 * 32 * 128


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_experts_per_tok": 161}, "num_experts_per_tok is 161, more than the 160 experts"),
        ({"first_k_dense_replace": 93}, "first_k_dense_replace is 93, more than the 92 layers"),
        ({"num_key_value_heads": 7}, "num_key_value_heads is 7 and does not divide the 96 query heads"),
        ({"num_key_value_heads": None}, "num_key_value_heads is missing or null"),
        ({"model_type": "glm4v_moe_text"}, "use_qk_norm is true"),
        ({"num_attention_heads": 96, "head_dim": None}, "does not divide by 96 heads"),
    ],
)
def test_refusals(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(GLM_4_5 | changes, source="config.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mlp_layer_types": ["dense"] * 3}, "mlp_layer_types has 3 entries for 47 layers"),
        ({"mlp_layer_types": ["moe"] * 47}, "mlp_layer_types holds 'moe'"),
        ({"moe_layer_freq": 2}, "moe_layer_freq is 2"),
        ({"q_lora_rank": ...}, "q_lora_rank is missing"),
    ],
)
def test_refusals_of_latent_models(changes: dict[str, object], message: str) -> None:
    changed = {key: value for key, value in (GLM_4_7_FLASH | changes).items() if value is not ...}
    with pytest.raises(PlanError, match=message):
        read_architecture(changed, source="config.json")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_bias": True}, "use_bias is true"),
        ({"moe_shared_expert_intermediate_size": 2000}, "moe_shared_expert_intermediate_size is 2,000"),
    ],
)
def test_refusals_of_ling(changes: dict[str, object], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(LING_MINI_2 | changes, source="config.json")
