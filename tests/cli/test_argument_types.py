"""Durations and sizes on the command line."""

from __future__ import annotations

import argparse

import pytest

from runvitals.cli import main
from runvitals.cli.argument_types import integer_between, number_between, row_id, size_bytes, time_ms


def test_accepted_values() -> None:
    assert [time_ms(text) for text in ("1h", "90d", "2w", "1Y", "1.5 d")] == [
        3_600_000,
        7_776_000_000,
        1_209_600_000,
        31_557_600_000,
        129_600_000,
    ]
    assert [size_bytes(text) for text in ("200GB", "1.5GiB", "1tb", "10 MB")] == [
        200 * 10**9,
        3 * 2**29,
        10**12,
        10**7,
    ]


@pytest.mark.parametrize(
    "text", ["", "90", "d", "-1d", "0d", "1m", "1GB", "1e3d", "١d", f"{'9' * 400}d", f"{'9' * 18}y"]
)
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 90d"):
        time_ms(text)


@pytest.mark.parametrize("text", ["200", "GB", "1d", "0GB", "-5GB", "1G"])
def test_invalid_sizes_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="such as 200GB"):
        size_bytes(text)


@pytest.mark.parametrize(
    "text",
    ["", "abc", "nan", "inf", "-inf", "1e999", "-1", "１２", "1_0", "0x10", "0.05", "3601", "1 0"],
)
def test_invalid_numbers_are_rejected(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"expected a number from 0\.1 to 3600"):
        number_between(0.1, 3600)(text)
    with pytest.raises(argparse.ArgumentTypeError, match="expected an integer from 1 to 30"):
        integer_between(1, 30)(text)
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number of the ID column"):
        row_id("９" + text)


def test_numbers() -> None:
    assert (number_between(0.1, 3600)(" 1.5 "), integer_between(1, 30)("30"), row_id("7")) == (1.5, 30, 7)


@pytest.mark.parametrize(
    "words",
    [
        ["sample", "--watch", "{}"], ["top", "--interval", "{}"], ["ui", "--port", "{}"],
        ["simulate", "--nodes", "{}"], ["simulate", "--hours", "{}"], ["simulate", "--speed", "{}"],
        ["simulate", "--seed", "{}"], ["cloudwatch", "--every", "{}"], ["cloudwatch", "--instances", "{}"],
        ["invite", "create", "team", "--days", "{}"], ["invite", "revoke", "{}"],
        ["organisation", "audit", "--limit", "{}"], ["alerts", "check", "team", "file", "--days", "{}"],
        ["alerts", "mute", "team", "rule", "--hours", "{}"], ["token", "revoke", "{}"],
        ["server", "--listen", "127.0.0.1:{}"],
        ["run", "--sampling-interval", "{}", "--", "true"],
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
@pytest.mark.parametrize("number", ["nan", "inf", "1e999", "１２", "1_0", "0x10", "abc", "9" * 5000])
def test_commands_say_which_number_is_expected(
    words: list[str], number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a traceback nor the name of one of our functions."""
    try:
        code = main([word.format(number) for word in words])
    except SystemExit as ended:
        code = int(ended.code or 0)
    stderr = capsys.readouterr().err
    assert code == 2 or "invalid setting" in stderr
    assert "expected" in stderr or "`runvitals token list` shows them" in stderr
    assert "invalid _" not in stderr
    assert len(stderr) < 2000
