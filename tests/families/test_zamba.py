"""Zamba 2 and RWKV 4."""

from __future__ import annotations

import pytest

from planner.errors import PlanError
from planner.families import read_architecture
from tests.families.pinned import Pinned, counts_test

# The hybrid layers of Zamba2-7B.
HYBRID = (6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77)
ZAMBA_2_7B = {
    "model_type": "zamba2",
    "hidden_size": 3584,
    "num_hidden_layers": 81,
    "layers_block_type": ["hybrid" if index in HYBRID else "mamba" for index in range(81)],
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "attention_head_dim": 224,
    "intermediate_size": 14336,
    "vocab_size": 32000,
    "mamba_d_state": 64,
    "mamba_d_conv": 4,
    "mamba_expand": 2,
    "mamba_ngroups": 2,
    "n_mamba_heads": 112,
    "num_mem_blocks": 2,
    "adapter_rank": 128,
    "use_shared_attention_adapter": False,
}
SMALL = ZAMBA_2_7B | {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "layers_block_type": ["mamba", "hybrid", "hybrid", "hybrid"],
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "attention_head_dim": 32,
    "intermediate_size": 128,
    "n_mamba_heads": 8,
    "vocab_size": 100,
    "adapter_rank": 8,
}
RWKV = {
    "model_type": "rwkv",
    "hidden_size": 4096,
    "attention_hidden_size": 4096,
    "intermediate_size": 16384,
    "num_hidden_layers": 32,
    "vocab_size": 50277,
    "tie_word_embeddings": False,
    "context_length": 1024,
}
COUNTED = "transformers 5.24.0 on the meta device"

PINNED = (
    Pinned(
        name="Zyphra/Zamba2-7B-Instruct",
        config=ZAMBA_2_7B,
        source=COUNTED,
        total=7_356_749_648,
        parts={"attention": 359_661_568, "mlp": 361_955_328, "state_space": 6_352_563_024, "norm": 896_000},
        bias=610_416,
        kv_full=372_736,
        state=153_446_400,
        reference=False,  # its variants below are small enough to build
    ),
    Pinned(
        name="a small Zamba 2",
        config=SMALL,
        source=COUNTED,
        total=365_088,
        variants={
            "num_mem_blocks": [1],
            "use_shared_attention_adapter": [True],
            "adapter_rank": [4],
            "mamba_ngroups": [1],
        },
    ),
    Pinned(
        name="RWKV-4 of 7 B",
        config=RWKV,
        source=COUNTED,
        total=7_392_649_216,
        parts={"mlp": 4_832_100_352},
        bias=270_336,
        state=2_621_440,
        variants={"tie_word_embeddings": [True], "attention_hidden_size": [2048], "intermediate_size": [1024]},
    ),
)

test_counts = counts_test(PINNED)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"layers_block_type": ["mamba"]}, "layers_block_type has 1 entries for 4 layers"),
        ({"layers_block_type": ["mamba", "hybrid", "attention", "mamba"]}, "holds 'attention'"),
        ({"use_conv_bias": False}, "use_conv_bias is false"),
        ({"num_key_value_heads": 3}, "num_key_value_heads is 3 and does not divide the 4 heads"),
    ],
)
def test_what_cannot_be_honoured_is_refused(change: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        read_architecture(SMALL | change, source="config.json")


def test_a_shared_block_is_stored_once_and_multiplied_at_every_place() -> None:
    layers = read_architecture(SMALL, source="config.json").layers
    assert [layer.blocks[0].weights[0].stored for layer in layers[1:]] == [True, True, False]
