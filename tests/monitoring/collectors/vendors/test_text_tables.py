"""Tables in vendors' output: changing columns, continued cells, numbers without units, processes after the
devices.
"""

from __future__ import annotations

import pytest

from runvitals.monitoring.collectors.vendors.text_tables import columns, grid
from tests.monitoring.collectors.vendors.machines import known

ONE_LINE = """\
Some tool 1.0
+-----+--------+--------------+------+---------+---------------------+-------+
| NPU |  Name  |  PCI BUS ID  | Temp |  Power  |  Memory(used/total) |  Util |
+=====+========+==============+======+=========+=====================+=======+
| 0   | ACME-1 | 0000:05:00.0 |  39C |  45.2W  |  1.5GiB / 15.0GiB   |  12.5 |
| 1   |        | 0000:06:00.0 |      |   N/A   |    0.0B / 15.0GiB   |   0.0 |
+-----+--------+--------------+------+---------+---------------------+-------+
+-----+---------+------+-----+
| NPU | Process |  PID | Mem |
+=====+=========+======+=====+
| 0   | python  | 4711 | 5GB |
+-----+---------+------+-----+
"""


def test_one_line_per_device() -> None:
    first, second = (known(row) for row in grid(ONE_LINE, ["npu"]))
    assert first == {
        "index": "0",
        "name": "ACME-1",
        "pci": "0000:05:00.0",
        "temp": "39C",
        "power": "45.2W",
        "memory.used": "1.5GiB",
        "memory.total": "15.0GiB",
        "utilization": "12.5",
    }
    assert (second["index"], second["memory.used"], second["utilization"]) == ("1", "0.0B", "0.0")
    assert "power" not in second
    assert "temp" not in second


def test_processes_are_not_devices_even_in_a_table_of_equal_width() -> None:
    text = """\
| GPU | Temp | Util |
+=====+======+======+
| 3   | 40C  | 7%   |
+-----+------+------+
| GPU | PID  | Name |
+=====+======+======+
| 3   | 40C  | x    |
"""
    assert [row["index"] for row in grid(text, ["gpu"])] == ["3"]


TWO_LINES = """\
| DEV    NAME                | FW VER          | BUS-ID      ECC           |
| TEMP   Dpm   Pwr(Usage/Cap)| Mem     GCU Virt| DUsed       SN            |
|--------------------------------------------------------------------------|
| 0      S60                 | 33.6.2          | 00:01:00.0  Disable       |
| {second}
+--------------------------------------------------------------------------+
"""


@pytest.mark.parametrize(
    ("second", "heat", "draw", "cap"),
    [
        ("39 C   Sleep    105W  300W | 49120MiB Disable|   0.0%      A07           |", "39C", "105W", "300W"),
        ("39C    LP1     68W / 300W  | 147456MiB Disable | 0%          A09 |", "39C", "68W", "300W"),
        ("35     LP1     68W / 300W  | 147456MiB Disable | 0%          A09 |", "35", "68W", "300W"),
        ("34℃    LP0      N/A        | 23552MiB  SRIOV   | 0%          A01 |", "34℃", "NA", None),
        ("34C    LP0      N/A  300W  | 23552MiB  SRIOV   | 0%          A01 |", "34C", "NA", "300W"),
        ("34C    LP0      99W  N/A   | 23552MiB  SRIOV   | 0%          A01 |", "34C", "99W", "NA"),
        ("N/A    LP0      N/A / N/A  | 23552MiB  SRIOV   | 0%          A01 |", None, "NA", "NA"),
    ],
)
def test_two_lines_per_device_and_formats_of_power(
    second: str, heat: str | None, draw: str, cap: str | None
) -> None:
    (row,) = (known(row) for row in grid(TWO_LINES.format(second=second), ["dev"]))
    assert (row.get("temp"), row["power"], row.get("limit")) == (heat, draw, cap)
    assert (row["index"], row["name"], row["pci"]) == ("0", "S60", "00:01:00.0")
    assert str(row["memory"]).endswith("MiB")
    assert str(row["utilization"]).startswith("0")


def test_borders_of_stars_and_no_borders() -> None:
    stars = (
        "* DEV NAME | BUS-ID *\n* TEMP     | DUsed  *\n*---------*\n* 1 T20    | 00:3d:0.0 *\n* 30C | 5% *\n"
    )
    (row,) = (known(row) for row in grid(stars, ["dev"]))
    assert (row["index"], row["temp"], row["utilization"]) == ("1", "30C", "5%")
    bare = """\
ID   Name           |PCIe                |%GPU  Mem
     Device Type    |Pcie Lane Width     |Temp  MPC Capable
                                         |      ECC Mode
+-------------------------------------------------------------+
2    MTT S80        |00000000:04:00.0    |N/A   2MiB(16384MiB)
     Physical       |16x(16x)            |49C   YES
                                         |      N/A
---------------------------------------------------------------
"""
    (row,) = (known(row) for row in grid(bare, ["id"]))
    assert row == {
        "index": "2",
        "name": "MTT S80",
        "pci": "00000000:04:00.0",
        "utilization": "NA",
        "memory.used": "2MiB",
        "memory.total": "16384MiB",
        "temp": "49C",
    }


def test_a_cell_that_continues_in_further_lines() -> None:
    text = """\
+------+--------+------------------+-----------+
| Arch | Device | Core Utilization | Memory    |
+------+--------+------------------+-----------+
|      |        | Core 0: 10.00%,  |           |
| rngd | npu3   | Core 1: 20.00%,  | 1.5/4 GiB |
|      |        | Core 2: 60.00%   |           |
+------+--------+------------------+-----------+
|      |        | Core 0: 0.00%,   |           |
| rngd | npu1   | Core 1: 0.00%    | 0/4 GiB   |
+------+--------+------------------+-----------+
"""
    first, second = grid(text, ["device"])
    assert (first["index"], first["Arch"], first["memory.used"]) == ("3", "rngd", "1.5GiB")
    assert first["Core Utilization"] == "Core 0: 10.00%, Core 1: 20.00%, Core 2: 60.00%"
    assert (second["index"], second["memory.used"]) == ("1", "0GiB")


def test_devices_without_a_ruler_between_them() -> None:
    text = """\
| GPU  Name       | Bus-Id        | GPU-Util |
| Temp Pwr:Usage  | Memory-Usage  | Mode     |
|=================+===============+==========|
| 0    A          | 0000:01:00.0  | 1%       |
| 40 C 5W         | 1/8 MiB       | x        |
| 1    B          | 0000:02:00.0  | 2%       |
| 50 C 6W         | 2/8 MiB       | x        |
"""
    rows = [known(row) for row in grid(text, ["gpu"])]
    assert [(row["index"], row["temp"], row["power"], row["memory.used"]) for row in rows] == [
        ("0", "40C", "5W", "1MiB"),
        ("1", "50C", "6W", "2MiB"),
    ]


def test_a_line_wrapped_by_a_narrow_terminal() -> None:
    text = "| NPU | Temp | Util |\n+=====+======+======+\n| 0   | 38C\n  | 7%   |\n| 1   | 39C  | 8%   |\n"
    assert [row["utilization"] for row in grid(text, ["npu"])] == ["7%", "8%"]


def test_shares_of_memory_and_engines_are_not_the_load() -> None:
    text = "| GPU | Mem-Util | Enc Util | GPU-Util |\n|===|===|===|===|\n| 0 | 91% | 5% | 7% |\n"
    assert grid(text, ["gpu"])[0]["utilization"] == "7%"


@pytest.mark.parametrize("text", ["", "No devices were found\n", "|||||\n", "| 0 | 38C |\n", "|\n*\n+--+\n"])
def test_text_without_a_table(text: str) -> None:
    assert grid(text, ["npu"]) == []
    assert columns(text, ["hcu"]) == []


HCU = """\
=============== System Management Interface ===============
===========================================================
HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode
1       46.0C    51.0W      auto     400.0W     3%         7.5%      Normal
0       N/A                 auto     400.0W     0%         0.0%      Normal
===========================================================
===================== End of SMI Log ======================
"""


def test_columns_without_lines() -> None:
    first, second = columns(HCU, ["hcu", "dcu"])
    assert (first["index"], first["AvgPwr"], first["HCU%"]) == ("1", "51.0W", "7.5%")
    assert "AvgPwr" not in second  # it has no value, and the others keep their positions
    assert (second["Perf"], second["PwrCap"], second["HCU%"]) == ("auto", "400.0W", "0.0%")


def test_a_second_heading_line_with_units_is_not_a_device() -> None:
    text = "*Dev Pwr    DTemp  Mem\n*Idx W      C      MiB\n0    101    36     42976\n"
    assert columns(text, ["dev"]) == [
        {"Dev": "0", "Pwr": "101", "DTemp": "36", "Mem": "42976", "index": "0"}
    ]  # fmt: skip


# -- tables like nvidia-smi's

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
    (row,) = grid(f"{header}{first}\n{second}\n{FOOTER}", ["gpu"])
    return known(row)


def test_a_table_like_that_of_nvidia_smi() -> None:
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


def test_columns_in_any_order_and_additional_columns() -> None:
    first, second = (known(row) for row in grid(FOUR_COLUMNS, ["gpu"]))
    assert first == {
        "index": "4",
        "name": "Acme X 500",
        "pci": "0000:12:00.0",
        "memory.used": "826MiB",
        "memory.total": "65536MiB",
        "utilization": "NA",
        "temp": "32C",
        "power": "37W",
        "limit": "350W",
        "fan": "7%",
    }
    assert (second["index"], second["name"]) == ("5", "Acme X 500 Extra Long")
    assert (second["memory.used"], second["memory.total"]) == ("1GiB", "64GiB")
    assert (second["utilization"], second["power"], second["fan"]) == ("3%", "NA", "NA")
    assert "temp" not in second


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
def test_formats_of_power(cell: str, power: str, limit: str | None) -> None:
    row = one("| 0    Acme    On | 00:1A:00.0 | a |", f"| {cell} | 1MiB / 2MiB | 7% |")
    assert (row["power"], row.get("limit")) == (power, limit)


def test_a_table_without_devices() -> None:
    assert grid(HEADER + FOOTER, ["gpu"]) == []
    assert grid("No devices were found\n", ["gpu"]) == []
    assert grid("", ["gpu"]) == []


def test_an_incomplete_table_keeps_its_devices() -> None:
    text = HEADER + "| 0    Acme    On | 00:1A:00.0 | a |\n| 0%   33C"
    (row,) = grid(text, ["gpu"])
    assert known(row) == {"index": "0", "name": "Acme", "pci": "00:1A:00.0"}


def test_units_in_the_heading_only() -> None:
    text = """\
| NPU  Name | Temp(C)  Pwr:Usage/Cap(W) | Memory-Usage/All(MB) |
|===========+===========================+======================|
| 0    A    | 41       87 / 600         | 768/98304            |
+-----------+---------------------------+----------------------+
| 1    B    | N/A      N/A / 600        | N/A / 98304          |
"""
    first, second = (known(row) for row in grid(text, ["npu"]))
    assert (first["temp"], first["power"], first["limit"]) == ("41c", "87w", "600w")
    assert (first["memory.used"], first["memory.total"]) == ("768mb", "98304mb")
    assert (second["power"], second["limit"], second["memory.total"]) == ("NA", "600w", "98304mb")
    assert "temp" not in second


def test_a_separate_limit_column_is_not_the_draw() -> None:
    text = "| NPU | Power Limit | Power | Temp |\n+=====+=====+=====+====+\n| 0 | 180 W | 53.00 W | N/A |\n"
    (row,) = grid(text, ["npu"])
    assert (row["limit"], row["power"]) == ("180W", "53.00W")


def test_units_of_the_heading_apply_to_bare_numbers() -> None:
    text = """\
| Temp (C) | NPU | Power(mW)  Temp | Memory (GB) used/total | Power Limit(W) | NPU Util(%) |
+==========+=====+=================+========================+================+=============+
| 36       | 0   | 45000      39   | 1.5 / 64               | 75             | 7           |
| 37 C     | 1   | 45 W       N/A  | 512MiB / 64GiB         | N/A            | N/A         |
"""
    first, second = (known(row) for row in grid(text, ["npu"]))
    assert first == {
        "index": "0", "temp": "36c", "power": "45000mw", "limit": "75w", "utilization": "7%",
        "memory.used": "1.5gb", "memory.total": "64gb",
    }  # fmt: skip
    assert (second["temp"], second["power"], second["utilization"]) == ("37C", "45W", "NA")
    assert (second["memory.used"], second["memory.total"]) == ("512MiB", "64GiB")


def test_temperature_and_load_of_the_memory_are_not_the_devices() -> None:
    text = """\
| NPU | HBM Temp | Mem-Temp | HBM-Util | VRAM Util | Temp | NPU-Util | VRAM-Usage |
+=====+==========+==========+==========+===========+======+==========+============+
| 0   | 80C      | 81C      | 55%      | 66%       | 36C  | 7%       | 5/10 GiB   |
| 1   | 80C      | 81C      | 55%      | 66%       | N/A  | N/A      | 5/10 GiB   |
"""
    first, second = (known(row) for row in grid(text, ["npu"]))
    assert (first["temp"], first["utilization"], first["memory.used"]) == ("36C", "7%", "5GiB")
    assert "temp" not in second
    assert second["utilization"] == "NA"


def test_a_temperature_beside_power_is_not_power() -> None:
    text = """\
| NPU | Temp/Power  |
+=====+=============+
| 0   | 36C / 100W  |
| 1   | 36C / N/A   |
| 2   | N/A / 100W  |
"""
    rows = [known(row) for row in grid(text, ["npu"])]
    assert rows == [
        {"index": "0", "temp": "36C", "power": "100W"},
        {"index": "1", "temp": "36C"},
        {"index": "2", "power": "100W"},
    ]
    (bare,) = grid("| NPU | Power/Temp |\n+====+====+\n| 0 | 100 / 36 |\n", ["npu"])
    assert (bare["power"], bare["temp"]) == ("100", "36")


def test_borders_of_box_characters() -> None:
    text = """\
┏━━━━━┳━━━━━━┳━━━━━━━┓
┃ NPU ┃ Temp ┃ Power ┃
┡━━━━━╇━━━━━━╇━━━━━━━┩
│ 0   │ 36C  │ 10 W  │
├─────┼──────┼───────┤
│ 1   │ 37C  │ N/A   │
└─────┴──────┴───────┘
"""
    rows = [known(row) for row in grid(text, ["npu"])]
    assert rows == [
        {"index": "0", "temp": "36C", "power": "10W"},
        {"index": "1", "temp": "37C"},
    ]


def test_a_line_wrapped_within_spaces() -> None:
    head = "| NPU  Name        | Temp\n    Power |\n+==================+=============+\n"
    broken = "| 0    Acme        |     \n 36C 10 W |\n"
    trailing = "| 1    Acme        | 37C    11 W |   \n"
    rows = [known(row) for row in grid(head + broken + trailing, ["npu"])]
    readings = [(row["index"], row["temp"], row["power"]) for row in rows]
    assert readings == [("0", "36C", "10W"), ("1", "37C", "11W")]


def test_units_in_the_head_of_a_table_without_lines() -> None:
    text = "*Dev  Pwr(mW)  DTemp(C)  DUsed(%)  Mem\n0     56000    34        12.5      N/A\n"
    assert columns(text, ["dev"]) == [
        {"Dev": "0", "index": "0", "Pwr": "56000mw", "DTemp": "34c", "DUsed": "12.5%", "Mem": "N/A"}
    ]


HEADINGS = """\
ID   Name           |PCIe                |%GPU  Mem
     Device Type    |Pcie Lane Width     |Temp  Mode
                                         |      ECC Mode
+-------------------------------------------------------------+
4    ACME S2        |00000000:03:00.0    |0%    4MiB(16384MiB)
     Physical       |8x(8x)              |51C   NO
                                         |      N/A
ID   Name           |PCIe                |%GPU  Mem
     Device Type    |Pcie Lane Width     |Temp  Mode
                                         |      ECC Mode
+-------------------------------------------------------------+
7    ACME S2        |00000000:04:00.0    |75%   8192MiB(16384MiB)
     Physical       |8x(8x)              |50C   NO
                                         |      On-die, EDC
---------------------------------------------------------------
"""


def test_a_heading_for_each_device() -> None:
    assert [known(row) for row in grid(HEADINGS, ["id"])] == [
        {
            "index": "4", "name": "ACME S2", "pci": "00000000:03:00.0", "utilization": "0%", "temp": "51C",
            "memory.used": "4MiB", "memory.total": "16384MiB",
        },
        {
            "index": "7", "name": "ACME S2", "pci": "00000000:04:00.0", "utilization": "75%", "temp": "50C",
            "memory.used": "8192MiB", "memory.total": "16384MiB",
        },
    ]  # fmt: skip


def test_a_table_without_rulers() -> None:
    text = "".join(line for line in ONE_LINE.splitlines(keepends=True) if line[:1] != "+")
    assert grid(text, ["npu"]) == grid(ONE_LINE, ["npu"])


@pytest.mark.parametrize("ends", ["\r\n", "\r\r\n", "\n\n"])
def test_any_line_ends(ends: str) -> None:
    assert grid(HEADINGS.replace("\n", ends), ["id"]) == grid(HEADINGS, ["id"])
    assert columns(HCU.replace("\n", ends), ["hcu"]) == columns(HCU, ["hcu"])


@pytest.mark.parametrize("nothing", ["[Not Supported]", "Not Supported", "[Unknown Error]", "ERR!", "N/A"])
def test_unknown_values_of_several_words(nothing: str) -> None:
    (row,) = columns(f"GCU  Pwr  Temp  Load  Mem\n3  12  {nothing}  7  64\n", ["gcu"])
    assert (row["Pwr"], row["Temp"], row["Load"], row["Mem"]) == ("12", "N/A", "7", "64")
    head = "| GPU | Temp  Power | Memory | Load-Util |\n|---|\n"
    text = f"{head}| 3 | {nothing} 12W | 1MiB / {nothing} | 7% |\n"
    (row,) = grid(text, ["gpu"])
    assert known(row) == {
        "index": "3", "power": "12W", "memory.used": "1MiB", "memory.total": "NA", "utilization": "7%",
    }  # fmt: skip


def test_a_remark_below_columns_is_not_a_device() -> None:
    text = "GCU  Pwr  Temp  Load  Mem\n3  12  40  7  64\n0 warnings\n"
    assert [row["index"] for row in columns(text, ["gcu"])] == ["3"]
