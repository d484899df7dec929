"""Quantised checkpoints: from a ``quantization_config`` to the format and the bytes of every tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.architecture import Architecture, Component, Part, Use, Weight, layer_weights
from planner.blocks import (
    buffer,
    embedding,
    gated_mlp,
    grouped_query_attention,
    latent_attention,
    lm_head,
    mixture_of_experts,
    norm,
    pre_norm_layer,
    vector,
)
from planner.errors import PlanError
from planner.precision import FORMATS, bytes_for, cache_bytes
from planner.quantization import (
    Patterns,
    Quantization,
    assigned_weights,
    component_weights,
    read_quantization,
    stored_bytes,
)

BF16 = FORMATS["bf16"]


def read(config: Mapping[str, Any] | None, second: Mapping[str, Any] | None = None, **more: Any) -> Quantization:
    found = read_quantization({"quantization_config": config, **more}, second, source="config.json")
    assert found is not None
    return found


def refused(config: Mapping[str, Any], pattern: str, **more: Any) -> None:
    with pytest.raises(PlanError, match=pattern) as error:
        read_quantization({"quantization_config": config, **more}, source="config.json")
    assert "config.json" in str(error.value)
    assert error.value.field


def model(
    *,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    width: int,
    vocabulary: int,
    head_dim: int | None = None,
    experts: int = 0,
    components: tuple[Component, ...] = (),
    tied: bool = False,
) -> Architecture:
    attention = grouped_query_attention(
        hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim or hidden // heads
    )
    block = (
        mixture_of_experts(hidden=hidden, width=width, experts=experts, active=2)
        if experts
        else gated_mlp(hidden=hidden, width=width)
    )
    return Architecture(
        "test",
        "test",
        hidden,
        vocabulary,
        (pre_norm_layer(attention, block, hidden=hidden),) * layers,
        embedding("model.embed_tokens", rows=vocabulary, width=hidden),
        lm_head(vocabulary=vocabulary, hidden=hidden, tied=tied),
        norm("model.norm", hidden),
        components=components,
        dtype="bfloat16",
    )


LLAMA_8B = model(layers=32, hidden=4096, heads=32, kv_heads=8, width=14336, vocabulary=128256)
LINEAR_8B = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096 + 3 * 14336 * 4096)
REST_8B = 2 * 128256 * 4096 + 65 * 4096
SMALL = model(layers=4, hidden=256, heads=4, kv_heads=2, width=512, vocabulary=1000)
SMALL_MOE = model(layers=4, hidden=256, heads=4, kv_heads=2, width=128, vocabulary=1000, experts=4)


def formats(architecture: Architecture, quantization: Quantization) -> dict[str, str]:
    """Full name -> format, biases left out."""
    items = list(assigned_weights(architecture, replace_by_layer(quantization), BF16))
    for component in architecture.components:
        items += component_weights(component, quantization, BF16)
    return {item.name: item.form.name for item in items if not item.weight.is_bias}


def replace_by_layer(quantization: Quantization) -> Any:
    """The same assignment, asked layer by layer."""

    class ByLayer:
        by_layer = True
        format_of = staticmethod(quantization.format_of)

    return ByLayer()


def quantised(architecture: Architecture, quantization: Quantization) -> set[str]:
    return {name for name, form in formats(architecture, quantization).items() if form not in ("bf16", "fp16", "fp32")}


# --- totals that somebody else published ---


def gpt_oss(layers: int, experts: int) -> Architecture:
    hidden = 2880
    attention = grouped_query_attention(
        hidden=hidden,
        heads=64,
        kv_heads=8,
        head_dim=64,
        bias=True,
        output_bias=True,
        extra=vector("self_attn.sinks", 64, Part.ATTENTION),
    )
    moe = mixture_of_experts(
        hidden=hidden, width=2880, experts=experts, active=4, bias=True, router_bias=True, router_name="router"
    )
    return Architecture(
        "gpt_oss",
        "gpt_oss",
        hidden,
        201088,
        (pre_norm_layer(attention, moe, hidden=hidden),) * layers,
        embedding("model.embed_tokens", rows=201088, width=hidden),
        lm_head(vocabulary=201088, hidden=hidden, tied=False),
        norm("model.norm", hidden),
        dtype="bfloat16",
    )


MXFP4 = {
    "quant_method": "mxfp4",
    "modules_to_not_convert": [
        "model.layers.*.self_attn",
        "model.layers.*.mlp.router",
        "model.embed_tokens",
        "lm_head",
    ],
}


@pytest.mark.parametrize(("layers", "experts", "size"), [(36, 128, 65_248_815_744), (24, 32, 13_761_264_768)])
def test_gpt_oss_has_the_bytes_of_its_checkpoint(layers: int, experts: int, size: int) -> None:
    found = stored_bytes(gpt_oss(layers, experts), read(MXFP4), BF16)
    matrices = layers * experts * 3 * 2880 * 2880
    assert found.total == size
    assert found.by_format["mxfp4"] == matrices * 17 // 32
    assert found.scales == matrices // 32
    assert found.by_part[Part.EXPERTS] == matrices * 17 // 32 + 2 * layers * experts * 3 * 2880


BLOCK_FP8 = {
    "quant_method": "fp8",
    "activation_scheme": "dynamic",
    "fmt": "e4m3",
    "weight_block_size": [128, 128],
}


def test_qwen3_235b_fp8_has_the_published_number_of_scales() -> None:
    architecture = model(
        layers=94, hidden=4096, heads=64, kv_heads=4, head_dim=128, width=1536, vocabulary=151936, experts=128
    )
    skipped = [f"model.layers.{i}.mlp.gate" for i in range(94)] + ["lm_head"]
    found = stored_bytes(architecture, read(BLOCK_FP8 | {"modules_to_not_convert": skipped}), BF16)
    attention = 64 * 32 + 2 * 4 * 32 + 32 * 64
    assert found.scales == 4 * 94 * (attention + 128 * 3 * 12 * 32) == 4 * 14_269_952


def deepseek_v3() -> Architecture:
    hidden = 7168
    attention = latent_attention(
        hidden=hidden, heads=128, query_rank=1536, latent=512, nope_dim=128, rope_dim=64, value_dim=128
    )
    moe = mixture_of_experts(
        hidden=hidden, width=2048, experts=256, active=8, shared_width=2048, correction_buffer=True
    )
    dense_layer = pre_norm_layer(attention, gated_mlp(hidden=hidden, width=18432), hidden=hidden)
    moe_layer = pre_norm_layer(attention, moe, hidden=hidden)
    extra = [replace(w, part=Part.MTP, name=f"model.layers.61.{w.name}") for w in layer_weights(moe_layer)]
    extra.append(Weight("model.layers.61.eh_proj", (hidden, 2 * hidden), Part.MTP))
    extra += [Weight(f"model.layers.61.{n}", (hidden,), Part.MTP, Use.READ) for n in ("enorm", "hnorm", "norm")]
    return Architecture(
        "deepseek",
        "deepseek_v3",
        hidden,
        129280,
        (dense_layer,) * 3 + (moe_layer,) * 58,
        embedding("model.embed_tokens", rows=129280, width=hidden),
        lm_head(vocabulary=129280, hidden=hidden, tied=False),
        norm("model.norm", hidden),
        components=(Component("MTP module", tuple(extra), counted=False),),
        dtype="bfloat16",
    )


def test_deepseek_v3_has_the_published_number_of_scales() -> None:
    found = stored_bytes(deepseek_v3(), read(BLOCK_FP8), BF16)
    attention = 12 * 56 + 192 * 12 + 5 * 56 + 256 * 4 + 56 * 128  # 576 rows are five blocks
    expert = 3 * 16 * 56
    assert found.scales == 4 * (61 * attention + 3 * 3 * 144 * 56 + 58 * 257 * expert) == 4 * 40_838_232
    # The MTP layer: 702,264 scales; its eh_proj, router and norms stay in bf16. The published 11,610,068,224 elements
    # include 256 of a buffer.
    wide = 2 * 7168 * 7168 + 256 * 7168 + 5 * 7168 + 1536 + 512
    assert found.apart == {"MTP module": 11_610_068_224 - 256 + wide + 4 * 702_264}
    assert found.buffers == 2 * 58 * 256


def test_glm_5_fp8_keeps_the_indexers_head_weights_wide() -> None:
    # Published: 45,282,240 scales in 78 layers (75 of them with 257 experts): 10,656 for one layer's attention.
    hidden = 6144
    block = latent_attention(
        hidden=hidden,
        heads=64,
        query_rank=2048,
        latent=512,
        nope_dim=192,
        rope_dim=64,
        value_dim=256,
        extra=(
            Weight("self_attn.indexer.wq_b", (32 * 128, 2048), Part.ATTENTION),
            Weight("self_attn.indexer.wk", (128, hidden), Part.ATTENTION),
            Weight("self_attn.indexer.weights_proj", (32, hidden), Part.ATTENTION),
        ),
    )
    architecture = replace(SMALL, layers=(pre_norm_layer(block, gated_mlp(hidden=hidden, width=128), hidden=hidden),))
    scales = stored_bytes(architecture, read(BLOCK_FP8), BF16).scales // 4 - 3 * 48
    assert 78 * scales + 3 * 3 * 96 * 48 + 75 * 257 * 3 * 16 * 48 == 45_282_240


def test_deepseek_v3_in_nvfp4_has_the_published_number_of_elements() -> None:
    # The hub counts packed bytes and fp8 scales: 393,632,819,968, with copies of embedding and head in the MTP module.
    names = [f"model.layers.{i}.self_attn.{n}" for i in range(61) for n in ("q_a_proj", "q_b_proj", "kv_b_proj")]
    names += [f"model.layers.{i}.self_attn.kv_a_proj_with_mqa" for i in range(61)]
    second = {
        "quantization": {
            "quant_algo": "NVFP4",
            "kv_cache_quant_algo": "FP8",
            "group_size": 16,
            "exclude_modules": ["lm_head", "model.layers.61*", *names],
        }
    }
    architecture, found = deepseek_v3(), read(None, second)
    items = [*assigned_weights(architecture, found, BF16), *component_weights(architecture.components[0], found, BF16)]
    elements = [(item.weight.elements * item.layers, item.form.name) for item in items]
    stored = sum(n // 2 + n // 16 if form == "nvfp4" else n for n, form in elements)
    assert stored + 2 * 129280 * 7168 == 393_632_819_968
    assert found.unmatched(architecture) == ()


def test_qwen3_235b_in_nvfp4_has_the_published_number_of_elements() -> None:
    architecture = model(
        layers=94, hidden=4096, heads=64, kv_heads=4, head_dim=128, width=1536, vocabulary=151936, experts=128
    )
    per_head_norms = 94 * 2 * 128
    excluded = [f"model.layers.{i}.mlp.gate" for i in range(94)] + ["lm_head"]
    second = {"quantization": {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": excluded}}
    found = stored_bytes(architecture, read(None, second), BF16)
    matrices = 94 * (4 + 3 * 128)
    packed = found.by_format["nvfp4"] - 8 * matrices  # two fp32 scales a matrix, which the hub's count leaves out
    assert packed + found.by_format["bf16"] // 2 + per_head_norms == 132_806_618_624


def test_fbgemm_405b_quantises_the_mlps_of_all_but_the_outer_layers() -> None:
    architecture = model(layers=126, hidden=16384, heads=128, kv_heads=8, width=53248, vocabulary=128256)
    skipped = [f"model.layers.{i}.self_attn.{n}_proj" for i in range(126) for n in "qkvo"]
    skipped += [f"model.layers.{i}.mlp.{n}_proj" for i in (0, 125) for n in ("gate", "up", "down")]
    config = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": skipped}
    found = stored_bytes(architecture, read(config), BF16)
    assert found.scales == 4 * 124 * (2 * 53248 + 16384) == 4 * 15_237_120
    assert found.by_format["fp8"] == 124 * 3 * 53248 * 16384 + found.scales


def compressed(weights: Mapping[str, Any], layout: str, **more: Any) -> dict[str, Any]:
    group = {"targets": ["Linear"], "weights": weights, "input_activations": more.pop("inputs", None)}
    return {
        "quant_method": "compressed-tensors",
        "format": layout,
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
        "quantization_status": "compressed",
        **more,
    }


CHANNEL_FP8 = {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False}


def test_an_fp8_dynamic_checkpoint_has_a_scale_per_output_row() -> None:
    dynamic = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
    found = read(compressed(CHANNEL_FP8, "float-quantized", inputs=dynamic))
    count = stored_bytes(LLAMA_8B, found, BF16)
    assert count.scales == 2 * 1_376_256
    assert count.total == LINEAR_8B + 2 * REST_8B + 2 * 1_376_256
    assert found.activations == "fp8"


def test_static_per_tensor_fp8_has_two_scales_a_matrix() -> None:
    tower = Component("vision tower", (Weight("model.vision_tower.layers.0.q_proj", (1024, 1024), Part.VISION),))
    architecture = model(
        layers=40, hidden=512, heads=4, kv_heads=2, width=1024, vocabulary=1000, components=(tower,), tied=True
    )
    config = {
        "quant_method": "fp8",
        "activation_scheme": "static",
        "dequantize": False,
        "modules_to_not_convert": ["model.vision_tower", "model.multi_modal_projector", "lm_head"],
        "weight_block_size": None,
    }
    assert stored_bytes(architecture, read(config), BF16).scales == 4 * 560  # 40 layers × 7 matrices × 2


# --- each dialect on a model small enough to add up by hand ---

ATTENTION = 256 * 256 * 2 + 128 * 256 * 2
MLP = 3 * 512 * 256
WEIGHTS = 4 * (ATTENTION + MLP)
WIDE = 2 * (2 * 1000 * 256 + 9 * 256)
MATRICES = 4 * 7
INPUTS = 4 * (6 * 256 + 512)  # columns of all matrices
OUTPUTS = 4 * (256 + 128 + 128 + 256 + 512 + 512 + 256)


@pytest.mark.parametrize(
    ("config", "size"),
    [
        # groups of 128: fp16 scale and 4-bit zero each, an int32 index per input
        (
            {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True, "desc_act": False},
            WEIGHTS // 2 + (WEIGHTS // 128) * 5 // 2 + 4 * INPUTS,
        ),
        (
            {"quant_method": "gptq", "bits": 8, "group_size": -1, "sym": True, "desc_act": True},
            WEIGHTS + OUTPUTS * 3 + 4 * INPUTS,
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
            WEIGHTS // 2 + (WEIGHTS // 128) * 5 // 2,
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            WEIGHTS // 2 + WEIGHTS // 64 * 4 + MATRICES * 64,
        ),
        (
            {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True},
            WEIGHTS // 2 + WEIGHTS // 64 + WEIGHTS // 64 // 256 * 4 + MATRICES * (64 + 1024),
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, WEIGHTS + 4 * OUTPUTS),
        (BLOCK_FP8, WEIGHTS + 4 * WEIGHTS // 128 // 128),
        ({"quant_method": "fp8"}, WEIGHTS + 4 * MATRICES),
        ({"quant_method": "fbgemm_fp8"}, WEIGHTS + 4 * OUTPUTS),
        (
            compressed({"num_bits": 4, "type": "int", "group_size": 128, "strategy": "group"}, "pack-quantized"),
            WEIGHTS // 2 + WEIGHTS // 128 * 2,
        ),
        (
            compressed({"num_bits": 4, "type": "int", "group_size": 128, "symmetric": False}, "pack-quantized"),
            WEIGHTS // 2 + (WEIGHTS // 128) * 5 // 2,
        ),
        (compressed({"num_bits": 8, "type": "int", "strategy": "channel"}, "int-quantized"), WEIGHTS + 2 * OUTPUTS),
        (compressed(CHANNEL_FP8 | {"strategy": "tensor"}, "float-quantized"), WEIGHTS + 2 * MATRICES),
        (
            compressed(CHANNEL_FP8 | {"strategy": "block", "block_structure": [128, 128]}, "float-quantized"),
            WEIGHTS + 2 * WEIGHTS // 128 // 128,
        ),
        (
            compressed(
                {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"},
                "nvfp4-pack-quantized",
                inputs={"num_bits": 4, "type": "float", "dynamic": "local"},
            ),
            WEIGHTS // 2 + WEIGHTS // 16 + 8 * MATRICES,
        ),
        (
            compressed({"num_bits": 4, "type": "float", "group_size": 32}, "mxfp4-pack-quantized"),
            WEIGHTS // 2 + WEIGHTS // 32,
        ),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}, WEIGHTS + 8 * MATRICES),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "exclude_modules": ["lm_head"]},
            WEIGHTS // 2 + WEIGHTS // 16 + 8 * MATRICES,
        ),
        ({"quant_method": "modelopt", "quant_algo": "MXFP8"}, WEIGHTS + WEIGHTS // 32),
        (
            {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64, "axis": 1}}},
            WEIGHTS // 2 + WEIGHTS // 64 * 4,
        ),
        (
            {"quant_method": "torchao", "quant_type": "int4_weight_only", "quant_type_kwargs": {"group_size": 128}},
            WEIGHTS // 2 + WEIGHTS // 128 * 4,
        ),
        (
            {"quant_method": "torchao", "quant_type": {"default": {"_type": "Int8WeightOnlyConfig", "_data": {}}}},
            WEIGHTS + 2 * OUTPUTS,
        ),
        ({"quant_method": "eetq", "weights": "int8"}, WEIGHTS + 2 * OUTPUTS),
        ({"quant_method": "quanto", "weights": "int8", "activations": None}, WEIGHTS + 2 * OUTPUTS),
        ({"quant_method": "quanto", "weights": "int4"}, WEIGHTS // 2 + WEIGHTS // 128 * 4),
    ],
)
def test_bytes_of_a_small_checkpoint_by_hand(config: Mapping[str, Any], size: int) -> None:
    found = stored_bytes(SMALL, read(config), BF16)
    assert found.total == size + WIDE
    assert sum(found.by_part.values()) == sum(found.by_format.values()) == found.total
    assert found.by_format["bf16"] == WIDE


def test_mlx_quantises_embedding_and_head_and_takes_formats_per_module() -> None:
    raw = {
        "quantization": {
            "group_size": 64,
            "bits": 4,
            "model.layers.0.self_attn.q_proj": {"group_size": 64, "bits": 8},
            "model.layers.1.self_attn.q_proj": False,
        },
        "torch_dtype": "bfloat16",
    }
    found = read_quantization(raw, source="config.json")
    assert found is not None
    all_weights = WEIGHTS + 2 * 1000 * 256
    size = all_weights * 9 // 16  # a bf16 scale and a bf16 bias per 64 weights: 4.5 bits
    query = 256 * 256
    assert stored_bytes(SMALL, found, BF16).total == size + query // 2 + (2 * query - query * 9 // 16) + 2 * 9 * 256
    names = formats(SMALL, found)
    assert names["lm_head"] == names["model.embed_tokens"] == "mlx-int4-g64"
    assert names["model.layers.0.self_attn.q_proj"] == "mlx-int8-g64"
    assert names["model.layers.1.self_attn.q_proj"] == "bf16"
    odd = model(layers=1, hidden=96, heads=3, kv_heads=3, width=128, vocabulary=10)
    assert formats(odd, found)["model.layers.0.mlp.down_proj"] == "mlx-int4-g64"
    assert formats(odd, found)["model.layers.0.mlp.up_proj"] == "bf16"  # 96 inputs are no whole groups of 64


def test_packed_integers_inside_a_text_config() -> None:
    inner = compressed({"num_bits": 4, "type": "int", "group_size": 32}, "pack-quantized")
    inner["ignore"] = ["lm_head", "re:.*self_attn.*"]
    tower = Component("vision tower", (Weight("vision_tower.blocks.0.wqkv", (64, 64), Part.VISION),))
    found = read_quantization({"text_config": {"quantization_config": inner}}, source="config.json")
    assert found is not None
    weight = Weight("mlp.up_proj", (4096, 4096), Part.MLP)
    form = found.format_of("model.layers.0.mlp.up_proj", weight)
    assert form is not None
    assert bytes_for(weight.shape, form) == 9_437_184
    assert weight.elements == 16_777_216
    assert float(form.bits_per_weight) == 4.5
    assert found.format_of("model.layers.0.self_attn.q_proj", weight) is None
    with_tower = replace(SMALL, components=(tower,))
    assert "vision_tower.blocks.0.wqkv" not in quantised(with_tower, found)


# --- what stays as it is ---


def test_gptq_and_awq_leave_everything_outside_the_layers() -> None:
    tower = Component("vision tower", (Weight("visual.merger", (64, 64), Part.VISION),))
    architecture = replace(SMALL_MOE, components=(tower,))
    for config in (
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {"quant_method": "awq", "bits": 4, "group_size": 128, "modules_to_not_convert": None},
    ):
        names = quantised(architecture, read(config))
        assert names
        assert all(name.startswith("model.layers.") for name in names)
        assert not any(name.endswith("mlp.gate") for name in names)


def test_gptq_rules_per_module() -> None:
    config = {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "dynamic": {r"-:.*\.0\.mlp\..*": {}, r"+:.*down_proj": {"bits": 8, "group_size": 64}},
        "lm_head": True,
    }
    names = formats(SMALL, read(config))
    assert names["model.layers.0.mlp.down_proj"] == "bf16"
    assert names["model.layers.1.mlp.down_proj"] == "gptq-int8-g64"
    assert names["model.layers.1.mlp.up_proj"] == names["lm_head"] == "gptq-int4"
    only = {"quant_method": "gptq", "bits": 4, "group_size": 128, "modules_to_not_convert": []}
    inside = read(only | {"modules_in_block_to_quantize": [["self_attn.q_proj"], ["mlp.up_proj"]]})
    assert {name.split(".", 3)[3] for name in quantised(SMALL, inside)} == {"self_attn.q_proj", "mlp.up_proj"}


def test_bitsandbytes_skips_the_head_unless_it_is_given_another_list() -> None:
    config = {"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": None}
    assert "lm_head" not in quantised(SMALL, read(config))
    listed = read(config | {"llm_int8_skip_modules": ["self_attn", "model.layers.3.mlp"]})
    names = quantised(SMALL, listed)
    assert "lm_head" in names
    assert not any("self_attn" in name or ".3.mlp" in name for name in names)


def test_a_bare_gate_is_the_router_and_no_gate_projection() -> None:
    found = read(BLOCK_FP8 | {"modules_to_not_convert": ["gate", "e_score_correction_bias", "lm_head"]})
    names = quantised(SMALL_MOE, found)
    assert "model.layers.0.mlp.experts.*.gate_proj" in names
    assert "model.layers.0.mlp.gate" not in names


def test_compressed_tensors_takes_the_head_unless_it_is_ignored() -> None:
    config = compressed(CHANNEL_FP8, "float-quantized")
    assert "lm_head" not in quantised(SMALL, read(config))
    assert "lm_head" in quantised(SMALL, read(config | {"ignore": []}))
    assert "model.embed_tokens" not in quantised(SMALL, read(config | {"ignore": []}))


def test_groups_with_targets_of_their_own() -> None:
    config = compressed(CHANNEL_FP8, "mixed-precision")
    config["config_groups"]["group_1"] = {
        "targets": ["re:.*mlp.*", "model.layers.2.self_attn.o_proj"],
        "format": "pack-quantized",
        "weights": {"num_bits": 4, "type": "int", "group_size": 128},
    }
    config["ignore"] = ["lm_head", "re:.*layers\\.3\\.mlp.*"]
    names = formats(SMALL, read(config))
    assert names["model.layers.0.self_attn.q_proj"] == "fp8"
    assert names["model.layers.0.mlp.up_proj"] == names["model.layers.2.self_attn.o_proj"] == "int4"
    assert names["model.layers.3.mlp.up_proj"] == "bf16"


def test_modelopt_wildcards_and_other_roots() -> None:
    second = {
        "quantization": {
            "quant_algo": "NVFP4",
            "exclude_modules": ["lm_head", "language_model.model.layers.0*", "*.layers.1.mlp.*", "vision_tower*"],
        }
    }
    tower = Component("vision tower", (Weight("model.vision_tower.layers.0.wqkv", (64, 64), Part.VISION),))
    architecture = replace(SMALL, components=(tower,), layer_names="model.language_model.layers")
    names = quantised(architecture, read(None, second))
    assert not any(".layers.0." in name or ".layers.1.mlp" in name for name in names)
    assert "model.language_model.layers.1.self_attn.q_proj" in names
    assert "model.language_model.layers.2.mlp.up_proj" in names


def test_mixed_precision_names_every_module() -> None:
    layers: dict[str, Any] = {"lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16}}
    for i in range(4):
        layers[f"model.layers.{i}.self_attn.q_proj"] = {"quant_algo": "FP8"}
        for expert in range(4):
            layers[f"model.layers.{i}.mlp.experts.{expert}.up_proj"] = {"quant_algo": "NVFP4", "group_size": 16}
    layers["model.layers.2.mlp.experts"] = {"quant_algo": "MXFP8"}
    config = {"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "quantized_layers": layers}
    names = formats(SMALL_MOE, read(config))
    assert names["lm_head"] == "nvfp4"
    assert names["model.layers.1.self_attn.q_proj"] == "fp8-tensor"
    assert names["model.layers.1.mlp.experts.*.up_proj"] == "nvfp4"
    assert names["model.layers.2.mlp.experts.*.down_proj"] == "mxfp8"
    assert names["model.layers.1.self_attn.k_proj"] == names["model.layers.1.mlp.experts.*.down_proj"] == "bf16"
    del layers["model.layers.3.mlp.experts.1.up_proj"]
    partial = read(config)
    with pytest.raises(PlanError, match=r"names 3 of the 4 experts"):
        stored_bytes(SMALL_MOE, partial, BF16)


def test_experts_in_fp4_beside_fp8() -> None:
    names = formats(SMALL_MOE, read(BLOCK_FP8 | {"scale_fmt": "ue8m0"}, expert_dtype="fp4"))
    assert names["model.layers.0.mlp.experts.*.up_proj"] == "mxfp4"
    assert names["model.layers.0.self_attn.q_proj"] == "fp8-block"
    refused(BLOCK_FP8, "expert_dtype is 'fp3'", expert_dtype="fp3")


def test_convolutions_and_tables_are_no_linear_layers() -> None:
    found = read(BLOCK_FP8)
    for weight in (
        Weight("mixer.conv1d", (512, 4), Part.STATE_SPACE),
        Weight("visual.patch_embed.proj", (64, 64), Part.VISION),
        Weight("model.embed_positions", (512, 64), Part.OTHER, Use.LOOKED_UP),
        Weight("mixer.A_log", (64, 16), Part.STATE_SPACE, Use.READ),
        buffer("mlp.gate.e_score_correction_bias", 64, Part.ROUTER)[0],
    ):
        assert found.format_of(f"model.layers.0.{weight.name}", weight) is None


# --- lists of names ---


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("lm_head", "lm_head", True),
        ("lm_head", "language_model.lm_head", True),
        ("model.layers.1", "model.layers.1.mlp.up_proj", True),
        ("model.layers.1", "model.layers.10.mlp.up_proj", False),
        ("model.layers.1.mlp.gate", "model.layers.1.mlp.gate_proj", False),
        ("mlp.gate", "model.layers.1.mlp.gate", True),
        ("visual", "model.visual.blocks.0.qkv", True),
        ("language_model", "model.language_model.layers.0.mlp.up_proj", True),
        ("language_model.*", "lm_head", False),
        ("language_model.*", "language_model.layers.0.mlp.up_proj", True),
        ("model.layers.0.self_attn.q_proj", "vision_tower.layers.0.self_attn.q_proj", False),
        ("model.layers.*.self_attn", "model.layers.7.self_attn.q_proj", True),
        ("model.layers.61*", "model.layers.61.mlp.up_proj", True),
        ("*mlp.gate", "model.layers.3.mlp.gate", True),
        ("*mlp.gate", "model.layers.3.mlp.gate_proj", False),
        ("*.attn.*", "layers.3.attn.wq_a", True),
        ("re:.*self_attn.*", "model.layers.3.self_attn.q_proj", True),
        ("re:self_attn", "model.layers.3.self_attn.q_proj", False),
        (r"re:.*mlp\.(gate|up|gate_up|down)_proj.*", "model.layers.0.mlp.up_proj", True),
        (r"re:.*mlp\.(gate|up|gate_up|down)_proj.*", "model.layers.1.mlp.experts.*.up_proj", False),
        (r"re:.*experts\.\d+\.up_proj", "model.layers.1.mlp.experts.*.up_proj", True),
        ("mtp*", "model.mtp.layers.0.mlp", True),
        ("mtp*", "mtp.layers.0.mlp", True),
    ],
)
def test_how_a_list_matches(pattern: str, name: str, expected: bool) -> None:
    assert Patterns([(pattern, None)], source="config.json", key="ignore").find(name)[0] is expected


def test_entries_that_match_nothing_are_reported() -> None:
    found = read(BLOCK_FP8 | {"modules_to_not_convert": ["lm_head", "model.layers.9.mlp", "model.visual"]})
    assert found.unmatched(SMALL) == ("model.layers.9.mlp", "model.visual")


names = st.lists(st.sampled_from(["layers", "0", "1", "mlp", "self_attn", "q_proj", "gate"]), min_size=1, max_size=6)


@given(names)
def test_every_name_matches_itself_and_its_parents(parts: list[str]) -> None:
    for stop in range(1, len(parts) + 1):
        pattern = Patterns([(".".join(["model", *parts[:stop]]), None)], source="config.json", key="ignore")
        assert pattern.find(".".join(["model", *parts]))[0]


@given(st.sets(st.integers(0, 3)))
def test_leaving_more_modules_alone_never_makes_a_file_smaller(layers: set[int]) -> None:
    skipped = [f"model.layers.{i}.mlp" for i in sorted(layers)]
    found = stored_bytes(SMALL, read(BLOCK_FP8 | {"modules_to_not_convert": skipped}), BF16)
    per_layer = MLP - 4 * MLP // 128 // 128
    assert found.total == stored_bytes(SMALL, read(BLOCK_FP8), BF16).total + len(layers) * per_layer


def test_layers_are_told_apart_only_where_a_list_does() -> None:
    assert not read(MXFP4).by_layer
    assert not read(compressed(CHANNEL_FP8, "float-quantized", ignore=["lm_head", "re:.*self_attn.*"])).by_layer
    assert read(BLOCK_FP8 | {"modules_to_not_convert": ["model.layers.0.mlp"]}).by_layer
    assert len(list(assigned_weights(SMALL, read(BLOCK_FP8), BF16))) == 1 + 9 + 2


# --- the cache and the arithmetic ---


def test_the_cache_has_a_format_of_its_own() -> None:
    elements = 2 * 80 * 8 * 128
    silent = read(compressed(CHANNEL_FP8, "float-quantized", kv_cache_scheme=None))
    assert silent.cache is None
    second = {"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]}}
    for found in (
        read(None, second),
        read(compressed(CHANNEL_FP8, "float-quantized", kv_cache_scheme={"num_bits": 8, "type": "float"})),
        read({"quant_algo": "FP8", "kv_cache_scheme": "FP8", "ignore": ["lm_head"], "producer": {"name": "modelopt"}}),
    ):
        assert found.cache is not None
        assert cache_bytes(elements, found.cache) == 163_840
    only_cache = read(None, {"quantization": {"quant_algo": None, "kv_cache_quant_algo": "FP8"}})
    assert stored_bytes(SMALL, only_cache, BF16).total == 2 * WEIGHTS + WIDE


def test_weights_alone_or_weights_and_activations() -> None:
    weights = {"num_bits": 8, "type": "int", "strategy": "channel"}
    inputs = {"num_bits": 8, "type": "int", "dynamic": True}
    matrix = Weight("mlp.up_proj", (64, 64), Part.MLP)

    def unit(config: Mapping[str, Any], **more: Any) -> str:
        form = read(config, **more).format_of("model.layers.0.mlp.up_proj", matrix)
        assert form is not None
        return form.multiply

    assert unit(compressed(weights, "int-quantized", inputs=inputs)) == "int8"
    assert unit(compressed(weights, "int-quantized")) == "bf16"
    assert unit(compressed(weights, "int-quantized"), torch_dtype="float16") == "fp16"
    assert unit(compressed(CHANNEL_FP8, "float-quantized", inputs=CHANNEL_FP8)) == "fp8"
    assert unit({"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4"}) == "bf16"
    assert unit({"quant_method": "modelopt", "quant_algo": "NVFP4"}) == "fp4"
    assert unit({"quant_method": "bitsandbytes", "load_in_8bit": True}) == "int8"


def test_it_says_in_words_what_stays() -> None:
    skipped = [f"model.layers.{i}.mlp.gate" for i in range(94)]
    text = read(BLOCK_FP8 | {"modules_to_not_convert": skipped}).describe()
    assert text.startswith(
        "FP8: linear layers in fp8-block; left in the model's own format: embedding, LM head, router"
    )
    assert "model.layers.N.mlp.gate (94)" in text
    assert "routed experts in mxfp4" in read(MXFP4).describe()
    assert "everything outside the experts" in read(MXFP4).describe()


# --- none, and refusals ---


@pytest.mark.parametrize("config", [{}, {"quantization_config": None}, {"quantization_config": {}}])
def test_no_quantisation(config: Mapping[str, Any]) -> None:
    assert read_quantization(config, source="config.json") is None
    assert read_quantization(config, {}, source="config.json") is None
    assert stored_bytes(LLAMA_8B, None, BF16).total == 2 * 8_030_261_248


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": "gptqq", "bits": 4}, r"quantization_config.quant_method is 'gptqq'.*did you mean gptq"),
        ({"quant_method": "aqlm", "nbits": 1}, r"quant_method is 'aqlm'; understood are awq"),
        ({"something": 4}, r"quant_method is None"),
        ({"quant_method": 4}, r"quant_method is 4"),
        ({"quant_method": "gptq", "group_size": 128}, r"quantization_config.bits is missing"),
        ({"quant_method": "gptq", "bits": 5, "group_size": 128}, r"bits is 5; expected one of 2, 3, 4, 8"),
        ({"quant_method": "gptq", "bits": True, "group_size": 128}, r"bits is True"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 0}, r"group_size is 0"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"}, r"checkpoint_format"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "new_packing": "x"}, r"new_packing = x may change"),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "dynamic": {"x": 4}}, r"dynamic has 4"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"}, r"version is 'gemv'"),
        ({"quant_method": "awq", "bits": 3, "group_size": 128}, r"bits is 3"),
        ({"quant_method": "bitsandbytes"}, r"load_in_4bit and load_in_8bit are both false"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": "yes"}, r"load_in_4bit is 'yes'; expected true or false"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "af4"}, r"quant_type is 'af4'"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, r"weight_block_size is \[128\]"),
        ({"quant_method": "fp8", "activation_scheme": "odd"}, r"activation_scheme is 'odd'"),
        (
            {"quant_method": "fp8", "modules_to_not_convert": "lm_head"},
            r"modules_to_not_convert .* list of module names",
        ),
        ({"quant_method": "mxfp4", "modules_to_not_convert": [3]}, r"list of module names"),
        ({"quant_method": "compressed-tensors"}, r"config_groups is missing or empty"),
        (compressed({"num_bits": 3, "type": "int", "group_size": 128}, "pack-quantized"), r"num_bits is 3"),
        (compressed(CHANNEL_FP8, "marlin-24"), r"format is 'marlin-24'"),
        (compressed(CHANNEL_FP8, "float-quantized", transform_config={"a": 1}), r"transform_config"),
        (
            compressed(CHANNEL_FP8, "float-quantized", sparsity_config={"format": "sparse-24"}),
            r"sparsity_config.format",
        ),
        (compressed(CHANNEL_FP8, "float-quantized", ignore=["re:("]), r"no regular expression"),
        (compressed(CHANNEL_FP8, "float-quantized", ignore=["Attention"]), r"ignore holds the class 'Attention'"),
        (compressed(CHANNEL_FP8 | {"symmetric": False}, "float-quantized"), r"symmetric is false"),
        (compressed(CHANNEL_FP8, "float-quantized", kv_cache_scheme={"num_bits": 3}), r"kv_cache_scheme.num_bits is 3"),
        (compressed(CHANNEL_FP8, "float-quantized", kv_cache_scheme="FP5"), r"kv_cache_scheme is not understood"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, r"quant_algo is 'W4A8_AWQ'"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, r"quantized_layers is missing"),
        ({"quant_method": "hqq", "quant_config": {"self_attn.q_proj": {}}}, r"no weight_quant_params"),
        ({"quant_method": "torchao", "quant_type": "int1_weight_only"}, r"quant_type is 'int1_weight_only'"),
        ({"quant_method": "quanto", "weights": "int3"}, r"weights is 'int3'"),
        ({"bits": 7, "group_size": 64}, r"bits is 7"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_key(config: Mapping[str, Any], message: str) -> None:
    refused(config, message)


def test_a_config_that_is_no_object_is_refused() -> None:
    with pytest.raises(PlanError, match="quantization_config is 'fp8'; expected an object"):
        read_quantization({"quantization_config": "fp8"}, source="config.json")


def test_a_target_of_an_unknown_class_is_refused() -> None:
    config = compressed(CHANNEL_FP8, "float-quantized")
    config["config_groups"]["group_0"]["targets"] = ["Conv2d"]
    refused(config, r"targets holds the class 'Conv2d'")


def test_harmless_keys_are_passed_over() -> None:
    config = {"quant_method": "gptq", "bits": 4, "group_size": 128, "damp_percent": 0.01, "model_seqlen": 4096}
    harmless = {"true_sequential": True, "desc_act": True, "exllama_config": {"version": 1}, "dataset": "c4"}
    assert read(config | harmless).everywhere == read(config).everywhere
