"""Published models that see and hear, wrappers around text models of other families."""

from __future__ import annotations

from typing import Any

import pytest

from planner.architecture import CrossAttention
from planner.counting import count_parameters, cross_attention
from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

CLIP_LARGE = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "image_size": 336,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "patch_size": 14,
    "projection_dim": 768,
    "vocab_size": 32000,
}
LLAVA_15 = {
    "model_type": "llava",
    "text_config": {"max_position_embeddings": 4096, "model_type": "llama", "vocab_size": 32064},
    "tie_word_embeddings": False,
    "vision_config": CLIP_LARGE,
    "vision_feature_layer": -2,
    "vocab_size": 32064,
}
PIXTRAL_12B = {
    "model_type": "llava",
    "text_config": {
        "model_type": "mistral",
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 14336,
        "max_position_embeddings": 1024000,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "vision_config": {"model_type": "pixtral", "head_dim": 64, "image_size": 1024, "patch_size": 16},
    "vision_feature_layer": -1,
}
MISTRAL_SMALL_31: dict[str, Any] = {
    "model_type": "mistral3",
    "multimodal_projector_bias": False,
    "spatial_merge_size": 2,
    "text_config": {
        "model_type": "mistral",
        "head_dim": 128,
        "hidden_size": 5120,
        "intermediate_size": 32768,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "model_type": "pixtral",
        "head_dim": 64,
        "hidden_size": 1024,
        "image_size": 1540,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
    "vision_feature_layer": -1,
}
QWEN25_VL_7B = {
    "model_type": "qwen2_5_vl",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 128000,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_sliding_window": False,
    "vision_config": {
        "depth": 32,
        "fullatt_block_indexes": [7, 15, 23, 31],
        "hidden_size": 1280,
        "in_chans": 3,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "spatial_patch_size": 14,
        "temporal_patch_size": 2,
        "window_size": 112,
    },
    "vocab_size": 152064,
}
QWEN2_VL_7B = QWEN25_VL_7B | {
    "model_type": "qwen2_vl",
    "max_position_embeddings": 32768,
    "sliding_window": 32768,
    "vision_config": {
        "depth": 32,
        "embed_dim": 1280,
        "mlp_ratio": 4,
        "num_heads": 16,
        "hidden_size": 3584,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}
QWEN3_VL_TOWER = {
    "deepstack_visual_indexes": [8, 16, 24],
    "depth": 27,
    "hidden_size": 1152,
    "in_channels": 3,
    "intermediate_size": 4304,
    "num_heads": 16,
    "num_position_embeddings": 2304,
    "out_hidden_size": 4096,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
QWEN3_VL_8B = {
    "model_type": "qwen3_vl",
    "text_config": {
        "model_type": "qwen3_vl_text",
        "attention_bias": False,
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "max_position_embeddings": 262144,
        "num_attention_heads": 32,
        "num_hidden_layers": 36,
        "num_key_value_heads": 8,
        "vocab_size": 151936,
    },
    "tie_word_embeddings": False,
    "vision_config": QWEN3_VL_TOWER,
}
QWEN3_VL_235B = {
    "model_type": "qwen3_vl_moe",
    "text_config": {
        "model_type": "qwen3_vl_moe_text",
        "attention_bias": False,
        "decoder_sparse_step": 1,
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "max_position_embeddings": 262144,
        "mlp_only_layers": [],
        "moe_intermediate_size": 1536,
        "num_attention_heads": 64,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 94,
        "num_key_value_heads": 4,
        "vocab_size": 151936,
    },
    "tie_word_embeddings": False,
    "vision_config": QWEN3_VL_TOWER,
}
LLAMA_32_11B: dict[str, Any] = {
    "model_type": "mllama",
    "text_config": {
        "model_type": "mllama_text_model",
        "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 128256,
    },
    "vision_config": {
        "attention_heads": 16,
        "hidden_size": 1280,
        "image_size": 560,
        "intermediate_layers_indices": [3, 7, 15, 23, 30],
        "intermediate_size": 5120,
        "max_num_tiles": 4,
        "num_global_layers": 8,
        "num_hidden_layers": 32,
        "patch_size": 14,
        "vision_output_dim": 7680,
    },
}
LLAMA_4_SCOUT: dict[str, Any] = {
    "model_type": "llama4",
    "text_config": {
        "model_type": "llama4_text",
        "attention_bias": False,
        "attention_chunk_size": 8192,
        "head_dim": 128,
        "hidden_size": 5120,
        "interleave_moe_layer_step": 1,
        "intermediate_size": 8192,
        "intermediate_size_mlp": 16384,
        "max_position_embeddings": 10485760,
        "num_attention_heads": 40,
        "num_experts_per_tok": 1,
        "num_hidden_layers": 48,
        "num_key_value_heads": 8,
        "num_local_experts": 16,
        "use_qk_norm": True,
        "vocab_size": 202048,
    },
    "vision_config": {
        "hidden_size": 1408,
        "image_size": 336,
        "intermediate_size": 5632,
        "num_attention_heads": 16,
        "num_hidden_layers": 34,
        "patch_size": 14,
        "projector_input_dim": 4096,
        "projector_output_dim": 4096,
        "vision_output_dim": 4096,
    },
}
LFM25_VL: dict[str, Any] = {
    "model_type": "lfm2_vl",
    "downsample_factor": 2,
    "encoder_patch_size": 16,
    "projector_bias": True,
    "projector_hidden_size": 2048,
    "projector_use_layernorm": False,
    "text_config": {
        "model_type": "lfm2",
        "block_auto_adjust_ff_dim": True,
        "block_ffn_dim_multiplier": 1.0,
        "block_multiple_of": 256,
        "conv_L_cache": 3,
        "conv_bias": False,
        "hidden_size": 2048,
        "intermediate_size": 12288,
        "layer_types": ["full_attention" if layer in (2, 5, 8, 10, 12, 14) else "conv" for layer in range(16)],
        "max_position_embeddings": 128000,
        "num_attention_heads": 32,
        "num_hidden_layers": 16,
        "num_key_value_heads": 8,
        "vocab_size": 65536,
    },
    "vision_config": {
        "model_type": "siglip2_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "num_hidden_layers": 27,
        "num_patches": 256,
        "patch_size": 16,
        "vision_use_head": False,
    },
}
KIMI_K25: dict[str, Any] = {
    "model_type": "kimi_k25",
    "text_config": {
        "model_type": "kimi_k2",
        "attention_bias": False,
        "first_k_dense_replace": 1,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "kv_lora_rank": 512,
        "max_position_embeddings": 262144,
        "moe_intermediate_size": 2048,
        "moe_layer_freq": 1,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 61,
        "num_key_value_heads": 64,
        "num_nextn_predict_layers": 0,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "topk_method": "noaux_tc",
        "v_head_dim": 128,
        "vocab_size": 163840,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "init_pos_emb_height": 64,
        "init_pos_emb_time": 4,
        "init_pos_emb_width": 64,
        "merge_kernel_size": [2, 2],
        "mm_hidden_size": 1152,
        "mm_projector_type": "patchmerger",
        "patch_size": 14,
        "text_hidden_size": 7168,
        "vt_hidden_size": 1152,
        "vt_intermediate_size": 4304,
        "vt_num_attention_heads": 16,
        "vt_num_hidden_layers": 27,
    },
}
KIMI_K3: dict[str, Any] = {
    "model_type": "kimi_k3",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "kimi_linear",
        "attn_res_block_size": 12,
        "first_k_dense_replace": 1,
        "hidden_size": 7168,
        "intermediate_size": 33792,
        "kv_lora_rank": 512,
        "latent_moe_use_norm": True,
        "linear_attn_config": {
            "full_attn_layers": [*range(4, 93, 4), 93],
            "head_dim": 128,
            "kda_layers": [layer for layer in range(1, 93) if layer % 4],
            "num_heads": 96,
            "short_conv_kernel_size": 4,
            "use_full_rank_gate": True,
        },
        "max_position_embeddings": 1048576,
        "mla_use_nope": True,
        "mla_use_output_gate": True,
        "moe_intermediate_size": 3072,
        "moe_layer_freq": 1,
        "moe_renormalize": True,
        "num_attention_heads": 96,
        "num_experts": 896,
        "num_experts_per_token": 16,
        "num_hidden_layers": 93,
        "num_key_value_heads": 96,
        "num_shared_experts": 2,
        "q_lora_rank": 1536,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "routed_expert_hidden_size": 3584,
        "v_head_dim": 128,
        "vocab_size": 163840,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "attn_bias": False,
        "init_pos_emb_height": 64,
        "init_pos_emb_width": 64,
        "linear_bias": False,
        "merge_kernel_size": [2, 2],
        "mlp_type": "mlp2",
        "mm_hidden_size": 1024,
        "mm_projector_type": "patchmergerv2",
        "norm_type": "rmsnorm",
        "patch_embed_proj_bias": False,
        "patch_size": 14,
        "qkv_hidden_size": 1536,
        "text_hidden_size": 7168,
        "vt_hidden_size": 1024,
        "vt_intermediate_size": 4096,
        "vt_num_attention_heads": 12,
        "vt_num_hidden_layers": 27,
    },
}
PHI_35_VISION: dict[str, Any] = {
    "model_type": "phi3_v",
    "embd_layer": {
        "embedding_cls": "image",
        "hd_transform_order": "sub_glb",
        "projection_cls": "mlp",
        "use_hd_transform": True,
        "with_learnable_separator": True,
    },
    "hidden_size": 3072,
    "img_processor": {
        "image_dim_out": 1024,
        "model_name": "openai/clip-vit-large-patch14-336",
        "name": "clip_vision_model",
        "num_img_tokens": 144,
    },
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "original_max_position_embeddings": 4096,
    "sliding_window": 262144,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
SMOLVLM_256M: dict[str, Any] = {
    "model_type": "idefics3",
    "scale_factor": 4,
    "text_config": {
        "model_type": "llama",
        "head_dim": 64,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "max_position_embeddings": 8192,
        "num_attention_heads": 9,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "vocab_size": 49280,
    },
    "tie_word_embeddings": False,
    "vision_config": {"hidden_size": 768, "image_size": 512, "num_attention_heads": 12, "patch_size": 16},
    "vocab_size": 49280,
}
QWEN2_AUDIO_7B: dict[str, Any] = {
    "model_type": "qwen2_audio",
    "audio_config": {
        "d_model": 1280,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "encoder_layers": 32,
        "max_source_positions": 1500,
        "num_mel_bins": 128,
    },
    "text_config": {
        "model_type": "qwen2",
        "intermediate_size": 11008,
        "max_position_embeddings": 8192,
        "sliding_window": 32768,
        "vocab_size": 156032,
    },
    "vocab_size": 156032,
}
INTERNVL3_8B: dict[str, Any] = {
    "model_type": "internvl_chat",
    "downsample_ratio": 0.5,
    "force_image_size": 448,
    "hidden_size": 3584,
    "llm_config": {
        "model_type": "qwen2",
        "hidden_size": 3584,
        "intermediate_size": 18944,
        "max_position_embeddings": 32768,
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "num_key_value_heads": 4,
        "tie_word_embeddings": False,
        "use_sliding_window": False,
        "vocab_size": 151674,
    },
    "vision_config": {
        "hidden_size": 1024,
        "image_size": 448,
        "intermediate_size": 4096,
        "moe_intermediate_size": 768,
        "norm_type": "layer_norm",
        "num_attention_heads": 16,
        "num_experts": 8,
        "num_hidden_layers": 24,
        "num_routed_experts": 4,
        "num_shared_experts": 4,
        "patch_size": 14,
        "qk_normalization": False,
        "qkv_bias": True,
        "shared_expert_intermediate_size": 3072,
        "use_moe": False,
    },
}
GLM_41V_9B: dict[str, Any] = {
    "model_type": "glm4v",
    "text_config": {
        "model_type": "glm4v_text",
        "attention_bias": True,
        "hidden_size": 4096,
        "intermediate_size": 13696,
        "max_position_embeddings": 65536,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 2,
        "vocab_size": 151552,
    },
    "tie_word_embeddings": False,
    "vision_config": {
        "attention_bias": False,
        "depth": 24,
        "hidden_size": 1536,
        "image_size": 336,
        "intermediate_size": 13696,
        "num_heads": 12,
        "out_hidden_size": 4096,
        "patch_size": 14,
        "spatial_merge_size": 2,
        "temporal_patch_size": 2,
    },
}
GLM_45V: dict[str, Any] = {
    "model_type": "glm4v_moe",
    "text_config": {
        "model_type": "glm4v_moe_text",
        "attention_bias": True,
        "first_k_dense_replace": 1,
        "head_dim": 128,
        "hidden_size": 4096,
        "intermediate_size": 10944,
        "max_position_embeddings": 65536,
        "moe_intermediate_size": 1408,
        "n_routed_experts": 128,
        "n_shared_experts": 1,
        "num_attention_heads": 96,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 46,
        "num_key_value_heads": 8,
        "use_qk_norm": False,
        "vocab_size": 151552,
    },
    "tie_word_embeddings": False,
    "vision_config": GLM_41V_9B["vision_config"] | {"intermediate_size": 10944},
}
OVIS2_1B: dict[str, Any] = {
    "model_type": "ovis2",
    "hidden_size": 1536,
    "text_config": {
        "model_type": "qwen2",
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "max_position_embeddings": 32768,
        "num_attention_heads": 12,
        "num_hidden_layers": 28,
        "num_key_value_heads": 2,
        "vocab_size": 151643,
    },
    "tie_word_embeddings": True,
    "vision_config": {"hidden_size": 1024, "num_attention_heads": 8},
    "vocab_size": 151643,
}
OMNI_TOWER = {key: value for key, value in QWEN3_VL_TOWER.items() if key != "out_hidden_size"}
QWEN3_OMNI: dict[str, Any] = {
    "model_type": "qwen3_omni_moe",
    "talker_config": {"num_code_groups": 16},
    "thinker_config": {
        "audio_config": {
            "d_model": 1280,
            "downsample_hidden_size": 480,
            "encoder_attention_heads": 20,
            "encoder_ffn_dim": 5120,
            "encoder_layers": 32,
            "num_mel_bins": 128,
            "output_dim": 2048,
        },
        "text_config": {
            "model_type": "qwen3_omni_moe_text",
            "decoder_sparse_step": 1,
            "head_dim": 128,
            "hidden_size": 2048,
            "intermediate_size": 768,
            "max_position_embeddings": 65536,
            "mlp_only_layers": [],
            "moe_intermediate_size": 768,
            "num_attention_heads": 32,
            "num_experts": 128,
            "num_experts_per_tok": 8,
            "num_hidden_layers": 48,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
        },
        "vision_config": OMNI_TOWER | {"out_hidden_size": 2048},
    },
}
QWEN25_OMNI: dict[str, Any] = {
    "model_type": "qwen2_5_omni",
    "talker_config": {"vocab_size": 8448},
    "token2wav_config": {"dit_config": {}},
    "thinker_config": {
        "audio_config": {"d_model": 1280, "encoder_ffn_dim": 5120, "encoder_layers": 32, "output_dim": 3584},
        "text_config": {key: value for key, value in QWEN25_VL_7B.items() if key != "vision_config"}
        | {"model_type": "qwen2_5_omni_text"},
        "vision_config": QWEN25_VL_7B["vision_config"],
    },
}
PHI_4_MULTIMODAL: dict[str, Any] = {
    "model_type": "phi4_multimodal",
    "audio_config": {"num_blocks": 24},
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "num_attention_heads": 24,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "sliding_window": 262144,
    "tie_word_embeddings": True,
    "vision_config": {"crop_size": 448},
    "vocab_size": 200064,
}
MISTRAL4: dict[str, Any] = {
    "model_type": "mistral4",
    "first_k_dense_replace": 0,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "kv_lora_rank": 256,
    "max_position_embeddings": 1048576,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 128,
    "n_shared_experts": 1,
    "num_attention_heads": 32,
    "num_experts_per_tok": 4,
    "num_hidden_layers": 36,
    "num_key_value_heads": 32,
    "q_lora_rank": 1024,
    "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "vocab_size": 131072,
}

PINNED = (
    Pinned(
        name="llava-hf/llava-1.5-7b-hf",
        config=LLAVA_15,
        source="safetensors metadata of the published checkpoint: 7,063,427,072",
        total=7_063_427_072,
        parts={"embedding": 131_334_144, "lm_head": 131_334_144, "vision": 324_487_168, "norm": 266_240},
        active=6_738_939_904,
        decode_read=6_607_605_760,
        bias=280_576,
        kv_full=524_288,
        variants={"text_config.vocab_size": [32000, ...], "vision_config": [...]},
    ),
    Pinned(
        name="mistral-community/pixtral-12b",
        config=PIXTRAL_12B,
        source="transformers 5.24.0 on the meta device",
        total=12_682_739_712,
    ),
    Pinned(
        name="mistralai/Mistral-Small-3.1-24B-Instruct-2503",
        config=MISTRAL_SMALL_31,
        source="safetensors metadata of the published checkpoint: 24,011,361,280",
        total=24_011_361_280,
        parts={"embedding": 671_088_640, "lm_head": 671_088_640, "vision": 438_958_080, "norm": 414_720},
        active=23_572_403_200,
        kv_full=163_840,
        variants={"tie_word_embeddings": [True]},
    ),
    Pinned(
        name="mistralai/Mistral-Small-3.1-24B-Instruct-2503 without the flag, as first published",
        config={key: value for key, value in MISTRAL_SMALL_31.items() if key != "tie_word_embeddings"},
        source="safetensors metadata of the published checkpoint: 24,011,361,280; transformers 5 would tie",
        total=24_011_361_280,
        reference=False,
    ),
    Pinned(
        name="mistralai/Devstral-Small-2-24B-Instruct-2512",
        config=MISTRAL_SMALL_31 | {"text_config": MISTRAL_SMALL_31["text_config"] | {"model_type": "ministral3"}},
        source="safetensors metadata of the published checkpoint less 560 scales: 24,011,361,280",
        total=24_011_361_280,
        parts={"vision": 438_958_080},
    ),
    Pinned(
        name="Qwen/Qwen2.5-VL-7B-Instruct",
        config=QWEN25_VL_7B,
        source="safetensors metadata of the published checkpoint: 8,292,166,656",
        total=8_292_166_656,
        parts={"attention": 822_212_608, "mlp": 5_703_204_864, "vision": 676_550_144, "norm": 204_288},
        active=7_615_616_512,
        bias=561_408,
        kv_full=57_344,
        variants={
            "tie_word_embeddings": [True],
            "vision_config.depth": [1, ...],
            "vision_config.hidden_size": [640, ...],
            "vision_config.intermediate_size": [1024, ...],
            "vision_config.out_hidden_size": [1024, ...],
            "vision_config.patch_size": [7],
            "vision_config.temporal_patch_size": [1],
            "vision_config.spatial_merge_size": [1, 4],
            "vision_config.in_channels": [1],
        },
    ),
    Pinned(
        name="Qwen/Qwen2-VL-7B-Instruct",
        config=QWEN2_VL_7B,
        source="transformers 5.24.0 on the meta device",
        total=8_291_375_616,
        kv_full=57_344,
        variants={
            "tie_word_embeddings": [True],
            "vision_config.depth": [1],
            "vision_config.embed_dim": [640, ...],
            "vision_config.mlp_ratio": [2, ...],
            "vision_config.hidden_size": [1024],
            "vision_config.spatial_merge_size": [1],
        },
    ),
    Pinned(
        name="Qwen/Qwen3-VL-8B-Instruct",
        config=QWEN3_VL_8B,
        source="safetensors metadata of the published checkpoint: 8,767,123,696",
        total=8_767_123_696,
        parts={"attention": 1_509_949_440, "mlp": 5_435_817_984, "vision": 576_388_336, "norm": 308_224},
        active=8_190_735_360,
        bias=384_880,
        kv_full=147_456,
        variants={
            "tie_word_embeddings": [True],
            "text_config.attention_bias": [True],
            "vision_config.depth": [1],
            "vision_config.deepstack_visual_indexes": [[], [3], ...],
            "vision_config.num_position_embeddings": [576],
            "vision_config.spatial_merge_size": [1],
        },
    ),
    Pinned(
        name="Qwen/Qwen3-VL-235B-A22B-Instruct",
        config=QWEN3_VL_235B,
        source="safetensors metadata of the published checkpoint: 235,670,022,896",
        total=235_670_022_896,
        parts={"experts": 227_096_395_776, "router": 49_283_072, "vision": 576_388_336, "norm": 798_208},
        active=22_190_763_520,
        kv_full=192_512,
    ),
    Pinned(
        name="meta-llama/Llama-3.2-11B-Vision-Instruct",
        config=LLAMA_32_11B,
        source="safetensors metadata of the published checkpoint: 10,670,220,835",
        total=10_670_220_835,
        parts={
            "embedding": 525_369_344,
            "lm_head": 525_336_576,
            "attention": 1_677_721_616,
            "vision": 895_028_755,
            "norm": 333_824,
        },
        active=9_775_192_080,
        bias=365_056,
        kv_full=131_072,
        reference=False,  # the reference's first class for it is the text model alone
    ),
    Pinned(
        name="meta-llama/Llama-4-Scout-17B-16E",
        config=LLAMA_4_SCOUT,
        source="safetensors metadata of the published checkpoint: 108,641,793,536",
        total=108_641_793_536,
        parts={"vision": 871_932_416},
        active=17_172_894_720,
        reference=False,  # the reference's first class for it is the text model alone
    ),
    Pinned(
        name="meta-llama/Llama-4-Scout-17B-16E-Instruct without a vision_config",
        config={key: value for key, value in LLAMA_4_SCOUT.items() if key != "vision_config"},
        source="safetensors metadata of the published checkpoint: 108,641,793,536",
        total=108_641_793_536,
        reference=False,  # the class's default tower is smaller than the published one
    ),
    Pinned(
        name="LiquidAI/LFM2.5-VL-1.6B",
        config=LFM25_VL,
        source="safetensors metadata of the published checkpoint: 1,596,625,904",
        total=1_596_625_904,
        parts={"vision": 426_285_296, "state_space": 167_833_600, "norm": 68_352},
        bias=340_336,
        kv_full=12_288,
        state=122_880,
        variants={
            "projector_use_layernorm": [True, ...],
            "projector_bias": [False],
            "projector_hidden_size": [1024, ...],
            "downsample_factor": [1],
            "vision_config.vision_use_head": [True],
            "vision_config.num_patches": [100],
        },
    ),
    Pinned(
        name="moonshotai/Kimi-K2.5",
        config=KIMI_K25,
        source="safetensors metadata of the published checkpoint less 23,040 of the routers: 1,026,879,353,328",
        total=1_026_879_353_328,
        parts={"vision": 471_143_920},
        active=32_861_477_888,
        buffers=23_040,
        kv_full=70_272,  # its tower in transformers comes from defaults: the class has other names for the keys
    ),
    Pinned(
        name="moonshotai/Kimi-K3",
        config=KIMI_K3,
        source="safetensors metadata of the published checkpoint less 82,432 of the routers: 2,779,931,754,752",
        total=2_779_931_754_752,
        buffers=82_432,
        kv_full=24 * 1_152,
        state=69 * (96 * 128 * 128 * 4 + 3 * 12_288 * 4 * 2),
        reference=False,
    ),
    Pinned(
        name="microsoft/Phi-3.5-vision-instruct",
        config=PHI_35_VISION,
        source="safetensors metadata of the published checkpoint: 4,146,621,440",
        total=4_146_621_440,
        parts={"vision": 325_541_888},
        reference=False,
    ),
    Pinned(
        name="HuggingFaceTB/SmolVLM-256M-Instruct",
        config=SMOLVLM_256M,
        source="transformers 5.24.0 on the meta device; the model card says 256 M",
        total=256_484_928,
    ),
    Pinned(
        name="Qwen/Qwen2-Audio-7B-Instruct",
        config=QWEN2_AUDIO_7B,
        source="transformers 5.24.0 on the meta device",
        total=8_397_094_912,
        variants={"audio_config.num_mel_bins": [80], "audio_config.encoder_layers": [1]},
    ),
    Pinned(
        name="OpenGVLab/InternVL3-8B",
        config=INTERNVL3_8B,
        source="the same model converted (internvl), transformers 5.24.0 on the meta device",
        total=7_944_373_760,
        reference=False,
    ),
    Pinned(
        name="zai-org/GLM-4.1V-9B-Thinking",
        config=GLM_41V_9B,
        source="transformers 5.24.0 on the meta device",
        total=10_292_777_472,
        variants={
            "vision_config.attention_bias": [True, ...],
            "vision_config.depth": [2, ...],
            "vision_config.out_hidden_size": [1024],
            "vision_config.spatial_merge_size": [1],
            "vision_config.temporal_patch_size": [1],
            "vision_config.image_size": [112, ...],
            "vision_config.patch_size": [28],
            "vision_config.in_channels": [1],
            "tie_word_embeddings": [True],
            "model_type": ["glm46v"],
        },
    ),
    Pinned(
        name="zai-org/GLM-4.5V",
        config=GLM_45V,
        source="transformers 5.24.0 on the meta device",
        total=107_710_927_360,
        buffers=5_760,
        variants={"tie_word_embeddings": [True]},
    ),
    Pinned(
        name="Ovis2 around Qwen2.5-1.5B",
        config=OVIS2_1B,
        source="transformers 5.24.0 on the meta device",
        total=1_894_432_758,
        variants={
            "vision_config.qkv_bias": [True],
            "vision_config.mlp_bias": [True],
            "vision_config.hidden_stride": [2],
            "vision_config.vocab_size": [65536],
            "vision_config.image_size": [448],
            "vision_config.num_visual_indicator_tokens": [7],
            "tie_word_embeddings": [False],
        },
    ),
    Pinned(
        name="nvidia/audio-flamingo-3",
        config={"model_type": "audioflamingo3", "audio_config": {}}
        | {"text_config": INTERNVL3_8B["llm_config"] | {"vocab_size": 151672}},
        source="transformers 5.24.0 on the meta device",
        total=8_267_215_360,
        variants={"projector_bias": [False]},
    ),
    Pinned(
        name="Qwen/Qwen3-Omni-30B-A3B-Instruct, the thinker",
        config=QWEN3_OMNI,
        source="the thinker's class of transformers 5.24.0 on the meta device",
        total=31_719_205_488,
        reference=False,  # the reference's class for the whole model holds the talker too
    ),
    Pinned(
        name="Qwen/Qwen2.5-Omni-7B, the thinker",
        config=QWEN25_OMNI,
        source="the thinker's class of transformers 5.24.0 on the meta device",
        total=8_931_813_888,
        reference=False,  # the reference's class for the whole model holds the talker too
    ),
    Pinned(
        name="microsoft/Phi-4-multimodal-instruct, the text model",
        config=PHI_4_MULTIMODAL,
        source="Phi-4-mini-instruct, whose text model it is: 3,836,021,760",
        total=3_836_021_760,
        reference=False,
    ),
    Pinned(
        name="small mistral4",
        config=MISTRAL4 | {"hidden_size": 64, "num_hidden_layers": 3, "first_k_dense_replace": 1, "vocab_size": 1000},
        source="transformers 5.24.0 on the meta device",
        total=122_303_680,
        variants={
            "q_lora_rank": [None],
            "attention_bias": [True],
            "n_shared_experts": [2],
            "first_k_dense_replace": [0, 3],
            "tie_word_embeddings": [True],
            "v_head_dim": [32],
        },
    ),
)

test_counts = counts_test(PINNED)


def test_cross_attention_layers_are_optional_and_have_no_text_cache() -> None:
    architecture = read_architecture(LLAMA_32_11B, source="config.json")
    ((block, layers),) = cross_attention(architecture)
    assert layers == 8
    assert block.optional
    assert {weight.name for weight in block.memory_weights} == {
        "cross_attn.k_proj",
        "cross_attn.v_proj",
        "cross_attn.k_norm",
    }
    assert [i for i, layer in enumerate(architecture.layers) if isinstance(layer.blocks[0], CrossAttention)] == [
        3, 8, 13, 18, 23, 28, 33, 38,
    ]  # fmt: skip


@pytest.mark.parametrize("layers", [[3, 40], [3, 3], [-1]])
def test_cross_attention_layers_that_do_not_exist_are_refused(layers: list[int]) -> None:
    config = LLAMA_32_11B | {"text_config": LLAMA_32_11B["text_config"] | {"cross_attention_layers": layers}}
    with pytest.raises(PlanError, match=r"text_config.cross_attention_layers must be different numbers from 0 to 39"):
        read_architecture(config, source="config.json")


def test_the_tower_of_a_silent_llama_4_is_reported_as_assumed() -> None:
    config = {key: value for key, value in LLAMA_4_SCOUT.items() if key != "vision_config"}
    assert any("the tower of the published Llama 4" in text for text in read_architecture(config, source="c").assumed)


def test_a_flat_file_and_its_nested_form_count_the_same() -> None:
    text = {key: value for key, value in QWEN25_VL_7B.items() if key != "vision_config"}
    nested = {
        "model_type": "qwen2_5_vl",
        "text_config": text | {"model_type": "qwen2_5_vl_text"},
        "vision_config": QWEN25_VL_7B["vision_config"],
    }
    assert count_parameters(read_architecture(nested, source="c")) == count_parameters(
        read_architecture(QWEN25_VL_7B, source="c")
    )


def test_an_unknown_tower_of_phi_3_vision_is_refused() -> None:
    config = PHI_35_VISION | {"img_processor": PHI_35_VISION["img_processor"] | {"model_name": "other"}}
    with pytest.raises(PlanError, match="img_processor names 'other'"):
        read_architecture(config, source="config.json")


def test_an_unknown_projector_of_kimi_is_refused() -> None:
    config = KIMI_K25 | {"vision_config": KIMI_K25["vision_config"] | {"mm_projector_type": "patchmergerv2"}}
    with pytest.raises(PlanError, match=r"vision_config.mm_projector_type is 'patchmergerv2'"):
        read_architecture(config, source="config.json")


def test_more_active_experts_than_experts_are_refused() -> None:
    with pytest.raises(PlanError, match="num_experts_per_tok exceeds the 128 experts"):
        read_architecture(MISTRAL4 | {"num_experts_per_tok": 129}, source="config.json")


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("vision_config", {"mm_projector_type": "patchmerger"}, "only 'patchmergerv2' is known"),
        ("vision_config", {"attn_bias": True}, "attn_bias is True; only False is known"),
        ("text_config", {"mla_use_output_gate": False}, "only gated attention is known"),
        ("text_config", {"latent_moe_use_norm": False}, "latent_moe_use_norm and moe_layer_freq"),
        ("text_config", {"num_experts_per_token": 897}, "exceeds the 896 experts"),
        ("text_config", {"num_hidden_layers": 92}, "must list each of the layers 1 to 92 exactly once"),
        ("text_config", {"routed_expert_hidden_size": None}, "routed_expert_hidden_size"),
    ],
)
def test_what_kimi_k3_does_not_settle_is_refused(part: str, change: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        read_architecture(KIMI_K3 | {part: KIMI_K3[part] | change}, source="config.json")


def test_what_is_not_counted_is_named() -> None:
    unread = read_architecture(QWEN25_OMNI, source="config.json").unread
    assert unread == ("speech output (talker_config)", "speech output (token2wav_config)")
    unread = read_architecture(PHI_4_MULTIMODAL, source="config.json").unread
    assert unread == ("vision tower (vision_config)", "audio tower (audio_config)")


def test_only_the_tie_flag_of_the_text_ties_llama_4() -> None:
    text = LLAMA_4_SCOUT["text_config"]
    assert not read_architecture(LLAMA_4_SCOUT | {"tie_word_embeddings": True}, source="config.json").tied
    tied = LLAMA_4_SCOUT | {"text_config": text | {"tie_word_embeddings": True}}
    assert read_architecture(tied, source="config.json").tied
