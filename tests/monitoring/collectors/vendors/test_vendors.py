"""Output of each vendor's tool: normal, "N/A" everywhere, no devices, garbled; with made-up values."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from runvitals.model.metrics import DEFINITIONS
from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.vendors.adapter import Vendor
from runvitals.monitoring.collectors.vendors.ascend import ASCEND
from runvitals.monitoring.collectors.vendors.biren import BIREN
from runvitals.monitoring.collectors.vendors.cambricon import CAMBRICON
from runvitals.monitoring.collectors.vendors.devices import TOTAL, KnownDevices, write
from runvitals.monitoring.collectors.vendors.enflame import ENFLAME
from runvitals.monitoring.collectors.vendors.furiosa import INFO, STATUS
from runvitals.monitoring.collectors.vendors.gaudi import GAUDI
from runvitals.monitoring.collectors.vendors.hygon import HYGON
from runvitals.monitoring.collectors.vendors.iluvatar import ILUVATAR
from runvitals.monitoring.collectors.vendors.kunlunxin import KUNLUNXIN
from runvitals.monitoring.collectors.vendors.metax import METAX
from runvitals.monitoring.collectors.vendors.moorethreads import MOORE_THREADS
from runvitals.monitoring.collectors.vendors.qualcomm import QUALCOMM
from runvitals.monitoring.collectors.vendors.rebellions import REBELLIONS
from runvitals.monitoring.collectors.vendors.tenstorrent import TENSTORRENT
from runvitals.monitoring.collectors.vendors.thead import THEAD

MIB = 1024.0 * 1024.0
VENDORS = (
    ASCEND, CAMBRICON, INFO, STATUS, GAUDI, HYGON, ILUVATAR, KUNLUNXIN, METAX, MOORE_THREADS, REBELLIONS,
    TENSTORRENT, THEAD, ENFLAME, BIREN, QUALCOMM,
)  # fmt: skip


def read(vendor: Vendor, output: str | bytes) -> dict[str, float]:
    """The keys of one output, without the prefix "gpu."."""
    rows = vendor.rows(output if isinstance(output, bytes) else output.encode())
    tick = Tick(1.0)
    write(tick, KnownDevices(vendor.name, "it").devices(rows, vendor.readings, vendor.identity), 0)
    return {key.removeprefix("gpu."): value for key, value in (tick.gauges | tick.counters).items()}


def who(vendor: Vendor, output: str) -> list[Mapping[str, object]]:
    """The identities of the devices in an output."""
    return [
        device.identity
        for device in KnownDevices(vendor.name, "it").devices(
            vendor.rows(output.encode()), vendor.readings, vendor.identity
        )
    ]


def device(read: Mapping[str, float], index: int) -> dict[str, float]:
    prefix = f"{index}."
    return {key.removeprefix(prefix): value for key, value in read.items() if key.startswith(prefix)}


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_every_reading_is_a_declared_metric_with_its_unit(vendor: Vendor) -> None:
    for reading in vendor.readings:
        if reading.key == TOTAL:
            continue
        match = DEFINITIONS.find(f"gpu.0.{reading.key}")
        assert match is not None, reading.key
        assert match.key == f"gpu.0.{reading.key}"
        assert match.metric.unit == reading.unit
        assert match.metric.kind == ("counter" if reading.counter else "gauge")


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_garbled_output_gives_no_readings(vendor: Vendor) -> None:
    for output in (
        b"",
        b"No devices were found\n",
        b"\xff\xfe\x00|,:{[",
        b"a, b, c\n| 1 | 2 | 3 |\nCard 0\n",
    ):
        try:
            assert read(vendor, output) == {}
        except ValueError as error:
            assert str(error)  # noqa: PT017 -- a format that can tell says what is wrong, others have no rows


@pytest.mark.parametrize("vendor", [INFO, HYGON, MOORE_THREADS, REBELLIONS, TENSTORRENT])
def test_incomplete_json_is_an_error(vendor: Vendor) -> None:
    with pytest.raises(ValueError, match="invalid JSON"):
        vendor.rows(b'warning: slow\n{"card0": {"npu": 0}, "GPU": [{"Index": "0"}, {"Ind')


# -- Intel Gaudi


def test_gaudi() -> None:
    text = (
        "5, 01P0-AA, HL-225, 1.19.0, 98304 MiB, 24576 MiB, 73728 MiB, 300 W, 600 W, 51 C, 88 %\n"
        "2, 01P0-BB, HL-225, 1.19.0, 98304 MiB, N/A, N/A, N/A, 600 W, N/A, N/A\n"
    )
    assert device(read(GAUDI, text), 5) == {
        "gpu": 88.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 24576 * MIB,
        "temp": 51.0,
        "powerWatts": 300.0,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 600.0,
    }
    assert device(read(GAUDI, text), 2) == {"enforcedPowerLimitWatts": 600.0}
    assert who(GAUDI, text)[0] == {"name": "HL-225", "uuid": "01P0-BB"}


def test_gaudi_without_units() -> None:
    bare = device(read(GAUDI, "0, U, HL-225, 1, 98304, 1024, 97280, 300, 600, 51, 88\n"), 0)
    assert (bare["memoryAllocatedBytes"], bare["powerWatts"], bare["gpu"]) == (1024 * MIB, 300.0, 88.0)


def test_gaudi_with_an_unexpected_header() -> None:
    head = (
        "index, uuid, name, driver_version, memory.total [MiB], memory.used [MiB], memory.free [MiB],"
        " power.draw [W], power.max [W], temperature.aip [C], utilization.aip [%]\n"
    )
    text = "0, U, HL-225, 1, 98304 MiB, 1024 MiB, 97280 MiB, 300 W, 600 W, 51 C, 88 %\n"
    assert read(GAUDI, head + text) == read(GAUDI, text)


# -- Huawei Ascend

ASCEND_HEAD = """\
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.0                   Version: 24.1.0                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip  {phy}             | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
"""
ASCEND_FOOT = """\
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 3       0                 | 4711          | python                   | 51234                   |
+===========================+===============+====================================================+
"""


def test_ascend_with_hbm() -> None:
    text = (
        ASCEND_HEAD.format(phy="      ")
        + """\
| 7     910B3               | OK            | 301.5       61                15   / 15            |
| 0                         | 0000:C1:00.0  | 93          0    / 0          32768/ 65536         |
+===========================+===============+====================================================+
| 3     910B3               | OK            | 99.5        41                0    / 0             |
| 0                         | 0000:xx:00.0  | 0           0    / 0          3410 / 65536         |
"""
        + ASCEND_FOOT
    )
    assert device(read(ASCEND, text), 7) == {
        "gpu": 93.0,
        "memoryAllocated": 50.0,
        "memoryAllocatedBytes": 32768 * MIB,
        "temp": 61.0,
        "powerWatts": 301.5,
        "healthy": 1.0,
    }
    assert {key.split(".")[0] for key in read(ASCEND, text)} == {"3", "7"}
    assert who(ASCEND, text) == [{"name": "910B3"}, {"name": "910B3", "pci": "0000:c1:00.0"}]


def test_ascend_cards_with_two_chips_and_no_power() -> None:
    text = """\
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 4       310P3                 | OK              | NA           50                0     / 0             |
| 0       2                     | 0000:81:00.0    | 10           4000 / 40000                            |
+-------------------------------+-----------------+------------------------------------------------------+
| 4       310P3                 | OK              | NA           45                0     / 0             |
| 1       3                     | 0000:81:00.0    | 20           8000 / 40000                            |
"""
    devices = read(ASCEND, text)
    assert device(devices, 2) == {
        "gpu": 10.0, "memoryAllocated": 10.0, "memoryAllocatedBytes": 4000 * MIB, "temp": 50.0,
        "healthy": 1.0,
    }  # fmt: skip
    assert device(devices, 3)["temp"] == 45.0
    without_ids = text.replace("| 0       2 ", "| 0         ").replace("| 1       3 ", "| 1         ")
    assert {key.split(".")[0] for key in read(ASCEND, without_ids)} == {"0", "1"}


def test_ascend_second_die_that_shares_power_and_an_alarm() -> None:
    text = (
        ASCEND_HEAD.format(phy="Phy-ID")
        + """\
| 0     Ascend910           | Warning       | 180.0       36                0    / 0             |
|                           | 80E01801      |                                                    |
| 0     0                   | 0000:9D:00.0  | 5           0    / 0          10   / 65536         |
+------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -           37                0    / 0             |
| 1     1                   | NA            | NA          0    / 0          NA   / NA            |
"""
        + ASCEND_FOOT
    )
    assert device(read(ASCEND, text), 0)["powerWatts"] == 180.0
    assert device(read(ASCEND, text), 0)["healthy"] == 0.0
    assert device(read(ASCEND, text), 1) == {"temp": 37.0, "healthy": 1.0}
    unknown = text.replace("| OK            | -  ", "| NA            | -  ")
    assert device(read(ASCEND, unknown), 1) == {"temp": 37.0}


def test_ascend_whose_name_is_a_number() -> None:
    text = """\
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 1       310                   | OK              | 12.5         61                0     / 969           |
| 0       4                     | 0000:01:00.0    | 7            2000 / 8000                             |
+-------------------------------+-----------------+------------------------------------------------------+
| 1       310                   | NA              | 13.5         62                0     / 969           |
| 1       5                     | NA              | 9            4000 / 8000                             |
"""
    devices = read(ASCEND, text)
    assert device(devices, 4) == {
        "gpu": 7.0, "memoryAllocated": 25.0, "memoryAllocatedBytes": 2000 * MIB, "temp": 61.0,
        "powerWatts": 12.5, "healthy": 1.0,
    }  # fmt: skip
    assert device(devices, 5) == {
        "gpu": 9.0, "memoryAllocated": 50.0, "memoryAllocatedBytes": 4000 * MIB, "temp": 62.0,
        "powerWatts": 13.5,
    }  # fmt: skip


def test_ascend_columns_are_identified_by_their_headings() -> None:
    text = """\
| NPU   Name                | Health        | Temp(C)  Hugepages-Usage(page)  Power(W)           |
| Chip  Phy-ID              | Bus-Id        | HBM-Usage(MB)  AICore(%)   Memory-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 41       0    / 0               99.5               |
| 0     6                   | 0000:C1:00.0  | 4096 / 65536   7           1000 / 15000            |
| 1     910B3               | OK            | 42       0    / 0               NA                 |
| 0     7                   | 0000:C2:00.0  | 0    / 0       NA          1500 / 15000            |
"""
    devices = read(ASCEND, text)
    assert device(devices, 6) == {
        "gpu": 7.0, "memoryAllocated": 6.25, "memoryAllocatedBytes": 4096 * MIB, "temp": 41.0,
        "powerWatts": 99.5, "healthy": 1.0,
    }  # fmt: skip
    assert device(devices, 7) == {
        "memoryAllocated": 10.0, "memoryAllocatedBytes": 1500 * MIB, "temp": 42.0, "healthy": 1.0,
    }  # fmt: skip


def test_ascend_power_0_is_left_out() -> None:
    text = """\
| NPU     Name                  | Health          | Power(W)     Temp(C)           Hugepages-Usage(page) |
| Chip    Device                | Bus-Id          | AICore(%)    Memory-Usage(MB)                        |
+===============================+=================+======================================================+
| 0       310B4                 | Alarm           | 0.0          56                15    / 15            |
| 0       0                     | NA              | 0            1000 / 4000                             |
"""
    assert device(read(ASCEND, text), 0) == {
        "gpu": 0.0, "memoryAllocated": 25.0, "memoryAllocatedBytes": 1000 * MIB, "temp": 56.0, "healthy": 0.0,
    }  # fmt: skip


def test_a_lost_ascend_chip_does_not_affect_its_neighbours() -> None:
    text = (
        ASCEND_HEAD.format(phy="      ")
        + """\
| 2     910B3               | UNKNOWN       | NA          11                NA   / NA            |
| NA                        | NA            | NA          NA   / NA         NA   / NA            |
| 3     910B3               | OK            | 99.5        41                0    / 0             |
| 0                         | 0000:C1:00.0  | 5           0    / 0          4096 / 65536         |
"""
    )
    assert {key.split(".")[0] for key in read(ASCEND, text)} == {"3"}
    assert device(read(ASCEND, text), 3)["temp"] == 41.0


@pytest.mark.parametrize("nothing", ["N/A", "NA", "-", "[Not Supported]"])
def test_an_unknown_value_of_ascend_does_not_affect_others(nothing: str) -> None:
    text = (
        ASCEND_HEAD.format(phy="Phy-ID")
        + f"""\
| 0     910B3               | OK            | {nothing}        41                0    / 0             |
| 0     0                   | 0000:C1:00.0  | 7           0    / 0          {nothing} / 65536  |
| 1     910B3               | OK            | 99.5        {nothing}            {nothing} / 0         |
| 0     1                   | 0000:C2:00.0  | {nothing}   0    / 0          4096 / 65536       |
"""
    )
    devices = read(ASCEND, text)
    assert device(devices, 0) == {"gpu": 7.0, "temp": 41.0, "healthy": 1.0}
    assert device(devices, 1) == {
        "memoryAllocated": 6.25, "memoryAllocatedBytes": 4096 * MIB, "powerWatts": 99.5, "healthy": 1.0,
    }  # fmt: skip


def test_ascend_with_additional_columns() -> None:
    text = """\
| NPU   Slot-ID   Name      | Health        | Power(W)    Temp(C)        | Hugepages-Usage(page) |
| Chip  Slot-ID   Phy-ID    | Bus-Id        | AICore(%)   NPU-Usage(MB)  | HBM-Usage(MB)         |
+===========================+===============+============================+=======================+
| 0     1         950PR     | OK            | 203.3       62             | 0    / 0              |
| 0     1         5         | 0000:C1:00.0  | 37          0 / 0          | 4096 / 131072         |
"""
    assert read(ASCEND, text) == {
        "5.gpu": 37.0, "5.temp": 62.0, "5.powerWatts": 203.3, "5.memoryAllocatedBytes": 4096 * MIB,
        "5.memoryAllocated": 3.125, "5.healthy": 1.0,
    }  # fmt: skip
    assert who(ASCEND, text) == [{"name": "950PR", "pci": "0000:c1:00.0"}]


def test_ascend_with_an_empty_value() -> None:
    text = (
        ASCEND_HEAD.format(phy="Phy-ID")
        + """\
| 0     910B3               | OK            |             41                0    / 0             |
| 0     0                   | 0000:C1:00.0  |             0    / 0          4096 / 65536         |
"""
    )
    assert read(ASCEND, text) == {
        "0.memoryAllocated": 6.25, "0.memoryAllocatedBytes": 4096 * MIB, "0.healthy": 1.0,
    }  # fmt: skip


def test_ascend_without_a_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table of NPUs in the output: 'dcmi module initialize failed"):
        ASCEND.rows(b"dcmi module initialize failed. ret is -8005\n")
    assert ASCEND.rows((ASCEND_HEAD.format(phy="Phy-ID") + ASCEND_FOOT).encode()) == []


# -- tables like nvidia-smi's

CAMBRICON_TABLE = """\
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware |               Bus-Id | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |         Memory-Usage | SR-IOV   Compute-Mode |
|===============================+======================+=======================|
| 2     /   MLU590-M9    v1.2.0 |         0000:5D:00.0 | 64%               N/A |
|  0%   55C        200 W/ 400 W | 20480 MiB/ 81920 MiB | N/A           Default |
+-------------------------------+----------------------+-----------------------+
| 0     /   MLU590-M9    v1.2.0 |         0000:39:00.0 | N/A               N/A |
|  N/A  N/A        N/A W/ N/A W |     0 MiB/ 81920 MiB | N/A           Default |
+-------------------------------+----------------------+-----------------------+
"""


def test_cambricon() -> None:
    devices = read(CAMBRICON, CAMBRICON_TABLE)
    assert device(devices, 2) == {
        "gpu": 64.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 20480 * MIB,
        "temp": 55.0,
        "powerWatts": 200.0,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 400.0,
        "fanSpeed": 0.0,
    }
    assert device(devices, 0) == {"memoryAllocated": 0.0, "memoryAllocatedBytes": 0.0}
    assert who(CAMBRICON, CAMBRICON_TABLE)[1] == {"name": "MLU590-M9", "pci": "0000:5d:00.0"}


def test_cambricon_without_addresses() -> None:
    text = """\
Sun Mar  1 10:00:00 2026
+------------------------------------------------------------------------------+
| CNMON v4.21.0                                                                |
+-------------------------------+----------------------+-----------------------+
| Card  VF  Name       Firmware | Inited        Driver | Util        Ecc-Error |
| Fan   Temp      Pwr:Usage/Cap |        vMemory-Usage |          Memory-Usage |
|===============================+======================+=======================|
| 3     /   MLU290      v1.1.6  | On           v4.21.0 | 12%         N/A       |
|  31%  60C        75 W/ 150 W  | 9 MiB/1048576 MiB    | 4096 MiB/ 16384 MiB   |
+-------------------------------+----------------------+-----------------------+
+------------------------------------------------------------------------------+
| Processes:                                                                   |
|  Card  VF  PID    Command Line                             MLU Memory Usage  |
|==============================================================================|
|  3     /   4711   python                                         4096 MiB    |
+------------------------------------------------------------------------------+
"""
    assert read(CAMBRICON, text) == {
        "3.gpu": 12.0,
        "3.memoryAllocated": 25.0,
        "3.memoryAllocatedBytes": 4096 * MIB,
        "3.temp": 60.0,
        "3.powerWatts": 75.0,
        "3.powerPercent": 50.0,
        "3.enforcedPowerLimitWatts": 150.0,
        "3.fanSpeed": 31.0,
    }


def test_cambricon_sections() -> None:
    text = """\
Card 1
    Product Name                : MLU370-S4
    Physical Memory Usage
        Total                   : 23374 MiB
        Used                    : 11687 MiB
    Utilization
        MLU Average             : 12 %
    Temperature
        Chip                    : 40 C
    Power
        Usage                   : 30 W
        Cap                     : 75 W
Card 0
    Utilization
        MLU Average             : 7 %
"""
    devices = read(CAMBRICON, text)
    assert (devices["1.gpu"], devices["1.memoryAllocated"], devices["1.powerPercent"], devices["1.temp"]) == (
        12.0, 50.0, 40.0, 40.0,
    )  # fmt: skip
    assert devices["0.gpu"] == 7.0


def test_cambricon_sections_with_colons() -> None:
    text = """\
================CNMON v5.10.99================
Card 2
    Product Name                   : MLU370-X4
    UUID                           : 77010000-0000-0000-0000-000000000007
    Health State                   :
        Device                     : Good
        Driver                     : Running
    Utilization                    :
        MLU Average                : 66 %
    Temperature                    :
        Board                      : 64 C
        Chip                       : 78 C
        Memory                     : 63 C
    Physical Memory Usage          :
        Total                      : 23308 MiB
        Used                       : 11654 MiB
    Power                          :
        Usage                      : 45 W
        Cap                        : 150 W
    PCI                            :
        Domain ID                  : 0000
        Bus num                    : 3b
        Device                     : 00
        Function                   : 0
    Processes                      :
        Process                    : 0
            MLU Memory Usage       : 4711 MiB
"""
    assert device(read(CAMBRICON, text), 2) == {
        "gpu": 66.0, "memoryAllocated": 50.0, "memoryAllocatedBytes": 11654 * MIB, "temp": 78.0,
        "memoryTemp": 63.0, "powerWatts": 45.0, "powerPercent": 30.0, "enforcedPowerLimitWatts": 150.0,
        "healthy": 1.0,
    }  # fmt: skip
    assert who(CAMBRICON, text) == [
        {"name": "MLU370-X4", "pci": "0000:3b:00.0", "uuid": "77010000-0000-0000-0000-000000000007"}
    ]


METAX_HEADS = {
    "2.3.1": (
        "| Board       Name | GPU   Persist-M | Bus-id              | GPU-Util      sGPU-M |",
        "| Pwr:Usage/Cap    | Temp       Perf | Memory-Usage        | GPU-State            |",
        "| 0     MetaX C500 | 0           Off | 0000:12:00.0        | 35%         Disabled |",
        "| 71W / 355W       | 51C          P0 | 16384/65536 MiB     | Available            |",
    ),
    "2.1.6": (
        "| GPU         NAME                   | Bus-id              | GPU-Util             |",
        "| Temp        Power                  | Memory-Usage        |                      |",
        "| 0           MXC500                 | 0000:05:00.0        | 35%                  |",
        "| 51C         71W                    | 16384/65536 MiB     |                      |",
    ),
    "2.2.4": (
        "| GPU         NAME                   | Bus-id              | GPU-Util             |",
        "| Temp        Pwr:Usage/Cap          | Memory-Usage        | GPU-State            |",
        "| 0           MetaX C550             | 0000:0f:00.0        | 35%                  |",
        "| 51C         71W / NA               | 16384/65536 MiB     | Available            |",
    ),
    "2.2.8": (
        "| GPU     NAME         Persistence-M | Bus-id              | GPU-Util      sGPU-M |",
        "| Temp    Pwr:Usage/Cap         Perf | Memory-Usage        | GPU-State            |",
        "| 0       MetaX N260             Off | 0000:01:00.0        | 35%           Native |",
        "| 51C     71W / 284W              P0 | 16384/65536 MiB     | Available            |",
    ),
}


@pytest.mark.parametrize("version", METAX_HEADS)
def test_metax_of_several_versions(version: str) -> None:
    head, second, *rest = METAX_HEADS[version]
    rule = "|====================================+=====================+======================|"
    text = "\n".join(["mx-smi  version: 2", "Attached GPUs  : 1", head, second, rule, *rest, ""])
    values = device(read(METAX, text), 0)
    share = values.pop("powerPercent", None), values.pop("enforcedPowerLimitWatts", None)
    assert values == {
        "gpu": 35.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 16384 * MIB,
        "temp": 51.0,
        "powerWatts": 71.0,
    }
    shares = {"2.2.8": (25.0, 284.0), "2.3.1": (20.0, 355.0)}
    assert share == shares.get(version, (None, None))
    names = {"2.1.6": "MXC500", "2.2.4": "MetaX C550", "2.2.8": "MetaX N260", "2.3.1": "MetaX C500"}
    assert who(METAX, text)[0]["name"] == names[version]
    assert "pci" in who(METAX, text)[0]


def test_iluvatar_by_query_and_by_table() -> None:
    query = (
        "index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], temperature.gpu [C],"
        " gpu.power.draw [W], gpu.power.limit [W]\n"
        "1, GPU-b, Iluvatar BI-V150, 9 %, 8192 MiB, 32768 MiB, 44 C, 120 W, 240 W\n"
        "0, GPU-a, Iluvatar BI-V150, 0 %, 0 MiB, 32768 MiB, 33 C, N/A, N/A\n"
    )
    devices = read(ILUVATAR, query)
    assert device(devices, 1)["powerPercent"] == 50.0
    assert device(devices, 0) == {
        "gpu": 0.0, "memoryAllocated": 0.0, "memoryAllocatedBytes": 0.0, "temp": 33.0
    }  # fmt: skip
    table = """\
| GPU  Name                     | Bus-Id               | Clock-SM  Clock-Mem  |
| Fan  Temp  Perf  Pwr:Usage/Cap|      Memory-Usage    | GPU-Util  Compute M. |
|===============================+======================+======================|
| 1    Iluvatar BI-V150         | 00000000:8A:00.0     | 500MHz    1600MHz    |
| 0%   44C   P0   120W / 240W   | 8192MiB / 32768MiB   | 9%        Default    |
+-------------------------------+----------------------+----------------------+
"""
    clocks = {"smClock": 500.0, "memoryClock": 1600.0, "fanSpeed": 0.0}
    assert device(read(ILUVATAR, table), 1) == device(devices, 1) | clocks
    wider = query.replace(" [W]\n", " [W], fan.speed [%], clocks.mem [MHz], clocks.sm [MHz]\n")
    wider = wider.replace("240 W\n", "240 W, 0 %, 1600 MHz, 500 MHz\n").replace(
        "N/A, N/A\n", "N/A, N/A, , , \n"
    )
    assert device(read(ILUVATAR, wider), 1) == device(devices, 1) | clocks


KUNLUNXIN_TREE = """\
==============XPUSMI LOG==============

Driver Version                            : 5.0.0
XPU-RT Version                            : 10.1

Attached XPUs                             : 2
XPU 00000000:03:00.0
    Product Name                          : P800 OAM
    XPU UUID                              : GPU-3
    Minor Number                          : 1
    PCI
        Bus Id                            : 00000000:03:00.0
    Memory Usage
        Total                             : 98304 MiB
        Used                              : 49152 MiB
    L3 Usage
        Total                             : 96 MiB
        Used                              : 48 MiB
    Utilization
        Xpu                               : 77 %
    ECC Errors
        Volatile
            DRAM Correctable              : 4
            DRAM Uncorrectable            : N/A
        Aggregate
            DRAM Correctable              : 9
    Temperature
        XPU Current Temp                  : 46 C
    Power Readings
        Enforced Power Limit              : 400.00 W
        Power Draw                        : 100.00 W
    Clocks
        Cluster                           : 1450 MHz
    Processes                             : None
XPU 00000000:01:00.0
    Minor Number                          : 0
    Utilization
        Xpu                               : N/A
"""


def test_kunlunxin() -> None:
    assert read(KUNLUNXIN, KUNLUNXIN_TREE) == {
        "1.gpu": 77.0,
        "1.memoryAllocated": 50.0,
        "1.memoryAllocatedBytes": 49152 * MIB,
        "1.temp": 46.0,
        "1.powerWatts": 100.0,
        "1.powerPercent": 25.0,
        "1.enforcedPowerLimitWatts": 400.0,
        "1.graphicsClock": 1450.0,
        "1.correctedMemoryErrors": 4.0,
    }


def test_kunlunxin_table_but_not_intels_tool_of_the_same_name() -> None:
    table = """\
| XPU-SMI               Driver Version: 5.1.0     XPU-RT Version: 5.1.0       |
|-------------------------------+----------------------+----------------------+
| XPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | XPU-Util  Compute M. |
|                               |             L3-Usage |            SR-IOV M. |
|===============================+======================+======================|
|   6  P800 OAM           N/A   | 00000000:A5:00.0 N/A |                    0 |
| N/A   35C  N/A     80W / 400W |   1024MiB /  4096MiB |      3%      Default |
|                               |      0MiB /    96MiB |             Disabled |
+-------------------------------+----------------------+----------------------+
"""
    assert device(read(KUNLUNXIN, table), 6) == {
        "gpu": 3.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 1024 * MIB,
        "temp": 35.0,
        "powerWatts": 80.0,
        "powerPercent": 20.0,
        "enforcedPowerLimitWatts": 400.0,
    }
    with pytest.raises(ValueError, match="not Kunlunxin's: it printed 'Timestamp, DeviceId"):
        KUNLUNXIN.rows(b"Timestamp, DeviceId, GPU Power (W)\n")


# -- JSON


def test_moore_threads() -> None:
    text = """a warning before it
{"Attached GPUs": "2", "GPU": [
 {"Index": "1", "Product Name": "MTT S4000", "GPU UUID": "u1", "PCI": {"Bus ID": "00000000:3b:00.0"},
  "FB Memory Usage": {"Total": "49152MiB", "Used": "12288MiB"}, "Utilization": {"Gpu": "61%", "Memory": "5%"},
  "Temperature": {"GPU Current Temp": "57C"},
  "Power Readings": {"Power Draw ": "225.00W", "Current Power Limit": "450.00W", "Max Power Limit": "600W"}},
 {"Index": "0", "Utilization": {"Gpu": "N/A"},
  "Power Readings": {"Power Draw ": "10.5W", "Current Power Limit": "N/A", "Max Power Limit": "600W"}}]}
"""
    devices = read(MOORE_THREADS, text)
    assert device(devices, 1) == {
        "gpu": 61.0,
        "memory": 5.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 12288 * MIB,
        "temp": 57.0,
        "powerWatts": 225.0,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 450.0,
    }
    assert device(devices, 0) == {"powerWatts": 10.5}
    assert who(MOORE_THREADS, text)[1] == {"name": "MTT S4000", "uuid": "u1", "pci": "0000:3b:00.0"}


def test_moore_threads_sections() -> None:
    text = """\
==============MTHREADS-GMI LOG==============
Timestamp                                  : Tue Mar 26 11:33:53 2024
Attached GPUs                              : 2
GPU1 00000000:3a:00.0
    Product Name                           : MTT S4000
    GPU UUID                               : u1
    FB Memory Usage
        Total                              : 49152MiB
        Used                               : 12288MiB
    Utilization
        Gpu                                : 61%
    Temperature
        GPU Current Temp                   : 57C
    Power Readings
        Power Draw                         : 225.00W
        Current Power Limit                : 450.00W
GPU0 00000000:18:00.0
    Power Readings
        Power Draw                         : N/A
"""
    devices = read(MOORE_THREADS, text)
    assert device(devices, 1) == {
        "gpu": 61.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 12288 * MIB,
        "temp": 57.0,
        "powerWatts": 225.0,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 450.0,
    }
    assert device(devices, 0) == {}
    assert who(MOORE_THREADS, text)[1] == {"name": "MTT S4000", "uuid": "u1", "pci": "0000:3a:00.0"}


def test_hygon_of_two_generations() -> None:
    text = """{
 "card1": {"HCU use (%)": "40", "HCU memory use (%)": "9", "Temperature (Sensor junction) (C)": "61.0",
           "Average Graphics Package Power (W)": "150.5", "vram Total Memory (MiB)": "65520",
           "vram Total Used Memory (MiB)": "32760", "PCI Bus": "0000:3b:00.0", "Card Series": "BW"},
 "card0": {"DCU use (%)": "0", "DCU memory use (%)": "65", "Temperature (Sensor edge) (C)": "N/A"},
 "system": {"Driver version": "6.2"}}
"""
    devices = read(HYGON, text)
    assert device(devices, 1) == {
        "gpu": 40.0,
        "memoryAllocated": 50.0,  # of the bytes, finer than whole per cents
        "memoryAllocatedBytes": 32760 * MIB,
        "temp": 61.0,
        "powerWatts": 150.5,
    }
    assert device(devices, 0) == {"gpu": 0.0, "memoryAllocated": 65.0}


def test_hygon_sizes_in_bytes_or_mebibytes_in_any_spelling() -> None:
    text = """WARNING: old
{"Card2": {"DCU Use(%)": "7", "VRAM Total Memory (B)": "68702699520", "vRAM total used memory (GiB)": "16",
           "Temperature (Sensor core) (C)": "50.0", "Fan speed (%)": "N/A"}}"""
    assert device(read(HYGON, text), 2) == {
        "gpu": 7.0,
        "memoryAllocatedBytes": 16 * 1024 * MIB,
        "memoryAllocated": pytest.approx(16 * 1024 * MIB / 68702699520 * 100.0),
        "temp": 50.0,
    }


def test_hygon_table_with_clocks() -> None:
    text = """\
DCU  Temp   AvgPwr  SCLK     MCLK    Fan     Perf  PwrCap  VRAM%  DCU%
0    46.0c  32.0W   700Mhz   1200Mhz 12.0%   auto  320.0W   20%   84%
1    N/A    N/A     N/A      N/A     N/A     auto  320.0W   0%    0%
"""
    devices = read(HYGON, text)
    assert device(devices, 0) == {
        "gpu": 84.0, "memoryAllocated": 20.0, "temp": 46.0, "powerWatts": 32.0, "powerPercent": 10.0,
        "enforcedPowerLimitWatts": 320.0, "fanSpeed": 12.0, "graphicsClock": 700.0, "memoryClock": 1200.0,
    }  # fmt: skip
    assert device(devices, 1) == {"gpu": 0.0, "memoryAllocated": 0.0, "enforcedPowerLimitWatts": 320.0}


def test_rebellions_indices_may_be_texts_or_numbers() -> None:
    text = """{"KMD_version": "2.0", "devices": [
 {"npu": "1", "name": "RBLN-CA25", "uuid": "u1", "pci": {"bus_id": "0000:83:00.0"}, "temperature": "41C",
  "card_power": "55.5W", "memory": {"used": "1073741824", "total": "17179869184"}, "util": "12.5"},
 {"npu": 0, "temperature": "N/A", "memory": {"used": "0", "total": "0"}, "util": ""}], "contexts": []}
"""
    devices = read(REBELLIONS, text)
    assert device(devices, 1) == {
        "gpu": 12.5,
        "memoryAllocated": 6.25,
        "memoryAllocatedBytes": 1073741824.0,
        "temp": 41.0,
        "powerWatts": 55.5,
    }
    assert device(devices, 0) == {}  # 0 of 0 is no reading


def test_furiosa() -> None:
    info = """[{"arch": "rngd", "dev_name": "npu1", "device_uuid": "U", "device_sn": "S",
 "pci_bdf": "0000:17:00.0", "temperature": "30.18°C", "power": "53.00 W"}, {"dev_name": "npu0"}]"""
    assert read(INFO, info) == {"1.temp": 30.18, "1.powerWatts": 53.0}
    assert who(INFO, info)[1] == {"name": "rngd", "uuid": "U", "serial": "S", "pci": "0000:17:00.0"}
    status = """[{"arch": "rngd", "device": "npu1",
 "memory": {"DRAM": {"used_size": 1024, "total_size": 4096}},
 "pe_utilizations": [{"pe_core": 0, "pe_utilization": 100.0}, {"pe_core": 1, "pe_utilization": 50.0}]},
 {"device": "npu0", "pe_utilizations": []}]"""
    assert read(STATUS, status) == {
        "1.gpu": 75.0, "1.memoryAllocated": 25.0, "1.memoryAllocatedBytes": 1024.0
    }  # fmt: skip


def test_furiosa_liveness_and_power_limit_in_either_output() -> None:
    output = """[{"dev_name": "npu0", "power": "60 W", "power_limit": "180 W", "liveness": true},
 {"dev_name": "npu1", "liveness": false}, {"dev_name": "npu2", "liveness": null}]"""
    assert read(INFO, output) == {
        "0.powerWatts": 60.0,
        "0.enforcedPowerLimitWatts": 180.0,
        "0.powerPercent": pytest.approx(100.0 / 3.0),
        "0.healthy": 1.0,
        "1.healthy": 0.0,
    }
    assert read(STATUS, output)["1.healthy"] == 0.0


def test_tenstorrent_board_power_fan_and_voltage() -> None:
    text = """{"device_info": [{"board_info": {"bus_id": "0000:04:00.0"},
  "smbus_telem": {"FAN_RPM": "0x75a"},
  "telemetry": {"power": " 30.0", "board_power": " 44.5", "voltage": "0.72", "fan_speed": " 38"}},
 {"smbus_telem": {"FAN_RPM": null}, "telemetry": {"fan_speed": "N/A", "fan_rpm": "900", "voltage": "N/A"}}
]}"""
    assert read(TENSTORRENT, text) == {
        "0.powerWatts": 30.0,
        "0.boardPowerWatts": 44.5,
        "0.voltage": 0.72,
        "0.fanSpeed": 38.0,
        "0.fanRpm": 1882.0,
        "1.fanRpm": 900.0,
    }


def test_furiosas_unallocated_cores_have_no_load() -> None:
    text = """\
+------+--------+---------------------------+
| Arch | Device | Core Utilization          |
+------+--------+---------------------------+
| rngd | npu0   | Core 0: 60.00%, Core 1: - |
+------+--------+---------------------------+
| rngd | npu1   | -                         |
+------+--------+---------------------------+
"""
    assert read(STATUS, text) == {"0.gpu": 30.0}


def test_furiosa_table_of_an_older_card() -> None:
    text = """\
+------+------------------+-------+--------+--------------+---------+
| NPU  | Name             | Temp. | Power  | PCI-BDF      | PCI-DEV |
+------+------------------+-------+--------+--------------+---------+
| npu1 | warboy           | 54°C  | 3.53 W | 0000:44:00.0 | 511:0   |
+------+------------------+-------+--------+--------------+---------+
"""
    assert read(INFO, text) == {"1.temp": 54.0, "1.powerWatts": 3.53}
    assert who(INFO, text) == [{"name": "warboy", "pci": "0000:44:00.0"}]


def test_tenstorrent() -> None:
    text = """{"device_info": [
 {"board_info": {"bus_id": "0000:04:00.0", "board_type": "n300"},
  "telemetry": {"power": " 30.0", "aiclk": " 1000", "asic_temperature": " 51.5"},
  "limits": {"tdp_limit": "120"}},
 {"board_info": {"bus_id": "N/A", "board_type": "n300"},
  "telemetry": {"power": "65535.9", "aiclk": "N/A", "asic_temperature": "50.0"},
  "limits": {"tdp_limit": 120}}
]}"""
    assert read(TENSTORRENT, text) == {
        "0.temp": 51.5,
        "0.powerWatts": 30.0,
        "0.powerPercent": 25.0,
        "0.enforcedPowerLimitWatts": 120.0,
        "0.graphicsClock": 1000.0,
        "1.temp": 50.0,
        "1.enforcedPowerLimitWatts": 120.0,
    }


# -- T-Head


def test_thead() -> None:
    text = (
        "index, name, uuid, utilization.ppu [%], memory.used [MiB], memory.total [MiB], power.draw [W],"
        " gpu_bus_id\n"
        "0, PPU, GPU-1, 6 %, 24576 MiB, 98304 MiB, 83.03 W, 00000000:08:00.0\n"
    )
    assert read(THEAD, text) == {
        "0.gpu": 6.0, "0.memoryAllocated": 25.0, "0.memoryAllocatedBytes": 24576 * MIB, "0.powerWatts": 83.03
    }  # fmt: skip
    assert who(THEAD, text) == [{"name": "PPU", "uuid": "GPU-1", "pci": "0000:08:00.0"}]
    nameless = text.replace("GPU-1", "[Not Supported]").replace("PPU,", "[Unknown],")
    assert who(THEAD, nameless) == [{"pci": "0000:08:00.0"}]
