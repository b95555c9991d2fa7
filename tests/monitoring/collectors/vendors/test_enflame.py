"""Enflame's tool: sections of older and newer releases, its monitor, its tables, with made-up values."""

from __future__ import annotations

import pytest

from runvitals.monitoring.collectors.vendors.enflame import ENFLAME
from tests.monitoring.collectors.vendors.test_vendors import device, read, who

MIB = 1024.0 * 1024.0
SECTIONS = """\
-------------------------------------------------------------------------------
--------------------- Enflame System Management Interface ---------------------
--------- Enflame Tech, All Rights Reserved. 2024-2099 Copyright (C) ----------
-------------------------------------------------------------------------------

DEV ID 1
    Driver Info
        Ver                     : 9.9.9
    Device Info
        Dev Name                : S60
        Dev UUID                : TR6Y40000001
        Dev SN                  : A0A100000001
        Health                  : True
    PCIe Info
        Vendor ID               : 1e36
        Device ID               : c035
        Domain                  : 0000
        Bus                     : 9a
        Dev                     : 00
        Func                    : 0
        Link Info
        Max Link Speed          : Gen5
        Tx Throughput           : 3 MiB/s
        Rx Throughput           : 5 MiB/s
    Clock Info
        Mem CLK                 : 7000 MHz
    Power Info
        Power Capa              : 300 W
        Cur Power               : 150 W
        Dpm Level               : Active
    Device Mem Info
        Total Size              : 40960 MiB
        Reserved Size           : 1129 MiB
        Used Size               : 10240 MiB
        Free Size               : 29591 MiB
    Temperature Info
        GCU Temp                : 51 ℃
    Device Usage Info
        GCU Usage               : 87.5 %
    ECC Mode
        Current                 : Enable
    VPU Info
        Encoder Usage           : 4 %
        Decoder Usage           : 0 %
DEV ID 0
    Device Mem Info
        Total Size              : 40960 MiB
        Used Size               : N/A
    Temperature Info
        GCU Temp                : N/A
"""


def test_sections() -> None:
    devices = read(ENFLAME, SECTIONS)
    assert device(devices, 1) == {
        "gpu": 87.5,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 10240 * MIB,
        "temp": 51.0,
        "powerWatts": 150.0,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 300.0,
        "memoryClock": 7000.0,
        "encoderUtilization": 4.0,
        "decoderUtilization": 0.0,
        "pcieTxBytes": 3 * MIB,
        "pcieRxBytes": 5 * MIB,
        "healthy": 1.0,
    }
    assert device(devices, 0) == {}
    assert who(ENFLAME, SECTIONS)[1] == {
        "name": "S60",
        "uuid": "TR6Y40000001",
        "pci": "0000:9a:00.0",
        "serial": "A0A100000001",
    }


def test_sections_of_older_releases_indented_with_tabs() -> None:
    text = (
        "DEV ID 0\n\tDevice Mem Info\n\t\tMem Size                : 40000 MiB\n"
        "\t\tMem Usage               : 10000 MiB\n\tTemperature Info\n\t\tGCU Temp                : 34 'C\n"
        "\tDevice Usage Info\n\t\tGCU Usage               : 0.0 %\n"
    )
    assert read(ENFLAME, text) == {
        "0.gpu": 0.0, "0.memoryAllocated": 25.0, "0.memoryAllocatedBytes": 10000 * MIB, "0.temp": 34.0
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "*Dev Pwr    DTemp  Sip    DUsed  Dpm     MUsed  Mem    Mclk   TxPci   RxPci\n"
        "*Idx W      C      %      %      L       %      MiB    MHz    MiB/s   MiB/s\n"
        "2    101    36     0.0    7.5    Sleep   25.0   40960  7000   0       1\n",
        "*GCU  Logic  Pwr   DTemp  DUsed  Dpm    M1Temp  M2Temp  MUsed  Dclk  Mclk\n"
        "*Idx  Id     W     C      %      L      C       C       %      MHz   MHz\n"
        "2     0      101   36     7.5    Sleep  40      41      25.0   1000  7000\n",
    ],
    ids=["of S60", "of T20"],
)
def test_lines_of_the_monitor(text: str) -> None:
    values = device(read(ENFLAME, text), 2)
    assert {key: values[key] for key in ("gpu", "memoryAllocated", "temp", "powerWatts", "memoryClock")} == {
        "gpu": 7.5,
        "memoryAllocated": 25.0,
        "temp": 36.0,
        "powerWatts": 101.0,
        "memoryClock": 7000.0,
    }
    assert "memoryAllocatedBytes" not in values


def test_tables_of_three_releases() -> None:
    stars = """\
*EFSMI    V9.9.9          Driver Ver: 9.9.9                               *
*-------------------------------------------------------------------------*
* DEV    NAME                | FW VER          | BUS-ID     ECC           *
* TEMP   DPM   Pwr(Usage/Cap)| Mem         vGCU| DEV-Util   UUID          *
*-------------------------------------------------------------------------*
* 0      T20                 | 10.19.3         | 00:3d:0.0  Enable        *
* 30C    Sleep   75.0W  300W | 32G      Disable|   4.0%     W28001210504  *
*-------------------------------------------------------------------------*
"""
    assert read(ENFLAME, stars) == {
        "0.gpu": 4.0, "0.temp": 30.0, "0.powerWatts": 75.0, "0.powerPercent": 25.0,
        "0.enforcedPowerLimitWatts": 300.0,
    }  # fmt: skip
    assert who(ENFLAME, stars) == [{"name": "T20", "pci": "0000:3d:00.0"}]
    lines = """\
+2099-03-06, 10:12:03 CST-----------------------------------------------------+
| EFSMI: 9.9.9             Driver Ver: 9.9.9                                  |
+-----------------------------+-------------------+---------------------------+
| DEV    NAME                 | Boot FW VER       | BUS-ID      ECC           |
| TEMP   Lpm   Pwr(Usage/Cap) | Mem      GCU Virt | DUsed       SN            |
|=============================================================================|
| 0      Enflame L300         | 40.2.8.3          | 00:2d:00.0  Enable        |
| 35℃    LP1      75W / 300W  | 147456MiB Disable | 9%          A098Q50610048 |
+-----------------------------+-------------------+---------------------------+
| 1      Enflame S60G         | 31.5.3            | 00:2e:00.0  Disable       |
| 34℃    LP0      N/A         | 23552MiB  SRIOV   | 0%          A018K30520031 |
+-----------------------------+-------------------+---------------------------+
"""
    devices = read(ENFLAME, lines)
    assert (devices["0.gpu"], devices["0.temp"], devices["0.powerPercent"]) == (9.0, 35.0, 25.0)
    assert device(devices, 1) == {"gpu": 0.0, "temp": 34.0}  # the total memory is reported, but not its use
