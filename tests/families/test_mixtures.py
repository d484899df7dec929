"""Mixtures of experts with dialects of their own, and Nemotron-NAS, whose layers all differ."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Attention, Mlp, Part
from planner.counting import cache_layers, count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

REFERENCE = "transformers 5.24.0 on the meta device"

GPT_OSS_20B = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_hidden_layers": 24,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "attention_bias": True,
    "intermediate_size": 2880,
    "num_local_experts": 32,
    "num_experts_per_tok": 4,
    "experts_per_token": 4,
    "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "vocab_size": 201088,
    "max_position_embeddings": 131072,
}

SMALL_GPT_OSS = GPT_OSS_20B | {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 64,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "layer_types": ["sliding_attention", "full_attention"],
    "vocab_size": 1000,
    "pad_token_id": 0,
}

DBRX = {
    "model_type": "dbrx",
    "d_model": 6144,
    "n_heads": 48,
    "n_layers": 40,
    "max_seq_len": 32768,
    "vocab_size": 100352,
    "attn_config": {"kv_n_heads": 8, "clip_qkv": 8, "rope_theta": 500000},
    "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
}

LLAMA_4_MAVERICK_TEXT = {
    "model_type": "llama4_text",
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "attention_chunk_size": 8192,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
    "num_local_experts": 128,
    "num_experts_per_tok": 1,
    "interleave_moe_layer_step": 2,
    "use_qk_norm": False,
    "vocab_size": 202048,
    "max_position_embeddings": 1048576,
}

SMALL_LLAMA_4 = LLAMA_4_MAVERICK_TEXT | {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "intermediate_size": 64,
    "intermediate_size_mlp": 96,
    "num_local_experts": 4,
    "vocab_size": 1000,
    "pad_token_id": 0,
}

# The published file has no model_type inside its text_config; the wrapper names this one.
MINIMAX_M3_TEXT = {
    "model_type": "minimax_m3_vl_text",
    "hidden_size": 6144,
    "num_hidden_layers": 60,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "sparse_attention_config": {
        "sparse_attention_freq": [0] * 3 + [1] * 57,
        "sparse_disable_index_value": [0] * 3 + [1] * 57,
        "sparse_num_index_heads": 4,
        "sparse_index_dim": 128,
        "sparse_block_size": 128,
        "sparse_topk_blocks": 16,
        "sparse_local_block": 1,
        "use_sparse_attention": True,
    },
    "intermediate_size": 3072,
    "dense_intermediate_size": 12288,
    "shared_intermediate_size": 3072,
    "n_shared_experts": 1,
    "num_local_experts": 128,
    "num_experts_per_tok": 4,
    "moe_layer_freq": [0] * 3 + [1] * 57,
    "num_mtp_modules": 1,
    "use_qk_norm": True,
    "qk_norm_type": "per_head",
    "use_routing_bias": True,
    "vocab_size": 200064,
}

SMALL_M3 = {key: value for key, value in MINIMAX_M3_TEXT.items() if key != "sparse_attention_config"} | {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
    "index_n_heads": 2,
    "index_head_dim": 16,
    "index_block_size": 32,
    "index_topk_blocks": 4,
    "intermediate_size": 48,
    "dense_intermediate_size": 96,
    "shared_intermediate_size": 80,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_layer_freq": [0, 1, 1],
    "num_mtp_modules": 0,
    "vocab_size": 1000,
    "pad_token_id": 0,
}

# Keys as in the published Step-3.7-Flash, which has lost attention_other_setting.
STEP_TEXT = {
    "model_type": "step3p5",
    "hidden_size": 4096,
    "num_hidden_layers": 45,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "sliding_window": 512,
    "layer_types": ["sliding_attention" if layer % 4 else "full_attention" for layer in range(45)],
    "intermediate_size": 11264,
    "moe_intermediate_size": 1280,
    "num_experts": 288,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "share_expert_dim": 1280,
    "use_moe_router_bias": True,
    "first_k_dense_replace": 3,
    "vocab_size": 128896,
    "max_position_embeddings": 65536,
}

SMALL_STEP = {key: value for key, value in STEP_TEXT.items() if key not in ("num_experts", "first_k_dense_replace")} | {
    "hidden_size": 128,
    "num_hidden_layers": 5,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "layer_types": ["full_attention"] + ["sliding_attention"] * 4,
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 6},
    "intermediate_size": 96,
    "moe_intermediate_size": 48,
    "moe_num_experts": 8,
    "moe_layers_enum": "1,3,4",
    "num_experts_per_tok": 2,
    "share_expert_dim": 64,
    "vocab_size": 1000,
    "pad_token_id": 0,
}

SMALL_STEP_VISION = {
    "model_type": "step3p7",
    "text_config": SMALL_STEP,
    "vision_config": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 28},
}

MIMO = {
    "model_type": "mimo_v2_flash",
    "hidden_size": 4096,
    "num_hidden_layers": 48,
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "head_dim": 192,
    "v_head_dim": 128,
    "swa_num_attention_heads": 64,
    "swa_num_key_value_heads": 8,
    "swa_head_dim": 192,
    "swa_v_head_dim": 128,
    "sliding_window": 128,
    "intermediate_size": 16384,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": None,
    "vocab_size": 152576,
}


def nas_block(multiplier: float, group: int | None = 8) -> dict[str, Any]:
    return {
        "attention": {"n_heads_in_group": group, "no_op": group is None, "replace_with_linear": False},
        "ffn": {"ffn_mult": multiplier, "no_op": False, "replace_with_linear": False},
    }


FULL_BLOCK = nas_block(5.25)
# The multipliers of the blocks without attention, from 42 to 70 but for 52.
THIN = [1.3125, 2.625, 2.625, 1.3125, 5.25, 1.3125, 2.625, 1.3125, 1.3125, 1.3125]
THINNER = [1.3125, 1.0, 1.0, 1.3125, 1.0, 1.0, 1.0, 1.3125, 1.3125, 0.5, 0.5, 1.0, 1.0, 0.5, 0.5, 1.0, 0.5, 0.5]
NEMOTRON_49B = {
    "model_type": "nemotron-nas",
    "hidden_size": 8192,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": None,
    "intermediate_size": None,
    "block_configs": [
        nas_block(2.625),
        *[FULL_BLOCK] * 5,
        *[nas_block(2.625, None)] * 2,
        *[FULL_BLOCK] * 3,
        nas_block(3.28125, None),
        *[FULL_BLOCK] * 30,
        *[nas_block(multiplier, None) for multiplier in THIN],
        FULL_BLOCK,
        *[nas_block(multiplier, None) for multiplier in THINNER],
        *[FULL_BLOCK] * 9,
    ],
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}

PINNED = (
    Pinned(
        name="openai/gpt-oss-20b",
        config=GPT_OSS_20B,
        source="safetensors metadata of the published checkpoint: 20,914,757,184",
        total=20_914_757_184,
        parts={
            "attention": 637_203_456,
            "experts": 19_116_933_120,
            "router": 2_212_608,
            "norm": 141_120,
        },
        active=4_187_440_704,
        decode_read=3_608_307_264,
        bias=6_828_288,
        kv_full=24_576,
        kv_windowed=24_576,
        window=128,
    ),
    Pinned(
        name="a small gpt-oss",
        config=SMALL_GPT_OSS,
        source=REFERENCE,
        total=621_208,
        variants={
            "attention_bias": [False],
            "head_dim": [16],
            "num_key_value_heads": [8],
            "num_local_experts": [8],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="databricks/dbrx-instruct",
        config=DBRX,
        source=REFERENCE,
        total=131_596_523_520,
        parts={"attention": 3_523_215_360, "experts": 126_835_752_960, "router": 3_932_160, "norm": 497_664},
        active=36_469_708_800,
        kv_full=163_840,
        variants={
            "n_layers": [2],
            "attn_config.kv_n_heads": [1, 48],
            "ffn_config.moe_num_experts": [8],
            "ffn_config.ffn_hidden_size": [1024],
        },
    ),
    Pinned(
        name="meta-llama/Llama-4-Maverick-17B-128E, text",
        config=LLAMA_4_MAVERICK_TEXT,
        source="safetensors metadata of the published checkpoint, less the tower: 400,711,848,960",
        total=401_583_781_376 - 871_932_416,
        parts={
            "attention": 3_019_898_880,
            "mlp": 6_039_797_760,
            "experts": 386_547_056_640,
            "shared_experts": 3_019_898_880,
            "router": 15_728_640,
            "norm": 496_640,
        },
        active=17_184_691_200,
        kv_full=49_152,
        kv_windowed=147_456,
        window=8192,
    ),
    Pinned(
        name="a small Llama 4",
        config=SMALL_LLAMA_4,
        source=REFERENCE,
        total=905_344,
        variants={
            "attention_bias": [True],
            "interleave_moe_layer_step": [1, 3],
            "moe_layers": [[0, 3]],
            "use_qk_norm": [True],
            "num_key_value_heads": [8],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="MiniMaxAI/MiniMax-M3, text",
        config=MINIMAX_M3_TEXT,
        source=REFERENCE,
        total=427_040_132_864 - 865_567_232,
        parts={
            "attention": 6_641_418_240,
            "mlp": 679_477_248,
            "experts": 413_122_166_784,
            "shared_experts": 3_227_516_928,
            "router": 44_826_624,
            "norm": 773_376,
        },
        buffers=7_296,
        kv_full=60 * 2048,
    ),
    Pinned(
        name="a small MiniMax-M3",
        config=SMALL_M3,
        source=REFERENCE,
        total=761_984,
        variants={
            "layer_types": [["full_attention"] * 3, ...],
            "index_n_heads": [4],
            "index_head_dim": [32],
            "moe_layer_freq": [[1, 0, 1], ...],
            "shared_intermediate_size": [48],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="stepfun-ai/Step-3.7-Flash, text, as the published file describes it",
        config=STEP_TEXT,
        source=f"{REFERENCE}, less the tower",
        total=197_825_511_424 - 1_981_014_784,
        parts={"attention": 3_409_182_720, "mlp": 415_236_096, "router": 49_545_216, "norm": 384_256},
        buffers=12_096,
        kv_full=49_152,
        kv_windowed=135_168,
        window=512,
        reference=False,
    ),
    Pinned(
        name="stepfun-ai/Step-3.7-Flash, text, with the heads of the published model",
        config=STEP_TEXT
        | {
            "layer_types": [*STEP_TEXT["layer_types"], *["sliding_attention"] * 3],  # type: ignore[misc]
            "num_nextn_predict_layers": 3,
            "attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128},
        },
        source="safetensors metadata of the published FP8 checkpoint: 201,376,928,320, less the tower 1,981,014,784, "
        "12,096 buffers, 11,612,160 scales of the experts and 3 copies of the head, 527,958,016 each",
        total=201_376_928_320 - 1_981_014_784 - 12_096 - 11_612_160 - 3 * 527_958_016 - 3 * 281_432_320,
        mtp=3 * 281_432_320,
        reference=False,
    ),
    Pinned(
        name="a small Step 3.7",
        config=SMALL_STEP_VISION,
        source=REFERENCE,
        total=1_735_722,
        variants={
            "text_config.attention_bias": [True],
            "text_config.mlp_bias": [True],
            "text_config.attention_other_setting": [..., {"num_attention_heads": 4}],
            "text_config.num_sliding_attention_heads": [8],
            "text_config.moe_layers_enum": ["0", [2, 3], ...],
            "text_config.mlp_layer_types": [["sparse"] * 5],
            "text_config.layer_types": [...],
            "text_config.share_expert_dim": [32],
            "vision_config": [{"width": 32, "layers": 3, "heads": 4}, {"mlp_ratio": 2.0, "image_size": 56}],
            "projector_bias": [True],
        },
    ),
    Pinned(
        name="XiaomiMiMo/MiMo-V2-Flash",
        config=MIMO,
        source=REFERENCE,
        total=308_778_768_832,
        kv_full=9 * 2_560,
        kv_windowed=39 * 5_120,
        window=128,
        variants={
            "num_hidden_layers": [7],
            "attention_bias": [True],
            "n_routed_experts": [16],
            "head_dim": [192],
            "tie_word_embeddings": [True],
            "mlp_layer_types": [["sparse"] * 24 + ["dense"] * 24],
            "layer_types": [["sliding_attention"] * 48, ["full_attention"] * 48],
        },
    ),
    Pinned(
        name="nvidia/Llama-3_3-Nemotron-Super-49B-v1",
        config=NEMOTRON_49B,
        source="safetensors metadata of the published checkpoint: 49,867,145,216",
        total=49_867_145_216,
        parts={"attention": 7_398_752_256, "mlp": 40_365_981_696, "norm": 1_064_960},
        decode_read=48_816_472_064,
        kv_full=200_704,
        reference=False,
    ),
)

test_counts = counts_test(PINNED)


def read(config: dict[str, Any]) -> Any:
    return read_architecture({key: value for key, value in config.items() if value is not ...}, source="config.json")


def test_gpt_oss_alternates_from_a_windowed_layer_where_no_list_is_given() -> None:
    layers = read(GPT_OSS_20B | {"layer_types": ...}).layers
    assert [layer.blocks[0].window for layer in layers[:3]] == [128, None, 128]


def test_llama_4_attends_in_chunks_but_for_the_layers_without_positions() -> None:
    chunks = [layer.blocks[0].chunk for layer in read(LLAMA_4_MAVERICK_TEXT).layers[:4]]
    assert chunks == [8192, 8192, 8192, None]
    assert {group.kind for group in cache_layers(read(LLAMA_4_MAVERICK_TEXT | {"attention_chunk_size": None}))} == {
        "full attention"
    }


def test_minimax_m3_attends_what_its_indexer_picks_and_names_what_is_left_out() -> None:
    architecture = read(MINIMAX_M3_TEXT)
    sparse = architecture.layers[-1].blocks[0]
    assert isinstance(sparse, Attention)
    assert (sparse.selected, sparse.indexer_dim, sparse.indexer_heads) == (16 * 128, 128, 4)
    assert architecture.layers[0].blocks[0].selected is None
    assert ["num_mtp_modules = 1" in text for text in architecture.unread] == [True]


def test_step_reports_the_heads_it_had_to_assume_and_modules_it_cannot_know() -> None:
    architecture = read(STEP_TEXT | {"num_nextn_predict_layers": 3})
    assert any("num_sliding_attention_heads = 64" in text and "have 96" in text for text in architecture.assumed)
    assert architecture.components == ()
    assert "MTP modules" in architecture.unread[0]


def test_a_flat_step_3_7_has_the_tower_of_its_class() -> None:
    counts = count_parameters(read(STEP_TEXT | {"model_type": "step3p7"}))
    assert (counts.total, counts.by_part[Part.VISION]) == (197_825_511_424, 1_981_014_784)


def test_a_nas_layer_may_hold_one_block_or_a_matrix_in_the_place_of_one() -> None:
    linear = {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}}
    config = NEMOTRON_49B | {"num_hidden_layers": 2, "block_configs": [linear, nas_block(1.0, None)]}
    replaced, without_attention = read(config).layers
    assert isinstance(replaced.blocks[0], Mlp)
    assert replaced.blocks[0].weights[0].shape == (8192, 8192)
    assert [type(block) for block in without_attention.blocks] == [Mlp]
    assert len(without_attention.weights) == 1


def test_mimo_has_sinks_in_windowed_layers_only() -> None:
    full, windowed = (layer.blocks[0] for layer in read(MIMO).layers[:2])
    assert isinstance(full, Attention)
    assert full.kv_heads == 4
    assert full.window is None
    assert isinstance(windowed, Attention)
    assert windowed.kv_heads == 8
    assert [weight.name for weight in windowed.weights if "sink" in weight.name] == ["self_attn.attention_sink_bias"]
    assert not any("sink" in weight.name for weight in full.weights)
    assert read(MIMO | {"sliding_window_size": 128}).layers[1].blocks[0].window == 129


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GPT_OSS_20B | {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 24 layers"),
        (GPT_OSS_20B | {"layer_types": ["mamba"] * 24}, "layer_types names 'mamba'"),
        (GPT_OSS_20B | {"num_experts_per_tok": 33}, "num_experts_per_tok exceeds the 32 experts"),
        (GPT_OSS_20B | {"num_key_value_heads": 7}, "num_key_value_heads is 7 and does not divide"),
        (DBRX | {"tie_word_embeddings": True}, "tie_word_embeddings is true"),
        (DBRX | {"attn_config": {}}, "attn_config.kv_n_heads is missing"),
        (DBRX | {"attn_config": {"kv_n_heads": 7}}, "attn_config.kv_n_heads is 7"),
        (DBRX | {"ffn_config": DBRX["ffn_config"] | {"moe_top_k": 17}}, "moe_top_k exceeds"),  # type: ignore[operator]
        (LLAMA_4_MAVERICK_TEXT | {"moe_layers": [48]}, "moe_layers names layer 48"),
        (LLAMA_4_MAVERICK_TEXT | {"no_rope_layers": [1]}, "no_rope_layers has 1 entries"),
        (LLAMA_4_MAVERICK_TEXT | {"layer_types": ["full_attention"]}, "layer_types has 1 entries"),
        (LLAMA_4_MAVERICK_TEXT | {"layer_types": ["mamba"] * 48}, "layer_types names 'mamba'"),
        (LLAMA_4_MAVERICK_TEXT | {"num_experts_per_tok": 129}, "num_experts_per_tok exceeds"),
        (LLAMA_4_MAVERICK_TEXT | {"num_key_value_heads": 7}, "num_key_value_heads is 7"),
        (MINIMAX_M3_TEXT | {"attention_output_gate": True}, "attention_output_gate is True"),
        (MINIMAX_M3_TEXT | {"qk_norm_type": "full"}, "qk_norm_type is 'full'"),
        (MINIMAX_M3_TEXT | {"dense_intermediate_size": ...}, "dense_intermediate_size is missing"),
        (
            MINIMAX_M3_TEXT | {"sparse_attention_config": {"use_sparse_attention": False}},
            "use_sparse_attention is false",
        ),
        (
            MINIMAX_M3_TEXT | {"sparse_attention_config": {"sparse_attention_freq": [1] * 60}},
            "sparse_num_index_heads is missing, and so is index_n_heads",
        ),
        (
            MINIMAX_M3_TEXT
            | {"sparse_attention_config": {"sparse_attention_freq": [1], "sparse_disable_index_value": [0]}},
            "sparse_disable_index_value leaves values",
        ),
        (MINIMAX_M3_TEXT | {"num_key_value_heads": 7}, "num_key_value_heads is 7"),
        (MINIMAX_M3_TEXT | {"num_experts_per_tok": 129}, "num_experts_per_tok exceeds"),
        (STEP_TEXT | {"sliding_window": None}, "sliding_window is missing or null"),
        (STEP_TEXT | {"use_head_wise_attn_gate": False}, "use_head_wise_attn_gate is false"),
        (STEP_TEXT | {"n_shared_experts": 2}, "n_shared_experts is 2"),
        (STEP_TEXT | {"moe_layers_enum": "3,x"}, "moe_layers_enum is '3,x'"),
        (STEP_TEXT | {"num_key_value_heads": 7}, "num_key_value_heads is 7"),
        (STEP_TEXT | {"num_experts_per_tok": 289}, "num_experts_per_tok exceeds"),
        (
            STEP_TEXT | {"attention_other_setting": {"num_attention_heads": 96, "num_attention_groups": 4}},
            "attention_other_setting.num_attention_groups is 4",
        ),
        (MIMO | {"sliding_window": None}, "sliding_window is missing"),
        (MIMO | {"n_shared_experts": 1}, "n_shared_experts is 1"),
        (MIMO | {"num_experts_per_tok": 257}, "num_experts_per_tok exceeds"),
        (MIMO | {"swa_num_key_value_heads": 7}, "num_key_value_heads is 7 in a layer of 64 heads"),
        (MIMO | {"hybrid_layer_pattern": [0, 1]}, "layer_types has 2 entries for 48 layers"),
        (MIMO | {"moe_layer_freq": [0, 1]}, "mlp_layer_types has 2 entries for 48 layers"),
        (NEMOTRON_49B | {"num_hidden_layers": 2}, "block_configs has 80 entries for 2 layers"),
        (NEMOTRON_49B | {"num_hidden_layers": 1, "block_configs": [{"ffn": {"no_op": True}}]}, "n_heads_in_group"),
        (
            NEMOTRON_49B | {"num_hidden_layers": 1, "block_configs": [{"attention": {"no_op": True}}]},
            r"block_configs\[0\].ffn.ffn_mult is missing",
        ),
        (NEMOTRON_49B | {"num_hidden_layers": 1, "block_configs": [nas_block(1.0, 7)]}, "n_heads_in_group is 7"),
        (
            NEMOTRON_49B
            | {
                "num_hidden_layers": 1,
                "block_configs": [{"attention": {"n_heads_in_group": 8, "num_sink_tokens": 4, "window_length": 64}}],
            },
            "num_sink_tokens is set",
        ),
        (
            NEMOTRON_49B
            | {
                "num_hidden_layers": 1,
                "attention_bias": True,
                "block_configs": [{"attention": {"replace_with_linear": True}}],
            },
            "replaces a block by a matrix",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read(config)
