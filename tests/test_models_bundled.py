"""The bundled models: what each says of itself, that it counts as published, and that it is found by every name."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Annotated, Any, Self

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from planner.counting import count_parameters
from planner.models import alias_index, find_model, model_ids, resolve
from planner.resources import bundled
from planner.storage import inventory_of, storage_of

IDS = model_ids()
every_model = pytest.mark.parametrize("id_", IDS)

Text = Annotated[str, Field(min_length=1)]
Parameters = Annotated[int, Field(strict=True, gt=0)]


class Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Read(Entry):
    """Where the figures of the config were read, and in which copy if not there itself."""

    title: Text
    address: Annotated[str, Field(pattern=r"^https://huggingface\.co/[^/]+/[^/]+$")]
    date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    note: Text | None = None


class Difference(Entry):
    """Elements of the published files that are no parameters of the model, or stand in them twice."""

    what: Text
    parameters: Parameters


class Published(Entry):
    parameters: Parameters
    source: Text
    difference: list[Difference] = []


class Counted(Entry):
    parameters: Parameters
    source: Text


class Source(Entry):
    """A ``source.yaml``: a total that somebody else published or counted, and nothing that this program made."""

    name: Text
    aliases: list[Text]
    hub: Annotated[list[Annotated[str, Field(pattern=r"^[^/\s]+/[^/\s]+$")]], Field(min_length=1)]
    read: Read
    published: Published | None = None
    counted: Counted | None = None

    @model_validator(mode="after")
    def _one_total(self) -> Self:
        if (self.published is None) == (self.counted is None):
            raise ValueError("give either published or counted")
        return self

    @property
    def parameters(self) -> int:
        """Parameters of the model, a tied head once and nothing besides."""
        if self.published is not None:
            return self.published.parameters - sum(part.parameters for part in self.published.difference)
        assert self.counted is not None
        return self.counted.parameters


@cache
def source_of(id_: str) -> Source:
    org, name = id_.split("/")
    values: Any = yaml.safe_load((bundled("models") / org / name / "source.yaml").read_text(encoding="utf-8"))
    return Source.model_validate(values)


def test_at_least_sixty_models_are_bundled() -> None:
    assert len(IDS) >= 60


@every_model
def test_a_model_counts_as_it_was_published_or_counted_elsewhere(id_: str) -> None:
    assert count_parameters(find_model(id_).architecture).total == source_of(id_).parameters


@every_model
def test_every_alias_and_hub_id_finds_its_model_in_any_case(id_: str) -> None:
    source = source_of(id_)
    names = [*source.aliases, *source.hub]
    assert {name: resolve(name) for name in [id_, *names]} == dict.fromkeys([id_, *names], id_)
    assert {resolve(name.upper()) for name in names} == {id_}


@every_model
def test_a_model_names_its_number_format(id_: str) -> None:
    model = find_model(id_)
    storage = storage_of(model)
    assert storage.warnings == ()
    assert inventory_of(model, storage).stored_bytes > 0


def test_every_model_was_read_at_one_of_its_hub_ids() -> None:
    read = {id_: (source_of(id_).read, source_of(id_).hub) for id_ in IDS}
    assert [
        id_ for id_, (at, hub) in read.items() if at.address.removeprefix("https://huggingface.co/") not in hub
    ] == []
    assert [id_ for id_, (at, hub) in read.items() if at.title.split()[-1] not in hub] == []


def test_every_id_is_a_lower_case_folder() -> None:
    assert [id_ for id_ in IDS if not re.fullmatch(r"[a-z0-9][a-z0-9-]*/[a-z0-9][a-z0-9._-]*", id_)] == []


def test_no_two_models_share_an_id_an_alias_or_a_hub_id() -> None:
    names = Counter(IDS)
    for id_ in IDS:
        source = source_of(id_)
        names.update({name.lower() for name in (*source.aliases, *source.hub)} - {id_})
        assert len({name.lower() for name in source.aliases}) == len(source.aliases)
    assert [name for name, uses in names.items() if uses > 1] == []


def test_the_index_of_aliases_holds_what_the_yaml_says() -> None:
    wanted = {
        name.lower(): id_ for id_ in IDS for source in [source_of(id_)] for name in (*source.aliases, *source.hub)
    }
    assert alias_index() == wanted


def test_no_two_models_bear_the_same_name() -> None:
    assert [name for name, uses in Counter(source_of(id_).name for id_ in IDS).items() if uses > 1] == []


def test_a_model_without_a_published_total_says_how_its_figures_came_about() -> None:
    assert [id_ for id_ in IDS if source_of(id_).counted and not source_of(id_).read.note] == []
