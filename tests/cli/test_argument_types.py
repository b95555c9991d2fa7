"""Durations and sizes on the command line."""

from __future__ import annotations

import argparse

import pytest

from runvitals.cli.argument_types import size_bytes, time_ms


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
