"""Tensor parallelism: legal degrees, and what one device of a group holds."""

from __future__ import annotations

import pytest

from planner.blocks import gated_mlp, grouped_query_attention, latent_attention
from planner.errors import PlanError
from planner.planning import plan
from planner.sharding import check_degree, device_cache_bytes, device_weight_bytes, legal_degrees, message_bytes
from planner.workload import Workload
from tests.strategies import LLAMA_8B, inventory, model, transformer


# https://github.com/vllm-project/vllm/issues/11797 and three more reports: a scheduler gives 8 devices to a model of 28
# heads, or 3 to one of 52. A degree divides the heads, and it divides the KV heads or is a multiple of them.
@pytest.mark.parametrize(
    ("heads", "kv_heads", "devices", "legal"),
    [
        (28, 4, 8, (1, 2, 4)),  # not 7: it divides 28 and has nothing to do with 4
        (52, 52, 3, (1, 2)),
        (40, 10, 8, (1, 2, 5)),
        (64, 8, 16, (1, 2, 4, 8, 16)),
        (12, 1, 12, (1, 2, 3, 4, 6, 12)),  # by hand: one KV head is repeated on every device
        (6, 4, 6, (1, 2)),  # by hand: 3 and 6 divide the heads and neither divide 4 nor are multiples of it
    ],
)
def test_degrees_that_the_heads_allow(heads: int, kv_heads: int, devices: int, legal: tuple[int, ...]) -> None:
    attention = grouped_query_attention(hidden=64, heads=heads, kv_heads=kv_heads, head_dim=8)
    assert legal_degrees(transformer(attention, hidden=64, vocabulary=10, layers=2), devices) == legal


def test_every_kind_of_layer_must_allow_the_degree() -> None:
    one = grouped_query_attention(hidden=64, heads=12, kv_heads=12, head_dim=8)
    other = grouped_query_attention(hidden=64, heads=8, kv_heads=8, head_dim=8)
    assert legal_degrees(transformer(one, other, hidden=64, vocabulary=10, layers=1), 16) == (1, 2, 4)


def test_a_degree_that_does_not_divide_is_refused_with_the_legal_ones() -> None:
    with pytest.raises(PlanError, match=r"tp is 3, which does not divide 32 heads with 8 KV heads; legal: 1, 2, 4, 8"):
        check_degree(LLAMA_8B, 3)
    with pytest.raises(PlanError) as caught:
        plan(model(LLAMA_8B), "h100-sxm", tp=3)
    assert caught.value.field == "tp"


@pytest.mark.parametrize("degree", [0, -2])
def test_no_devices_are_refused(degree: int) -> None:
    with pytest.raises(PlanError, match="expected 1 or more"):
        check_degree(LLAMA_8B, degree)


def test_matrices_are_split_and_norms_repeated() -> None:
    counted = inventory(LLAMA_8B)
    norms = 65 * 4096 * 2  # bytes of 65 norms of 4,096 in bf16
    for degree in (2, 4, 8):
        assert device_weight_bytes(counted, degree) == (2 * 8_030_261_248 - norms) // degree + norms


def test_a_ragged_matrix_is_rounded_up_on_the_fullest_device() -> None:
    mlp = gated_mlp(hidden=6, width=5)  # three matrices of 30 elements, 60 bytes; over 8 devices 7.5, so 8 bytes each
    counted = inventory(transformer(mlp, hidden=6, vocabulary=1, layers=1))
    # Three norms of 12 bytes are whole; embedding and head of 12 bytes are 1.5, so 2 each.
    assert device_weight_bytes(counted, 8) == 3 * 8 + 3 * 12 + 2 * 2


@pytest.mark.parametrize(("degree", "share"), [(1, 1), (2, 2), (8, 8), (16, 8), (32, 8)])
def test_kv_heads_are_split_while_they_last_and_repeated_beyond(degree: int, share: int) -> None:
    found = device_cache_bytes(LLAMA_8B, inventory(LLAMA_8B), tokens=1000, encoded=0, degree=degree)
    assert found == 131_072_000 // share  # 8 KV heads: 131,072 bytes per token on one device


@pytest.mark.parametrize("degree", [1, 2, 8])
def test_the_mla_latent_is_kept_whole_on_every_device(degree: int) -> None:
    mla = latent_attention(hidden=64, heads=8, query_rank=None, latent=512, nope_dim=8, rope_dim=64, value_dim=8)
    architecture = transformer(mla, hidden=64, vocabulary=10, layers=3)
    found = device_cache_bytes(architecture, inventory(architecture), tokens=10, encoded=0, degree=degree)
    assert found == 10 * 3 * 576 * 2


def test_two_hidden_vectors_are_exchanged_per_layer_and_token() -> None:
    # Megatron-LM (arXiv:1909.08053, section 3): two all-reduces per layer of tokens · hidden; 32 layers of 4,096, bf16.
    assert message_bytes(LLAMA_8B) == 2 * 32 * 4096 * 2


def test_the_floor_of_a_group_counts_its_link() -> None:
    # 2,000 tokens · 524,288 bytes over 450 GB/s one way (NVLink of an H100, NVIDIA prints 900 both ways): 2.33 ms.
    answer = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 16), tp=2)
    assert answer.counted is not None
    assert answer.counted.prefill.link_time == pytest.approx(2.33e-3, abs=0.005e-3)


def test_two_devices_are_at_most_twice_as_fast_as_one() -> None:
    one = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 16)).counted
    two = plan(model(LLAMA_8B), "h100-sxm", Workload(2000, 16), tp=2).counted
    assert one is not None
    assert two is not None
    assert one.latency.e2e / 2 <= two.latency.e2e * (1 + 1e-12)
    assert two.latency.e2e < one.latency.e2e
