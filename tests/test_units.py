"""Reading and writing quantities; GB and GiB are different words."""

from __future__ import annotations

import pytest

from planner.units import UnitError, binary, exact, parse, show, significant

READ: tuple[tuple[str, str, float], ...] = (
    ("3.35 TB/s", "B/s", 3_350_000_000_000),
    ("3.35TB/s", "B/s", 3_350_000_000_000),
    ("318.3GB/s", "B/s", 318_300_000_000),
    ("80 GB", "B", 80 * 10**9),
    ("80 GiB", "B", 80 * 2**30),
    ("11906 MiB", "B", 11_906 * 2**20),
    ("17 B", "B", 17),
    ("989.5 TFLOP/s", "FLOP/s", 989_500_000_000_000),
    ("1979 TOP/s", "FLOP/s", 1_979_000_000_000_000),
    ("346.1 GFLOPS", "FLOP/s", 346_100_000_000),
    ("1.83 GHz", "Hz", 1_830_000_000),
    ("700 W", "W", 700),
    ("2.95 USD/h", "USD/h", 2.95),
    ("500ms", "s", 0.5),
    ("17.31 ms", "s", 0.01731),
    ("20us", "s", 2e-5),
    ("20 µs", "s", 2e-5),
    ("3 s", "s", 3),
    ("2000", "token", 2000),
    ("2,000", "token", 2000),
    ("2_000", "token", 2000),
    ("2k", "token", 2000),
    ("2K", "token", 2000),
    ("2Ki", "token", 2048),
    ("2ktokens", "token", 2000),
    ("1M", "token", 1_000_000),
    ("1.5k", "token", 1500),
    ("1e3", "token", 1000),
    (".5", "1", 0.5),
    ("0.9", "1", 0.9),
    (" 0.9 ", "1", 0.9),
    ("-3", "token", -3),
)


@pytest.mark.parametrize(("text", "unit", "value"), READ)
def test_a_quantity_is_read_in_its_base_unit(text: str, unit: str, value: float) -> None:
    assert parse(text, unit) == value


def test_whole_quantities_are_whole_numbers() -> None:
    assert isinstance(parse("3.35 TB/s", "B/s"), int)
    assert isinstance(parse("1.0", "token"), int)
    assert isinstance(parse("0.5", "1"), float)
    # 2^53 + 1 does not survive a float.
    assert parse("9007199254740993 B", "B") == 9_007_199_254_740_993


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("", "B"),
        ("abc", "token"),
        ("1.2.3", "token"),
        ("two", "token"),
        ("nan", "1"),
        ("inf", "B"),
        ("Infinity", "B/s"),
        ("1e400", "1"),
        ("²", "token"),
        ("80", "B"),  # a size needs its unit
        ("80 gb", "B"),
        ("80 GBs", "B"),
        ("3.35 TB", "B/s"),
        ("3.35 Gbit/s", "B/s"),
        ("989 TFLOP", "FLOP/s"),
        ("80 TiFLOP/s", "FLOP/s"),  # powers of two are for bytes and counts
        ("5 mB", "B"),  # no thousandths of a byte
        ("2m", "token"),
        ("500 ms", "token"),
        ("90 %", "1"),
    ],
)
def test_another_unit_or_no_number_is_refused(text: str, unit: str) -> None:
    with pytest.raises(UnitError):
        parse(text, unit)


def test_the_refusal_shows_a_valid_example() -> None:
    with pytest.raises(UnitError, match=r"'3.35 TB' is not in B/s; expected for example '3.35 TB/s'"):
        parse("3.35 TB", "B/s")


def test_an_absurd_exponent_is_refused_like_any_other() -> None:
    with pytest.raises(UnitError):
        parse("1e9999999", "token")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (80 * 2**30, "B", "80 GiB"),
        (80 * 10**9, "B", "80 GB"),
        (84_987_739_111, "B", "84987739111 B"),
        (989_500_000_000_000, "FLOP/s", "989.5 TFLOP/s"),
        (2.039e12, "B/s", "2039 GB/s"),
        (0, "B", "0 B"),
    ],
)
def test_exact_text_is_short_and_reads_back(value: float, unit: str, text: str) -> None:
    assert exact(value, unit) == text
    assert parse(text, unit) == value


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, 3, "0"),
        (4.79409, 3, "4.79"),
        (0.00479409, 3, "0.00479"),
        (999.4, 3, "999"),
        (999.6, 3, "1,000"),
        (0.9996, 3, "1.00"),
        (12_345, 3, "12,300"),
        (-4.79409, 3, "-4.79"),
    ],
)
def test_significant_digits(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0047941, "s", "4.79 ms"),
        (1.2225, "s", "1.22 s"),
        (75, "s", "75.0 s"),
        (0.9999, "s", "1.00 s"),
        (0.00000312, "s", "3.12 µs"),
        (4e-9, "s", "4.00 ns"),
        (0, "s", "0 s"),
        (16_060_522_496, "B", "16.1 GB"),
        (999_999, "B", "1 MB"),
        (512, "B", "512 B"),
        (3.35e12, "B/s", "3.35 TB/s"),
        (989.5e12, "FLOP/s", "990 TFLOP/s"),
        (208.6, "token/s", "209 tok/s"),
        (86.8, "FLOP/B", "86.8 FLOP/byte"),
        (8_030_261_248, "parameter", "8,030,261,248 parameters"),
        (2000, "token", "2,000 tokens"),
        (0.561, "1", "0.561"),
    ],
)
def test_quantities_for_people_always_have_their_unit(value: float, unit: str, text: str) -> None:
    assert show(value, unit) == text


def test_binary_prefixes_are_for_bytes() -> None:
    assert [binary(n) for n in (2**30, 3 * 2**29, 1023, 85_899_345_920)] == ["1 GiB", "1.5 GiB", "1,023 B", "80 GiB"]
