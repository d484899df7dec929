"""Qwen 1, 2, 2.5 and 3, dense and with experts; MiMo."""

from __future__ import annotations

from typing import Any

import pytest

from planner.counting import cache_layers
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

QWEN_1_8B = {
    "model_type": "qwen",
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "kv_channels": 128,
    "max_position_embeddings": 8192,
    "no_bias": True,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "seq_length": 8192,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
QWEN_25_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vocab_size": 152064,
}
QWEN2_57B = {
    "model_type": "qwen2_moe",
    "decoder_sparse_step": 1,
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "moe_intermediate_size": 2560,
    "num_attention_heads": 28,
    "num_experts": 64,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "shared_expert_intermediate_size": 20480,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_06B = {
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "max_window_layers": 28,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
QWEN3_30B = {
    "model_type": "qwen3_moe",
    "decoder_sparse_step": 1,
    "head_dim": 128,
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "mlp_only_layers": [],
    "moe_intermediate_size": 768,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
MIMO_7B = QWEN_25_7B | {
    "model_type": "mimo",
    "attention_bias": True,
    "head_dim": 128,
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_attention_heads": 32,
    "num_hidden_layers": 36,
    "num_key_value_heads": 8,
    "num_nextn_predict_layers": 1,
    "vocab_size": 151680,
}
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
}
SMALL_MOE = SMALL | {"moe_intermediate_size": 32, "num_experts": 6, "num_experts_per_tok": 2}
WINDOWS = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 3}
DENSE_SWITCHES: dict[str, Any] = {
    "tie_word_embeddings": [True],
    "head_dim": [24],
    "num_key_value_heads": [1, 4],
    "use_sliding_window": [True],
}
MOE_SWITCHES: dict[str, Any] = DENSE_SWITCHES | {
    "decoder_sparse_step": [2, 3],
    "mlp_only_layers": [[0, 3]],
    "num_experts": [4],
    "moe_intermediate_size": [40],
}

PINNED = (
    Pinned(
        name="Qwen/Qwen-1_8B",
        config=QWEN_1_8B,
        source="safetensors metadata of the published checkpoint: 1,836,828,672",
        total=1_836_828_672,
        parts={"embedding": 311_164_928, "lm_head": 311_164_928, "attention": 402_800_640, "mlp": 811_597_824},
        bias=147_456,
        kv_full=196_608,
        reference=False,
    ),
    Pinned(
        name="Qwen/Qwen2.5-7B-Instruct",
        config=QWEN_25_7B,
        source="safetensors metadata of the published checkpoint: 7,615,616,512",
        total=7_615_616_512,
        parts={"attention": 822_212_608, "mlp": 5_703_204_864, "norm": 204_288},
        bias=129_024,
        kv_full=57_344,
        kv_windowed=0,
    ),
    Pinned(
        name="Qwen/Qwen2.5-0.5B-Instruct",
        config=QWEN_25_7B
        | {"hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14, "num_hidden_layers": 24}
        | {"num_key_value_heads": 2, "tie_word_embeddings": True, "vocab_size": 151936},
        source="safetensors metadata of the published checkpoint: 494,032,768",
        total=494_032_768,
        decode_read=494_032_768,
        bias=27_648,
        kv_full=12_288,
    ),
    Pinned(
        name="Qwen/Qwen2-57B-A14B-Instruct",
        config=QWEN2_57B,
        source="safetensors metadata of the published checkpoint: 57,408,658,944",
        total=57_408_658_944,
        parts={"experts": 49_325_015_040, "shared_experts": 6_165_727_232, "router": 6_422_528, "mlp": 0},
        active=14_249_270_784,
        decode_read=13_704_732_160,
        bias=129_024,
        kv_full=57_344,
    ),
    Pinned(
        name="Qwen/Qwen3-0.6B",
        config=QWEN3_06B,
        source="safetensors metadata of the published base model's checkpoint: 596,049,920",
        total=596_049_920,
        parts={"attention": 176_160_768, "mlp": 264_241_152, "norm": 65_536, "lm_head": 0},
        bias=0,
        kv_full=114_688,
    ),
    Pinned(
        name="Qwen/Qwen3-30B-A3B",
        config=QWEN3_30B,
        source="safetensors metadata of the published checkpoint: 30,532,122,624",
        total=30_532_122_624,
        parts={"attention": 905_969_664, "experts": 28_991_029_248, "router": 12_582_912, "norm": 210_944},
        active=3_353_032_704,
        decode_read=3_041_867_776,
        kv_full=98_304,
    ),
    Pinned(
        name="XiaomiMiMo/MiMo-7B-Base",
        config=MIMO_7B,
        source="safetensors metadata of the published checkpoint: 7,833,409,536 with its MTP layer of 210,790,400",
        total=7_622_619_136,
        mtp=210_790_400,
        reference=False,
    ),
    Pinned(
        name="a small Qwen 2 with windows",
        config=SMALL | WINDOWS | {"model_type": "qwen2"},
        source="transformers 5.24.0 on the meta device",
        total=136_768,
        kv_full=3 * 128,
        kv_windowed=128,
        window=8,
        variants=DENSE_SWITCHES | {"layer_types": [["full_attention", "sliding_attention"] * 2]},
    ),
    Pinned(
        name="a small Qwen 2 MoE with windows",
        config=SMALL_MOE | WINDOWS | {"model_type": "qwen2_moe", "shared_expert_intermediate_size": 80},
        source="transformers 5.24.0 on the meta device",
        total=273_728,
        kv_full=2 * 128,
        kv_windowed=2 * 128,
        window=8,
        variants=MOE_SWITCHES | {"shared_expert_intermediate_size": [16], "qkv_bias": [False]},
    ),
    Pinned(
        name="a small Qwen 3 with windows",
        config=SMALL | WINDOWS | {"model_type": "qwen3"},
        source="transformers 5.24.0 on the meta device",
        total=481_344,
        kv_full=3 * 1024,
        kv_windowed=1024,
        variants=DENSE_SWITCHES | {"attention_bias": [True]},
    ),
    Pinned(
        name="a small Qwen 3 MoE",
        config=SMALL_MOE | {"model_type": "qwen3_moe", "head_dim": 24, "sliding_window": 8},
        source="transformers 5.24.0 on the meta device",
        total=236_288,
        kv_full=4 * 192,
        variants=MOE_SWITCHES | {"attention_bias": [True], "head_dim": [32, ...]},
    ),
)

test_counts = counts_test(PINNED)


def test_experts_and_shared_gate_carry_the_names_of_published_checkpoints() -> None:
    names = {w.name for w in read_architecture(QWEN2_57B, source="config.json").layers[0].blocks[1].weights}
    assert {"mlp.gate", "mlp.experts.*.gate_proj", "mlp.shared_expert.up_proj", "mlp.shared_expert_gate"} <= names


def test_a_window_that_is_off_does_not_cap() -> None:
    groups = cache_layers(read_architecture(QWEN_25_7B | {"sliding_window": 4096}, source="config.json"))
    assert [group.window for group in groups] == [None]


def test_sparse_prefill_of_a_long_context_model_is_said_not_to_be_modelled() -> None:
    dual = {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144}
    plain = read_architecture(QWEN_25_7B | {"dual_chunk_attention_config": dual}, source="config.json")
    assert plain.notes == ()
    sparse = QWEN_25_7B | {"dual_chunk_attention_config": dual | {"sparse_attention_enabled": True}}
    assert "sparse prefill" in read_architecture(sparse, source="config.json").notes[0]


def test_the_tower_of_qwen_vl_is_named_as_unread() -> None:
    visual = {"width": 1664, "layers": 48, "heads": 16, "output_dim": 4096}
    assert read_architecture(QWEN_1_8B | {"visual": visual}, source="c").unread == ("vision tower (visual)",)


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (QWEN_1_8B, {"intermediate_size": 11007}, "intermediate_size is 11,007; it is split into two halves"),
        (QWEN_25_7B, {"num_key_value_heads": None}, "num_key_value_heads is missing or null"),
        (QWEN_25_7B, {"num_key_value_heads": 3}, "does not divide the 28 attention heads"),
        (QWEN_25_7B, {"num_experts": 8}, "num_experts = 8 changes what the model is made of"),
        (QWEN_25_7B, {"layer_types": ["sliding_attention"] * 28}, "no sliding window is set"),
        (QWEN_25_7B, {"use_sliding_window": True, "max_window_layers": None}, "max_window_layers is missing"),
        (QWEN2_57B, {"use_sliding_window": True}, "sliding_window is missing and use_sliding_window is true"),
        (QWEN2_57B, {"num_experts_per_tok": 65}, "more than the 64 experts"),
        (QWEN3_06B, {"use_qk_norm": False}, "use_qk_norm is false"),
        (QWEN3_30B, {"use_qk_norm": False}, "use_qk_norm is false"),
        (QWEN3_30B, {"n_shared_experts": 1}, "n_shared_experts = 1 changes what the model is made of"),
    ],
)
def test_what_a_qwen_cannot_be_is_refused(base: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(base | change, source="config.json")
