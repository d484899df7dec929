"""GPT-2 and its descendants, OPT, BLOOM, MPT, Falcon, OpenELM; T5, BART and their kin."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Attention, CrossAttention
from planner.counting import cache_layers, count_parameters, cross_attention
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

GPT2 = {
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}
GPTJ_6B = {
    "model_type": "gptj",
    "n_embd": 4096,
    "n_head": 16,
    "n_inner": None,
    "n_layer": 28,
    "n_positions": 2048,
    "rotary_dim": 64,
    "tie_word_embeddings": False,
    "vocab_size": 50400,
}
PYTHIA_1B = {
    "model_type": "gpt_neox",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 2048,
    "num_attention_heads": 8,
    "num_hidden_layers": 16,
    "tie_word_embeddings": False,
    "use_parallel_residual": True,
    "vocab_size": 50304,
}
GPT_NEO_125M = {
    "model_type": "gpt_neo",
    "attention_layers": ["global", "local"] * 6,
    "attention_types": [[["global", "local"], 6]],
    "hidden_size": 768,
    "intermediate_size": None,
    "max_position_embeddings": 2048,
    "num_heads": 12,
    "num_layers": 12,
    "vocab_size": 50257,
    "window_size": 256,
}
SANTACODER = GPT2 | {
    "model_type": "gpt_bigcode",
    "multi_query": True,
    "n_embd": 2048,
    "n_head": 16,
    "n_inner": 8192,
    "n_layer": 24,
    "n_positions": 2048,
    "vocab_size": 49280,
}
OPT_125M = {
    "model_type": "opt",
    "do_layer_norm_before": True,
    "ffn_dim": 3072,
    "hidden_size": 768,
    "max_position_embeddings": 2048,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "vocab_size": 50272,
    "word_embed_proj_dim": 768,
}
OPT_350M = OPT_125M | {
    "do_layer_norm_before": False,
    "ffn_dim": 4096,
    "hidden_size": 1024,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "word_embed_proj_dim": 512,
}
BLOOM_7B1 = {
    "model_type": "bloom",
    "n_embed": 4096,
    "n_layer": 30,
    "num_attention_heads": 32,
    "seq_length": 2048,
    "skip_bias_add": True,
    "skip_bias_add_qkv": False,
    "vocab_size": 250880,
}
MPT_7B = {
    "model_type": "mpt",
    "attn_config": {"alibi": True, "attn_type": "multihead_attention", "clip_qkv": None, "qk_ln": False},
    "d_model": 4096,
    "expansion_ratio": 4,
    "max_seq_len": 2048,
    "n_heads": 32,
    "n_layers": 32,
    "no_bias": True,
    "vocab_size": 50432,
}
FALCON_7B = {
    "model_type": "falcon",
    "alibi": False,
    "bias": False,
    "hidden_size": 4544,
    "multi_query": True,
    "new_decoder_architecture": False,
    "num_attention_heads": 71,
    "num_hidden_layers": 32,
    "parallel_attn": True,
    "vocab_size": 65024,
}
FALCON_40B = FALCON_7B | {
    "hidden_size": 8192,
    "new_decoder_architecture": True,
    "num_attention_heads": 128,
    "num_hidden_layers": 60,
    "num_kv_heads": 8,
}
REFINED_WEB_40B = {
    "model_type": "RefinedWeb",
    "alibi": False,
    "bias": False,
    "hidden_size": 8192,
    "n_head": 128,
    "n_head_kv": 8,
    "n_layer": 60,
    "parallel_attn": True,
    "vocab_size": 65024,
}
REFINED_WEB_7B = {
    "model_type": "RefinedWebModel",
    "alibi": False,
    "bias": False,
    "hidden_size": 4544,
    "multi_query": True,
    "n_head": 71,
    "n_layer": 32,
    "parallel_attn": True,
    "vocab_size": 65024,
}
OPENELM_3B = {
    "model_type": "openelm",
    "ffn_dim_divisor": 256,
    "ffn_multipliers": [round(0.5 + 0.1 * layer, 1) for layer in range(36)],
    "ffn_with_glu": True,
    "head_dim": 128,
    "model_dim": 3072,
    "normalize_qk_projections": True,
    "num_gqa_groups": 4,
    "num_kv_heads": [3] * 4 + [4] * 14 + [5] * 12 + [6] * 6,
    "num_query_heads": [12] * 4 + [16] * 14 + [20] * 12 + [24] * 6,
    "num_transformer_layers": 36,
    "share_input_output_layers": True,
    "vocab_size": 32000,
}
FLAN_T5_BASE = {
    "model_type": "t5",
    "d_ff": 2048,
    "d_kv": 64,
    "d_model": 768,
    "feed_forward_proj": "gated-gelu",
    "is_encoder_decoder": True,
    "num_decoder_layers": 12,
    "num_heads": 12,
    "num_layers": 12,
    "relative_attention_num_buckets": 32,
    "tie_word_embeddings": False,
    "vocab_size": 32128,
}
MT5_SMALL = FLAN_T5_BASE | {
    "model_type": "mt5",
    "d_ff": 1024,
    "d_model": 512,
    "num_decoder_layers": 8,
    "num_heads": 6,
    "num_layers": 8,
    "vocab_size": 250112,
}
SMALL_T5 = {
    "d_ff": 96,
    "d_kv": 16,
    "d_model": 64,
    "num_heads": 4,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "vocab_size": 100,
}
SMALL_BART = {
    "d_model": 64,
    "decoder_attention_heads": 8,
    "decoder_ffn_dim": 80,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "encoder_layers": 2,
    "encoder_layerdrop": 0.0,
    "max_position_embeddings": 32,
    "num_hidden_layers": 2,
    "vocab_size": 100,
}
T5_SWITCHES: dict[str, Any] = {
    "d_kv": [24],
    "feed_forward_proj": ["relu", "gated-gelu", "gated-silu", ...],
    "num_decoder_layers": [..., 1],
    "relative_attention_num_buckets": [8],
    "tie_word_embeddings": [True],
}
SEQ2SEQ = "transformers 5.24.0 on the meta device, ForConditionalGeneration, computed positions left out"

PINNED = (
    Pinned(
        name="openai-community/gpt2",
        config=GPT2,
        source="transformers 5.24.0 on the meta device; the published file adds causal masks of 12,582,912",
        total=124_439_808,
        parts={"embedding": 38_597_376, "attention": 28_348_416, "mlp": 56_669_184, "norm": 38_400, "other": 786_432},
        active=124_439_808,
        decode_read=124_439_808 - 786_432,
        bias=102_144,
        kv_full=36_864,
        variants={"n_inner": [1000, None], "tie_word_embeddings": [False], "n_positions": [512]},
    ),
    Pinned(
        name="EleutherAI/gpt-j-6b",
        config=GPTJ_6B,
        source="transformers 5.24.0 on the meta device",
        total=6_050_882_784,
        parts={"lm_head": 206_488_800, "attention": 1_879_048_192, "mlp": 3_758_669_824, "norm": 237_568},
        bias=742_624,
        kv_full=458_752,
        variants={"n_inner": [1000], "tie_word_embeddings": [True]},
    ),
    Pinned(
        name="Salesforce/codegen-350M-mono",
        config=GPTJ_6B
        | {"model_type": "codegen", "n_embd": 1024, "n_layer": 20, "rotary_dim": 32, "vocab_size": 51200},
        source="transformers 5.24.0 on the meta device",
        total=356_712_448,
        variants={"n_inner": [1000], "tie_word_embeddings": [True]},
    ),
    Pinned(
        name="EleutherAI/pythia-1b",
        config=PYTHIA_1B,
        source="transformers 5.24.0 on the meta device; the published file adds causal masks and rotary frequencies",
        total=1_011_781_632,
        parts={"attention": 268_566_528, "mlp": 537_034_752, "norm": 135_168},
        decode_read=908_759_040,
        bias=362_496,
        kv_full=131_072,
        variants={"attention_bias": [False], "tie_word_embeddings": [True], "use_parallel_residual": [False]},
    ),
    Pinned(
        name="abeja/gpt-neox-japanese-2.7b",
        config={
            "model_type": "gpt_neox_japanese",
            "hidden_size": 2560,
            "intermediate_multiple_size": 4,
            "max_position_embeddings": 2048,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "vocab_size": 32000,
        },
        source="transformers 5.24.0 on the meta device",
        total=2_598_837_760,
        variants={"intermediate_multiple_size": [3], "tie_word_embeddings": [False], "num_hidden_layers": [1]},
    ),
    Pinned(
        name="EleutherAI/gpt-neo-125m",
        config=GPT_NEO_125M,
        source="transformers 5.24.0 on the meta device",
        total=125_198_592,
        kv_full=6 * 3072,
        kv_windowed=6 * 3072,
        window=256,
        variants={"intermediate_size": [1000], "tie_word_embeddings": [False]},
    ),
    Pinned(
        name="bigcode/gpt_bigcode-santacoder",
        config=SANTACODER,
        source="safetensors metadata of the published checkpoint: 1,124,886,528",
        total=1_124_886_528,
        parts={"attention": 214_013_952, "mlp": 805_552_128, "norm": 200_704, "other": 4_194_304},
        bias=450_560,
        kv_full=12_288,
        variants={"multi_query": [False], "n_inner": [None], "tie_word_embeddings": [False]},
    ),
    Pinned(
        name="microsoft/biogpt",
        config={
            "model_type": "biogpt",
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "max_position_embeddings": 1024,
            "num_attention_heads": 16,
            "num_hidden_layers": 24,
            "vocab_size": 42384,
        },
        source="transformers 5.24.0 on the meta device",
        total=346_763_264,
        parts={"other": 1026 * 1024},
        variants={"tie_word_embeddings": [False]},
    ),
    Pinned(
        name="facebook/xglm-564M",
        config={
            "model_type": "xglm",
            "attention_heads": 16,
            "d_model": 1024,
            "ffn_dim": 4096,
            "max_position_embeddings": 2048,
            "num_layers": 24,
            "vocab_size": 256008,
        },
        source="transformers 5.24.0 on the meta device",
        total=564_463_616,
        parts={"other": 0},
        variants={"tie_word_embeddings": [False]},
    ),
    Pinned(
        name="facebook/opt-125m",
        config=OPT_125M,
        source="transformers 5.24.0 on the meta device",
        total=125_239_296,
        parts={"attention": 28_348_416, "mlp": 56_669_184, "norm": 38_400, "other": 1_574_400},
        bias=102_144,
        kv_full=36_864,
        variants={
            "_remove_final_layer_norm": [True],
            "do_layer_norm_before": [False],
            "enable_bias": [False],
            "layer_norm_elementwise_affine": [False],
            "tie_word_embeddings": [False],
            "word_embed_proj_dim": [..., 512],
        },
    ),
    Pinned(
        name="facebook/opt-350m",
        config=OPT_350M,
        source="transformers 5.24.0 on the meta device",
        total=331_196_416,
        parts={"other": 2_099_200 + 1_048_576},
        variants={"tie_word_embeddings": [False]},
    ),
    Pinned(
        name="bigscience/bloom-7b1",
        config=BLOOM_7B1,
        source="safetensors metadata of the published checkpoint: 7,069,016,064",
        total=7_069_016_064,
        parts={"attention": 2_013_757_440, "mlp": 4_027_146_240, "norm": 507_904},
        decode_read=7_069_016_064,
        bias=1_359_872,
        kv_full=491_520,
        variants={"tie_word_embeddings": [False]},
    ),
    Pinned(
        name="mosaicml/mpt-7b",
        config=MPT_7B,
        source="safetensors metadata of the published checkpoint: 6,649,286,656",
        total=6_649_286_656,
        parts={"attention": 2_147_483_648, "mlp": 4_294_967_296, "norm": 266_240},
        bias=0,
        kv_full=524_288,
        variants={"tie_word_embeddings": [False], "attn_config": [...]},
    ),
    Pinned(
        name="tiiuae/falcon-7b",
        config=FALCON_7B,
        source="transformers 5.24.0 on the meta device; the published file holds the tied head a second time",
        total=6_921_720_704,
        parts={"embedding": 295_469_056, "attention": 1_340_080_128, "mlp": 5_285_871_616, "norm": 299_904},
        bias=149_952,
        kv_full=8_192,
        variants={
            "bias": [True],
            "ffn_hidden_size": [1000],
            "multi_query": [False],
            "num_kv_heads": [71],
            "num_ln_in_parallel_attn": [2],
            "parallel_attn": [False],
            "tie_word_embeddings": [False],
        },
    ),
    Pinned(
        name="tiiuae/falcon-40b",
        config=FALCON_40B,
        source="transformers 5.24.0 on the meta device; the published file holds the tied head a second time",
        total=41_303_293_952,
        parts={"attention": 8_556_380_160, "mlp": 32_212_254_720, "norm": 1_982_464},
        bias=991_232,
        kv_full=122_880,
        variants={"num_kv_heads": [..., 16], "num_ln_in_parallel_attn": [1], "parallel_attn": [False]},
    ),
    Pinned(
        name="tiiuae/falcon-40b, first published form",
        config=REFINED_WEB_40B,
        source="the same model as tiiuae/falcon-40b",
        total=41_303_293_952,
        kv_full=122_880,
        reference=False,
    ),
    Pinned(
        name="tiiuae/falcon-7b, first published form",
        config=REFINED_WEB_7B,
        source="the same model as tiiuae/falcon-7b",
        total=6_921_720_704,
        kv_full=8_192,
        reference=False,
    ),
    Pinned(
        name="apple/OpenELM-3B-Instruct",
        config=OPENELM_3B,
        source="safetensors metadata of the published checkpoint: 3,036,647,424",
        total=3_036_647_424,
        parts={"embedding": 98_304_000, "attention": 644_874_240, "mlp": 2_293_235_712, "norm": 233_472},
        kv_full=83_968,
        reference=False,
    ),
    Pinned(
        name="google/flan-t5-base",
        config=FLAN_T5_BASE,
        source="the published checkpoint under transformers 4 (recalled: 247,577,856); transformers 5 ties the head of "
        "an empty model against the file's flag and counts 24,674,304 less",
        total=247_577_856,
        parts={"attention": 84_935_424, "mlp": 113_246_208, "norm": 47_616, "lm_head": 24_674_304},
        kv_full=36_864,
        reference=False,
    ),
    Pinned(
        name="google/mt5-small",
        config=MT5_SMALL,
        source="the published checkpoint under transformers 4 (recalled: 300,176,768)",
        total=300_176_768,
        reference=False,
    ),
    Pinned(
        name="a small T5",
        config=SMALL_T5 | {"model_type": "t5"},
        source="transformers 5.24.0 on the meta device",
        total=200_128,
        kv_full=3 * 256,
        variants=T5_SWITCHES,
    ),
    Pinned(
        name="a small mT5",
        config=SMALL_T5 | {"model_type": "mt5"},
        source="transformers 5.24.0 on the meta device",
        total=230_848,
        variants=T5_SWITCHES,
    ),
    Pinned(
        name="a small UMT5",
        config=SMALL_T5 | {"model_type": "umt5"},
        source="transformers 5.24.0 on the meta device",
        total=231_232,
        variants=T5_SWITCHES,
    ),
    Pinned(
        name="a small BART",
        config=SMALL_BART | {"model_type": "bart"},
        source=SEQ2SEQ,
        total=201_840,
        parts={"other": 2 * 34 * 64},
        buffers=100,
        kv_full=3 * 256,
        reference=False,
    ),
    Pinned(
        name="a small mBART",
        config=SMALL_BART | {"model_type": "mbart"},
        source=SEQ2SEQ,
        total=202_096,
        reference=False,
    ),
    Pinned(
        name="a small Pegasus",
        config=SMALL_BART | {"model_type": "pegasus"},
        source=SEQ2SEQ,
        total=197_488,
        buffers=100 + 2 * 32 * 64,
        reference=False,
    ),
    Pinned(
        name="a small Marian",
        config=SMALL_BART | {"model_type": "marian"},
        source=SEQ2SEQ,
        total=197_232,
        reference=False,
    ),
    Pinned(
        name="a small Marian with a vocabulary per language",
        config=SMALL_BART
        | {"model_type": "marian", "share_encoder_decoder_embeddings": False, "decoder_vocab_size": 90},
        source=SEQ2SEQ,
        total=202_992,
        parts={"embedding": 190 * 64},
        reference=False,
    ),
)

test_counts = counts_test(PINNED)


@pytest.mark.oracle
@pytest.mark.parametrize("case", [case for case in PINNED if case.source == SEQ2SEQ], ids=lambda case: case.name)
def test_an_encoder_decoder_equals_the_reference_implementation(case: Pinned) -> None:
    import torch
    import transformers

    values = dict(case.config) | {"pad_token_id": 1, "decoder_start_token_id": 1}
    config = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        model = transformers.AutoModelForSeq2SeqLM.from_config(config)
    computed = config.model_type in ("pegasus", "marian")
    counted = sum(p.numel() for name, p in model.named_parameters() if not (computed and "embed_positions" in name))
    assert counted == case.total


@pytest.mark.parametrize("config", [FLAN_T5_BASE, SMALL_BART | {"model_type": "bart"}], ids=["t5", "bart"])
def test_an_encoder_sees_both_ways_and_a_decoder_looks_at_it(config: dict[str, Any]) -> None:
    model = read_architecture(config, source="config.json")
    encoder = [block for layer in model.encoder for block in layer.blocks if isinstance(block, Attention)]
    assert encoder
    assert not any(block.causal for block in encoder)
    assert sum(layers for _, layers in cross_attention(model)) == len(model.layers)
    assert all(isinstance(layer.blocks[1], CrossAttention) for layer in model.layers)


def test_relative_positions_sit_in_the_first_layer_of_a_stack() -> None:
    model = read_architecture(FLAN_T5_BASE, source="config.json")
    tables = [
        sum(weight.name.endswith("relative_attention_bias") for block in layer.blocks for weight in block.weights)
        for layer in (*model.encoder, *model.layers)
    ]
    assert tables == ([1] + [0] * 11) * 2


def test_a_head_that_the_reference_would_tie_is_said_to_be_untied() -> None:
    assert "a matrix of its own" in read_architecture(FLAN_T5_BASE, source="config.json").notes[0]
    tied = read_architecture(FLAN_T5_BASE | {"tie_word_embeddings": True}, source="config.json")
    assert (tied.lm_head, tied.notes) == (None, ())


def test_old_and_new_key_names_of_gpt_2_mean_the_same() -> None:
    names = {"n_embd": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads"}
    renamed = {names.get(key, key): value for key, value in GPT2.items()}
    assert count_parameters(read_architecture(renamed, source="config.json")).total == 124_439_808


def test_multi_query_falcon_caches_one_head_whatever_num_kv_heads_says() -> None:
    (group,) = cache_layers(read_architecture(FALCON_7B | {"num_kv_heads": 71}, source="config.json"))
    assert group.elements == 128


@pytest.mark.parametrize(
    ("base", "change", "message"),
    [
        (GPT2, {"add_cross_attention": True}, "add_cross_attention is true"),
        (GPT2, {"n_head": 7}, "hidden size 768 does not divide by 7 heads"),
        (GPT2, {"n_positions": None}, "n_positions is missing or null"),
        (GPT_NEO_125M, {"num_layers": 10}, "attention_types makes 12 layers of 10"),
        (GPT_NEO_125M, {"attention_types": [[["global", "banded"], 6]], "attention_layers": None}, "entry 'banded'"),
        (MPT_7B, {"attn_config": {"attn_type": "multiquery_attention"}}, "attn_type is 'multiquery_attention'"),
        (MPT_7B, {"attn_config": {"qk_ln": True}}, "qk_ln is true"),
        (MPT_7B, {"attn_config": {"alibi": False}}, "alibi is false"),
        (MPT_7B, {"no_bias": False}, "no_bias is false"),
        (MPT_7B, {"expansion_ratio": 2}, "expansion_ratio is 2"),
        (FALCON_7B, {"multi_query": False, "num_kv_heads": 8}, "num_kv_heads is 8 where multi_query is off"),
        (FALCON_40B, {"num_kv_heads": 7}, "num_kv_heads is 7, which does not divide the 128 attention heads"),
        (OPENELM_3B, {"num_kv_heads": [3]}, "num_kv_heads has 1 entries for 36 layers"),
        (OPENELM_3B, {"normalization_layer_name": "layer_norm"}, "normalization_layer_name is 'layer_norm'"),
        (FLAN_T5_BASE, {"num_experts": 8}, "num_experts = 8 changes what the model is made of"),
        (SMALL_BART, {"model_type": "bart", "tie_word_embeddings": False}, "tie_word_embeddings is false"),
        (SMALL_BART, {"model_type": "bart", "decoder_vocab_size": 90}, "decoder_vocab_size is 90"),
    ],
)
def test_what_is_refused(base: dict[str, Any], change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(base | change, source="config.json")
