"""Decoders with experts that keep to no larger family: ERNIE, Hunyuan, MiniMax-M2, dots, Trinity and others."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Part
from planner.counting import count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 48,
    "intermediate_size": 640,
    "moe_intermediate_size": 96,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
}

ERNIE_300B = {
    "model_type": "ernie4_5_moe",
    "hidden_size": 8192,
    "num_hidden_layers": 54,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "moe_intermediate_size": 3584,
    "moe_k": 8,
    "moe_layer_start_index": 3,
    "moe_num_experts": 64,
    "moe_num_shared_experts": 0,
    "vocab_size": 103424,
    "tie_word_embeddings": False,
}

ERNIE_21B = ERNIE_300B | {
    "hidden_size": 2560,
    "num_hidden_layers": 28,
    "num_attention_heads": 20,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "intermediate_size": 12288,
    "moe_intermediate_size": 1536,
    "moe_k": 6,
    "moe_layer_start_index": 1,
    "moe_layer_end_index": -1,
    "moe_layer_interval": 1,
    "moe_num_shared_experts": 2,
    "moe_capacity": [64, 64, 64],
    "moe_gate": "topk",
    "moe_use_aux_free": True,
    "num_nextn_predict_layers": 1,
    "tie_word_embeddings": True,
}

HUNYUAN_A13B = {
    "model_type": "hunyuan_v1_moe",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "moe_intermediate_size": [3072] * 32,
    "moe_topk": [8] * 32,
    "num_experts": 64,
    "num_shared_expert": [1] * 32,
    "use_cla": False,
    "use_mixed_mlp_moe": True,
    "use_qk_norm": True,
    "vocab_size": 128167,
    "attention_bias": False,
    "tie_word_embeddings": True,
}

MINIMAX_M2 = {
    "model_type": "minimax_m2",
    "hidden_size": 3072,
    "num_hidden_layers": 62,
    "num_attention_heads": 48,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 1536,
    "num_local_experts": 256,
    "num_experts_per_tok": 8,
    "attn_type_list": [1] * 62,
    "num_mtp_modules": 3,
    "mtp_transformer_layers": 1,
    "use_mtp": True,
    "qk_norm_type": "per_layer",
    "shared_intermediate_size": 0,
    "use_qk_norm": True,
    "use_routing_bias": True,
    "vocab_size": 200064,
    "tie_word_embeddings": False,
    "max_position_embeddings": 196608,
}

DOTS1 = {
    "model_type": "dots1",
    "hidden_size": 4096,
    "num_hidden_layers": 62,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 128,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "sliding_window": None,
    "max_window_layers": 62,
    "vocab_size": 152064,
    "tie_word_embeddings": False,
    "max_position_embeddings": 32768,
}

JETMOE = {
    "model_type": "jetmoe",
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_key_value_heads": 4,
    "kv_channels": 32,
    "intermediate_size": 640,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
}

ERNIE_VL = {
    "model_type": "ernie4_5_vl_moe",
    "text_config": {
        "hidden_size": 512,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 640,
        "moe_intermediate_size": [96, 48],
        "moe_num_experts": 8,
        "moe_k": 2,
        "moe_num_shared_experts": 2,
        "vocab_size": 1000,
    },
    "vision_config": {
        "depth": 2,
        "hidden_size": 64,
        "num_heads": 4,
        "intermediate_size": 200,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_merge_size": 2,
    },
    "tie_word_embeddings": True,
}

REFERENCE = "transformers 5.24.0 on the meta device"
SLIDING = ["sliding_attention", "full_attention"] * 4
KINDS = ["dense", "sparse", "sparse", "dense"] * 2
COMMON: dict[str, list[Any]] = {
    "tie_word_embeddings": [True],
    "num_key_value_heads": [1, 8],
    "head_dim": [64],
    "moe_intermediate_size": [128],
}
PER_TOKEN = 2 * 2 * 48 * 2

PINNED = (
    Pinned(
        name="baidu/ERNIE-4.5-300B-A47B-Base-PT",
        config=ERNIE_300B,
        source="safetensors metadata of the published checkpoint: 299,484,163,264",
        total=299_484_163_264,
        parts={
            "attention": 8_153_726_976,
            "mlp": 2_113_929_216,
            "experts": 287_494_373_376,
            "shared_experts": 0,
            "router": 26_741_952,
            "norm": 892_928,
        },
        active=47_926_586_560,
        decode_read=47_079_337_152,
        bias=3_264,
        buffers=0,
        kv_full=221_184,
    ),
    Pinned(
        name="baidu/ERNIE-4.5-21B-A3B-PT",
        config=ERNIE_21B,
        source="safetensors metadata of the published checkpoint: 21,948,655,808, 123,217,920 of it an MTP module",
        total=21_825_437_888,
        mtp=123_217_920,
        variants={
            "use_bias": [True],
            "tie_word_embeddings": [False, ...],
            "moe_layer_interval": [2],
            "moe_layer_end_index": [20, ...],
            "moe_layer_start_index": [0, ...],
            "moe_num_shared_experts": [0, ...],
            "num_key_value_heads": [1],
        },
    ),
    Pinned(
        name="tencent/Hunyuan-A13B-Instruct",
        config=HUNYUAN_A13B,
        source="safetensors metadata of the published checkpoint: 80,393,183,232",
        total=80_393_183_232,
        parts={
            "attention": 1_342_177_280,
            "experts": 77_309_411_328,
            "shared_experts": 1_207_959_552,
            "router": 8_388_608,
            "norm": 274_432,
        },
        active=12_747_448_320,
        kv_full=131_072,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [False, ...],
            "moe_intermediate_size": [3072, None, ...],
            "num_shared_expert": [1, ...],
            "moe_topk": [4],
            "num_experts": [16],
            "head_dim": [64],
        },
    ),
    Pinned(
        name="MiniMaxAI/MiniMax-M2.7",
        config=MINIMAX_M2,
        source="safetensors metadata of the published checkpoint: 228,689,764,864, 15,872 of it routing correction",
        total=228_689_748_992,
        parts={
            "attention": 2_730_491_904,
            "experts": 224_680_476_672,
            "router": 48_758_784,
            "norm": 828_416,
        },
        active=11_030_537_216,
        decode_read=10_415_940_608,
        buffers=15_872,
        mtp=0,
        kv_full=253_952,
        variants={"tie_word_embeddings": [True], "head_dim": [64, ...], "num_key_value_heads": [4]},
    ),
    Pinned(
        name="rednote-hilab/dots.llm1.inst",
        config=DOTS1,
        source="safetensors metadata of the published checkpoint: 142,774,381,696",
        total=142_774_373_888,
        buffers=7_808,
    ),
    Pinned(
        name="a small dots1",
        config={key: value for key, value in SMALL.items() if key != "num_experts"}
        | {"model_type": "dots1", "n_routed_experts": 8, "n_shared_experts": 2, "first_k_dense_replace": 1}
        | {"sliding_window": 512, "max_window_layers": 6},
        source=REFERENCE,
        kv_full=6 * PER_TOKEN,
        kv_windowed=2 * PER_TOKEN,
        window=512,
        total=8_150_016,
        variants=COMMON
        | {
            "attention_bias": [True],
            "n_shared_experts": [1],
            "first_k_dense_replace": [0, 3, ...],
            "layer_types": [SLIDING],
        },
    ),
    Pinned(
        name="a small afmoe",
        config=SMALL | {"model_type": "afmoe", "num_dense_layers": 2, "num_shared_experts": 1, "sliding_window": 512},
        source=REFERENCE,
        total=8_250_416,
        kv_full=2 * PER_TOKEN,
        kv_windowed=6 * PER_TOKEN,
        window=512,
        variants=COMMON
        | {
            "head_dim": [64, ...],
            "attention_bias": [True],
            "num_shared_experts": [2, ...],
            "num_dense_layers": [0, ...],
            "layer_types": [SLIDING],
            "global_attn_every_n_layers": [2],
        },
    ),
    Pinned(
        name="a small hy_v3",
        config=SMALL | {"model_type": "hy_v3", "num_shared_experts": 1},
        source=REFERENCE,
        total=7_633_920,
        buffers=7 * 8,
        variants=COMMON
        | {
            "attention_bias": [True],
            "mlp_bias": [True],
            "num_shared_experts": [2, ...],
            "mlp_layer_types": [KINDS],
        },
    ),
    Pinned(
        name="a small laguna",
        config=SMALL
        | {
            "model_type": "laguna",
            "shared_expert_intermediate_size": 112,
            "num_attention_heads_per_layer": [8, 4] * 4,
            "layer_types": SLIDING,
            "sliding_window": 512,
        },
        source=REFERENCE,
        total=7_339_064,
        kv_full=4 * PER_TOKEN,
        kv_windowed=4 * PER_TOKEN,
        window=512,
        variants=COMMON
        | {
            "num_key_value_heads": [1, 4],
            "attention_bias": [True],
            "gating": ["per-head", "per-element", False, ...],
            "mlp_layer_types": [KINDS],
            "num_attention_heads_per_layer": [...],
            "shared_expert_intermediate_size": [...],
        },
    ),
    Pinned(
        name="a small mellum",
        config=SMALL | {"model_type": "mellum", "layer_types": SLIDING, "sliding_window": 512},
        source=REFERENCE,
        total=7_218_176,
        kv_full=4 * PER_TOKEN,
        kv_windowed=4 * PER_TOKEN,
        window=512,
        variants=COMMON | {"attention_bias": [True], "mlp_layer_types": [KINDS]},
    ),
    Pinned(
        name="a small kolibri1",
        config={key: value for key, value in SMALL.items() if key != "intermediate_size"}
        | {"model_type": "kolibri1", "shared_expert_intermediate_size": 112},
        source=REFERENCE,
        total=7_910_400,
        kv_full=PER_TOKEN,
        kv_windowed=7 * PER_TOKEN,
        window=513,
        buffers=8 * 8,
        variants=COMMON | {"layer_types": [SLIDING], "shared_expert_intermediate_size": [...]},
    ),
    Pinned(
        name="a small flint",
        config=SMALL | {"model_type": "flint", "shared_expert_intermediate_size": 112},
        source=REFERENCE,
        total=7_533_632,
        kv_full=4 * PER_TOKEN,
        kv_windowed=4 * PER_TOKEN,
        window=513,
        variants=COMMON
        | {
            "attention_bias": [True],
            "mlp_only_layers": [[], [3]],
            "decoder_sparse_step": [2],
            "layer_types": [SLIDING],
        },
    ),
    Pinned(
        name="a small exaone_moe",
        config=SMALL
        | {
            "model_type": "exaone_moe",
            "num_shared_experts": 1,
            "first_k_dense_replace": 1,
            "sliding_window": 512,
            "sliding_window_pattern": 4,
        },
        source=REFERENCE,
        total=7_633_920,
        kv_full=2 * PER_TOKEN,
        kv_windowed=6 * PER_TOKEN,
        window=512,
        buffers=7 * 8,
        variants=COMMON
        | {
            "first_k_dense_replace": [0, 3, ...],
            "num_shared_experts": [2, ...],
            "mlp_layer_types": [KINDS],
            "layer_types": [SLIDING],
        },
    ),
    Pinned(
        name="a small jetmoe",
        config=JETMOE,
        source=REFERENCE,
        total=18_364_672,
        kv_full=4 * 2 * 4 * 32 * 2,
        variants={
            "tie_word_embeddings": [False, ...],
            "num_local_experts": [4],
            "num_experts_per_tok": [4],
            "num_key_value_heads": [8],
            "kv_channels": [64, ...],
        },
    ),
    Pinned(
        name="baidu/ERNIE-4.5-VL-28B-A3B-PT",
        config={
            "model_type": "ernie4_5_moe_vl",
            "hidden_size": 2560,
            "num_hidden_layers": 28,
            "num_attention_heads": 20,
            "num_key_value_heads": 4,
            "intermediate_size": 12288,
            "moe_intermediate_size": [1536, 512],
            "moe_num_experts": [64, 64],
            "moe_k": 6,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": [1, 1],
            "moe_layer_end_index": [29, 28],
            "vocab_size": 103424,
            "tie_word_embeddings": True,
            "vision_config": {"depth": 32, "hidden_size": 1280, "num_heads": 16, "mlp_ratio": 4, "patch_size": 14},
        },
        source="safetensors metadata of the published checkpoint: 29,399,294,336",
        total=29_399_294_336,
        reference=False,
    ),
    Pinned(
        name="a small ernie4_5_vl_moe",
        config=ERNIE_VL,
        source=REFERENCE,
        total=11_448_256,
        parts={"embedding": 512_000, "lm_head": 0},
        variants={
            "tie_word_embeddings": [False],
            "text_config.use_bias": [True],
            "text_config.moe_num_shared_experts": [0, ...],
            "text_config.mlp_layer_types": [["sparse", "dense"] * 2],
            "vision_config.intermediate_size": [300],
            "vision_config.temporal_merge_size": [1],
            "vision_config": [{}],
        },
    ),
    Pinned(
        name="arcee-ai/Trinity-Nano-Preview",
        config={
            "model_type": "afmoe",
            "vocab_size": 200192,
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "moe_intermediate_size": 256,
            "num_hidden_layers": 56,
            "num_dense_layers": 2,
            "num_attention_heads": 8,
            "num_key_value_heads": 2,
            "head_dim": 128,
            "max_position_embeddings": 16384,
            "tie_word_embeddings": False,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "global_attn_every_n_layers": 4,
            "sliding_window": 1024,
            "attention_bias": False,
        },
        source="safetensors metadata of the published checkpoint: 6,120,003,328",
        total=6_120_003_328,
    ),
    Pinned(
        name="tencent/Hy3-preview",
        config={
            "model_type": "hy_v3",
            "vocab_size": 120832,
            "hidden_size": 4096,
            "intermediate_size": 13312,
            "num_hidden_layers": 80,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "num_experts": 192,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "moe_intermediate_size": 1536,
            "num_nextn_predict_layers": 1,
            "first_k_dense_replace": 1,
        },
        source="safetensors metadata of the published checkpoint: 298,786,155,776, with correction and MTP module",
        total=295_033_528_320,
        buffers=15_168,
        mtp=3_752_612_096,
    ),
    Pinned(
        name="JetBrains/Mellum2-12B-A2.5B-Base",
        config={
            "model_type": "mellum",
            "vocab_size": 98304,
            "hidden_size": 2304,
            "intermediate_size": 7168,
            "num_hidden_layers": 28,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "sliding_window": 1024,
            "moe_intermediate_size": 896,
            "num_experts_per_tok": 8,
            "num_local_experts": 64,
            "head_dim": 128,
        },
        source="safetensors metadata of the published checkpoint: 12,149,923,072",
        total=12_149_923_072,
    ),
    Pinned(
        name="jetmoe/jetmoe-8b",
        config={
            "model_type": "jetmoe",
            "vocab_size": 32000,
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_key_value_heads": 16,
            "kv_channels": 128,
            "intermediate_size": 5632,
            "max_position_embeddings": 4096,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
            "tie_word_embeddings": True,
            "num_attention_heads": 32,
        },
        source="safetensors metadata of the published checkpoint: 8,522,237,952",
        total=8_522_237_952,
    ),
    Pinned(
        name="LGAI-EXAONE/K-EXAONE-236B-A23B",
        config={
            "model_type": "exaone_moe",
            "vocab_size": 153600,
            "hidden_size": 6144,
            "intermediate_size": 18432,
            "num_hidden_layers": 48,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
            "sliding_window": 4096,
            "sliding_window_pattern": 4,
            "first_k_dense_replace": 1,
            "moe_intermediate_size": 2048,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_shared_experts": 1,
            "head_dim": 128,
            "num_nextn_predict_layers": 1,
        },
        source="safetensors metadata of the published checkpoint: 237,099,669,632, with correction and MTP module",
        total=236_571_150_336,
        buffers=6_016,
        mtp=528_513_280,
    ),
    Pinned(
        name="poolside/Laguna-XS.2",
        config={
            "model_type": "laguna",
            "vocab_size": 100352,
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 40,
            "num_attention_heads": 48,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "tie_word_embeddings": False,
            "sliding_window": 512,
            "moe_intermediate_size": 512,
            "shared_expert_intermediate_size": 512,
            "num_experts_per_tok": 8,
            "num_experts": 256,
            "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 10,
            "head_dim": 128,
            "attention_bias": False,
            "gating": True,
            "num_attention_heads_per_layer": [48, 64, 64, 64] * 10,
            "moe_apply_router_weight_on_input": False,
        },
        source="safetensors metadata of the published checkpoint: 33,442,617,088",
        total=33_442_617_088,
    ),
)

test_counts = counts_test(PINNED)


def parts_of(config: dict[str, Any], **changes: Any) -> dict[Part, int]:
    return count_parameters(read_architecture(config | changes, source="config.json")).by_part


def test_hunyuan_lists_may_differ_between_layers() -> None:
    half = parts_of(HUNYUAN_A13B, num_experts=[64] * 16 + [32] * 16, moe_topk=8)
    whole = parts_of(HUNYUAN_A13B)
    assert half[Part.EXPERTS] * 4 == whole[Part.EXPERTS] * 3
    assert half[Part.ROUTER] * 4 == whole[Part.ROUTER] * 3


def test_hunyuan_without_shared_experts() -> None:
    assert parts_of(HUNYUAN_A13B, use_mixed_mlp_moe=False)[Part.SHARED_EXPERTS] == 0
    assert parts_of(HUNYUAN_A13B, num_shared_expert=2)[Part.SHARED_EXPERTS] == 2 * 1_207_959_552


def test_minimax_m2_says_that_its_drafts_are_not_in_the_files() -> None:
    assert "published checkpoints of this family hold none" in read_architecture(MINIMAX_M2, source="x").notes[0]


def test_announced_drafts_of_unknown_size_are_unread() -> None:
    config = SMALL | {"model_type": "mellum", "num_nextn_predict_layers": 1}
    assert read_architecture(config, source="x").unread == ("MTP module (num_nextn_predict_layers)",)


def test_published_ernie_vl_files_are_flat() -> None:
    text = ERNIE_VL["text_config"]
    assert isinstance(text, dict)
    lists = {"moe_num_experts": [8, 8], "moe_layer_start_index": [1, 1], "moe_layer_end_index": [5, 3]}
    tower = {"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 4, "mlp_ratio": 4, "in_chans": 3}
    rest = {"pixel_hidden_size": 64, "spatial_conv_size": 2, "temporal_conv_size": 2, "moe_gate": "top2_fused"}
    flat = {**text, **lists, **rest, "model_type": "ernie4_5_moe_vl", "vision_config": tower}
    nested = ERNIE_VL | {"vision_config": {"depth": 2, "hidden_size": 64, "num_heads": 4, "intermediate_size": 256}}
    assert parts_of(flat) == parts_of(nested)


def test_experts_for_pictures_are_stored_and_not_active() -> None:
    counts = count_parameters(read_architecture(ERNIE_VL, source="config.json"))
    assert counts.by_part[Part.EXPERTS] == 3 * 8 * 3 * 512 * (96 + 48)
    without = {**ERNIE_VL, "text_config": {**ERNIE_VL["text_config"], "moe_intermediate_size": [96, 24]}}  # type: ignore[dict-item]
    assert counts.active == count_parameters(read_architecture(without, source="config.json")).active


def test_jetmoe_activates_experts_of_attention_too() -> None:
    counts = count_parameters(read_architecture(JETMOE, source="config.json"))
    routed = 4 * 6 * (2 * 256 * 128 + 3 * 256 * 640)
    assert counts.total - counts.active == routed


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        (DOTS1, {"moe_layer_freq": 2}, "moe_layer_freq is 2"),
        (
            ERNIE_VL["text_config"],
            {"model_type": "ernie4_5_vl_moe_text", "moe_num_experts": [8, 4]},
            "moe_num_experts is",
        ),
        (
            ERNIE_VL["text_config"],
            {"model_type": "ernie4_5_vl_moe_text", "moe_layer_end_index": 2},
            "moe_layer_end_index",
        ),
        (ERNIE_21B, {"moe_k": 65}, "moe_k is 65, more than the 64 experts"),
        (HUNYUAN_A13B, {"moe_topk": [8] * 31}, "moe_topk has 31 entries for 32 layers"),
        (HUNYUAN_A13B, {"moe_topk": [8] * 31 + [65]}, "moe_topk is 65"),
        (HUNYUAN_A13B, {"moe_intermediate_size": 1536}, "moe_intermediate_size differs from intermediate_size"),
        (HUNYUAN_A13B, {"moe_layer_num_skipped": 1}, "moe_layer_num_skipped"),
        (MINIMAX_M2, {"attn_type_list": [0] * 62}, "attn_type_list holds entries other than 1"),
        (MINIMAX_M2, {"attn_type_list": [1]}, "attn_type_list has 1 entries"),
        (MINIMAX_M2, {"shared_intermediate_size": 512}, "shared_intermediate_size is set"),
        (MINIMAX_M2, {"qk_norm_type": "per_head"}, "qk_norm_type is 'per_head'"),
        (DOTS1, {"sliding_window": 4096, "max_window_layers": None}, "max_window_layers is missing"),
        (DOTS1, {"n_shared_experts": None}, "n_shared_experts is missing"),
        (SMALL, {"model_type": "laguna", "num_attention_heads_per_layer": [8] * 7}, "7 entries for 8 layers"),
        (SMALL, {"model_type": "laguna", "num_attention_heads_per_layer": [3] * 8}, "does not divide 3 heads"),
        (SMALL, {"model_type": "mellum", "mlp_layer_types": ["other"] * 8}, "mlp_layer_types holds 'other'"),
    ],
)
def test_refusals(config: dict[str, Any], changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(config | changes, source="config.json")
