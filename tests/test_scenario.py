"""The user's options: how values are read, what is refused, and what stands in for what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields

import pytest

from planner.errors import PlanError
from planner.hardware import Device, find_device
from planner.models import Model, find_model
from planner.scenario import OPTIONS, Scenario

JOB: dict[str, object] = {"model": "meta/llama-3.1-8b", "gpu": "h100-sxm"}


def refusal(given: Mapping[str, object]) -> PlanError:
    """The error that options end in, read or answered."""
    with pytest.raises(PlanError) as caught:
        Scenario.read(given).plan()
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("prompt", 2000, 2000),
        ("prompt", 2000.0, 2000),
        ("prompt", "2000", 2000),
        ("prompt", "2k", 2000),
        ("prompt", "2Ki", 2048),
        ("out", "1.5k", 1500),
        ("batch", "1,024", 1024),
        ("tp", "4", 4),
        ("bandwidth", "3.35TB/s", 3.35e12),
        ("bandwidth", 3.35e12, 3.35e12),
        ("peak", "989.5 TFLOP/s", 989.5e12),
        ("memory", "80GiB", 80 * 2**30),
        ("memory", "80GB", 80 * 10**9),
        ("mem-util", "0.9", 0.9),
        ("measured_ttft", "155.1ms", 0.1551),
        ("measured-tpot", 0.01731, 0.01731),
        ("precision", "fp8", "fp8"),
    ],
)
def test_a_value_is_read_from_text_or_number(name: str, value: object, expected: object) -> None:
    assert getattr(Scenario.read({name: value}), name.replace("-", "_")) == expected


def test_options_not_given_take_their_defaults() -> None:
    assert Scenario.read({"prompt": None, "gpu": "", "out": ""}) == Scenario()
    assert (Scenario().prompt, Scenario().out, Scenario().batch, Scenario().tp) == (1024, 256, 1, 1)


def test_every_field_is_an_option() -> None:
    assert list(OPTIONS) == [field.name for field in fields(Scenario)]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("prompt", "1.5", "expected a whole number"),
        ("prompt", 1.5, "expected a whole number"),
        ("prompt", "abc", "'abc' is not a quantity"),
        ("prompt", True, "prompt is True"),
        ("prompt", [2000], r"prompt is \[2000\]"),
        ("prompt", {"tokens": 1}, "prompt is {"),
        ("prompt", float("nan"), "finite"),
        ("prompt", float("inf"), "finite"),
        ("prompt", "nan", "not a quantity"),
        ("prompt", "500ms", "not in token"),
        ("prompt", 0, "prompt is 0; expected 1 or more"),
        ("prompt", "-5", "prompt is -5; expected 1 or more"),
        ("prompt", "2T", "at most 1,000,000,000"),
        ("out", 0, "out is 0; expected 1 or more"),
        ("batch", 0, "batch is 0; expected 1 or more"),
        ("cached_prefix", -1, "cached_prefix is -1"),
        ("cached_prefix", 1024, "fewer than the 1,024 prompt tokens"),
        ("tp", 0, "tp is 0"),
        ("tp", 3, "does not divide"),
        ("mem_util", 1.5, "share above 0 and up to 1"),
        ("mem_util", 0, "more than 0"),
        ("mem_util", "90%", "not in 1"),
        ("bandwidth", "3.35TB", "not in B/s"),
        ("bandwidth", "0 GB/s", "more than 0"),
        ("bandwidth", -1, "more than 0"),
        ("peak", "989 TB/s", "not in FLOP/s"),
        ("memory", "64", "not in B"),
        ("measured_ttft", "-1s", "more than 0"),
        ("measured_tpot", "17", "not in s"),
        ("precision", 8, "expected text"),
        ("engine", "vlmm", "did you mean vllm"),
        ("model", 7, "expected text"),
        ("model", "meta/llama-3.1-8c", "did you mean meta/llama-3.1-8b"),
        ("gpu", "h100-smx", "did you mean h100-sxm"),
    ],
)
def test_a_wrong_value_is_refused_in_one_sentence_that_names_the_option(name: str, value: object, words: str) -> None:
    found = refusal(JOB | {name: value})
    assert found.field is not None
    assert found.field.replace("-", "_") == name
    assert "\n" not in str(found)
    with pytest.raises(PlanError, match=words):
        raise found


@pytest.mark.parametrize("name", ["precision", "kv_precision"])
def test_an_unknown_number_format_is_refused_with_the_nearest_ones(name: str) -> None:
    assert "did you mean fp8, fp6 or fp4" in str(refusal(JOB | {name: "fp9"}))


@pytest.mark.parametrize("name", ["precision", "kv_precision"])
def test_an_unknown_number_format_names_its_option(name: str) -> None:
    found = refusal(JOB | {name: "fp9"})
    assert (found.field or "").replace("-", "_") == name


def test_an_unknown_option_is_refused_with_the_nearest_one() -> None:
    found = refusal(JOB | {"promt": 2000})
    assert str(found).startswith("unknown option 'promt'; did you mean prompt")
    assert found.field == "promt"
    assert "known are model, gpu, prompt" in str(refusal(JOB | {"zzzzzz": 1}))


def test_a_question_without_a_model_or_a_device_says_how_to_name_one() -> None:
    assert "--model meta/llama-3.1-8b" in str(refusal({"gpu": "h100-sxm"}))
    assert "--gpu h100-sxm" in str(refusal({"model": "meta/llama-3.1-8b"}))


def test_a_whole_number_beyond_all_floats_is_refused_like_any_other() -> None:
    (line,) = json.loads('[{"prompt": 1' + 400 * "0" + "}]")
    with pytest.raises(PlanError):
        Scenario.read(line)


def test_an_absurd_exponent_is_refused_like_any_other() -> None:
    with pytest.raises(PlanError):
        Scenario.read({"prompt": "1e9999999"})


# --- Devices by name and by numbers -----------------------------------------------------------------------------------


def test_numbers_alone_describe_a_device() -> None:
    device = Scenario.read({"bandwidth": "1TB/s", "peak": "100TFLOP/s", "memory": "80GB"}).device()
    assert device.id == "custom"
    assert device.bandwidth is not None
    assert device.bandwidth.value == 10**12
    assert device.peak.bf16 is not None
    assert device.peak.bf16.value == 10**14
    assert device.memory is not None
    assert device.memory.capacity.value == 80 * 10**9


def test_numbers_take_the_place_of_the_named_devices_own() -> None:
    answer = Scenario.read(JOB | {"bandwidth": "1TB/s"}).plan()
    assert answer.ceilings.bandwidth is not None
    assert answer.ceilings.bandwidth.value == 10**12
    peak = answer.ceilings.textbook_peak
    assert peak is not None
    assert peak.value == 989_500_000_000_000  # hardware/nvidia/h100-sxm.yaml
    assert answer.textbook is not None
    assert answer.textbook.tpot == pytest.approx(16.06e-3, abs=0.005e-3)  # 16.06 GB at 1 TB/s


def test_a_machine_sold_with_several_sizes_takes_the_one_that_is_named() -> None:
    # hardware/apple/m4-pro-16c.yaml: 24, 48 or 64 GiB, of which 48 of 64 are usable: three quarters.
    device = Scenario.read({"gpu": "m4-pro-16c", "memory": "24GB"}).device()
    assert device.memory is not None
    assert device.memory.usable is not None
    assert device.memory.usable.value == 18 * 2**30
    found = refusal({"model": "meta/llama-3.1-8b", "gpu": "m4-pro-16c", "memory": "32GB"})
    assert "24 GiB, 48 GiB, 64 GiB" in str(found)


def test_an_alias_is_said_to_be_one() -> None:
    assert "H100 is h100-sxm" in Scenario.read(JOB | {"gpu": "H100"}).plan().assumed
    assert not any("h100-sxm" in text for text in Scenario.read(JOB).plan().assumed)


def test_readers_of_models_and_devices_can_be_replaced() -> None:
    asked: list[str] = []

    def model_of(name: str) -> Model:
        asked.append(name)
        return find_model(name)

    def device_of(name: str) -> Device:
        asked.append(name)
        return find_device(name)

    Scenario.read(JOB).plan(model_of, device_of)
    assert asked == ["meta/llama-3.1-8b", "h100-sxm"]


def test_what_the_user_chose_is_not_listed_as_assumed() -> None:
    silent = Scenario.read(JOB).plan().assumed
    assert {"engine vllm", "KV cache in bf16"} <= set(silent)
    chosen = {"engine": "vllm", "mem_util": 0.8, "kv_precision": "fp8"}
    assert not any("engine" in text or "KV cache" in text for text in Scenario.read(JOB | chosen).plan().assumed)
