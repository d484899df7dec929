"""The hardware catalogue: devices by id, alias, file or numbers, every figure with its basis and sources."""

from planner.hardware.catalogue import all_devices, device_ids, find_device, resolve
from planner.hardware.described import device_from_numbers, with_ceilings, with_memory
from planner.hardware.reading import read_device
from planner.hardware.records import (
    Alternative,
    Device,
    Figure,
    Interconnect,
    MeasuredCeiling,
    Memory,
    Peak,
    Price,
    Source,
)

__all__ = [
    "Alternative",
    "Device",
    "Figure",
    "Interconnect",
    "MeasuredCeiling",
    "Memory",
    "Peak",
    "Price",
    "Source",
    "all_devices",
    "device_from_numbers",
    "device_ids",
    "find_device",
    "read_device",
    "resolve",
    "with_ceilings",
    "with_memory",
]
