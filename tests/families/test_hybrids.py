"""Attention in some layers, a constant state in the others: Qwen3-Next, Qwen 3.5, LFM2, MiniMax-Text-01."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Architecture, Attention, StateSpace, layer_weights
from planner.counting import cache_layers, count_parameters, state_elements
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

META = "transformers 5.24.0 on the meta device"
FULL, RECURRENT, CONVOLUTION = "full_attention", "linear_attention", "conv"

DELTA: dict[str, Any] = {
    "linear_conv_kernel_dim": 4,
    "linear_key_head_dim": 128,
    "linear_num_key_heads": 16,
    "linear_num_value_heads": 32,
    "linear_value_head_dim": 128,
}
QWEN3_NEXT: dict[str, Any] = DELTA | {
    "model_type": "qwen3_next",
    "decoder_sparse_step": 1,
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_size": 2048,
    "intermediate_size": 5120,
    "max_position_embeddings": 262144,
    "mlp_only_layers": [],
    "moe_intermediate_size": 512,
    "num_attention_heads": 16,
    "num_experts": 512,
    "num_experts_per_tok": 10,
    "num_hidden_layers": 48,
    "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512,
    "tie_word_embeddings": False,
    "vocab_size": 151936,
}
QWEN35_TEXT: dict[str, Any] = DELTA | {
    "model_type": "qwen3_5_text",
    "attention_bias": False,
    "attn_output_gate": True,
    "head_dim": 256,
    "hidden_size": 5120,
    "intermediate_size": 17408,
    "layer_types": [RECURRENT, RECURRENT, RECURRENT, FULL] * 16,
    "linear_num_value_heads": 48,
    "mamba_ssm_dtype": "float32",
    "max_position_embeddings": 262144,
    "mtp_num_hidden_layers": 1,
    "mtp_use_dedicated_embeddings": False,
    "num_attention_heads": 24,
    "num_hidden_layers": 64,
    "num_key_value_heads": 4,
    "vocab_size": 248320,
}
QWEN35_MOE_TEXT: dict[str, Any] = DELTA | {
    "model_type": "qwen3_5_moe_text",
    "full_attention_interval": 4,
    "head_dim": 256,
    "hidden_size": 2048,
    "max_position_embeddings": 262144,
    "moe_intermediate_size": 512,
    "mtp_num_hidden_layers": 1,
    "num_attention_heads": 16,
    "num_experts": 256,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 40,
    "num_key_value_heads": 2,
    "shared_expert_intermediate_size": 512,
    "vocab_size": 248320,
}
TOWER: dict[str, Any] = {
    "deepstack_visual_indexes": [],
    "depth": 27,
    "hidden_size": 1152,
    "in_channels": 3,
    "intermediate_size": 4304,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
QWEN35: dict[str, Any] = {
    "model_type": "qwen3_5",
    "text_config": QWEN35_TEXT,
    "tie_word_embeddings": False,
    "vision_config": TOWER | {"out_hidden_size": 5120},
}
QWEN35_MOE: dict[str, Any] = {
    "model_type": "qwen3_5_moe",
    "text_config": QWEN35_MOE_TEXT,
    "tie_word_embeddings": False,
    "vision_config": TOWER | {"out_hidden_size": 2048},
}
QWEN35_397B: dict[str, Any] = {
    "model_type": "qwen3_5_moe",
    "text_config": QWEN35_MOE_TEXT
    | {
        "hidden_size": 4096,
        "linear_num_value_heads": 64,
        "moe_intermediate_size": 1024,
        "num_attention_heads": 32,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "num_hidden_layers": 60,
        "shared_expert_intermediate_size": 1024,
    },
    "tie_word_embeddings": False,
    "vision_config": TOWER | {"out_hidden_size": 4096},
}
LFM2: dict[str, Any] = {
    "model_type": "lfm2",
    "block_auto_adjust_ff_dim": True,
    "block_ffn_dim_multiplier": 1.0,
    "block_multiple_of": 256,
    "conv_L_cache": 3,
    "conv_bias": False,
    "hidden_size": 2048,
    "intermediate_size": 12288,
    "layer_types": [FULL if layer in (2, 5, 8, 10, 12, 14) else CONVOLUTION for layer in range(16)],
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "vocab_size": 65536,
}
LFM2_MOE: dict[str, Any] = {
    "model_type": "lfm2_moe",
    "conv_L_cache": 3,
    "conv_bias": False,
    "hidden_size": 2048,
    "intermediate_size": 7168,
    "layer_types": [FULL if layer in (2, 6, 10, 14, 18, 21) else CONVOLUTION for layer in range(24)],
    "max_position_embeddings": 128000,
    "moe_intermediate_size": 1792,
    "num_attention_heads": 32,
    "num_dense_layers": 2,
    "num_experts": 32,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 24,
    "num_key_value_heads": 8,
    "use_expert_bias": True,
    "vocab_size": 65536,
}
MINIMAX: dict[str, Any] = {
    "model_type": "minimax",
    "head_dim": 128,
    "hidden_size": 6144,
    "intermediate_size": 9216,
    "layer_types": ([RECURRENT] * 7 + [FULL]) * 10,
    "linear_attn_alpha_factor": 3.5565588200778455,
    "linear_attn_beta_factor": 1.0,
    "max_position_embeddings": 10240000,
    "num_attention_heads": 64,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 80,
    "num_key_value_heads": 8,
    "num_local_experts": 32,
    "tie_word_embeddings": False,
    "vocab_size": 200064,
}
MINIMAX_FIRST: dict[str, Any] = {
    **{key: value for key, value in MINIMAX.items() if key != "layer_types" and "factor" not in key},
    "model_type": "minimax_text_01",
    "attn_type_list": ([0] * 7 + [1]) * 10,
    "layernorm_full_attention_alpha": 3.5565588200778455,
    "layernorm_linear_attention_alpha": 3.5565588200778455,
    "layernorm_linear_attention_beta": 1.0,
    "layernorm_mlp_beta": 1.0,
    "postnorm": True,
    "shared_intermediate_size": 0,
    "shared_moe_mode": "sigmoid",
}
MINIMAX_COUNTS: dict[str, Any] = {
    "total": 456_089_655_296,
    "parts": {
        "embedding": 1_229_193_216,
        "lm_head": 1_229_193_216,
        "attention": 1_132_462_080,
        "experts": 434_865_438_720,
        "router": 15_728_640,
        "norm": 1_562_624,
        "state_space": 17_616_076_800,
    },
    "active": 48_403_306_496,
    "decode_read": 47_174_113_280,
    "kv_full": 40_960,
    "state": 293_601_280,
}

DELTA_VARIANTS: dict[str, list[Any]] = {
    "linear_conv_kernel_dim": [3],
    "linear_key_head_dim": [64],
    "linear_value_head_dim": [64],
    "linear_num_key_heads": [8],
    "linear_num_value_heads": [64],
    "attention_bias": [True],
    "head_dim": [128],
    "num_key_value_heads": [1],
    "tie_word_embeddings": [True],
}
EXPERT_VARIANTS: dict[str, list[Any]] = {
    "num_experts": [16],
    "moe_intermediate_size": [256],
    "shared_expert_intermediate_size": [1024],
    "full_attention_interval": [2, 100, ...],
}

PINNED = (
    Pinned(
        "Qwen3-Next-80B-A3B",
        QWEN3_NEXT,
        "safetensors metadata of the published checkpoint: 81,324,862,720 with the MTP module",
        total=79_674_391_296,
        parts={
            "embedding": 311_164_928,
            "lm_head": 311_164_928,
            "attention": 327_155_712,
            "mlp": 0,
            "experts": 77_309_411_328,
            "shared_experts": 151_093_248,
            "router": 50_331_648,
            "norm": 209_408,
            "state_space": 1_213_860_096,
        },
        active=3_874_929_408,
        decode_read=3_563_764_480,
        bias=1152,
        buffers=0,
        mtp=81_324_862_720 - 79_674_391_296,
        kv_full=24_576,
        state=77_856_768,
        variants=DELTA_VARIANTS
        | EXPERT_VARIANTS
        | {"mlp_only_layers": [[0, 3]], "decoder_sparse_step": [2], "layer_types": [[RECURRENT] * 47 + [FULL]]},
    ),
    Pinned(
        "Qwen3.5-27B",
        QWEN35,
        "safetensors metadata of the published checkpoint: 27,781,427,952 with the MTP module",
        total=27_356_728_560,
        parts={
            "embedding": 1_271_398_400,
            "lm_head": 1_271_398_400,
            "attention": 1_677_721_600,
            "mlp": 17_112_760_320,
            "norm": 674_816,
            "state_space": 5_562_044_928,
            "vision": 460_730_096,
        },
        active=26_895_998_464,
        decode_read=25_624_600_064,
        bias=348_272,
        mtp=27_781_427_952 - 27_356_728_560,
        kv_full=65_536,
        state=154_927_104,
        variants={f"text_config.{key}": values for key, values in DELTA_VARIANTS.items() if not key.startswith("tie")}
        | {
            "tie_word_embeddings": [True],
            "text_config.layer_types": [..., [FULL] * 32 + [RECURRENT] * 32],
            "vision_config.depth": [3],
            "vision_config.num_position_embeddings": [1024],
            "vision_config.patch_size": [14],
        },
    ),
    Pinned(
        "the text model of Qwen3.5-27B",
        QWEN35_TEXT,
        META,
        total=27_356_728_560 - 460_730_096,
        parts={"vision": 0},
        kv_full=65_536,
        state=154_927_104,
        variants={"tie_word_embeddings": [True], "intermediate_size": [1024]},
    ),
    Pinned(
        "Qwen3.5-35B-A3B",
        QWEN35_MOE,
        "safetensors metadata of the published checkpoint: 35,951,822,704 with the MTP module",
        total=35_107_181_936,
        parts={
            "attention": 272_629_760,
            "experts": 32_212_254_720,
            "shared_experts": 125_911_040,
            "router": 20_971_520,
            "norm": 174_848,
            "state_space": 1_011_550_080,
            "vision": 446_571_248,
        },
        active=3_454_988_928,
        decode_read=2_946_429_568,
        bias=343_856,
        mtp=35_951_822_704 - 35_107_181_936,
        kv_full=20_480,
        state=64_880_640,
        variants={f"text_config.{key}": values for key, values in EXPERT_VARIANTS.items()},
    ),
    Pinned(
        "Qwen3.5-397B-A17B",
        QWEN35_397B,
        "safetensors metadata of the published checkpoint: 403,397,928,944 with the MTP module",
        total=396_802_360_816,
        active=17_349_040_896,
        mtp=403_397_928_944 - 396_802_360_816,
        kv_full=30_720,
        state=193_167_360,
    ),
    Pinned(
        "the text model of Qwen3.5-35B-A3B",
        QWEN35_MOE_TEXT,
        META,
        total=35_107_181_936 - 446_571_248,
        kv_full=20_480,
        variants={"intermediate_size": [4096], "attention_bias": [True]},
    ),
    Pinned(
        "LFM2-1.2B",
        LFM2,
        "safetensors metadata of the published checkpoint: 1,170,340,608",
        total=1_170_340_608,
        parts={
            "embedding": 134_217_728,
            "lm_head": 0,
            "attention": 62_914_560,
            "mlp": 805_306_368,
            "norm": 68_352,
            "state_space": 167_833_600,
        },
        active=1_170_340_608,
        decode_read=1_170_340_608,
        kv_full=12_288,
        state=122_880,
        variants={
            "block_auto_adjust_ff_dim": [False, ...],
            "block_ffn_dim_multiplier": [1.3, 1, ...],
            "block_multiple_of": [1000, ...],
            "block_ff_dim": [6000],
            "intermediate_size": [6657],
            "conv_L_cache": [5],
            "conv_bias": [True],
            "num_key_value_heads": [4],
            "tie_word_embeddings": [False, True],
            "tie_embedding": [False],
            "head_dim": [128],
            "conv_dim": [64],
            "layer_types": [[CONVOLUTION] * 8 + [FULL] * 8],
        },
    ),
    Pinned(
        "LFM2-8B-A1B",
        LFM2_MOE,
        META,
        total=8_339_929_856,
        kv_full=12_288,
        state=18 * 2048 * 3 * 2,
        buffers=22 * 32,
        variants={
            "num_dense_layers": [0, 24],
            "use_expert_bias": [False],
            "conv_bias": [True],
            "conv_L_cache": [4],
            "moe_intermediate_size": [64],
            "num_experts": [8],
            "tie_word_embeddings": [False],
            "tie_embedding": [False],
            "head_dim": [32],
        },
    ),
    Pinned(
        "MiniMax-Text-01",
        MINIMAX,
        "safetensors metadata of the published checkpoint: 456,089,655,296",
        **MINIMAX_COUNTS,
        variants={
            "head_dim": [96, 64],
            "num_key_value_heads": [4],
            "num_local_experts": [4],
            "tie_word_embeddings": [True],
            "layer_types": [[RECURRENT, FULL] * 40],
        },
    ),
    Pinned(
        "MiniMax-Text-01, first files",
        MINIMAX_FIRST,
        "safetensors metadata of the published checkpoint: 456,089,655,296",
        **MINIMAX_COUNTS,
        reference=False,
    ),
)

test_counts = counts_test(PINNED)


def architecture_of(config: dict[str, Any], **changes: Any) -> Architecture:
    return read_architecture(config | changes, source="test")


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        (QWEN3_NEXT | {"attn_output_gate": False}, "attn_output_gate"),
        (QWEN3_NEXT | {"layer_types": [FULL]}, "layer_types"),
        (QWEN3_NEXT | {"layer_types": ["sliding_attention"] * 48}, "layer_types"),
        (QWEN3_NEXT | {"linear_num_key_heads": 24}, "linear_num_key_heads"),
        (QWEN3_NEXT | {"num_key_value_heads": 3}, "num_key_value_heads"),
        (QWEN3_NEXT | {"num_experts_per_tok": 513}, "num_experts_per_tok"),
        (QWEN3_NEXT | {"mlp_only_layers": [0], "intermediate_size": None}, "intermediate_size"),
        (QWEN3_NEXT | {"mamba_ssm_dtype": "int3"}, "mamba_ssm_dtype"),
        (QWEN3_NEXT | {"linear_key_head_dim": None}, "linear_key_head_dim"),
        (QWEN35_TEXT | {"mtp_use_dedicated_embeddings": True}, "mtp_use_dedicated_embeddings"),
        (QWEN35_MOE_TEXT | {"mlp_only_layers": [1]}, "mlp_only_layers"),
        (
            QWEN35 | {"vision_config": TOWER | {"deepstack_visual_indexes": [1]}},
            "vision_config.deepstack_visual_indexes",
        ),
        (LFM2 | {"layer_types": None}, "layer_types"),
        (LFM2 | {"layer_types": [RECURRENT] * 16}, "layer_types"),
        (LFM2 | {"layer_types": None, "full_attn_idxs": [16]}, "full_attn_idxs"),
        (LFM2_MOE | {"layer_types": None}, "layer_types"),
        (LFM2_MOE | {"num_dense_layers": 25}, "num_dense_layers"),
        (LFM2_MOE | {"num_experts_per_tok": 33}, "num_experts_per_tok"),
        (MINIMAX | {"layer_types": None}, "layer_types"),
        (MINIMAX | {"layer_types": [CONVOLUTION] * 80}, "layer_types"),
        (MINIMAX | {"shared_intermediate_size": 512}, "shared_intermediate_size"),
        (MINIMAX_FIRST | {"attn_type_list": [2] * 80}, "attn_type_list"),
        (MINIMAX_FIRST | {"attn_type_list": [1]}, "attn_type_list"),
    ],
)
def test_refusals(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_architecture(changes, source="test")
    assert caught.value.field == key


def test_scan_arithmetic_is_per_head_and_state_element() -> None:
    delta = architecture_of(QWEN3_NEXT).layers[0].blocks[0]
    lightning = architecture_of(MINIMAX).layers[0].blocks[0]
    short = architecture_of(LFM2).layers[0].blocks[0]
    assert isinstance(delta, StateSpace)
    assert delta.scan_flops == 7 * 32 * 128 * 128
    assert isinstance(lightning, StateSpace)
    assert lightning.scan_flops == 5 * 64 * 128 * 128
    assert isinstance(short, StateSpace)
    assert short.scan_flops == 2048 * (2 * 3 + 2)


def test_state_in_sixteen_bit_takes_half() -> None:
    whole = state_elements(architecture_of(QWEN35_TEXT)).recurrent_bytes
    half = state_elements(architecture_of(QWEN35_TEXT, mamba_ssm_dtype="bfloat16")).recurrent_bytes
    assert 2 * half == whole


def test_without_a_factor_the_adjusted_width_is_not_rounded() -> None:
    mlp = architecture_of(LFM2, block_ffn_dim_multiplier=None, intermediate_size=1000).layers[0].blocks[1]
    assert mlp.weights[0].shape == (666, 2048)


def test_only_every_fourth_layer_caches() -> None:
    """A memory guard that counted all 64 layers refused requests at 40 % of the limit (jundot/omlx issue 2725)."""
    mixers = [layer.blocks[0] for layer in architecture_of(QWEN35).layers]
    assert [isinstance(mixer, Attention) for mixer in mixers] == [False, False, False, True] * 16


def test_draft_module_is_announced_or_not() -> None:
    assert count_parameters(architecture_of(QWEN3_NEXT, mtp_num_hidden_layers=0)).mtp == 0
    silent = {key: value for key, value in QWEN35_TEXT.items() if not key.startswith("mtp")}
    assert count_parameters(architecture_of(silent)).mtp == 0
    assert any("mtp_num_hidden_layers = 1" in text for text in architecture_of(QWEN3_NEXT).assumed)


def test_older_lists_of_attention_layers() -> None:
    listed = architecture_of(LFM2, layer_types=None, full_attn_idxs=[2, 5, 8, 10, 12, 14])
    assert count_parameters(listed).total == count_parameters(architecture_of(LFM2)).total
    assert [type(layer.blocks[0]) for layer in listed.layers] == [
        type(layer.blocks[0]) for layer in architecture_of(LFM2).layers
    ]


@pytest.mark.parametrize(("window", "caps"), [(4096, 4096), (10_240_000, None), (None, None)])
def test_window_of_minimax(window: int | None, caps: int | None) -> None:
    attention = architecture_of(MINIMAX, sliding_window=window).layers[7].blocks[0]
    assert isinstance(attention, Attention)
    assert attention.window == caps


def test_names_are_those_of_published_files() -> None:
    qwen = {weight.name for weight in layer_weights(architecture_of(QWEN35_MOE).layers[0])}
    assert {"linear_attn.in_proj_z", "mlp.shared_expert_gate", "mlp.experts.*.up_proj"} <= qwen
    assert architecture_of(QWEN35_MOE).layer_names == "model.language_model.layers"
    assert "linear_attn.in_proj_ba" in {weight.name for weight in layer_weights(architecture_of(QWEN3_NEXT).layers[0])}
    lfm2 = {weight.name for weight in layer_weights(architecture_of(LFM2_MOE).layers[2])}
    assert {"feed_forward.experts.*.w1", "feed_forward.expert_bias", "self_attn.out_proj", "operator_norm"} <= lfm2
    draft = {weight.name for part in architecture_of(QWEN35).components if not part.counted for weight in part.weights}
    assert {"mtp.fc", "mtp.norm", "mtp.layers.0.self_attn.q_proj"} <= draft


def test_mixers_cost_what_issue_2725_says() -> None:
    """BUG-025: 65,536 bytes of cache per token and 154,927,104 bytes of state (convolutions of the full width)."""
    architecture = architecture_of(QWEN35)
    state = state_elements(architecture)
    (group,) = cache_layers(architecture)
    assert 2 * group.layers * group.elements == 65_536
    assert state.recurrent_bytes + 2 * state.convolution == 48 * (48 * 128 * 128 * 4 + (2 * 16 + 48) * 128 * 4 * 2)
