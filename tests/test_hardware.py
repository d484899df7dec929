"""Reading devices: figures with units, strict files, names and aliases, devices by numbers, ceilings for floors."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.ceilings import (
    bandwidth_ceiling,
    compute_ceiling,
    published_bandwidth,
    published_peak,
    usable_memory,
)
from planner.errors import PlanError
from planner.hardware import (
    Device,
    all_devices,
    device_from_numbers,
    device_ids,
    find_device,
    read_device,
    resolve,
    with_memory,
)
from planner.hardware.catalogue import _catalogue_device

GIB = 2**30

CARD = """\
name: My card
vendor: Me
bandwidth: {value: 1 TB/s, basis: stated, source: [sheet], also: [{value: 1.1 TB/s, source: sheet}]}
memory:
  capacity: 24 GiB
  usable: 23 GiB
peak:
  bf16: {value: 100 TFLOP/s, sparse: 200 TFLOP/s, basis: stated, source: sheet}
sources:
  sheet: {title: My own sheet, address: https://example.org/card, date: 2026-01-02}
"""


def card(folder: Path, text: str = CARD, name: str = "my-card.yaml") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(PlanError) as caught:
        read_device(card(folder, text))
    message = str(caught.value)
    assert message.startswith(str(folder / "my-card.yaml"))
    assert "\n" not in message
    assert "pydantic" not in message
    return message.removeprefix(f"{folder / 'my-card.yaml'}").removeprefix(": ")


# --- Figures ----------------------------------------------------------------------------------------------------------


def test_figures_are_held_in_base_units_and_whole_numbers_stay_whole(tmp_path: Path) -> None:
    device = read_device(card(tmp_path))
    assert device.bandwidth is not None
    assert device.memory is not None
    assert device.bandwidth.value == 1_000_000_000_000
    assert isinstance(device.bandwidth.value, int)
    assert device.memory.capacity.value == 24 * GIB
    assert device.peak.bf16 is not None
    assert (device.peak.bf16.value, device.peak.bf16.sparse) == (100e12, 200e12)


def test_a_conflicting_value_is_kept_beside_the_taken_one(tmp_path: Path) -> None:
    bandwidth = read_device(card(tmp_path)).bandwidth
    assert bandwidth is not None
    assert [(other.value, other.source) for other in bandwidth.also] == [(1_100_000_000_000, ("sheet",))]


def test_a_bare_text_is_short_for_a_figure_as_given(tmp_path: Path) -> None:
    device = read_device(card(tmp_path, "bandwidth: 500 GB/s"))
    assert device.bandwidth is not None
    assert (device.bandwidth.value, device.bandwidth.basis) == (500_000_000_000, "given")


def test_id_and_name_default_to_the_name_of_the_file(tmp_path: Path) -> None:
    device = read_device(card(tmp_path, "bandwidth: 500 GB/s"))
    assert (device.id, device.name, device.kind) == ("my-card", "my-card", "custom")


def test_a_date_may_be_written_with_or_without_quotes(tmp_path: Path) -> None:
    assert read_device(card(tmp_path)).sources["sheet"].date == "2026-01-02"
    assert read_device(card(tmp_path, CARD.replace("2026-01-02", "2026"))).sources["sheet"].date == "2026"


def test_a_device_cannot_be_changed_and_can_be_hashed(tmp_path: Path) -> None:
    device = read_device(card(tmp_path))
    with pytest.raises(AttributeError, match="cannot assign"):
        device.name = "other"  # type: ignore[misc]
    assert len({device, read_device(card(tmp_path))}) == 2  # compared by identity: a cheap key of caches


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bandwidth: 3.35 TB", "bandwidth.value is '3.35 TB', which is not in B/s; expected for example '3.35 TB/s'"),
        ("bandwidth: 3.35", "bandwidth.value is 3.35, which has no unit; expected for example '3.35 TB/s'"),
        ("bandwidth: {value: 335}", "bandwidth.value is 335, which has no unit; expected for example '3.35 TB/s'"),
        ("bandwidth: .nan", "bandwidth.value is nan, which has no unit; expected for example '3.35 TB/s'"),
        ("bandwidth: nan TB/s", "bandwidth.value is 'nan TB/s', which is not a quantity; expected"),
        ("bandwidth: inf TB/s", "bandwidth.value is 'inf TB/s', which is not a quantity; expected"),
        ("bandwidth: 0 TB/s", "bandwidth.value is '0 TB/s', which is not plausible; expected for example"),
        ("bandwidth: -1 TB/s", "bandwidth.value is '-1 TB/s', which is not plausible; expected for example"),
        ("bandwidth: 1792 PB/s", "bandwidth.value is '1792 PB/s', which is not plausible; expected for example"),
        ("bandwidth: 1e400 B/s", "bandwidth.value is '1e400 B/s', which is too large"),
        ("bandwidth: 1e999999 TB/s", "bandwidth.value is '1e999999 TB/s', which is too large"),
        ("bandwidth: {basis: stated}", "bandwidth.value is missing"),
        ("bandwidth: [1 TB/s]", "bandwidth is ['1 TB/s']; expected a mapping of keys to values"),
        ("bandwidth: {value: 1 TB/s, basis: guessed}", "bandwidth.basis is 'guessed'; expected 'stated', 'derived'"),
        ("bandwidth: {value: 1 TB/s, also: [{value: 2 TB}]}", "bandwidth.also.0.value is '2 TB', which is not in B/s"),
        ("memory: {capacity: 80}", "memory.capacity.value is 80, which has no unit; expected for example '80 GB'"),
        ("memory: {}", "memory.capacity is missing"),
        ("memory: 80 GB", "memory is '80 GB'; expected a mapping of keys to values"),
        ("peak: {bf16: 100 TB/s}", "peak.bf16.value is '100 TB/s', which is not in FLOP/s; expected"),
        ("tdp: 700 kg", "tdp.value is '700 kg', which is not in W; expected for example '700 W'"),
        ("boost_clock: 1830", "boost_clock.value is 1830, which has no unit; expected for example '1.83 GHz'"),
        ("compute_units: 132 SM", "compute_units.value is '132 SM'; expected a whole number"),
        ("devices_per_node: many", "devices_per_node is 'many'; expected a whole number"),
        ("compute_floor: perhaps", "compute_floor.value is 'perhaps'; expected true or false"),
        ("kind: gpu", "kind is 'gpu'; expected 'datacenter gpu'"),
        ("name: 5", "name is 5; expected text"),
        ("aliases: {a: b}", "aliases is {'a': 'b'}; expected a list"),
    ],
)
def test_a_wrong_figure_is_named_with_what_was_found_and_what_would_be_valid(
    tmp_path: Path, text: str, said: str
) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_a_found_value_of_any_length_is_cut_short_in_the_message(tmp_path: Path) -> None:
    assert len(refusal(tmp_path, f"bandwidth: '{'9' * 5000} kg'")) < 200


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bandwith: 1 TB/s", "bandwith is not a known key; did you mean bandwidth?"),
        ("memory: {capacity: 1 GB, usabel: 1 GB}", "memory.usabel is not a known key; did you mean usable?"),
        ("peak: {bf61: 1 TFLOP/s}", "peak.bf61 is not a known key; did you mean bf16"),
        ("sources: {a: {title: b, url: c}}", "sources.a.url is not a known key"),
        ("17: x", "17 is not a known key"),
        ("bandwidth: {value: 1 TB/s, unit: B}", "bandwidth.unit is not a known key"),
    ],
)
def test_an_unknown_key_fails_with_the_nearest_valid_one(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_a_source_key_must_stand_under_sources(tmp_path: Path) -> None:
    said = refusal(tmp_path, CARD.replace("source: [sheet], also", "source: [shet], also"))
    assert said == "bandwidth.source names 'shet', which is not under sources; did you mean sheet?"


def test_the_source_of_an_alternative_must_stand_under_sources_too(tmp_path: Path) -> None:
    said = refusal(tmp_path, CARD.replace("value: 1.1 TB/s, source: sheet", "value: 1.1 TB/s, source: tpup"))
    assert said == "bandwidth.also.0.source names 'tpup', which is not under sources"


def test_a_stated_figure_needs_a_source(tmp_path: Path) -> None:
    said = refusal(tmp_path, "bandwidth: {value: 1 TB/s, basis: stated}")
    assert said == "bandwidth has the basis stated but no source"


def test_a_sparse_rate_below_the_dense_one_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "peak: {fp8: {value: 2 TFLOP/s, sparse: 1 TFLOP/s}}")
    assert said == "peak.fp8 has a sparse rate below its dense rate of 2 TFLOP/s"


def test_more_usable_than_installed_memory_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "memory: {capacity: 80 GiB, usable: 90 GiB}")
    assert said == "memory has 90 GiB usable, which is more than its capacity of 80 GiB"


@pytest.mark.parametrize(
    "figures", ["", "low: 2 USD/h, ", "low: 3 USD/h, high: 2 USD/h, ", "value: 1 USD/h, low: 1 USD/h, "]
)
def test_a_price_is_one_figure_or_a_range(tmp_path: Path, figures: str) -> None:
    text = f"prices: [{{{figures}kind: spot, date: 2026-05, source: []}}]"
    assert refusal(tmp_path, text) == "prices.0 needs either value, or low and high"


def test_a_measured_rate_is_read_in_the_unit_of_its_metric(tmp_path: Path) -> None:
    entry = "measured: [{{metric: {}, value: 1 TB/s, method: by hand, source: [], trusted: true}}]"
    device = read_device(card(tmp_path, entry.format("memory read")))
    assert device.measured[0].value == 10**12
    said = refusal(tmp_path, entry.format("matmul"))
    assert said.startswith("measured.0.value is '1 TB/s', which is not in FLOP/s")


# --- Files that are not what they should be ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds nothing; expected a mapping"),
        ("# only a remark\n", "holds nothing; expected a mapping"),
        ("just words", "holds 'just words'; expected a mapping"),
        ("- a\n- b\n", "holds a list; expected a mapping"),
        ("42", "holds 42; expected a mapping"),
        ("bandwidth: 1 TB/s\nbandwidth: 2 TB/s\n", "not valid YAML at line 2: bandwidth stands twice"),
        ("memory:\n  capacity: 1 GB\n  capacity: 2 GB\n", "not valid YAML at line 3: capacity stands twice"),
        ("name: a\n\tvendor: b\n", "not valid YAML at line 2"),
        ("name: [a\n", "not valid YAML at line"),
        ("name: 'a\n", "not valid YAML at line"),
        ("a: b: c\n", "not valid YAML at line 1"),
        ("name: !!python/object:os.system x\n", "not valid YAML at line 1"),
        ("? [a, b]\n: c\n", "not valid YAML at line 1: a key is not plain text"),
        ("name: a\n---\nname: b\n", "not valid YAML at line 2"),
        ("name: a\x07\n", "not valid YAML"),
        ("release_year: 2026-99-99\n", "not valid YAML"),
        ("a: &x 1\nb: *x\n", "line 2 repeats a value by a YAML alias; expected it written out"),
        ("a: " + "[" * 30 + "]" * 30, "nested more than 20 deep at line 1"),
        ("- " * 50_000, "nested more than 20 deep at line 1"),
    ],
)
def test_a_file_that_is_not_a_mapping_of_yaml_is_refused_in_one_sentence(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).startswith(said)


def test_a_file_of_brackets_alone_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "a: " + "[" * 100_000)
    # The parser written in C has a limit of its own, which it meets first.
    assert said.startswith(("nested more than 20 deep at line 1", "not valid YAML at line 1"))


def test_a_bomb_of_aliases_is_refused_before_it_is_built(tmp_path: Path) -> None:
    bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    bomb += [f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    assert refusal(tmp_path, "\n".join(bomb)).startswith("line 2 repeats a value by a YAML alias")


def test_a_file_of_absurd_size_is_refused_unread(tmp_path: Path) -> None:
    assert refusal(tmp_path, "# " + "x" * 300_000) == "too large for a device; expected at most 200,000 bytes"


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "my-card.yaml"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(PlanError, match="not a text file in UTF-8"):
        read_device(path)


def test_a_byte_order_mark_is_no_reason_to_refuse(tmp_path: Path) -> None:
    path = tmp_path / "my-card.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + CARD.encode())
    assert read_device(path).name == "My card"


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"nothing\.yaml: no such file"):
        find_device(str(tmp_path / "nothing.yaml"))
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(PlanError, match=r"folder\.yaml: is a directory"):
        find_device(str(tmp_path / "folder.yaml"))


# --- Names ------------------------------------------------------------------------------------------------------------


def test_a_device_is_found_by_its_id() -> None:
    assert find_device("h100-sxm").name == "H100 SXM5 80GB"
    assert resolve("h100-sxm") == ("h100-sxm", False)


@pytest.mark.parametrize(
    ("name", "device_id"),
    [
        ("h100", "h100-sxm"),
        ("h100-80gb", "h100-sxm"),
        ("h200", "h200-sxm"),
        ("a100", "a100-sxm-80gb"),
        ("a100-40gb", "a100-sxm-40gb"),
        ("b200", "b200-sxm"),
        ("b300", "b300-sxm"),
        ("gh200", "gh200-96gb"),
        ("v100", "v100-sxm2-16gb"),
        ("rtx-3060", "rtx-3060-12gb"),
        ("rtx-3080", "rtx-3080-10gb"),
        ("rtx-2060", "rtx-2060-6gb"),
        ("4060-ti", "rtx-4060-ti-8gb"),
        ("4090", "rtx-4090"),
        ("rtx-pro-6000", "rtx-pro-6000-ws"),
        ("gb10", "dgx-spark-gb10"),
        ("dgx-spark", "dgx-spark-gb10"),
        ("strix-halo", "ryzen-ai-max-395"),
        ("mi300", "mi300x"),
        ("max-1550", "intel-max-1550"),
        ("m1", "m1-8c"),
        ("m2-ultra", "m2-ultra-76c"),
        ("m3-max", "m3-max-40c"),
        ("m4-pro", "m4-pro-20c"),
        ("m5-max", "m5-max-40c"),
        ("v6e", "tpu-v6e"),
    ],
)
def test_the_bare_name_means_the_commonest_variant(name: str, device_id: str) -> None:
    assert resolve(name) == (device_id, True)
    assert find_device(name).id == device_id


@pytest.mark.parametrize(
    ("name", "device_id"),
    [
        ("H100 SXM", "h100-sxm"),
        ("H100-SXM", "h100-sxm"),
        ("RTX 4090", "rtx-4090"),
        ("rtx_4090", "rtx-4090"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("Tesla T4", "t4"),
        ("AMD Instinct MI300X", "mi300x"),
        ("Apple M4 Pro", "m4-pro-20c"),
    ],
)
def test_case_spaces_underscores_and_the_vendor_do_not_matter(name: str, device_id: str) -> None:
    assert resolve(name) == (device_id, True)


def test_an_unknown_name_fails_with_the_nearest_names() -> None:
    with pytest.raises(PlanError, match=r"unknown device 'h100-smx'; did you mean h100-sxm"):
        find_device("h100-smx")


@pytest.mark.parametrize("name", ["", " ", "-", "nvidia", "zzzzzz", "x" * 5000, "a\0b", "../../etc"])
def test_a_name_of_nothing_fails_in_one_short_sentence(name: str) -> None:
    with pytest.raises(PlanError, match="unknown device") as caught:
        find_device(name)
    assert len(str(caught.value)) < 200
    assert caught.value.field == "gpu"


def test_an_ambiguous_name_fails_with_the_candidates() -> None:
    with pytest.raises(PlanError, match=r"'jetson' could be any of jetson-agx-orin-32gb, .*; name one of them"):
        find_device("jetson")


def test_a_file_of_the_users_own_is_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card(tmp_path)
    card(tmp_path, name="plain")
    monkeypatch.chdir(tmp_path)
    assert find_device("my-card.yaml").name == "My card"
    assert find_device(str(tmp_path / "my-card.yaml")).id == "my-card"
    assert find_device("plain").id == "plain"


def test_a_file_named_like_a_device_does_not_hide_the_catalogue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card(tmp_path, name="h100-sxm")
    monkeypatch.chdir(tmp_path)
    assert find_device("h100-sxm").name == "H100 SXM5 80GB"


def test_one_device_costs_one_file(monkeypatch: pytest.MonkeyPatch) -> None:
    _catalogue_device.cache_clear()
    read: list[str] = []
    original = Path.read_text

    def counting(self: Path, *args: str, **kwargs: str) -> str:
        read.append(self.name)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", counting)
    assert find_device("mi300x").id == "mi300x"
    assert find_device("mi300x") is find_device("mi300x")
    assert read == ["mi300x.yaml"]


def test_the_catalogue_is_listed_from_names_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_args, **_kwargs: pytest.fail("a file was read"))
    ids = device_ids()
    assert ids == sorted(ids)
    assert "h100-sxm" in ids


def test_all_devices_are_those_of_the_list() -> None:
    assert [device.id for device in all_devices()] == device_ids()


# --- Devices by numbers, other memory sizes ---------------------------------------------------------------------------


def test_a_device_by_numbers_has_what_was_given_and_nothing_else() -> None:
    device = device_from_numbers(bandwidth=3.35e12, peak=989e12, memory=80e9)
    assert device.bandwidth is not None
    assert device.memory is not None
    assert (device.bandwidth.value, device.bandwidth.basis) == (3_350_000_000_000, "given")
    assert device.memory.capacity.value == 80_000_000_000
    for unit in ("bf16", "fp16_acc16", "fp16_acc32"):
        assert getattr(device.peak, unit).value == 989e12
    assert device.peak.fp8 is None
    ceiling = bandwidth_ceiling(device)
    assert ceiling is not None
    assert ceiling.because == "given: command line"
    memory = usable_memory(device)
    assert memory is not None
    assert memory.value == 80_000_000_000


def test_a_peak_in_another_format_counts_for_that_format_alone() -> None:
    device = device_from_numbers(peak=2e15, peak_format="fp8", name="mine")
    assert device.peak.fp8 is not None
    assert device.peak.bf16 is None
    assert device.id == "mine"


def test_a_device_without_a_number_has_no_such_ceiling() -> None:
    device = device_from_numbers(bandwidth=1e12)
    assert compute_ceiling(device, "bf16") is None
    assert published_peak(device, "bf16") is None
    assert usable_memory(device) is None
    assert bandwidth_ceiling(device_from_numbers(peak=1e12)) is None


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e40])
def test_numbers_that_no_device_has_are_refused(value: float) -> None:
    with pytest.raises(PlanError, match=r"device by numbers: bandwidth\.value is"):
        device_from_numbers(bandwidth=value)
    with pytest.raises(PlanError, match=r"device by numbers: peak\.fp32\.value is"):
        device_from_numbers(peak=value)
    with pytest.raises(PlanError, match=r"device by numbers: memory\.capacity\.value is"):
        device_from_numbers(memory=value)


def test_an_unknown_format_of_the_peak_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError, match=r"peak\.fp7 is not a known key; did you mean"):
        device_from_numbers(peak=1e15, peak_format="fp7")


@pytest.mark.parametrize("size", [24 * GIB, 24 * 10**9])
def test_another_memory_size_keeps_the_usable_share(size: int) -> None:
    device = find_device("m4-pro")
    smaller = with_memory(device, size)
    assert device.memory is not None
    assert smaller.memory is not None
    assert device.memory.usable is not None
    assert smaller.memory.usable is not None
    assert smaller.memory.capacity.value == 24 * GIB
    before = device.memory.usable.value / device.memory.capacity.value
    assert smaller.memory.usable.value / smaller.memory.capacity.value == pytest.approx(before)
    assert smaller.bandwidth == device.bandwidth
    assert smaller != device
    assert hash(smaller) != hash(device)


def test_a_memory_size_that_is_not_sold_is_refused_with_those_that_are() -> None:
    with pytest.raises(PlanError, match=r"m4-pro-20c has no 32 GB of memory; expected 24 GiB, 48 GiB, 64 GiB"):
        with_memory(find_device("m4-pro"), 32e9)
    with pytest.raises(PlanError, match=r"h100-sxm has no 96 GB of memory; expected 80 GiB"):
        with_memory(find_device("h100"), 96e9)


@pytest.mark.parametrize("size", [0, -1, float("nan"), float("inf"), 1e30])
def test_a_memory_size_that_nothing_has_is_refused(size: float) -> None:
    with pytest.raises(PlanError, match="bytes of memory are not plausible"):
        with_memory(find_device("epyc-9654"), size)


def test_a_processor_takes_any_memory_size() -> None:
    memory = with_memory(find_device("epyc-9654"), 256e9).memory
    assert memory is not None
    assert memory.capacity.value == 256_000_000_000


def test_a_device_by_numbers_may_get_its_memory_later() -> None:
    memory = with_memory(device_from_numbers(bandwidth=1e12), 16e9).memory
    assert memory is not None
    assert memory.capacity.value == 16_000_000_000


# --- Ceilings ---------------------------------------------------------------------------------------------------------


def measured(folder: Path, metric: str, value: str, trusted: str, extra: str = "") -> Device:
    entry = f"{{metric: {metric}, {extra}value: {value}, method: best shape, source: sheet, trusted: {trusted}}}"
    return read_device(card(folder, f"{CARD}measured: [{entry}]\n"))


def test_the_published_figures_are_the_catalogues_own() -> None:
    device = find_device("rtx-4090")
    bandwidth, peak = published_bandwidth(device), published_peak(device, "fp16_acc32")
    assert bandwidth is not None
    assert peak is not None
    assert (bandwidth.value, peak.value) == (1008e9, 165.2e12)
    assert bandwidth.verified


def test_a_ceiling_names_its_source_with_address_and_date(tmp_path: Path) -> None:
    ceiling = bandwidth_ceiling(read_device(card(tmp_path)))
    assert ceiling is not None
    assert ceiling.because == "stated: My own sheet, https://example.org/card, 2026-01-02"


def test_a_trusted_measurement_above_the_catalogue_raises_the_ceiling(tmp_path: Path) -> None:
    device = measured(tmp_path, "matmul", "120 TFLOP/s", "true", "format: bf16, ")
    ceiling = compute_ceiling(device, "bf16")
    assert ceiling is not None
    assert (ceiling.value, ceiling.verified) == (120e12, True)
    assert ceiling.because.startswith("measured (best shape): My own sheet")
    assert ceiling.note == "above the 100 TFLOP/s published"
    published = published_peak(device, "bf16")
    assert published is not None
    assert published.value == 100e12


def test_a_measured_copy_above_the_catalogue_raises_the_bandwidth(tmp_path: Path) -> None:
    ceiling = bandwidth_ceiling(measured(tmp_path, "memory copy", "1.02 TB/s", "true"))
    assert ceiling is not None
    assert ceiling.value == 1.02e12


@pytest.mark.parametrize(
    ("metric", "value", "trusted", "extra"),
    [
        ("matmul", "200 TFLOP/s", "false", "format: bf16, "),
        ("matmul", "90 TFLOP/s", "true", "format: bf16, "),
        ("matmul", "200 TFLOP/s", "true", "format: fp8, "),
        ("memory copy", "1.9 TB/s", "false", ""),
        ("link", "1.9 TB/s", "true", ""),
    ],
)
def test_a_measurement_that_is_distrusted_lower_or_of_another_unit_changes_nothing(
    tmp_path: Path, metric: str, value: str, trusted: str, extra: str
) -> None:
    device = measured(tmp_path, metric, value, trusted, extra)
    compute, bandwidth = compute_ceiling(device, "bf16"), bandwidth_ceiling(device)
    assert compute is not None
    assert bandwidth is not None
    assert (compute.value, bandwidth.value) == (100e12, 1e12)


def test_a_unit_that_is_not_in_the_catalogue_has_no_ceiling() -> None:
    assert compute_ceiling(find_device("a100"), "fp8") is None


def test_an_unsure_unit_makes_no_compute_floor_but_stays_published() -> None:
    device = find_device("m5-max")
    assert compute_ceiling(device, "fp16_acc32") is None
    assert published_peak(device, "fp16_acc32") is not None


def test_a_processors_peak_is_scaled_to_its_boost_clock() -> None:
    device = find_device("xeon-6980p")
    ceiling = compute_ceiling(device, "bf16")
    assert ceiling is not None
    assert ceiling.value == pytest.approx(262.144e12 * 3.9 / 2.0)
    assert "boost clock" in str(ceiling.note)


def test_a_recalled_figure_is_not_verified() -> None:
    ceiling = compute_ceiling(find_device("epyc-9755"), "bf16")
    assert ceiling is not None
    assert not ceiling.verified


def test_usable_memory_is_what_the_runtime_reports() -> None:
    ceiling = usable_memory(find_device("h100-sxm"))
    assert ceiling is not None
    assert ceiling.value == 84_943_715_697


def test_usable_memory_is_assumed_where_nobody_published_it(tmp_path: Path) -> None:
    ceiling = usable_memory(read_device(card(tmp_path, "memory: {capacity: 100 GB}")))
    assert ceiling is not None
    assert (ceiling.value, ceiling.verified) == (98_000_000_000, False)
    assert ceiling.because == "assumed: 98% of the capacity of 100 GB"
