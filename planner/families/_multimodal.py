"""What the multimodal families share: the nested text model, the towers' configs, and putting both together.

No dialect by itself (the name begins with an underscore). A wrapper reads its text through ``text_model``, which
passes the wrapper's tie flag down and fills in a text class's defaults where published files rely on them, and joins
the parts with ``around``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from planner.architecture import Architecture, Component, Weight
from planner.config import Count, FamilyConfig, Layers, Switch
from planner.families import read_nested
from planner.vision_blocks import clip_tower, pixtral_tower, siglip_tower

# Files of the LLaVA age hold only the keys that differ from the text class, so the class's defaults are part of them.
LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 11008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
}
MISTRAL = LLAMA | {
    "intermediate_size": 14336,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131072,
    "sliding_window": 4096,
}
QWEN2 = LLAMA | {
    "intermediate_size": 22016,
    "num_key_value_heads": 32,
    "vocab_size": 151936,
    "max_position_embeddings": 32768,
}
CLASS_DEFAULTS: Mapping[str, Mapping[str, int]] = {"llama": LLAMA, "mistral": MISTRAL, "qwen2": QWEN2}

Size = Count | list[Count]


class Wrapper(FamilyConfig):
    """Keys of every wrapper. ``tie_word_embeddings`` absent leaves the decision to the text's own config."""

    text_config: dict[str, Any]
    tie_word_embeddings: Switch | None = None


class FlatWrapper(Wrapper):
    """A wrapper whose published files hold the text's keys at the top level, beside the tower's config.

    Transformers 5 writes the same family with a ``text_config``; both forms are read.
    """

    flat: bool = False

    @classmethod
    def parse(cls, raw: Mapping[str, Any], *, source: str, prefix: str = "") -> Self:
        """Move the text's keys into ``text_config`` where the file is flat."""
        if isinstance(raw.get("text_config"), Mapping):
            return super().parse(raw, source=source, prefix=prefix)
        own = cls.keys_read() | cls.HARMLESS
        nested = {key: value for key, value in raw.items() if key in own}
        text = {key: value for key, value in raw.items() if key not in own}
        return super().parse({**nested, "text_config": text, "flat": True}, source=source, prefix=prefix)


def text_model(
    config: Wrapper,
    *,
    model_type: str,
    read_as: Mapping[str, str] | None = None,
    class_defaults: Mapping[str, Mapping[str, int]] | None = None,
    tied_by_either: bool = False,
    key: str = "text_config",
) -> Architecture:
    """The text model of a wrapper.

    ``model_type`` is the default for a silent text config; ``read_as`` maps the text's own type to the family that
    reads it (``qwen3_vl_text`` is a ``qwen3``). ``class_defaults`` are the text classes' defaults. A tie flag of
    the wrapper overrides the text's, unless ``tied_by_either`` says that a true one in either place ties. ``key`` is
    the text config's name.
    """
    given = dict(config.text_config)
    named = given.get("model_type") or model_type
    if named:
        given["model_type"] = (read_as or {}).get(named, named)
    keeps = tied_by_either and given.get("tie_word_embeddings") is True
    if config.tie_word_embeddings is not None and not keeps:
        given["tie_word_embeddings"] = config.tie_word_embeddings
    supplied = (class_defaults or {}).get(str(given.get("model_type")), {})
    missing = {key: value for key, value in supplied.items() if key not in given}
    flat = isinstance(config, FlatWrapper) and config.flat
    prefix = config.prefix if flat else f"{config.prefix}{key}."
    text = read_nested({**missing, **given}, source=config.source, prefix=prefix)
    assumed = tuple(_assumption(f"{prefix}{key} = {value:,}") for key, value in missing.items())
    return replace(text, assumed=assumed + text.assumed)


def _assumption(text: str) -> str:
    return f"{text} (absent in the config, the family's default)"


def around(
    config: Wrapper,
    text: Architecture,
    *,
    family: str,
    components: Iterable[Component],
    parts: Iterable[Piece] = (),
    layout: tuple[str, str] = ("model.language_model", "lm_head"),
    unread: tuple[str, ...] = (),
    assumed: tuple[str, ...] = (),
) -> Architecture:
    """The text model with its towers, under the wrapper's name.

    ``parts`` are the configs of the towers, whose defaults are reported. ``layout`` gives the paths of the text
    model (``model`` in a text-only checkpoint) and of its head.
    """
    of_parts = tuple(_assumption(part.prefix + value) for part in parts for value in part.defaulted())
    head = text.lm_head
    return replace(
        text,
        family=family,
        model_type=config.model_type,
        embedding=_moved(text.embedding, layout),
        lm_head=None if head is None else _moved(head, layout),
        outer=tuple(_moved(weight, layout) for weight in text.outer),
        components=(*text.components, *components),
        layer_names=_path(text.layer_names, layout),
        unread=text.unread + unread,
        assumed=text.assumed + of_parts + assumed,
        dtype=text.dtype or config.dtype,
    )


def _moved(weight: Weight, layout: tuple[str, str]) -> Weight:
    return replace(weight, name=_path(weight.name, layout))


def _path(name: str, layout: tuple[str, str]) -> str:
    model, head = layout
    if name == "lm_head":
        return head
    return model + name.removeprefix("model") if name.startswith("model.") else name


def pair(size: Size) -> tuple[int, int]:
    """Height and width of a size that a file gives as one number or as two."""
    if isinstance(size, int):
        return size, size
    return size[0], size[-1]


class Piece(FamilyConfig):
    """Keys of a part's own config; every config of transformers can hold a tie flag, towers have nothing to tie."""

    HARMLESS: ClassVar[frozenset[str]] = frozenset({"tie_word_embeddings", "projection_dim", "vocab_size", "head_dim"})


def patches(config: Piece, image: Size, patch: Size) -> int:
    """How many patches of ``patch`` an image has."""
    (height, width), (rows, columns) = pair(image), pair(patch)
    if height < rows or width < columns:
        raise config.refusal("patch_size", f"is {patch}, more than the image_size {image}")
    return (height // rows) * (width // columns)


class TowerConfig(Piece):
    """Keys of a vision transformer; a subclass carries the defaults of its class in transformers."""

    hidden_size: Count = 768
    intermediate_size: Count = 3072
    num_hidden_layers: Layers = 12
    num_attention_heads: Count = 12
    num_channels: Count = 3
    image_size: Size = 224
    patch_size: Size = 16

    def weights(self, path: str) -> tuple[Weight, ...]:
        """Tensors under ``path``."""
        raise NotImplementedError


class Clip(TowerConfig):
    """``CLIPVisionConfig``; a tower has no text projection, so ``projection_dim`` is nothing here."""

    patch_size: Size = 32

    def weights(self, path: str) -> tuple[Weight, ...]:
        """CLIP, with a position for the class token."""
        return clip_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.num_hidden_layers,
            channels=self.num_channels,
            patch=pair(self.patch_size),
            positions=patches(self, self.image_size, self.patch_size) + 1,
        )


class Siglip(TowerConfig):
    """``SiglipVisionConfig``."""

    vision_use_head: Switch = True

    def weights(self, path: str) -> tuple[Weight, ...]:
        """SigLIP, with its pooling head unless the file says that it is left out."""
        return siglip_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.num_hidden_layers,
            channels=self.num_channels,
            patch=pair(self.patch_size),
            positions=patches(self, self.image_size, self.patch_size),
            pooling_head=self.vision_use_head,
        )


class Siglip2(TowerConfig):
    """``Siglip2VisionConfig`` (NaFlex): the number of positions is a key, the image size is free."""

    vision_use_head: Switch = True
    num_patches: Count = 256

    def weights(self, path: str) -> tuple[Weight, ...]:
        """SigLIP 2."""
        return siglip_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.num_hidden_layers,
            channels=self.num_channels,
            patch=pair(self.patch_size),
            positions=self.num_patches,
            pooling_head=self.vision_use_head,
            flat_patches=True,
        )


class Pixtral(TowerConfig):
    """``PixtralVisionConfig``; the head dimension follows from the width, whatever the file says."""

    hidden_size: Count = 1024
    intermediate_size: Count = 4096
    num_hidden_layers: Layers = 24
    num_attention_heads: Count = 16
    image_size: Size = 1024

    def weights(self, path: str) -> tuple[Weight, ...]:
        """Pixtral."""
        return pixtral_tower(
            path,
            hidden=self.hidden_size,
            width=self.intermediate_size,
            layers=self.num_hidden_layers,
            channels=self.num_channels,
            patch=pair(self.patch_size),
        )


# vision_config.model_type -> its config and what published checkpoints put between ``vision_tower`` and its tensors.
TOWERS: Mapping[str, tuple[type[TowerConfig], str]] = {
    "clip_vision_model": (Clip, ".vision_model"),
    "siglip_vision_model": (Siglip, ".vision_model"),
    "siglip2_vision_model": (Siglip2, ".vision_model"),
    "pixtral": (Pixtral, ""),
}


def vision_tower(
    config: Wrapper, raw: Mapping[str, Any] | None, *, model_type: str, whole: Mapping[str, Any], key: str
) -> tuple[TowerConfig, Component]:
    """The tower of a wrapper that takes any of ``TOWERS``.

    ``model_type`` is the default for a silent tower config, ``whole`` the tower of a file without one.
    """
    given = dict(whole if raw is None else raw)
    named = given.get("model_type") or model_type
    if named not in TOWERS:
        raise config.refusal(f"{key}.model_type", f"is {named!r}; the towers known here are {', '.join(TOWERS)}")
    model, inside = TOWERS[named]
    tower = model.parse(given, source=config.source, prefix=f"{config.prefix}{key}.")
    return tower, Component("vision tower", tower.weights(f"vision_tower{inside}"))


def feature_layers(value: int | list[int]) -> int:
    """How many of the tower's layers a projector reads side by side."""
    return 1 if isinstance(value, int) else len(value)
