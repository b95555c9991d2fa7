"""What vendors' tools print becomes rows, whatever surrounds it."""

from __future__ import annotations

import pytest

from runvitals.collectors.vendors.formats import csv, flat, objects, table, text_of, tree

HEADER = """\
+-----------------------------------------------------------------------------+
| ACME-SMI 4.0                                                   Driver 4.1   |
|-------------------------------+----------------------+----------------------|
| GPU  Name        Persistence-M| Bus-Id               | Clock-SM  Clock-Mem  |
| Fan  Temp  Perf  Pwr:Usage/Cap|      Memory-Usage    | GPU-Util  Compute M. |
|===============================+======================+======================|
"""
FOOTER = """\
+-------------------------------+----------------------+----------------------+
| Processes:                                                       GPU Memory |
|  GPU        PID      Process name                                Usage(MiB) |
|=============================================================================|
|    0       4711      python                                      60123MiB   |
+-----------------------------------------------------------------------------+
"""


def one(first: str, second: str, header: str = HEADER) -> dict[str, object]:
    (row,) = table(f"{header}{first}\n{second}\n{FOOTER}")
    return row


def test_a_table_like_nvidias() -> None:
    row = one(
        "| 3    Acme X200 Pro      On    | 00000000:8A:00.0     | 500MHz    1600MHz    |",
        "| 0%   33C   P0   154W / 350W   | 114MiB / 32768MiB    | 7%        Default    |",
    )
    assert row == {
        "index": "3",
        "name": "Acme X200 Pro",
        "pci": "00000000:8A:00.0",
        "temp": "33C",
        "power": "154W",
        "limit": "350W",
        "memory.used": "114MiB",
        "memory.total": "32768MiB",
        "utilization": "7%",
        "fan": "0%",
        "clock.sm": "500MHz",
        "clock.memory": "1600MHz",
    }


FOUR_COLUMNS = """\
mx-smi  version: 9.9
============= System Management Interface Log =============
| ACME-SMI 9.9                       Driver Version: 1.2                  |
|--------------+-----------------+---------------------+------------------|
| Memory-Usage | Board      Name | GPU   Persist-M     | GPU-Util  sGPU-M |
| Temp    Perf | Pwr:Usage/Cap   | Bus-id              | GPU-State   Fan  |
|==============+=================+=====================+==================|
| 826/65536 MiB| 0    Acme X 500 | 4           Off     | N/A     Disabled |
| 32 C      P0 | 37W / 350W      | 0000:12:00.0        | Available    7%  |
+--------------+-----------------+---------------------+------------------+
| 1/64 GiB     | 0    Acme X 500 | 5           On      | 3%        Native |
|              | Extra Long      |                     |                  |
| N/A      N/A | NA / 350 W      | N/A                 | Lost        N/A  |
+--------------+-----------------+---------------------+------------------+

+-------------------------------------------------------------------------+
| Process:                                                                |
|  GPU                    PID         Process Name             GPU Memory |
|=========================================================================|
|  4                      77          python                   800        |
+-------------------------------------------------------------------------+
"""


def test_columns_in_any_order_and_more_of_them() -> None:
    first, second = table(FOUR_COLUMNS)
    assert first == {
        "index": "4",
        "name": "Acme X 500",
        "pci": "0000:12:00.0",
        "memory.used": "826 MiB",
        "memory.total": "65536 MiB",
        "utilization": "NA",
        "temp": "32C",
        "power": "37W",
        "limit": "350W",
        "fan": "7%",
    }
    assert (second["index"], second["name"]) == ("5", "Acme X 500 Extra Long")
    assert (second["memory.used"], second["memory.total"]) == ("1 GiB", "64 GiB")
    assert (second["utilization"], second["temp"], second["power"]) == ("3%", "NA", "NA")


@pytest.mark.parametrize(
    ("cell", "power", "limit"),
    [
        ("51C         71W", "71W", None),
        ("34C         97W / NA", "97W", "NA"),
        ("0%   33C   P0    N/A / N/A", "NA", "NA"),
        ("0%   33C   P0    N/A / 250W", "NA", "250W"),
        ("0%  32C        106 W/ 250 W", "106W", "250W"),
        ("37C     29W / 225W              P0", "29W", "225W"),
        ("N/A   35C  N/A     87.5W / 400W", "87.5W", "400W"),
    ],
)
def test_power_as_it_is_written(cell: str, power: str, limit: str | None) -> None:
    row = one("| 0    Acme    On | 00:1A:00.0 | a |", f"| {cell} | 1MiB / 2MiB | 7% |")
    assert (row["power"], row.get("limit")) == (power, limit)


def test_a_table_without_devices_and_no_table() -> None:
    assert table(HEADER + FOOTER) == []
    assert table("No devices were found\n") == []
    assert table("") == []


def test_a_table_that_breaks_off_keeps_what_it_has() -> None:
    text = HEADER + "| 0    Acme    On | 00:1A:00.0 | a |\n| 0%   33C"
    assert table(text) == [{"index": "0", "name": "Acme", "pci": "00:1A:00.0"}]


def test_csv_with_a_header_after_warnings() -> None:
    text = (
        "WARNING: old firmware, update it\nindex, load [%], used [MiB]\n1, 5 %, 7 MiB\n0, N/A, 1 MiB\n0, br"
    )
    assert csv(text, key="index") == [
        {"index": "1", "load": "5 %", "used": "7 MiB"},
        {"index": "0", "load": "N/A", "used": "1 MiB"},
    ]
    assert csv("No devices\n", key="index") == []


def test_csv_without_a_header() -> None:
    assert csv("warning\n\n0,5\n1,,\n", ["index", "load"]) == [{"index": "0", "load": "5"}]


def test_trees_of_names_and_values() -> None:
    text = """
=====LOG=====
Driver Version      : 5.0
XPU 00000000:01:00.0
    Name            : A : B
    Memory
        Total       : 8 MiB
        Used        : N/A
    Load            : 3 %
XPU 00000000:02:00.0
    Load            : 4 %
"""
    assert tree(text, "XPU ") == [
        {
            "": "00000000:01:00.0",
            "Name": "A : B",
            "Memory.Total": "8 MiB",
            "Memory.Used": "N/A",
            "Load": "3 %",
        },
        {"": "00000000:02:00.0", "Load": "4 %"},
    ]


def test_json_objects_become_rows() -> None:
    assert flat({"a ": {" b": 1, "c": [2]}, "d": None}) == {"a.b": 1, "a.c": [2], "d": None}
    assert objects([{"a": 1}, 5, {"b": 2}]) == [{"a": 1}, {"b": 2}]
    assert objects({"a": 1}) == [{"a": 1}]
    assert objects("text") == []


def test_bytes_that_are_no_text_cost_no_reading() -> None:
    assert csv(text_of(b"index, name\n0, \xff\xfe\n"), key="index") == [
        {"index": "0", "name": "\ufffd\ufffd"}
    ]
