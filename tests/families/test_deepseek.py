"""The DeepSeek line and what is built like it: latent attention, fine-grained experts, indexers, compressed keys."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Attention, LatentAttention, Part
from planner.counting import cache_layers, count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

REFERENCE = "transformers 5.24.0 on the meta device"

LATENT = {"kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}

V2_LITE = LATENT | {
    "model_type": "deepseek_v2",
    "hidden_size": 2048,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "q_lora_rank": None,
    "intermediate_size": 10944,
    "moe_intermediate_size": 1408,
    "n_routed_experts": 64,
    "num_experts_per_tok": 6,
    "n_shared_experts": 2,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "vocab_size": 102400,
    "max_position_embeddings": 163840,
}

R1 = LATENT | {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "q_lora_rank": 1536,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
    "max_position_embeddings": 163840,
}

SMALL = {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "q_lora_rank": 96,
    "kv_lora_rank": 64,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 48,
    "intermediate_size": 512,
    "moe_intermediate_size": 96,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "vocab_size": 1000,
}

V32 = R1 | {"model_type": "deepseek_v32", "index_topk": 2048, "index_head_dim": 128, "index_n_heads": 64}

GLM_5 = {
    "model_type": "glm_moe_dsa",
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "head_dim": 64,
    "q_lora_rank": 2048,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "intermediate_size": 12288,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 8,
    "n_shared_experts": 1,
    "first_k_dense_replace": 3,
    "index_topk": 2048,
    "index_head_dim": 128,
    "index_n_heads": 32,
    "num_nextn_predict_layers": 1,
    "vocab_size": 154880,
}
# Every fourth layer from the seventh on runs its indexer, as in GLM-5.2 and 5.3.
SHARED_INDEXERS = ["full" if layer < 3 or layer % 4 == 2 else "shared" for layer in range(78)]

SMALL_INDEXED = SMALL | {"index_topk": 64, "index_head_dim": 32, "index_n_heads": 4}

V4_FLASH = {
    "model_type": "deepseek_v4",
    "hidden_size": 4096,
    "num_hidden_layers": 43,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "q_lora_rank": 1024,
    "qk_rope_head_dim": 64,
    "o_groups": 8,
    "o_lora_rank": 1024,
    "sliding_window": 128,
    "compress_ratios": [0, 0, *[4, 128] * 20, 4, 0],
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 512,
    "hc_mult": 4,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "num_experts_per_tok": 6,
    "n_shared_experts": 1,
    "num_hash_layers": 3,
    "num_nextn_predict_layers": 1,
    "vocab_size": 129280,
}

SMALL_V4 = V4_FLASH | {
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "head_dim": 128,
    "q_lora_rank": 64,
    "qk_rope_head_dim": 32,
    "o_groups": 2,
    "o_lora_rank": 32,
    "compress_ratios": [0, 4, 128, 4, 0],
    "index_n_heads": 4,
    "index_head_dim": 32,
    "index_topk": 16,
    "moe_intermediate_size": 64,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "num_hash_layers": 1,
    "vocab_size": 1000,
}

MINICPM3 = {
    "model_type": "minicpm3",
    "hidden_size": 2560,
    "num_hidden_layers": 62,
    "num_attention_heads": 40,
    "num_key_value_heads": 40,
    "head_dim": 32,
    "q_lora_rank": 768,
    "kv_lora_rank": 256,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 32,
    "v_head_dim": 64,
    "intermediate_size": 6400,
    "vocab_size": 73448,
    "max_position_embeddings": 32768,
}

LONGCAT = LATENT | {
    "model_type": "longcat_flash",
    "hidden_size": 6144,
    "num_layers": 28,
    "num_attention_heads": 64,
    "q_lora_rank": 1536,
    "ffn_hidden_size": 12288,
    "expert_ffn_hidden_size": 2048,
    "n_routed_experts": 512,
    "zero_expert_num": 256,
    "moe_topk": 12,
    "num_nextn_predict_layers": 1,
    "vocab_size": 131072,
}

COMMON_VARIANTS: dict[str, list[Any]] = {
    "attention_bias": [True],
    "tie_word_embeddings": [True],
    "n_shared_experts": [2, 3],
    "n_routed_experts": [2, 16],
    "first_k_dense_replace": [0, 3, 4],
    "v_head_dim": [16],
    "vocab_size": [1001],
}

PINNED = (
    Pinned(
        name="deepseek-ai/deepseek-moe-16b-base",
        config={
            "model_type": "deepseek",
            "hidden_size": 2048,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 10944,
            "moe_intermediate_size": 1408,
            "n_routed_experts": 64,
            "num_experts_per_tok": 6,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "moe_layer_freq": 1,
            "vocab_size": 102400,
        },
        source="the published checkpoint's total as recalled: 16,375,728,128",
        total=16_375_728_128,
        kv_full=28 * 8192,
        reference=False,
    ),
    Pinned(
        name="deepseek-ai/DeepSeek-V2-Lite",
        config=V2_LITE,
        source="safetensors metadata of the published checkpoint: 15,706,484,224",
        total=15_706_484_224,
        parts={
            "embedding": 209_715_200,
            "lm_head": 209_715_200,
            "attention": 371_589_120,
            "mlp": 67_239_936,
            "experts": 14_394_851_328,
            "shared_experts": 449_839_104,
            "router": 3_407_872,
            "norm": 126_464,
        },
        active=2_661_150_208,
        decode_read=2_451_435_008,
        kv_full=31_104,
        buffers=0,
        variants={"q_lora_rank": [1536, ...]},
    ),
    Pinned(
        name="a small DeepSeek-V2",
        config=SMALL | {"model_type": "deepseek_v2"},
        source=REFERENCE,
        total=3_789_696,
        variants=COMMON_VARIANTS | {"q_lora_rank": [None, 32], "mlp_bias": [True]},
    ),
    Pinned(
        name="deepseek-ai/DeepSeek-R1",
        config=R1,
        source="safetensors metadata of the published checkpoint, less copies of embedding and head: 682,636,487,424",
        total=671_026_404_352,
        parts={
            "attention": 11_413_422_080,
            "mlp": 1_189_085_184,
            "experts": 653_908_770_816,
            "shared_experts": 2_554_331_136,
            "router": 106_430_464,
            "norm": 1_006_592,
        },
        active=37_552_282_624,
        decode_read=36_625_603_584,
        buffers=14_848,
        mtp=11_610_068_224,
        kv_full=70_272,
    ),
    Pinned(
        name="a small DeepSeek-V3",
        config=SMALL | {"model_type": "deepseek_v3"},
        source=REFERENCE,
        total=3_789_696,
        buffers=24,
        mtp=0,
        variants=COMMON_VARIANTS | {"q_lora_rank": [None, 32]},
    ),
    Pinned(
        name="deepseek-ai/DeepSeek-V3.2",
        config=V32,
        source=f"{REFERENCE}; MTP from the published total 685,355,329,792",
        total=671_877_929_216,
        parts={"attention": 12_264_931_328, "norm": 1_022_208},
        bias=7_808,
        buffers=14_848,
        mtp=11_624_027_648,
        kv_full=70_272,
    ),
    Pinned(
        name="a small DeepSeek-V3.2",
        config=SMALL_INDEXED | {"model_type": "deepseek_v32"},
        source=REFERENCE,
        total=3_875_968,
        variants=COMMON_VARIANTS
        | {
            "index_n_heads": [8],
            "index_head_dim": [64],
            "mlp_layer_types": [["sparse", "dense", "sparse", "dense"]],
            "num_experts": [8],
        },
    ),
    Pinned(
        name="zai-org/GLM-5",
        config=GLM_5,
        source="safetensors metadata of the published checkpoint: 753,864,139,008 with buffers and MTP",
        total=743_911_199_232,
        parts={"attention": 13_602_521_088, "router": 117_964_800, "norm": 1_184_256},
        decode_read=40_833_126_912,
        bias=9_984,
        buffers=19_200,
        mtp=9_952_920_576,
        kv_full=89_856,
    ),
    Pinned(
        name="zai-org/GLM-5.3",
        config=GLM_5 | {"indexer_types": SHARED_INDEXERS},
        source="safetensors metadata of the published checkpoint: 753,329,940,480 with buffers and MTP",
        total=743_377_000_704,
        parts={"attention": 13_068_337_152, "norm": 1_169_664},
        bias=2_688,
        buffers=19_200,
        mtp=9_952_920_576,
    ),
    Pinned(
        name="a small GLM-5",
        config=SMALL_INDEXED | {"model_type": "glm_moe_dsa"},
        source=REFERENCE,
        total=3_875_968,
        variants=COMMON_VARIANTS
        | {
            "indexer_types": [["full", "shared", "full", "shared"]],
            "index_topk_freq": [2, 3],
            "index_topk_pattern": ["FSSF", "FFFF"],
            "mlp_layer_types": [["sparse", "dense", "sparse", "dense"]],
            "num_experts": [16],
        },
    ),
    Pinned(
        name="deepseek-ai/DeepSeek-V4-Flash",
        config=V4_FLASH,
        source="the published total 290,944,616,402 with buffers and MTP",
        total=284_332_230_231,
        parts={
            "embedding": 529_530_880,
            "attention": 5_086_228_160,
            "experts": 277_025_390_592,
            "shared_experts": 1_082_130_432,
            "router": 45_088_768,
            "norm": 446_080,
            "other": 2 * 16_909_449 + 65_541,
        },
        active=13_799_622_231,
        decode_read=13_270_091_351,
        bias=1_418_240,
        buffers=2_337_280,
        mtp=290_944_616_402 - 284_332_230_231 - 2_337_280,
        kv_windowed=43 * 1024,
        window=128,
        kv_full=21 * 1024 // 4 + 20 * 1024 // 128,
    ),
    Pinned(
        name="a small DeepSeek-V4",
        config=SMALL_V4,
        source=REFERENCE,
        total=3_580_093,
        variants={
            "compress_ratios": [[0, 0, 0, 0], [128, 4, 128, 4, 0]],
            "o_groups": [4],
            "hc_mult": [2],
            "num_hash_layers": [0, 4],
            "index_n_heads": [8],
            "index_head_dim": [64],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="openbmb/MiniCPM3-4B",
        config=MINICPM3,
        source=REFERENCE,
        total=4_073_875_968,
        parts={"attention": 838_041_600, "mlp": 3_047_424_000, "norm": 383_488},
        kv_full=35_712,
        variants={
            "tie_word_embeddings": [False],
            "q_lora_rank": [None, ...],
            "v_head_dim": [..., 32],
            "attention_bias": [True],
            "mlp_bias": [True],
        },
    ),
    Pinned(
        name="meituan-longcat/LongCat-Flash-Chat",
        config=LONGCAT,
        source="safetensors metadata of the published checkpoint, less the copy of the embedding: 561,057,573,888",
        total=560_664_958_976,
        buffers=21_504,
        mtp=392_593_408,
        kv_full=56 * 1152,
        reference=False,
    ),
    Pinned(
        name="a LongCat-Flash without zero experts",
        config=LONGCAT | {"zero_expert_num": 0, "num_layers": 2, "n_routed_experts": 16, "vocab_size": 1000},
        source=REFERENCE,
        total=2_488_760_320,
        variants={"attention_bias": [True], "router_bias": [True], "tie_word_embeddings": [True]},
    ),
)

test_counts = counts_test(PINNED)


def read(config: dict[str, Any]) -> Any:
    return read_architecture(config, source="config.json")


def test_the_published_total_of_deepseek_v4_is_parameters_buffers_and_the_mtp_module() -> None:
    counts = count_parameters(read(V4_FLASH))
    assert counts.total + counts.buffers + counts.mtp == 290_944_616_402


def test_a_compressed_row_costs_its_bytes_and_its_arithmetic_once_per_ratio_of_tokens() -> None:
    window, sparse = (block for block in read(V4_FLASH).layers[2].blocks[:2])
    heavy = read(V4_FLASH).layers[3].blocks[1]
    assert isinstance(window, Attention)
    assert (window.kv_heads * window.key_dim, window.value_dim) == (512, 0)
    assert isinstance(sparse, LatentAttention)
    assert sparse.latent * 4 == 512
    assert sparse.selected == 512 * 4
    assert sparse.indexer_dim * 4 == 128
    assert sparse.indexer_heads == 64
    assert isinstance(heavy, LatentAttention)
    assert heavy.latent * 128 == 512
    assert heavy.selected is None
    assert len(read(V4_FLASH).layers[0].blocks) == 2


def test_the_checkpoint_of_deepseek_v4_names_its_tensors_without_a_model_prefix() -> None:
    architecture = read(V4_FLASH | {"model_type": "deepseek_ref"})
    assert architecture.layer_names == "layers"
    assert architecture.embedding.name == "embed"
    assert {weight.name for weight in architecture.components[0].weights} >= {"mtp.0.e_proj", "mtp.0.attn.wq_a"}


def test_a_shared_layer_attends_selected_tokens_without_an_indexer_of_its_own() -> None:
    full, shared = (read(GLM_5 | {"indexer_types": SHARED_INDEXERS}).layers[index].blocks[0] for index in (2, 3))
    assert isinstance(full, LatentAttention)
    assert (full.selected, full.indexer_dim) == (2048, 128)
    assert isinstance(shared, LatentAttention)
    assert (shared.selected, shared.indexer_dim) == (2048, 0)
    indexers = list(cache_layers(read(GLM_5 | {"indexer_types": SHARED_INDEXERS})))
    assert sum(group.layers * group.indexer_elements for group in indexers) == 21 * 128


def test_a_deepseek_v2_without_latent_attention_caches_all_heads() -> None:
    no_latent = dict.fromkeys(("kv_lora_rank", "q_lora_rank")) | dict.fromkeys(
        ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), 0
    )
    block = read(V2_LITE | no_latent | {"use_mla": False}).layers[0].blocks[0]
    assert isinstance(block, Attention)
    assert (block.kv_heads, block.key_dim) == (16, 128)


def test_moe_layer_freq_is_a_step_or_a_list() -> None:
    every_other = read(SMALL | {"model_type": "deepseek_v3", "moe_layer_freq": 2})
    listed = read(SMALL | {"model_type": "deepseek_v3", "moe_layer_freq": [0, 0, 1, 0]})
    assert every_other.layers == listed.layers
    assert count_parameters(listed).by_part[Part.ROUTER] == 8 * 256


def test_zero_experts_are_routed_to_and_not_stored() -> None:
    architecture = read(LONGCAT)
    moe = architecture.layers[0].blocks[1]
    assert (moe.experts, moe.active) == (512, 8)
    assert "256 of the router's choices are zero experts" in architecture.notes[0]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (R1 | {"num_experts_per_tok": 300}, "num_experts_per_tok exceeds the 256 experts"),
        (R1 | {"first_k_dense_replace": 62}, "first_k_dense_replace exceeds the 61 layers"),
        (R1 | {"moe_layer_freq": [1, 1]}, "moe_layer_freq has 2 entries for 61 layers"),
        (R1 | {"kv_lora_rank": None}, "kv_lora_rank is missing"),
        (R1 | {"mlp_bias": True}, "mlp_bias = True changes"),
        (V2_LITE | {"kv_lora_rank": None}, "kv_lora_rank is missing or 0, and latent attention needs it"),
        (
            V2_LITE | {"use_mla": False, "num_key_value_heads": 3},
            "num_key_value_heads is 3 and does not divide the 16 heads",
        ),
        (V32 | {"layer_types": ["full_attention"] * 61}, "layer_types names 'full_attention'"),
        (V32 | {"mlp_layer_types": ["dense"]}, "mlp_layer_types has 1 entries for 61 layers"),
        (GLM_5 | {"indexer_types": ["shared"] * 78}, "indexer_types starts with a shared layer"),
        (GLM_5 | {"index_topk_pattern": "FX" * 39}, "index_topk_pattern names 'X'"),
        (V4_FLASH | {"compress_ratios": [0, 8]}, "compress_ratios holds 8"),
        (V4_FLASH | {"compress_ratios": [0, 4]}, "compress_ratios has 2 entries for 43 layers"),
        (V4_FLASH | {"compress_ratios": ...}, "compress_ratios is missing, and so is layer_types"),
        (V4_FLASH | {"compress_ratios": [4] * 44}, "gives an MTP module compressed keys"),
        (V4_FLASH | {"num_key_value_heads": 8}, "num_key_value_heads is 8"),
        (V4_FLASH | {"attention_bias": True}, "attention_bias is true"),
        (V4_FLASH | {"n_shared_experts": 2}, "n_shared_experts is 2"),
        (V4_FLASH | {"num_experts_per_tok": 999}, "num_experts_per_tok exceeds"),
        (V4_FLASH | {"o_groups": 7}, "o_groups is 7 and does not divide"),
        (V4_FLASH | {"compress_rates": {"compressed_sparse_attention": 3}}, "compress_rates is 3"),
        (V4_FLASH | {"mlp_layer_types": ["dense"] * 43}, "mlp_layer_types names 'dense'"),
        (LONGCAT | {"moe_topk": 800}, "moe_topk exceeds the 768 experts"),
        (LONGCAT | {"zero_expert_type": "copy"}, "zero_expert_type is 'copy'"),
        (LONGCAT | {"num_hidden_layers": 30}, "num_hidden_layers is 30 beside 28 layers"),
    ],
)
def test_what_cannot_be_honoured_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read({key: value for key, value in config.items() if value is not ...})
