"""The hardware catalogue: every file valid, figures as the vendors print them, figures that fit each other."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.ceilings import bandwidth_ceiling, compute_ceiling, published_bandwidth, published_peak, usable_memory
from planner.hardware import Alternative, Device, Figure, all_devices, device_ids, find_device, resolve
from planner.hardware.catalogue import _files, _squeezed
from planner.resources import bundled

UNITS = ("fp32", "tf32", "fp16_acc16", "fp16_acc32", "bf16", "fp8", "fp8_acc16", "fp6", "fp4", "int8", "int4")
GIB = 2**30

# What a pin of each memory type carries, bit/s: from the slowest to the fastest speed grade on the market.
PIN_RATES = {
    "HBM2": (1.6e9, 2.5e9),
    "HBM2e": (2.4e9, 3.7e9),
    "HBM3": (5.0e9, 6.5e9),
    "HBM3e": (5.8e9, 9.8e9),
    "GDDR5X": (10e9, 12e9),
    "GDDR6": (10e9, 20.1e9),
    "GDDR6X": (19e9, 24e9),
    "GDDR7": (24e9, 32e9),
    "DDR5": (4.8e9, 6.4e9),
    "MRDIMM": (8.8e9, 8.8e9),
    "LPDDR4X": (4.2e9, 4.3e9),
    "LPDDR5": (4.2e9, 6.5e9),
    "LPDDR5X": (7.4e9, 9.7e9),
}

# device, bandwidth in GB/s, unit, its dense peak in TFLOP/s, and where the vendor prints both.
PUBLISHED = [
    ("h100-sxm", 3350, "bf16", 989.5, "NVIDIA H100 product page, SXM column; 1,979 with sparsity"),
    ("h100-sxm", 3350, "fp8", 1979, "NVIDIA H100 product page, SXM column; 3,958 with sparsity"),
    ("h100-pcie", 2000, "bf16", 756, "NVIDIA H100 PCIe datasheet; 1,513 with sparsity"),
    ("h100-nvl", 3938, "bf16", 835.5, "NVIDIA H100 NVL product brief; 1,671 with sparsity"),
    ("h200-sxm", 4800, "bf16", 989.5, "NVIDIA H200 datasheet; 1,979 with sparsity"),
    ("h20", 4000, "bf16", 148, "NVIDIA H20 datasheet"),
    ("b200-sxm", 7672, "bf16", 2250, "NVIDIA HGX B200 datasheet; bandwidth by a device query (bus width times clock)"),
    ("a100-sxm-80gb", 2039, "bf16", 312, "NVIDIA A100 datasheet, 80GB SXM column"),
    ("a100-pcie-80gb", 1935, "bf16", 312, "NVIDIA A100 datasheet, 80GB PCIe column"),
    ("a100-sxm-40gb", 1555, "bf16", 312, "NVIDIA A100 datasheet, first edition"),
    ("a10", 600, "bf16", 125, "NVIDIA A10 datasheet"),
    ("a30", 933, "bf16", 165, "NVIDIA A30 datasheet"),
    ("a40", 696, "bf16", 149.7, "NVIDIA A40 datasheet"),
    ("l4", 300, "bf16", 121, "NVIDIA L4 datasheet; 242 with sparsity"),
    ("l40", 864, "bf16", 181, "NVIDIA L40 datasheet"),
    ("l40s", 864, "bf16", 362, "NVIDIA L40S datasheet"),
    ("t4", 320, "fp16_acc32", 65, "NVIDIA T4 datasheet"),
    ("v100-sxm2-32gb", 900, "fp16_acc32", 125, "NVIDIA V100 datasheet, SXM2 column"),
    ("rtx-a6000", 768, "bf16", 154.8, "NVIDIA GA102 whitepaper"),
    ("rtx-3090", 936, "bf16", 71.2, "NVIDIA GA102 whitepaper"),
    ("rtx-4090", 1008, "fp16_acc32", 165.2, "NVIDIA Ada whitepaper, fp32 accumulate"),
    ("rtx-4090", 1008, "fp16_acc16", 330.3, "NVIDIA Ada whitepaper, fp16 accumulate"),
    ("rtx-5090", 1792, "bf16", 209.5, "NVIDIA RTX Blackwell whitepaper"),
    ("mi300x", 5300, "bf16", 1307.4, "AMD Instinct MI300X data sheet"),
    ("mi300x", 5300, "fp8", 2614.9, "AMD Instinct MI300X data sheet"),
    ("mi325x", 6000, "bf16", 1307.4, "AMD Instinct MI325X data sheet"),
    ("mi355x", 8000, "bf16", 2500, "AMD Instinct MI355X page, rounded"),
    ("mi250x", 3277, "bf16", 383, "AMD Instinct MI250X data sheet, both dies"),
    ("rx-7900-xtx", 960, "fp16_acc32", 122.8, "AMD RX 7900 XTX page"),
    ("tpu-v5e", 819, "bf16", 197, "Google Cloud TPU v5e page"),
    ("tpu-v5p", 2765, "bf16", 459, "Google Cloud TPU v5p page"),
    ("tpu-v6e", 1638, "bf16", 918, "Google Cloud TPU v6e page"),
    ("gaudi-3", 3700, "bf16", 1677, "Intel Gaudi 3 at the 1.6 GHz that the parts run at"),
]

BANDWIDTHS = [
    ("m1-max-32c", 400, "Apple M1 Max announcement, up to 400 GB/s"),
    ("m2-ultra-76c", 800, "Apple M2 Ultra announcement"),
    ("m3-ultra-80c", 819, "Apple Mac Studio specifications"),
    ("m4-10c", 120, "Apple M4 announcement"),
    ("m4-pro-20c", 273, "Apple M4 Pro announcement"),
    ("m4-max-40c", 546, "Apple M4 Max announcement"),
    ("dgx-spark-gb10", 273, "NVIDIA DGX Spark datasheet"),
    ("ryzen-ai-max-395", 256, "256 bit of LPDDR5X-8000"),
    ("rtx-3060-12gb", 360, "NVIDIA GA102 whitepaper's family table"),
    ("epyc-9654", 460.8, "twelve channels of DDR5-4800"),
]

CAPACITIES = [
    ("h100-sxm", 80),
    ("h200-sxm", 141),
    ("b200-sxm", 180),
    ("a100-sxm-40gb", 40),
    ("l4", 24),
    ("t4", 16),
    ("rtx-3060-12gb", 12),
    ("mi300x", 192),
    ("mi325x", 256),
    ("mi355x", 288),
]


def records(record: Any) -> Iterator[Any]:
    yield record
    names = getattr(record, "_fields", None) or [field.name for field in dataclasses.fields(record)]
    for value in (getattr(record, name) for name in names):
        plain = isinstance(value, tuple) and not hasattr(value, "_fields")
        for item in value.values() if isinstance(value, dict) else value if plain else (value,):
            if dataclasses.is_dataclass(item) or hasattr(item, "_fields"):
                yield from records(item)


def peaks(device: Device) -> dict[str, Figure[float]]:
    return {unit: figure for unit in UNITS if (figure := getattr(device.peak, unit)) is not None}


@pytest.fixture(params=device_ids())
def device(request: pytest.FixtureRequest) -> Device:
    return find_device(request.param)


# --- Every file -------------------------------------------------------------------------------------------------------


def test_the_catalogue_holds_at_least_the_devices_it_started_with() -> None:
    assert len(device_ids()) >= 175


def test_a_device_has_a_name_a_kind_memory_bandwidth_and_at_least_one_peak(device: Device) -> None:
    assert device.vendor
    assert device.kind != "custom"
    assert device.memory is not None
    assert device.bandwidth is not None
    assert peaks(device) or device.id == "cerebras-wse3"


def test_every_figure_has_a_source_and_says_how_it_is_known(device: Device) -> None:
    for record in records(device):
        if isinstance(record, Figure) and record != Figure(True):
            assert record.basis != "given"
            assert record.source
        if isinstance(record, Alternative):
            assert record.source or record.basis == "derived"


def test_every_source_is_cited_and_has_an_address_or_a_date(device: Device) -> None:
    cited = {key for record in records(device) for key in getattr(record, "source", ())}
    assert set(device.sources) == cited
    for key, source in device.sources.items():
        assert source.address or source.date or key == "recalled" or source.title


def test_a_recalled_figure_cites_nothing_but_memory(device: Device) -> None:
    for record in records(device):
        if isinstance(record, Figure) and record.basis == "recalled":
            assert "recalled" in record.source


def test_the_folder_is_the_vendors_name_in_lower_case(device: Device) -> None:
    file = _files()[device.id]
    assert isinstance(file, Path)
    assert file.parent.name == device.vendor.lower().replace(" ", "-")


def test_an_id_is_lower_case_words_with_dashes(device: Device) -> None:
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", device.id)


def test_the_aliases_stand_on_one_line_that_can_be_read_without_yaml(device: Device) -> None:
    for alias in device.aliases:
        assert resolve(alias) == (device.id, True)


def test_no_alias_means_two_devices_or_another_devices_id() -> None:
    owners: dict[str, str] = {_squeezed(device_id): device_id for device_id in device_ids()}
    assert len(owners) == len(device_ids())
    for device in all_devices():
        for alias in device.aliases:
            assert owners.setdefault(_squeezed(alias), f"alias of {device.id}") == f"alias of {device.id}"
        assert len({_squeezed(alias) for alias in device.aliases}) == len(device.aliases)


def test_no_file_uses_tabs_tags_or_the_path_of_a_machine() -> None:
    for file in _files().values():
        text = file.read_text(encoding="utf-8")
        assert "\t" not in text
        assert "!!" not in text
        assert not re.search(r"(^|[\s'\"])/(home|work|root|tmp)/", text)


def test_a_reader_without_our_rules_sees_the_same_figures() -> None:
    for device_id, file in _files().items():
        plain = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert plain["id"] == device_id
        assert isinstance(plain["bandwidth"]["value"], str)


def test_every_folder_with_devices_holds_only_yaml() -> None:
    for folder in {Path(str(file)).parent for file in _files().values()}:
        assert {path.suffix for path in folder.iterdir()} == {".yaml"}
    assert bundled("hardware").is_dir()


# --- Figures as published ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("device_id", "bandwidth", "unit", "peak", "source"), PUBLISHED)
def test_bandwidth_and_peak_are_those_of_the_datasheet(
    device_id: str, bandwidth: float, unit: str, peak: float, source: str
) -> None:
    device = find_device(device_id)
    read, computed = published_bandwidth(device), published_peak(device, unit)
    assert read is not None, source
    assert computed is not None, source
    assert read.value == pytest.approx(bandwidth * 1e9, rel=2e-3), source
    assert computed.value == pytest.approx(peak * 1e12, rel=2e-3), source


@pytest.mark.parametrize(("device_id", "bandwidth", "source"), BANDWIDTHS)
def test_bandwidth_is_that_of_the_vendor(device_id: str, bandwidth: float, source: str) -> None:
    read = published_bandwidth(find_device(device_id))
    assert read is not None, source
    assert read.value == pytest.approx(bandwidth * 1e9, rel=2e-3), source


@pytest.mark.parametrize(("device_id", "gigabytes"), CAPACITIES)
def test_the_nominal_memory_is_the_number_in_the_name(device_id: str, gigabytes: float) -> None:
    memory = find_device(device_id).memory
    assert memory is not None
    assert memory.nominal is not None
    assert memory.nominal.value == gigabytes * 10**9
    assert memory.capacity.value == gigabytes * GIB


def test_the_textbook_h100_gives_the_textbook_times() -> None:
    device = find_device("h100")
    bandwidth, peak = published_bandwidth(device), published_peak(device, "bf16")
    assert bandwidth is not None
    assert peak is not None
    assert 2 * 8_030_261_248 / bandwidth.value == pytest.approx(4.79e-3, rel=1e-3)
    assert 2 * 8_030_261_248 * 2000 / peak.value == pytest.approx(32.5e-3, rel=2e-3)


# --- Figures that fit each other --------------------------------------------------------------------------------------


def test_fp8_runs_at_twice_the_rate_of_bf16_unless_a_note_says_otherwise(device: Device) -> None:
    found = peaks(device)
    if "fp8" in found and "bf16" in found:
        ratio = found["fp8"].value / found["bf16"].value
        assert ratio == pytest.approx(2, rel=0.05) or found["fp8"].note


def test_bf16_runs_at_the_rate_of_fp16_with_fp32_accumulate(device: Device) -> None:
    found = peaks(device)
    exceptions = {"gaudi-3": 1677 / 459, "mi100": 0.5}
    if "bf16" in found and "fp16_acc32" in found:
        ratio = found["bf16"].value / found["fp16_acc32"].value
        assert ratio == pytest.approx(exceptions.get(device.id, 1), rel=0.05)


def test_accumulating_in_fewer_bits_is_never_slower(device: Device) -> None:
    found = peaks(device)
    for narrow, wide in (("fp16_acc16", "fp16_acc32"), ("fp8_acc16", "fp8")):
        if narrow in found and wide in found and device.id != "gtx-1080-ti":
            assert found[narrow].value >= found[wide].value * 0.99


def test_sparsity_doubles_the_dense_rate_on_nvidia_unless_a_note_says_otherwise(device: Device) -> None:
    for figure in peaks(device).values():
        if figure.sparse is not None and device.vendor == "NVIDIA":
            assert figure.sparse / figure.value == pytest.approx(2, rel=0.01) or figure.note


def test_bandwidth_over_bus_width_is_a_speed_that_the_memory_type_has(device: Device) -> None:
    memory, bandwidth = device.memory, device.bandwidth
    assert memory is not None
    assert memory.type is not None
    assert bandwidth is not None
    kind = re.split(r"[ -]", memory.type.value)[0]
    if memory.bus_bits is not None and kind in PIN_RATES:
        slowest, fastest = PIN_RATES[kind]
        assert slowest * 0.99 <= bandwidth.value * 8 / memory.bus_bits.value <= fastest * 1.01


def test_usable_memory_is_most_of_the_capacity_and_never_more(device: Device) -> None:
    usable = usable_memory(device)
    assert usable is not None
    assert device.memory is not None
    least = {"ryzen-ai-max-395": 0.48}.get(device.id, 0.65)
    assert least <= usable.value / device.memory.capacity.value <= 1.02


def test_nominal_and_capacity_are_the_same_memory(device: Device) -> None:
    assert device.memory is not None
    assert device.memory.nominal is not None
    assert 1 <= device.memory.capacity.value / device.memory.nominal.value <= GIB / 1e9 * 1.01


def test_the_largest_option_of_memory_is_the_capacity(device: Device) -> None:
    assert device.memory is not None
    if device.memory.options and device.id != "raspberry-pi-5":
        assert max(device.memory.options) == device.memory.capacity.value


def test_every_mac_lists_its_memory_sizes(device: Device) -> None:
    assert device.memory is not None
    assert device.vendor != "Apple" or device.memory.options


def test_a_ceiling_is_never_below_the_published_figure_nor_far_above_it(device: Device) -> None:
    published, ceiling = published_bandwidth(device), bandwidth_ceiling(device)
    assert published is not None
    assert ceiling is not None
    assert 1 <= ceiling.value / published.value < 1.05
    for unit, figure in peaks(device).items():
        highest = compute_ceiling(device, unit)
        if device.compute_floor.value:
            assert highest is not None
            assert 1 <= highest.value / figure.value < (2 if device.kind == "cpu" else 1.25)
        else:
            assert highest is None


def test_a_trusted_measurement_is_physically_possible(device: Device) -> None:
    for entry in device.measured:
        if entry.trusted and entry.metric.startswith("memory"):
            assert device.bandwidth is not None
            assert entry.value <= device.bandwidth.value * 1.05


def test_a_price_is_dated_and_in_the_range_of_prices(device: Device) -> None:
    for price in device.prices:
        assert re.match(r"20\d\d-\d\d", price.date)
        for dollars in (price.value, price.low, price.high):
            assert dollars is None or 0.05 <= dollars <= 50


def test_a_link_in_one_direction_is_slower_than_the_memory(device: Device) -> None:
    assert device.bandwidth is not None
    for name, link in device.interconnect.items():
        if link.rate is not None and device.kind != "cpu":
            assert link.rate.value < device.bandwidth.value, name
        if link.rate is not None and link.per_link is not None and link.links is not None:
            assert link.rate.value == pytest.approx(link.per_link.value * link.links, rel=0.15)
