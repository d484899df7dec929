"""Finds and reads a model's ``config.json``: the bundled catalogue, a folder, or a file.

A bundled model is a folder ``models/<org>/<name>/`` with a ``config.json`` that holds the keys which decide the counts
and a ``source.yaml`` that says where they were read. Text that is not a language model's config is named for what it
is (an HTML page, a Git LFS pointer, a LoRA adapter, a diffusion pipeline, an encoder).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.architecture import Architecture
from planner.errors import PlanError, did_you_mean
from planner.families import read_architecture
from planner.resources import bundled

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MAXIMUM_BYTES = 16 * 2**20  # the largest published config.json is below 2 MiB


@dataclass(frozen=True, eq=False)
class Model:
    """A model that was found: what it is called, where its config lies, and what it is made of.

    ``quantization_file`` is a ``hf_quant_config.json`` beside the config, parsed.
    """

    id: str
    origin: str
    raw: Mapping[str, Any]
    architecture: Architecture
    quantization_file: Mapping[str, Any] | None = None
    note: str | None = None


def find_model(name: str) -> Model:
    """The model called ``name``: a bundled id or alias (upper and lower case alike), a folder, or a JSON file.

    Raises:
        PlanError: nothing of that name, an unreadable file, or a config that cannot be counted exactly.
    """
    path = Path(name)
    if path.is_dir():
        return _from_folder(path, name)
    if path.is_file() or name.endswith(".json"):
        return _from_file(path, name)
    found = resolve(name)
    folder = bundled("models")
    for part in found.split("/"):
        folder = folder / part
    raw = parse_config((folder / "config.json").read_bytes(), source=f"models/{found}/config.json")
    extra = folder / "hf_quant_config.json"
    quantization = parse_config(extra.read_bytes(), source=f"models/{found}/{extra.name}") if extra.is_file() else None
    architecture = read_architecture(raw, source=f"models/{found}/config.json")
    note = None if name == found else f"{name} is {found}"
    return Model(found, f"models/{found}/config.json", raw, architecture, quantization, note)


def model_ids() -> list[str]:
    """Ids of the bundled models, sorted."""
    return sorted(
        f"{org.name}/{model.name}"
        for org in bundled("models").iterdir()
        if org.is_dir()
        for model in org.iterdir()
        if (model / "config.json").is_file()
    )


def resolve(name: str) -> str:
    """The bundled id that ``name`` stands for.

    Raises:
        PlanError: unknown, or a short name that several models share.
    """
    wanted = name.lower()
    ids = {found.lower(): found for found in model_ids()}
    if wanted in ids:
        return ids[wanted]
    aliases = alias_index()
    if wanted in aliases:
        return aliases[wanted]
    short = sorted({found for key, found in ids.items() if key.split("/")[1] == wanted})
    if len(short) == 1:
        return short[0]
    if short:
        raise PlanError(f"model {name!r} could be {' or '.join(short)}; give one of them", field="model")
    hint = did_you_mean(name, [*ids.values(), *aliases]) or "; plan models lists what is bundled"
    raise PlanError(f"no bundled model, file or folder is called {name!r}{hint}", field="model")


_ALIASES = re.compile(r"^(?:aliases|hub):[ \t]*\[(.*?)\]", re.MULTILINE | re.DOTALL)


@cache
def alias_index() -> dict[str, str]:
    """Lower-case alias or hub id -> bundled id, read from the text of the ``source.yaml`` files without parsing them.

    Raises:
        PlanError: one alias for two models.
    """
    found: dict[str, str] = {}
    for id_ in model_ids():
        text = _folder(id_).joinpath("source.yaml").read_text(encoding="utf-8")
        for match in _ALIASES.finditer(text):
            for alias in match.group(1).split(","):
                key = alias.strip().strip("'\"").lower()
                if key and found.setdefault(key, id_) != id_:
                    raise PlanError(f"models/{id_}/source.yaml: the alias {key} belongs to {found[key]} already")
    return found


def provenance(id_: str) -> dict[str, Any]:
    """What the ``source.yaml`` of a bundled model says: where its facts were read, and the published count."""
    import yaml

    found: dict[str, Any] = yaml.safe_load(_folder(id_).joinpath("source.yaml").read_text(encoding="utf-8"))
    return found


def _folder(id_: str) -> Traversable:
    org, name = id_.split("/")
    return bundled("models") / org / name


def _from_folder(path: Path, name: str) -> Model:
    present = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    if "config.json" not in present:
        raise PlanError(_what_folder_is(path, present), field="model")
    model = _from_file(path / "config.json", name)
    extra = path / "hf_quant_config.json"
    if not extra.is_file():
        return model
    quantization = parse_config(_bytes_of(extra), source=str(extra))
    return Model(model.id, model.origin, model.raw, model.architecture, quantization)


def _what_folder_is(path: Path, present: set[str]) -> str:
    if "adapter_config.json" in present:
        adapter = parse_object(_bytes_of(path / "adapter_config.json"), source=str(path / "adapter_config.json"))
        return f"{path}: {_adapter(adapter)}"
    if "model_index.json" in present:
        index = parse_object(_bytes_of(path / "model_index.json"), source=str(path / "model_index.json"))
        return f"{path}: {_diffusion(index)}"
    return f"{path}: holds no config.json"


def _from_file(path: Path, name: str) -> Model:
    if path.suffix in (".gguf", ".safetensors", ".bin", ".pt"):
        raise PlanError(f"{path}: a weights file; give the config.json that belongs to it", field="model")
    raw = parse_config(_bytes_of(path), source=str(path))
    architecture = read_architecture(raw, source=str(path))
    return Model(name, str(path), raw, architecture)


def _bytes_of(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAXIMUM_BYTES:
            raise PlanError(f"{path}: {path.stat().st_size:,} bytes are too many for a config.json", field="model")
        return path.read_bytes()
    except FileNotFoundError:
        raise PlanError(f"{path}: no such file", field="model") from None
    except OSError as error:
        raise PlanError(f"{path}: cannot be read ({error.strerror})", field="model") from None


def parse_config(data: bytes, *, source: str) -> dict[str, Any]:
    """The JSON object of a language model's ``config.json``.

    Raises:
        PlanError: not JSON, not an object, or something else than a language model's config.
    """
    raw = parse_object(data, source=source)
    kind = _other_kind(raw)
    if kind is not None:
        raise PlanError(f"{source}: {kind}", field="model")
    return raw


def parse_object(data: bytes, *, source: str) -> dict[str, Any]:
    """Bytes of a JSON file as an object, a byte-order mark skipped.

    Raises:
        PlanError: what the file is instead, with line and column where that helps.
    """
    text = _decode(data, source)
    start = text.lstrip()[:200].lower()
    if not start:
        raise PlanError(f"{source}: the file is empty", field="model")
    if start.startswith("<"):
        raise PlanError(f"{source}: HTML or XML, not JSON (a gated page or a wrong address?)", field="model")
    if start.startswith("version https://git-lfs"):
        raise PlanError(f"{source}: a Git LFS pointer, not the file itself; run git lfs pull", field="model")
    try:
        raw = json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        reason = "a comma before a closing bracket" if _trailing_comma(text, error.pos) else error.msg.lower()
        raise PlanError(
            f"{source}: not JSON, line {error.lineno} column {error.colno}: {reason}", field="model"
        ) from None
    except RecursionError:
        raise PlanError(f"{source}: nested too deeply for a config.json", field="model") from None
    except _DuplicateKeyError as error:
        raise PlanError(f"{source}: the key {error} stands twice with different values", field="model") from None
    except ValueError:
        raise PlanError(f"{source}: holds a number of more digits than can be read", field="model") from None
    if not isinstance(raw, dict):
        found = "null" if raw is None else f"a {type(raw).__name__}".replace("str", "string")
        raise PlanError(f"{source}: the top level is {found}; expected an object of keys", field="model")
    return raw


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PlanError(f"{source}: not text in UTF-8", field="model") from None


class _DuplicateKeyError(Exception):
    pass


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise _DuplicateKeyError(key)
        found[key] = value
    return found


def _trailing_comma(text: str, position: int) -> bool:
    return bool(re.search(r",\s*$", text[:position])) and text[position : position + 1] in ("}", "]")


# Sorts of model that have a config.json and that this program does not plan, by model_type.
_OTHER_KINDS = {
    "an encoder-only model (for embeddings or classification)": """
        bert roberta xlm-roberta distilbert electra deberta deberta-v2 mpnet albert camembert modernbert nomic_bert
        xlm bge gte new jina_bert longformer big_bird eurobert esm""",
    "a picture encoder": "vit clip clip_vision_model siglip siglip2 siglip_vision_model dinov2 dinov3_vit swin resnet",
    "a speech model": "whisper wav2vec2 hubert seamless_m4t speecht5 encodec moonshine bark",
}


def _other_kind(raw: Mapping[str, Any]) -> str | None:
    """What a config describes if it is no generating language model."""
    if "peft_type" in raw or ("base_model_name_or_path" in raw and "model_type" not in raw):
        return _adapter(raw)
    if "_class_name" in raw or "_diffusers_version" in raw:
        return _diffusion(raw)
    model_type = raw.get("model_type")
    for words, kinds in _OTHER_KINDS.items():
        if model_type in kinds.split():
            return f"model_type {model_type!r} is {words}; it does not generate text token by token"
    classes = raw.get("architectures")
    names = [name for name in classes if isinstance(name, str)] if isinstance(classes, list) else []
    reasons = [reason for name in names if (reason := _headless(name, model_type)) is not None]
    return reasons[0] if names and len(reasons) == len(names) else None


def _headless(name: str, model_type: object) -> str | None:
    """Why an architecture class does not generate text, or None."""
    if re.search(r"For(Sequence|Token)Classification|ForRewardModel|RewardModel|ForSequenceReward", name):
        return f"architectures says {name}, a classifier or reward model without a language-model head"
    if name.endswith(("ForMaskedLM", "ForFeatureExtraction", "ForQuestionAnswering")):
        return f"architectures says {name}, an encoder-only model"
    if re.search(r"Eagle|Medusa|Hydra|Draft|Speculator", name):
        return f"architectures says {name}, a draft head for speculative decoding; plan the model that it belongs to"
    bare = name.endswith("Model") and not re.search(r"LMHead|Chat|ChatGLM|WithLM", name)
    if bare and model_type != "chatglm":
        return f"architectures says {name}, a stack without a language-model head (an embedding model)"
    return None


def _adapter(raw: Mapping[str, Any]) -> str:
    base = raw.get("base_model_name_or_path") or "its base model"
    return f"a {raw.get('peft_type', 'LoRA')} adapter of {base}, not a model; plan {base}"


def _diffusion(raw: Mapping[str, Any]) -> str:
    return f"a diffusion pipeline ({raw.get('_class_name', 'diffusers')}), not a language model"


def bundled_models() -> Iterator[Model]:
    """Every bundled model, read one after the other."""
    for id_ in model_ids():
        yield find_model(id_)
