"""The driver's gpu_metrics table: revisions, missing values, truncated tables, partitions."""

from __future__ import annotations

from struct import pack, pack_into

import pytest

from runvitals.monitoring.collectors.amd.gpu_metrics import decode, partitions


def table(content: int, size: int = 4096) -> bytearray:
    header = bytearray(size)
    pack_into("<HBB", header, 0, size, 1, content)
    return header


def test_energy_since_revision_4() -> None:
    content = table(5)
    pack_into("<H", content, 12, 88)
    pack_into("<H", content, 14, 0xFFFF)
    pack_into("<Q", content, 88, 3 << 16)
    assert decode(bytes(content)) == {"gpu": 88.0, "energyJoules": 3.0}


def test_apu_clocks_are_current_else_average() -> None:
    content = bytearray(b"\xff" * 200)
    pack_into("<HBB", content, 0, 200, 2, 3)
    pack_into("<H", content, 28, 40)
    pack_into("<H", content, 64, 900)
    pack_into("<H", content, 76, 1100)
    pack_into("<H", content, 68, 800)
    assert decode(bytes(content)) == {"gpu": 40.0, "graphicsClock": 1100.0, "memoryClock": 800.0}
    newest = bytearray(b"\xff" * 264)
    pack_into("<HBB", newest, 0, 264, 3, 0)
    pack_into("<H", newest, 174, 2900)
    assert decode(bytes(newest)) == {"graphicsClock": 2900.0}


@pytest.mark.parametrize("content", [b"", b"\x04\x00\x01", bytes(table(99)), bytes(table(3)[:12])])
def test_unknown_or_truncated_tables_have_no_readings(content: bytes) -> None:
    assert decode(content) == {}
    assert partitions(content) == []


@pytest.mark.parametrize(
    ("content", "count_at", "first", "size"),
    [(6, 306, 312, 168), (7, 338, 344, 232), (8, 338, 344, 376), (8, 338, 344, 440)],
)
def test_partition_utilization_is_the_mean_of_its_dies(
    content: int, count_at: int, first: int, size: int
) -> None:
    data = table(content, first + 8 * size + 8)
    pack_into("<H", data, count_at, 2)
    pack_into("<8I", data, first, 40, 60, *[0xFFFFFFFF] * 6)
    pack_into("<8I", data, first + size, 10, *[0xFFFFFFFF] * 7)
    assert partitions(bytes(data)) == [50.0, 10.0]


def test_tables_of_the_first_revisions() -> None:
    content = table(0, 96)
    pack_into("<HH", content, 28, 77, 12)
    assert decode(bytes(content)) == {"gpu": 77.0, "memory": 12.0}
    apu = bytearray(b"\xff" * 128)
    pack_into("<HBB", apu, 0, 128, 2, 0)
    pack_into("<H", apu, 40, 31)
    pack_into("<H", apu, 68, 700)
    pack_into("<H", apu, 84, 1600)
    assert decode(bytes(apu)) == {"gpu": 31.0, "graphicsClock": 700.0, "memoryClock": 1600.0}


def field(number: int, kind: int, code: str, *values: int) -> bytes:
    """A field of a list: unit in bits 24 to 31, type in 20 to 23, number in 10 to 19, count in 0 to 9."""
    return pack(f"<Q{len(values)}{code}", 5 << 24 | kind << 20 | number << 10 | len(values), *values)


def test_a_list_of_fields() -> None:
    fields = [
        field(0, 2, "H", 61),
        field(29, 6, "Q", *range(8)),
        field(4, 2, "H", 93),
        field(5, 2, "H", 0xFFFF),
        field(7, 6, "Q", 5 << 16),
    ]
    content = pack("<HBBi", 8 + sum(map(len, fields)), 1, 9, len(fields)) + b"".join(fields)
    assert decode(content) == {"gpu": 93.0, "energyJoules": 5.0}
    assert decode(content[:-1]) == {"gpu": 93.0}
    assert decode(pack("<HBBiQ", 16, 1, 9, 1, 15 << 20)) == {}
