"""The driver's gpu_metrics table: revisions, missing values, truncated tables, partitions."""

from __future__ import annotations

from struct import pack_into

import pytest

from runvitals.collectors.amd.gpu_metrics import decode, partitions


def table(content: int, size: int = 4096) -> bytearray:
    made = bytearray(size)
    pack_into("<HBB", made, 0, size, 1, content)
    return made


def test_energy_since_revision_4() -> None:
    made = table(5)
    pack_into("<H", made, 12, 88)
    pack_into("<H", made, 14, 0xFFFF)
    pack_into("<Q", made, 88, 3 << 16)
    assert decode(bytes(made)) == {"gpu": 88.0, "energyJoules": 3.0}


def test_apu_clocks_are_current_else_average() -> None:
    made = bytearray(b"\xff" * 200)
    pack_into("<HBB", made, 0, 200, 2, 3)
    pack_into("<H", made, 28, 40)
    pack_into("<H", made, 64, 900)
    pack_into("<H", made, 76, 1100)
    pack_into("<H", made, 68, 800)
    assert decode(bytes(made)) == {"gpu": 40.0, "graphicsClock": 1100.0, "memoryClock": 800.0}
    newest = bytearray(b"\xff" * 264)
    pack_into("<HBB", newest, 0, 264, 3, 0)
    pack_into("<H", newest, 174, 2900)
    assert decode(bytes(newest)) == {"graphicsClock": 2900.0}


@pytest.mark.parametrize("made", [b"", b"\x04\x00\x01", bytes(table(99)), bytes(table(3)[:12])])
def test_unknown_or_truncated_tables_have_no_readings(made: bytes) -> None:
    assert decode(made) == {}
    assert partitions(made) == []


def test_partition_utilization_is_the_mean_of_its_dies() -> None:
    made = table(6)
    pack_into("<H", made, 306, 2)
    pack_into("<8I", made, 312, 40, 60, *[0xFFFFFFFF] * 6)
    pack_into("<8I", made, 312 + 168, 10, *[0xFFFFFFFF] * 7)
    assert partitions(bytes(made)) == [50.0, 10.0]
