"""Gemma in all its generations, with and without pictures and sound."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Attention, StateSpace, Use
from planner.counting import count_parameters
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

ORACLE = "transformers 5.24.0 on the meta device"
SIGLIP = {
    "model_type": "siglip_vision_model",
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "image_size": 896,
    "patch_size": 14,
    "vision_use_head": False,
}
SMALL_SIGLIP = SIGLIP | {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 2}
WINDOWED = {"sliding_window": 512, "max_position_embeddings": 32768}

GEMMA_2B: dict[str, Any] = {
    "model_type": "gemma",
    "hidden_size": 2048,
    "num_hidden_layers": 18,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "intermediate_size": 16384,
    "vocab_size": 256000,
    "max_position_embeddings": 8192,
}
GEMMA_2_2B: dict[str, Any] = {
    "model_type": "gemma2",
    "hidden_size": 2304,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 9216,
    "vocab_size": 256000,
    "sliding_window": 4096,
    "max_position_embeddings": 8192,
}
GEMMA_3_1B: dict[str, Any] = {
    "model_type": "gemma3_text",
    "hidden_size": 1152,
    "num_hidden_layers": 26,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "intermediate_size": 6912,
    "vocab_size": 262144,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
    "max_position_embeddings": 32768,
}
# As published: what is not here are the class's defaults.
GEMMA_3_4B: dict[str, Any] = {
    "model_type": "gemma3",
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    },
    "vision_config": SIGLIP,
}
SMALL_GEMMA_3: dict[str, Any] = GEMMA_3_4B | {
    "text_config": {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 7,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 100,
    },
    "vision_config": SMALL_SIGLIP,
}
GEMMA_3N_TEXT: dict[str, Any] = {
    "model_type": "gemma3n_text",
    "hidden_size": 2048,
    "num_hidden_layers": 30,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "intermediate_size": 8192,
    "vocab_size": 262400,
    "num_kv_shared_layers": 10,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "altup_num_inputs": 4,
    "laurel_rank": 64,
    **WINDOWED,
}
GEMMA_3N_E2B: dict[str, Any] = {
    "model_type": "gemma3n",
    "text_config": GEMMA_3N_TEXT,
    "vision_config": {"model_type": "gemma3n_vision", "architecture": "mobilenetv5_300m_enc"},
    "audio_config": {"model_type": "gemma3n_audio"},
}
SMALL_GEMMA_3N: dict[str, Any] = GEMMA_3N_TEXT | {
    "hidden_size": 64,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 100,
    "num_kv_shared_layers": 1,
    "layer_types": ["sliding_attention", "full_attention"] * 3,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 90,
    "altup_num_inputs": 3,
    "laurel_rank": 5,
}
GEMMA_4_26B: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": {
        "model_type": "gemma4_text",
        "hidden_size": 2816,
        "num_hidden_layers": 30,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "num_global_key_value_heads": 2,
        "head_dim": 256,
        "global_head_dim": 512,
        "attention_k_eq_v": True,
        "intermediate_size": 2112,
        "enable_moe_block": True,
        "num_experts": 128,
        "top_k_experts": 8,
        "moe_intermediate_size": 704,
        "hidden_size_per_layer_input": 0,
        "vocab_size": 262144,
        "sliding_window": 1024,
        "max_position_embeddings": 262144,
        "use_bidirectional_attention": "vision",
    },
    "vision_config": {
        "model_type": "gemma4_vision",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "head_dim": 72,
        "standardize": True,
        "use_clipped_linears": False,
    },
    "audio_config": None,
}
GEMMA_4_E2B_TEXT: dict[str, Any] = {
    "model_type": "gemma4_text",
    "hidden_size": 1536,
    "num_hidden_layers": 35,
    "num_attention_heads": 8,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "global_head_dim": 512,
    "intermediate_size": 6144,
    "use_double_wide_mlp": True,
    "num_kv_shared_layers": 20,
    "layer_types": (["sliding_attention"] * 4 + ["full_attention"]) * 7,
    "hidden_size_per_layer_input": 256,
    "vocab_size_per_layer_input": 262144,
    "vocab_size": 262144,
    "sliding_window": 512,
    "max_position_embeddings": 131072,
}
GEMMA_4_E2B: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": GEMMA_4_E2B_TEXT,
    "vision_config": {"model_type": "gemma4_vision", "use_clipped_linears": True},
    "audio_config": {"model_type": "gemma4_audio"},
}
SMALL_GEMMA_4_TEXT: dict[str, Any] = {
    "model_type": "gemma4_text",
    "hidden_size": 64,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 24,
    "num_global_key_value_heads": 1,
    "intermediate_size": 96,
    "layer_types": ["sliding_attention", "full_attention"] * 4,
    "num_kv_shared_layers": 3,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": 90,
    "num_experts": 6,
    "top_k_experts": 2,
    "moe_intermediate_size": 40,
    "vocab_size": 100,
    **WINDOWED,
}
SMALL_GEMMA_4: dict[str, Any] = {
    "model_type": "gemma4",
    "text_config": SMALL_GEMMA_4_TEXT,
    "vision_config": {
        "model_type": "gemma4_vision",
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 12,
        "position_embedding_size": 20,
    },
    "audio_config": {
        "model_type": "gemma4_audio",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "output_proj_dims": 40,
    },
}
UNIFIED: dict[str, Any] = {
    "model_type": "gemma4_unified",
    "text_config": {
        key: value
        for key, value in SMALL_GEMMA_4_TEXT.items()
        if "per_layer" not in key and "experts" not in key and not key.startswith("moe")
    }
    | {"model_type": "gemma4_unified_text"},
    "vision_config": {
        "model_type": "gemma4_unified_vision",
        "mm_embed_dim": 32,
        "output_proj_dims": 32,
        "mm_posemb_size": 11,
    },
    "audio_config": {"model_type": "gemma4_unified_audio", "audio_embed_dim": 24},
}
RECURRENT_9B: dict[str, Any] = {
    "model_type": "recurrent_gemma",
    "hidden_size": 4096,
    "num_hidden_layers": 38,
    "num_attention_heads": 16,
    "num_key_value_heads": 1,
    "intermediate_size": 24576,
    "lru_width": 4096,
    "conv1d_width": 4,
    "attention_window_size": 2048,
    "block_types": ["recurrent", "recurrent", "attention"],
    "vocab_size": 256000,
}
MODULE = {key: value for key, value in GEMMA_2_2B.items() if key != "model_type"} | {"num_hidden_layers": 3}
T5GEMMA: dict[str, Any] = {
    "model_type": "t5gemma",
    "encoder": MODULE | {"vocab_size": 300},
    "decoder": MODULE | {"vocab_size": 300, "hidden_size": 1024},
    "vocab_size": 300,
}
PALIGEMMA: dict[str, Any] = {
    "model_type": "paligemma",
    "hidden_size": 2048,
    "projection_dim": 2048,
    "vocab_size": 257216,
    "text_config": {key: value for key, value in GEMMA_2B.items() if key != "head_dim"} | {"vocab_size": 257216},
    "vision_config": SIGLIP | {"image_size": 224, "projection_dim": 2048},
}

ATTENTION_SWITCHES: dict[str, list[Any]] = {
    "attention_bias": [True],
    "tie_word_embeddings": [False],
    "head_dim": [128],
    "num_key_value_heads": [2],
    "vocab_size": [1001],
}
LAYER_TYPES: dict[str, list[Any]] = {"layer_types": [["full_attention"] * 26], "sliding_window": [1024]}

PINNED = (
    Pinned(
        name="google/gemma-2b",
        config=GEMMA_2B,
        source="safetensors metadata of the published checkpoint: 2,506,172,416",
        total=2_506_172_416,
        parts={"embedding": 524_288_000, "lm_head": 0, "attention": 169_869_312, "mlp": 1_811_939_328, "norm": 75_776},
        decode_read=2_506_172_416,
        kv_full=18_432,
        variants=ATTENTION_SWITCHES,
    ),
    Pinned(
        name="google/gemma-2-2b-it",
        config=GEMMA_2_2B,
        source="safetensors metadata of the published checkpoint: 2,614,341,888",
        total=2_614_341_888,
        parts={"embedding": 589_824_000, "attention": 368_050_176, "mlp": 1_656_225_792, "norm": 241_920},
        kv_full=53_248,
        kv_windowed=53_248,
        window=4096,
        variants=ATTENTION_SWITCHES | LAYER_TYPES,
    ),
    Pinned(
        name="vaultgemma of gemma-2-2b's widths",
        config=GEMMA_2_2B | {"model_type": "vaultgemma"},
        source=ORACLE,
        total=2_614_222_080,
        kv_full=53_248,
        kv_windowed=53_248,
        variants=ATTENTION_SWITCHES | LAYER_TYPES,
    ),
    Pinned(
        name="google/gemma-3-1b-it",
        config=GEMMA_3_1B,
        source="safetensors metadata of the published checkpoint: 999,885,952",
        total=999_885_952,
        parts={"embedding": 301_989_888, "attention": 76_677_120, "mlp": 621_084_672, "norm": 134_272},
        kv_full=4_096,
        kv_windowed=22_528,
        window=512,
        variants=ATTENTION_SWITCHES | LAYER_TYPES | {"sliding_window_pattern": [2, ...]},
    ),
    Pinned(
        name="google/gemma-3-4b-it",
        config=GEMMA_3_4B,
        source="safetensors metadata of the published checkpoint: 4,300,079,472",
        total=4_300_079_472,
        parts={
            "embedding": 671_252_480,
            "attention": 534_773_760,
            "mlp": 2_673_868_800,
            "norm": 368_128,
            "vision": 419_816_304,
        },
        active=3_880_263_168,
        decode_read=3_880_263_168,
        bias=336_240,
        kv_full=20_480,
        kv_windowed=118_784,
        window=1024,
    ),
    Pinned(
        name="a small gemma3",
        config=SMALL_GEMMA_3,
        source=ORACLE,
        total=489_536,
        variants={
            "tie_word_embeddings": [True, False],
            "vision_config.vision_use_head": [True],
            "vision_config.image_size": [112],
            "text_config.head_dim": [32],
            "text_config.attention_bias": [True],
        },
    ),
    Pinned(
        name="google/gemma-3n-E2B-it",
        config=GEMMA_3N_E2B,
        source="transformers 5.24.0 and timm 1.0.31; the published 5,439,438,272 holds 20,974,080 unused elements more",
        total=5_418_464_192,
        parts={
            "embedding": 537_395_200,
            "attention": 293_601_280,
            "mlp": 1_509_949_440,
            "router": 245_760,
            "norm": 445_184,
            "vision": 983_281_504,
        },
        active=4_435_182_688,
        decode_read=2_421_916_768,
        bias=64,
        kv_full=8_192,
        kv_windowed=32_768,
        window=512,
        reference=False,  # the tower needs timm
    ),
    Pinned(
        name="a small gemma3n_text",
        config=SMALL_GEMMA_3N,
        source=ORACLE,
        total=225_072,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [False],
            "intermediate_size": [[96, 64, 32, 96, 64, 128]],
            "layer_types": [["sliding_attention"] * 4 + ["full_attention", "sliding_attention"], ...],
            "num_kv_shared_layers": [0, 4],
            "altup_num_inputs": [1, 4],
            "num_key_value_heads": [1],
            "head_dim": [32],
        },
    ),
    Pinned(
        name="google/gemma-4-26B-A4B-it",
        config=GEMMA_4_26B,
        source=ORACLE,
        total=25_805_933_872,
        parts={
            "embedding": 738_197_504,
            "attention": 1_110_179_840,
            "mlp": 535_265_280,
            "experts": 22_837_985_280,
            "router": 10_901_760,
            "norm": 612_096,
            "vision": 572_792_112,
        },
        active=3_822_530_560,
        decode_read=3_822_530_560,
        buffers=2334,
        kv_full=20_480,
        kv_windowed=204_800,
        window=1024,
    ),
    Pinned(
        name="google/gemma-4-E2B-it",
        config=GEMMA_4_E2B,
        source=f"{ORACLE}; the published 5,123,178,051 also holds 18,880,512 unused elements and buffers",
        total=5_104_297_504,
        parts={
            "embedding": 402_653_184,
            "attention": 278_396_928,
            "mlp": 1_557_135_360,
            "norm": 285_952,
            "vision": 475_728_160,
        },
        active=4_628_569_344,
        decode_read=2_279_759_104,
        bias=1536,
        buffers=963,
        kv_full=6_144,
        kv_windowed=12_288,
        window=512,
    ),
    Pinned(
        name="a small gemma4",
        config=SMALL_GEMMA_4,
        source=ORACLE,
        total=497_064,
        variants={
            "text_config.attention_k_eq_v": [True],
            "text_config.enable_moe_block": [True],
            "text_config.use_double_wide_mlp": [True],
            "text_config.num_kv_shared_layers": [0, 6],
            "text_config.hidden_size_per_layer_input": [0],
            "text_config.num_global_key_value_heads": [None, 2],
            "text_config.global_head_dim": [...],
            "text_config.attention_bias": [True],
            "text_config.per_layer_config": [{key: {"head_dim": 20, "num_key_value_heads": 4} for key in "1357"}],
            "text_config.layer_types": [["sliding_attention"] * 4 + ["full_attention"] + ["sliding_attention"] * 3],
            "tie_word_embeddings": [True, False],
            "vision_config": [None, ...],
            "vision_config.standardize": [True],
            "vision_config.use_clipped_linears": [True],
            "vision_config.patch_size": [8],
            "audio_config": [None, ...],
            "audio_config.use_clipped_linears": [False],
            "audio_config.subsampling_conv_channels": [[64, 16]],
            "audio_config.conv_kernel_size": [7],
        },
    ),
    Pinned(
        name="a small gemma4_unified",
        config=UNIFIED,
        source=ORACLE,
        total=502_176,
        variants={
            "text_config.attention_k_eq_v": [True],
            "text_config.use_double_wide_mlp": [True],
            "text_config.num_kv_shared_layers": [0],
            "tie_word_embeddings": [False],
            "vision_config": [None],
            "audio_config": [None],
            "vision_config.patch_size": [8],
        },
    ),
    Pinned(
        name="google/recurrentgemma-9b-it",
        config=RECURRENT_9B,
        source=f"{ORACLE}; the published 9,628,553,216 holds the tied head a second time",
        total=8_579_977_216,
        parts={
            "embedding": 1_048_576_000,
            "attention": 427_868_160,
            "mlp": 5_738_897_408,
            "norm": 315_392,
            "state_space": 1_364_320_256,
        },
        bias=1_777_664,
        kv_full=0,
        kv_windowed=12_288,
        window=2048,
        state=1_064_960,
        variants={
            "attention_bias": [True],
            "tie_word_embeddings": [False],
            "lru_width": [2048, None, ...],
            "conv1d_width": [3],
            "num_key_value_heads": [4, ...],
            "block_types": [["attention", "recurrent"]],
            "num_hidden_layers": [5],
            "head_dim": [128],
        },
    ),
    Pinned(
        name="a short t5gemma",
        config=T5GEMMA,
        source=ORACLE,
        total=365_165_824,
        variants={
            "tie_word_embeddings": [False],
            "decoder.attention_bias": [True],
            "encoder.attention_bias": [True],
            "encoder.num_hidden_layers": [2],
            "decoder.num_key_value_heads": [2],
            "encoder.head_dim": [128],
        },
    ),
    Pinned(
        name="google/paligemma-3b-pt-224",
        config=PALIGEMMA,
        source=ORACLE,
        total=2_923_466_480,
        kv_full=18_432,
        variants={
            "vision_config.image_size": [448],
            "vision_config.vision_use_head": [True],
            "tie_word_embeddings": [False],
            "text_config": [GEMMA_2_2B | {"vocab_size": 257216, "hidden_size": 2048}],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_layers_that_share_a_cache_hold_no_key_and_say_what_files_hold_besides() -> None:
    architecture = read_architecture(GEMMA_3N_TEXT, source="config.json")
    attentions = [layer.blocks[0] for layer in architecture.layers]
    caching = [block for block in attentions if isinstance(block, Attention) and block.caches]
    assert len(caching) == 20
    assert "10 layers" in architecture.notes[0]
    assert "20,974,080" in architecture.notes[0]


def test_per_layer_embeddings_are_looked_up() -> None:
    architecture = read_architecture(GEMMA_4_E2B_TEXT, source="config.json")
    tables = [weight for weight in architecture.outer if weight.use is Use.LOOKED_UP]
    assert [weight.elements for weight in tables] == [262144 * 35 * 256]


def test_class_defaults_that_published_files_rely_on_are_reported() -> None:
    assumed = read_architecture(GEMMA_3_4B, source="config.json").assumed
    assert any("text_config.num_attention_heads = 8" in text for text in assumed)


def test_a_gemma_3n_tower_of_another_name_is_left_out_and_named() -> None:
    config = GEMMA_3N_E2B | {"vision_config": {"architecture": "mobilenetv5_base"}}
    architecture = read_architecture(config, source="config.json")
    assert architecture.unread == ("vision tower (vision_config, mobilenetv5_base of timm)",)
    assert count_parameters(architecture).total == 5_418_464_192 - 294_126_912


def test_layer_numbers_padded_with_zeros_are_read() -> None:
    plain = {key: value for key, value in GEMMA_4_E2B_TEXT.items() if key != "global_head_dim"}
    written = plain | {"per_layer_config": {f"{number:02}": {"head_dim": 512} for number in range(4, 35, 5)}}
    totals = [count_parameters(read_architecture(c, source="x")).total for c in (GEMMA_4_E2B_TEXT, written)]
    assert totals[0] == totals[1]


def test_a_recurrent_layer_says_what_its_scan_costs() -> None:
    block = read_architecture(RECURRENT_9B, source="config.json").layers[0].blocks[0]
    assert isinstance(block, StateSpace)
    assert block.scan_flops == 6 * 4096


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (GEMMA_2B | {"num_key_value_heads": 3}, "does not divide the 8 query heads"),
        (GEMMA_2B | {"use_bidirectional_attention": True}, "use_bidirectional_attention is True"),
        (GEMMA_3_1B | {"use_bidirectional_attention": True}, "does not generate"),
        (GEMMA_2_2B | {"layer_types": ["full_attention"]}, "has 1 entries for 26 layers"),
        (GEMMA_2_2B | {"layer_types": ["chunked_attention"] * 26}, "holds 'chunked_attention'"),
        (GEMMA_2_2B | {"sliding_window": None}, "sliding_window is missing or null"),
        ({key: value for key, value in GEMMA_3_4B.items() if key != "vision_config"}, "vision_config is missing"),
        (GEMMA_3N_TEXT | {"intermediate_size": [8192]}, "intermediate_size has 1 entries for 30 layers"),
        (GEMMA_3N_TEXT | {"activation_sparsity_pattern": [0.95]}, "activation_sparsity_pattern has 1 entries"),
        (GEMMA_3N_TEXT | {"num_kv_shared_layers": 26}, "fill no cache for some kind of layer"),
        (GEMMA_3N_TEXT | {"num_kv_shared_layers": 30}, "fill no cache for some kind of layer"),
        (GEMMA_4_E2B_TEXT | {"use_bidirectional_attention": "all"}, "is 'all'"),
        (GEMMA_4_E2B_TEXT | {"enable_moe_block": True}, "num_experts is missing or null"),
        (GEMMA_4_E2B_TEXT | {"hidden_size_per_layer_input": ...}, "hidden_size_per_layer_input is missing"),
        (SMALL_GEMMA_4_TEXT | {"enable_moe_block": True, "top_k_experts": 7}, "top_k_experts is 7, more than the 6"),
        (
            SMALL_GEMMA_4_TEXT | {"attention_k_eq_v": True, "num_global_key_value_heads": 3},
            "num_global_key_value_heads is 3",
        ),
        (SMALL_GEMMA_4_TEXT | {"per_layer_config": {"1": {"intermediate_size": 9}}}, "sets intermediate_size"),
        (SMALL_GEMMA_4_TEXT | {"per_layer_config": {"1": {"head_dim": "9"}}}, "head_dim '9'"),
        (SMALL_GEMMA_4_TEXT | {"per_layer_config": {"8": {"head_dim": 9}}}, "has the key '8'"),
        (SMALL_GEMMA_4_TEXT | {"per_layer_config": {"full": {"head_dim": 9}}}, "has the key 'full'"),
        (SMALL_GEMMA_4_TEXT | {"per_layer_config": {"1": {}, "01": {}}}, "has the key '01'"),
        (SMALL_GEMMA_4_TEXT | {"model_type": "gemma4_unified_text"}, "neither layer embeddings nor experts"),
        (RECURRENT_9B | {"block_types": ["mamba"]}, "holds 'mamba'"),
        (RECURRENT_9B | {"lru_width": 4097}, "does not divide into 16 blocks"),
        (RECURRENT_9B | {"intermediate_size": 24575}, "it must halve"),
        (PALIGEMMA | {"projection_dim": 1024}, "projection_dim is 1024"),
    ],
)
def test_what_cannot_be_read_is_refused(config: dict[str, Any], message: str) -> None:
    given = {key: value for key, value in config.items() if value is not ...}
    with pytest.raises(PlanError, match=message):
        read_architecture(given, source="config.json")
