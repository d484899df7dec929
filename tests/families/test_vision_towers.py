"""Towers and projectors: small made-up wrappers around a Llama, every switch against the reference."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import Part
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

TEXT = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 512,
}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "image_size": 28,
    "patch_size": 14,
}
COMMON: dict[str, list[Any]] = {
    "vision_config.hidden_size": [64],
    "vision_config.num_channels": [1],
    "vision_config.patch_size": [7],
    "tie_word_embeddings": [True],
    "text_config.hidden_size": [128],
}


def wrapper(model_type: str, vision: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "text_config": TEXT,
        "vision_config": VISION | vision,
        "tie_word_embeddings": False,
    } | keys


PINNED = (
    Pinned(
        name="small llava with CLIP",
        config=wrapper("llava", {"model_type": "clip_vision_model"}, vision_feature_layer=-2),
        source="transformers 5.24.0 on the meta device",
        total=249_968,
        variants=COMMON
        | {
            "vision_config.intermediate_size": [64, ...],
            "vision_config.num_hidden_layers": [1, ...],
            "vision_config.image_size": [56, ...],
            "multimodal_projector_bias": [False],
            "vision_feature_layer": [[-2, -1], ...],
            "text_config": [{"model_type": "llama"}, {"model_type": "mistral", "sliding_window": None}, ...],
        },
    ),
    Pinned(
        name="small llava with SigLIP",
        config=wrapper("llava", {"model_type": "siglip_vision_model"}),
        source="transformers 5.24.0 on the meta device",
        total=257_344,
        variants={"vision_config.vision_use_head": [False], "vision_config.image_size": [56, ...]},
    ),
    Pinned(
        name="small llava with Pixtral",
        config=wrapper("llava", {"model_type": "pixtral"}),
        source="transformers 5.24.0 on the meta device",
        total=253_472,
        variants={"vision_config": [{"model_type": "pixtral"}], "vision_config.head_dim": [16]},
    ),
    Pinned(
        name="small llava_next",
        config=wrapper("llava_next", {"model_type": "clip_vision_model"}),
        source="transformers 5.24.0 on the meta device",
        total=250_032,
        variants={"vision_feature_layer": [[-3, -2]], "model_type": ["llava_next_video"], "vision_config": [...]},
    ),
    Pinned(
        name="small llava_onevision",
        config=wrapper("llava_onevision", {"model_type": "siglip_vision_model", "vision_use_head": False}),
        source="transformers 5.24.0 on the meta device",
        total=249_936,
        variants={"vision_config": [...], "multimodal_projector_bias": [False]},
    ),
    Pinned(
        name="small vipllava",
        config=wrapper("vipllava", {"model_type": "clip_vision_model"}, vision_feature_layers=[-2, -1, 1]),
        source="transformers 5.24.0 on the meta device",
        total=254_256,
        variants={"vision_feature_layers": [...], "vision_config": [...]},
    ),
    Pinned(
        name="small mistral3",
        config=wrapper("mistral3", {"model_type": "pixtral"}),
        source="transformers 5.24.0 on the meta device",
        total=257_472,
        variants=COMMON
        | {
            "spatial_merge_size": [1, 3],
            "multimodal_projector_bias": [True],
            "vision_feature_layer": [[-2, -1]],
        },
    ),
    Pinned(
        name="small internvl",
        config=wrapper("internvl", {"model_type": "internvl_vision"}),
        source="transformers 5.24.0 on the meta device",
        total=256_176,
        variants=COMMON
        | {
            "vision_config.attention_bias": [True],
            "vision_config.use_qk_norm": [True],
            "vision_config.norm_type": ["rms_norm"],
            "vision_config.use_mask_token": [True],
            "vision_config.use_absolute_position_embeddings": [False],
            "vision_config.use_mean_pooling": [False],
            "vision_config.image_size": [56, [28, 56], ...],
            "downsample_ratio": [0.25],
        },
    ),
    Pinned(
        name="small idefics2",
        config=wrapper("idefics2", {}, perceiver_config={"resampler_depth": 2, "resampler_n_latents": 8})
        | {"text_config": TEXT | {"model_type": "mistral", "sliding_window": None}},
        source="transformers 5.24.0 on the meta device",
        total=850_768,
        variants={
            "perceiver_config": [...],
            "perceiver_config.resampler_n_heads": [8],
            "perceiver_config.resampler_head_dim": [16],
            "perceiver_config.num_key_value_heads": [1],
            "vision_config": [...],
            "vision_config.image_size": [56],
            "text_config.intermediate_size": [96, ...],
            "tie_word_embeddings": [True],
        },
    ),
    Pinned(
        name="small idefics3",
        config=wrapper("idefics3", {}),
        source="transformers 5.24.0 on the meta device",
        total=251_792,
        variants=COMMON | {"scale_factor": [4], "vision_config": [...], "model_type": ["smolvlm"]},
    ),
    Pinned(
        name="small voxtral",
        config={
            "model_type": "voxtral",
            "text_config": TEXT,
            "audio_config": {
                "hidden_size": 32,
                "intermediate_size": 128,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
            },
        },
        source="transformers 5.24.0 on the meta device",
        total=475_200,
        variants={
            "audio_config.num_mel_bins": [80],
            "audio_config.max_source_positions": [100],
            "text_config.head_dim": [16],
            "text_config.hidden_size": [...],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_parts_of_a_wrapper_have_published_paths() -> None:
    architecture = read_architecture(PINNED[0].config, source="config.json")
    assert architecture.layer_names == "language_model.model.layers"
    assert architecture.embedding.name == "language_model.model.embed_tokens"
    assert architecture.lm_head is not None
    assert architecture.lm_head.name == "language_model.lm_head"
    names = {weight.name for component in architecture.components for weight in component.weights}
    assert "vision_tower.vision_model.encoder.layers.*.self_attn.q_proj" in names
    assert "multi_modal_projector.linear_1" in names
    assert {w.part for component in architecture.components for w in component.weights} == {Part.VISION}


def test_defaults_of_the_text_class_are_reported() -> None:
    config = wrapper("llava", {"model_type": "clip_vision_model"}) | {"text_config": {"vocab_size": 32064}}
    assumed = read_architecture(config, source="config.json").assumed
    assert any(text.startswith("text_config.hidden_size = 4,096") for text in assumed)
    assert any(text.startswith("vision_config.num_channels = 3") for text in assumed)
    assert not any("vocab_size" in text for text in assumed)


def test_an_unknown_tower_is_refused() -> None:
    with pytest.raises(PlanError, match=r"vision_config.model_type is 'eva'; the towers known here are clip_vision_"):
        read_architecture(wrapper("llava", {"model_type": "eva"}), source="config.json")


def test_a_patch_wider_than_the_image_is_refused() -> None:
    with pytest.raises(PlanError, match=r"vision_config.patch_size is 32, more than the image_size 28"):
        read_architecture(wrapper("llava", {"model_type": "clip_vision_model", "patch_size": 32}), source="config.json")


def test_a_key_of_a_tower_that_nobody_reads_is_refused() -> None:
    with pytest.raises(PlanError, match=r"vision_config.num_experts = 4 changes"):
        read_architecture(wrapper("llava", {"model_type": "clip_vision_model", "num_experts": 4}), source="config.json")


def test_an_error_in_a_flat_file_names_the_key_as_written() -> None:
    config = {"model_type": "qwen2_vl", "hidden_size": -1, "vision_config": {}}
    with pytest.raises(PlanError, match=r"^config.json: (the keys? )?(?!text_config)"):
        read_architecture(config, source="config.json")


def test_a_true_tie_flag_in_the_text_config_ties_where_the_wrapper_says_nothing() -> None:
    config = wrapper("mistral3", {"model_type": "pixtral"}) | {"text_config": TEXT | {"tie_word_embeddings": True}}
    del config["tie_word_embeddings"]
    assert read_architecture(config, source="config.json").tied
    assert not read_architecture(config | {"tie_word_embeddings": False}, source="config.json").tied
