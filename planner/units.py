"""Units: the vocabulary of annotations, reading "3.35 TB/s", and writing figures for people.

Inside the package every value is in base units (bytes, FLOP, seconds). This is the only module that knows 10^9 and
2^30; GB and GiB are different words and never stand for each other.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Annotated

Bytes = Annotated[float, "B"]
BytesPerSecond = Annotated[float, "B/s"]
Flop = Annotated[float, "FLOP"]
FlopPerSecond = Annotated[float, "FLOP/s"]
FlopPerByte = Annotated[float, "FLOP/B"]
Seconds = Annotated[float, "s"]
Tokens = Annotated[float, "token"]
TokensPerSecond = Annotated[float, "token/s"]
Parameters = Annotated[float, "parameter"]
Ratio = Annotated[float, "1"]

DECIMAL = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
SMALL = {"m": -3, "u": -6, "µ": -6, "n": -9}
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50}

# Base units and the words accepted for them. Integer operations count as FLOP, so that int8 and fp8 peaks compare.
_WORDS = {
    "B": ("B",),
    "B/s": ("B/s", "Bps"),
    "FLOP": ("FLOP",),
    "FLOP/s": ("FLOP/s", "FLOPS", "OP/s", "OPS"),
    "s": ("s",),
    "W": ("W",),
    "Hz": ("Hz",),
    "USD/h": ("USD/h",),
    "USD": ("USD",),
    "token": ("token", "tokens", ""),
    "1": ("",),
}
_BINARY_UNITS = {"B", "B/s", "token", "1"}
_SMALL_UNITS = {"s"}
_NUMBER = re.compile(r"^\s*([+-]?(?:\d[\d,_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(\S*)\s*$")


class UnitError(ValueError):
    """A quantity that cannot be read, or has another unit than the one asked for."""


def parse(text: str, unit: str) -> int | float:
    """Read a quantity in ``unit``; whole results come back as ``int``.

    >>> parse("3.35 TB/s", "B/s")
    3350000000000
    >>> parse("80 GiB", "B")
    85899345920
    >>> parse("500ms", "s")
    0.5
    >>> parse("2k", "token"), parse("2Ki", "token")
    (2000, 2048)

    Raises:
        UnitError: not a number, not finite, or another unit.
    """
    match = _NUMBER.match(text)
    if match is None:
        raise UnitError(f"{text!r} is not a quantity; expected for example {example(unit)!r}")
    factor = _factor(match.group(2), unit)
    if factor is None:
        raise UnitError(f"{text!r} is not in {unit}; expected for example {example(unit)!r}")
    try:
        value = Decimal(match.group(1).replace(",", "").replace("_", "")) * factor
        if not math.isfinite(float(value)):
            raise UnitError(f"{text!r} is too large")
        return int(value) if value == value.to_integral_value() else float(value)
    except InvalidOperation:
        raise UnitError(f"{text!r} is not a quantity; expected for example {example(unit)!r}") from None
    except ArithmeticError:
        raise UnitError(f"{text!r} is too large") from None


def example(unit: str) -> str:
    """A valid quantity in ``unit``, for error messages."""
    return {
        "B": "80 GB",
        "B/s": "3.35 TB/s",
        "FLOP": "1 TFLOP",
        "FLOP/s": "989 TFLOP/s",
        "s": "500ms",
        "token": "2000",
        "1": "0.9",
        "W": "700 W",
        "Hz": "1.83 GHz",
    }.get(unit, f"1 {unit}")


def _factor(suffix: str, unit: str) -> Decimal | None:
    for word in _WORDS[unit]:
        if not suffix.endswith(word):
            continue
        prefix = suffix[: len(suffix) - len(word)]
        if prefix in DECIMAL:
            return Decimal(10) ** DECIMAL[prefix]
        if prefix in BINARY and unit in _BINARY_UNITS:
            return Decimal(2) ** BINARY[prefix]
        if prefix in SMALL and unit in _SMALL_UNITS:
            return Decimal(10) ** SMALL[prefix]
    return None


def exact(value: float, unit: str) -> str:
    """Shortest text that ``parse`` reads back to exactly ``value``; binary prefixes where they are shorter.

    >>> exact(3350000000000, "B/s"), exact(85899345920, "B"), exact(84943715697, "B")
    ('3.35 TB/s', '80 GiB', '84943715697 B')
    """
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    candidates = [
        (number / Decimal(10) ** power, prefix)
        for prefix, power in DECIMAL.items()
        if prefix != "K" and (power <= 0 or number >= Decimal(10) ** power)
    ]
    if unit in _BINARY_UNITS and unit.startswith("B"):
        candidates += [(number / Decimal(2) ** p, prefix) for prefix, p in BINARY.items() if number >= 2**p]
    texts = [f"{value_:f}" for value_, _ in candidates]
    written = [
        f"{text.rstrip('0').rstrip('.') if '.' in text else text} {prefix}{unit}".strip()
        for text, (_, prefix) in zip(texts, candidates, strict=True)
    ]
    readable = [text for text in written if parse(text, unit) == value]
    return min(readable, key=lambda text: (len(text), text))


def significant(value: float, digits: int = 3) -> str:
    """``value`` with ``digits`` significant digits, thousands separated, no exponent.

    >>> significant(4.79409), significant(2000.4), significant(0.0651), significant(999.6)
    ('4.79', '2,000', '0.0651', '1,000')
    """
    if value == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    rounded = round(value, places)
    if rounded != 0:
        places = digits - 1 - math.floor(math.log10(abs(rounded)))
    return f"{rounded:,.{max(places, 0)}f}"


def show(value: float, unit: str, digits: int = 3) -> str:
    """A quantity for people: decimal prefix, ``digits`` significant digits, always with its unit.

    >>> show(0.0047941, "s"), show(16060522496, "B", 4), show(3.35e12, "B/s"), show(2.897e13, "FLOP")
    ('4.79 ms', '16.06 GB', '3.35 TB/s', '29 TFLOP')
    """
    if unit == "s":
        return _show_seconds(value, digits)
    if unit in ("1", ""):
        return significant(value, digits)
    if unit in ("token", "token/s", "FLOP/B", "parameter"):
        words = {"token": "tokens", "token/s": "tok/s", "FLOP/B": "FLOP/byte", "parameter": "parameters"}
        return f"{_plain(value, digits)} {words[unit]}"
    prefixes = [p for p in DECIMAL if p != "K"]
    for prefix in reversed(prefixes):
        size = 10 ** DECIMAL[prefix]
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits):
            return f"{_trim(significant(value / size, digits))} {prefix}{unit}"
    return f"{significant(value, digits)} {unit}"


def binary(value: float, digits: int = 3) -> str:
    """Bytes with a binary prefix.

    >>> binary(85899345920)
    '80 GiB'
    """
    for prefix in reversed(BINARY):
        size = 2 ** BINARY[prefix]
        if abs(value) >= size:
            return f"{_trim(significant(value / size, digits))} {prefix}B"
    return f"{value:,.0f} B"


def _plain(value: float, digits: int) -> str:
    return f"{value:,.0f}" if value == int(value) else significant(value, digits)


def _trim(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def _show_seconds(value: float, digits: int) -> str:
    for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")):
        if abs(value) >= size * (1 - 0.5 * 10.0**-digits):
            return f"{significant(value / size, digits)} {name}"
    return "0 s" if value == 0 else f"{value:.3g} s"
