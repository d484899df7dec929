"""Finding and reading a model's config: names, files, and everything that is not a language model's config."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.counting import count_parameters
from planner.errors import PlanError
from planner.models import alias_index, find_model, model_ids, parse_config, resolve
from tests.families.test_llama import LLAMA_31_8B

TEXT = json.dumps(LLAMA_31_8B)


def written(folder: Path, text: str | bytes, name: str = "config.json") -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_bundled_model_is_found_by_id_alias_hub_id_and_in_any_case() -> None:
    for name in ("meta/llama-3.1-8b", "meta/llama-3.1-8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"):
        assert find_model(name).id == "meta/llama-3.1-8b"


def test_an_alias_is_named_in_a_note() -> None:
    assert find_model("llama-3.1-8b").note == "llama-3.1-8b is meta/llama-3.1-8b"
    assert find_model("meta/llama-3.1-8b").note is None


def test_no_alias_is_another_models_id() -> None:
    ids = {name.lower() for name in model_ids()}
    assert not {alias for alias, target in alias_index().items() if alias in ids and target.lower() != alias}


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(PlanError, match=r"did you mean .*meta/llama-3\.1-8b"):
        resolve("meta/llama-3.1-8bb")


def test_a_folder_and_a_file_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    assert count_parameters(find_model(path).architecture).total == 8_030_261_248
    assert count_parameters(find_model(str(tmp_path)).architecture).total == 8_030_261_248


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + TEXT.encode())
    assert count_parameters(find_model(path).architecture).total == 8_030_261_248


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("  \n", "the file is empty"),
        ("<!DOCTYPE html><html><body>401</body></html>", "HTML or XML, not JSON"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1234\n", "a Git LFS pointer"),
        ("[]", "the top level is a list"),
        ("null", "the top level is null"),
        ('"llama"', "the top level is a string"),
        ("7", "the top level is a int"),
        ('{"hidden_size": 4096,}', "line 1 column 22: a comma before a closing bracket"),
        ('{"hidden_size" 4096}', "not JSON, line 1 column 16"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"hidden_size": 4096, "hidden_size": 2048}', "the key hidden_size stands twice"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "more digits than can be read"),
        (b"\xff\xfe{\x00}\x00", "not text in UTF-8"),
    ],
)
def test_a_file_that_is_no_json_object_is_named_for_what_it_is(tmp_path: Path, text: str | bytes, said: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PlanError) as caught:
        find_model(path)
    assert said in str(caught.value)
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            {"peft_type": "LORA", "base_model_name_or_path": "meta-llama/Llama-3.1-8B"},
            "adapter of meta-llama/Llama-3.1-8B",
        ),
        ({"_class_name": "FluxPipeline", "_diffusers_version": "0.30"}, r"a diffusion pipeline \(FluxPipeline\)"),
        ({"model_type": "bert", "hidden_size": 768}, "an encoder-only model"),
        ({"model_type": "xlm-roberta"}, "an encoder-only model"),
        ({"model_type": "siglip"}, "a picture encoder"),
        ({"model_type": "whisper"}, "a speech model"),
        (LLAMA_31_8B | {"architectures": ["LlamaForSequenceClassification"]}, "a classifier or reward model"),
        (LLAMA_31_8B | {"architectures": ["LlamaModel"]}, "an embedding model"),
        (LLAMA_31_8B | {"architectures": ["LlamaForCausalLMEagle3"]}, "a draft head for speculative decoding"),
    ],
)
def test_a_config_of_something_else_is_named_for_what_it_is(raw: dict[str, object], said: str) -> None:
    with pytest.raises(PlanError, match=said):
        parse_config(json.dumps(raw).encode(), source="config.json")


def test_a_folder_without_a_config_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"holds no config\.json"):
        find_model(str(tmp_path))
    written(tmp_path, json.dumps({"peft_type": "LORA", "base_model_name_or_path": "a/b"}), "adapter_config.json")
    with pytest.raises(PlanError, match="a LORA adapter of a/b, not a model; plan a/b"):
        find_model(str(tmp_path))


def test_a_missing_file_and_a_weights_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no such file"):
        find_model(str(tmp_path / "config.json"))
    with pytest.raises(PlanError, match=r"a weights file; give the config\.json"):
        find_model(written(tmp_path, b"GGUF", "model.gguf"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"hidden_size": float("nan")}, "hidden_size is nan; expected a whole number"),
        ({"num_hidden_layers": float("inf")}, "num_hidden_layers is inf; expected a whole number"),
        ({"hidden_size": -4096}, "hidden_size is -4096; expected more than 0"),
        ({"vocab_size": 0}, "vocab_size is 0; expected more than 0"),
        ({"hidden_size": 4096.5}, r"hidden_size is 4096\.5; expected a whole number"),
        ({"hidden_size": "4096"}, "hidden_size is '4096'; expected a whole number"),
        ({"hidden_size": True}, "hidden_size is True; expected a whole number"),
        ({"hidden_size": [4096]}, r"hidden_size is \[4096\]; expected a whole number"),
        ({"hidden_size": None}, "the key hidden_size is missing or null"),
        ({"intermediate_size": 10**18}, "intermediate_size is 1000000000000000000; expected at most 1,000,000,000"),
        ({"tie_word_embeddings": "false"}, "tie_word_embeddings is 'false'; expected true or false"),
        ({"num_experts": 8}, "the key num_experts = 8 changes what the model is made of"),
        ({"kv_lora_rank": 512}, "the key kv_lora_rank = 512 changes what the model is made of"),
        ({"block_configs": [{}]}, "the key block_configs"),
        ({"model_type": None}, "model_type is missing"),
        ({"model_type": 7}, "model_type is 7"),
        ({"model_type": "lama"}, "model_type 'lama' is not read by any family; did you mean llama"),
    ],
)
def test_a_value_that_cannot_be_right_is_refused_by_key(tmp_path: Path, change: dict[str, object], said: str) -> None:
    path = written(tmp_path, json.dumps(LLAMA_31_8B | change))
    with pytest.raises(PlanError, match=said) as caught:
        find_model(path)
    assert str(caught.value).startswith(path)
    assert caught.value.field is not None


@pytest.mark.parametrize(
    "change",
    [
        {"head_dim": None, "rope_scaling": None, "quantization_config": None},
        {"time_step_limit": [0.0, float("inf")]},
        {
            "somebodys_note": {"deep": [1, 2]},
            "use_cache": True,
            "bos_token_id": 1,
            "num_experts": None,
            "kv_lora_rank": 0,
        },
    ],
)
def test_what_cannot_matter_is_accepted(tmp_path: Path, change: dict[str, object]) -> None:
    path = written(tmp_path, json.dumps(LLAMA_31_8B | change))
    assert count_parameters(find_model(path).architecture).total == 8_030_261_248


@pytest.mark.parametrize("change", [{"dtype": None}, {"dtype": "bfloat16", "torch_dtype": None}])
def test_a_null_spelling_does_not_hide_the_other_one(tmp_path: Path, change: dict[str, object]) -> None:
    path = written(tmp_path, json.dumps(LLAMA_31_8B | change))
    assert find_model(path).architecture.dtype == "bfloat16"


def test_a_wrong_value_is_named_before_what_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, '{"model_type": "llama", "hidden_size": NaN, "num_attention_heads": 32}')
    with pytest.raises(PlanError, match="hidden_size is nan; expected a whole number"):
        find_model(path)


def test_all_missing_keys_are_listed_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"model_type": "llama", "hidden_size": 4096}))
    with pytest.raises(PlanError, match="num_hidden_layers, num_attention_heads, intermediate_size, vocab_size"):
        find_model(path)
