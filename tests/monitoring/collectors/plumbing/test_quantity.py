"""Numbers in vendors' notations."""

from __future__ import annotations

import pytest

from runvitals.monitoring.collectors.plumbing.quantity import amount, split


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("31.5 C", (31.5, "C")),
        ("850MHz", (850.0, "MHz")),
        ("(850Mhz)", (850.0, "Mhz")),
        ("12.25%", (12.25, "%")),
        (" .5 %", (0.5, "%")),
        ("16.0 GT/s", (16.0, "GT/s")),
        ("-3", (-3.0, "")),
        ("1.5e3 W", (1500.0, "W")),
        ("2 eggs", (2.0, "eggs")),
        ("7776000 seconds", (7776000.0, "seconds")),
    ],
)
def test_a_quantity_is_a_number_and_a_unit(text: str, parts: tuple[float, str]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    "text",
    ["", "N/A", "unknown", "nan", "inf", "-", ".", "0x740f", "0000:63:00.0", "1.4.14", "20250102T030405Z",
     "no errors", "N/A (Secondary die)", "99-AB1"],
)  # fmt: skip
def test_other_texts_are_rejected(text: str) -> None:
    assert split(text) is None


def test_amounts_are_converted_to_our_unit() -> None:
    assert amount("41.0", "W") == 41.0
    assert amount("41000 mW", "W") == 41.0
    assert amount({"value": 512, "unit": "MB"}, "bytes") == 512 * 2**20
    assert amount({"value": "1.5", "unit": "GHz"}, "MHz") == 1500.0
    assert amount({"value": "33 C"}, "°C") == 33.0
    assert amount(64, "bytes", "KiB") == 65536.0
    assert amount(["N/A", {"value": 9, "unit": "%"}], "%") == 9.0


@pytest.mark.parametrize(
    "value",
    ["N/A", "", None, True, {}, [], {"value": "N/A", "unit": "%"}, 0xFFFF, 0xFFFFFFFF, 2**64 - 1, "65535",
     float("nan"), float("inf"), "12 W", {"value": 3, "unit": "V"}],
)  # fmt: skip
def test_missing_values_and_other_kinds_of_values_are_none(value: object) -> None:
    assert amount(value, "%") is None


@pytest.mark.parametrize(
    "value", ["2147483647", "9223372036854775807", "18446744073709551615", 1.8446744073709552e19, 2**63 - 1]
)
def test_values_with_all_bits_set_are_none(value: object) -> None:
    assert amount(value, "bytes") is None


def test_impossible_temperatures_are_none() -> None:
    assert amount("-256 C", "°C") is None
    assert amount("45000", "°C") is None
    assert amount("45000", "°C", "mC") == 45.0
    assert amount("-12 C", "°C") == -12.0


def test_unambiguous_decimal_commas() -> None:
    assert amount("36,5 C", "°C") == 36.5
    assert amount("1,25W", "W") == 1.25
    assert amount("1,024 MiB", "bytes") is None  # a thousand, or one?
    assert amount("1,2,3", "1") is None
    assert amount("1,2.5", "1") is None


def test_absurdly_large_numbers_are_none() -> None:
    assert amount(10**400, "W") is None
    assert amount("9" * 500, "W") is None
    assert amount("1e400", "W") is None
    assert amount(-(10**400), "W") is None
