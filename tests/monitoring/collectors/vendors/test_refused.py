"""Releases of tools that reject the machine-readable format: their table is read instead."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from runvitals.monitoring.collectors.base import Tick
from runvitals.monitoring.collectors.plumbing.tool import ToolFailed
from runvitals.monitoring.collectors.sources import probe_all
from tests.monitoring.collectors.plumbing.test_tool import program
from tests.monitoring.collectors.trees import BARE_VM, plant
from tests.monitoring.collectors.vendors.machines import pci
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from runvitals.monitoring.collectors.base import Collector

MIB = 1024.0 * 1024.0
GAUDI = """\
+-----------------------------------------------------------------------------+
| HL-SMI Version:                              hl-1.99.0-fw-99.0.0.0          |
| Driver Version:                                     1.99.0-0000000          |
| Nic Driver Version:                                 1.99.0-0000000          |
|-------------------------------+----------------------+----------------------+
| AIP  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncor-Events|
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | AIP-Util  Compute M. |
|===============================+======================+======================|
|   1  HL-328L             N/A  | 0000:e9:00.0     N/A |                   0  |
| N/A   51C   P0  300W /  600W  | 24576Mib / 98304Mib |    88%            3% |
|-------------------------------+----------------------+----------------------+
|   0  HL-328L             N/A  | 0000:c1:00.0     N/A |                   0  |
| N/A   N/A   P0   N/A /  600W  |    N/A / 131072MiB |    N/A            7%|
|-------------------------------+----------------------+----------------------+
| Compute Processes:                                               AIP Memory |
|  AIP       PID   Type   Process name                             Usage      |
|=============================================================================|
|   0        N/A   N/A    N/A                                      N/A        |
+=============================================================================+
"""
HYGON = """

========================= System Management Interface =========================
===============================================================================
HCU     Temp     AvgPwr     Perf     PwrCap     VRAM%      HCU%      Mode
1       61.0C    100.0W     auto     400.0W     25%        97.5%     Normal
0       N/A      N/A        auto     400.0W     0%         0.0%      Normal
===============================================================================
============================== End of SMI Log =================================
"""
MOORE_THREADS = """\
Thu May 15 20:42:02 2025
---------------------------------------------------------------------
    mthreads-gmi:9.9.9           Driver Version:9.9.9-server
---------------------------------------------------------------------
ID   Name                 |PCIe                |%GPU  Mem
     Device Type   Perf   |Pcie Lane Width     |Temp  MPC Capable
                                               |      ECC Mode
+-------------------------------------------------------------------+
0    MTT S4000            |00000000:18:00.0    |0%    0MiB(49152MiB)
     Physical      P0     |16x(16x)            |48C   YES
                                               |      On-die, EDC
+-------------------------------------------------------------------+
1    MTT S4000            |00000000:3a:00.0    |61%   12288MiB(49152MiB)
     Physical      P0     |16x(16x)            |57C   YES
                                               |      N/A
---------------------------------------------------------------------

---------------------------------------------------------------------
Processes:
ID   PID       Process name                               GPU Memory
                                                               Usage
+-------------------------------------------------------------------+
0    1123      /usr/lib/xorg/Xorg                             134MiB
---------------------------------------------------------------------
"""
REBELLIONS = """\
+-------------------------------------------------------------------------------------------------+
|                                Device Information KMD ver: 9.9.9                                |
+-----+-----------+---------+---------------+------+---------+------+---------------------+-------+
| NPU |    Name   |  Device |   PCI BUS ID  | Temp |  Power  | Perf |  Memory(used/total) |  Util |
+=====+===========+=========+===============+======+=========+======+=====================+=======+
| 0   | RBLN-CA25 | rbln0   |  0000:05:00.0 |  39C |  45.2W  |  P14 |    4.0GiB / 16.0GiB |  12.5 |
| 1   |           | rbln1   |  0000:06:00.0 |  42C |         |  P14 |    0.0B / 16.0GiB   |   0.0 |
+-----+-----------+---------+---------------+------+---------+------+---------------------+-------+
+-------------------------------------------------------------------------------------------------+
|                                       Context Information                                       |
+-----+---------------------+--------------+-----------+----------+------+---------------+--------+
| NPU | Process             |     PID      |    CTX    | Priority | PTID |      Memalloc | Status |
+=====+=====================+==============+===========+==========+======+===============+========+
| 0   | python              |     4711     |    N/A    |   N/A    | N/A  |        1.0GiB |  N/A   |
+-----+---------------------+--------------+-----------+----------+------+---------------+--------+
"""
FURIOSA = """\
if [ "$1" = info ]; then cat <<'END'
+------+--------+----------------+---------+---------+--------------+
| Arch | Device | Firmware       | Temp.   | Power   | PCI-BDF      |
+------+--------+----------------+---------+---------+--------------+
| rngd | npu0   | 9.9.9, b4a67ca | 28.88°C | 38.00 W | 0000:4e:00.0 |
+------+--------+----------------+---------+---------+--------------+
| rngd | npu1   | 9.9.9, b4a67ca | N/A     | N/A     | 0000:4f:00.0 |
+------+--------+----------------+---------+---------+--------------+
END
else cat <<'END'
+------+--------+---------------+------------------+----------------+
| Arch | Device | Cores         | Core Utilization | Memory Usage   |
+------+--------+---------------+------------------+----------------+
|      |        | 0 (occupied), | Core 0: 100.00%, |                |
| rngd | npu0   | 1 (occupied), | Core 1: 50.00%,  | 12.00/48.00 GiB |
|      |        | 2 (available) | Core 2: 0.00%    |                |
+------+--------+---------------+------------------+----------------+
| rngd | npu1   | 0 (available) | -                | 0.00/48.00 GiB |
+------+--------+---------------+------------------+----------------+
END
fi
"""
ENFLAME = """\
| DEV    NAME                | FW VER          | BUS-ID      ECC           |
| TEMP   Dpm   Pwr(Usage/Cap)| Mem     GCU Virt| DUsed       SN            |
|--------------------------------------------------------------------------|
| 0      S60                 | 33.6.2          | 00:01:00.0  Disable       |
| 39 C   Sleep    75W  300W | 49120MiB Disable|   5.0%      A073640510015 |
+--------------------------------------------------------------------------+
"""
BIREN = """\
| GPU  Id  |     Name     |  Temperature  |  Power  |  Memory        |
|====================================================================|
|   0      | BR106        |   45°C        |  250W   |  8GB/32GB      |
+--------------------------------------------------------------------+
"""
THEAD = """\
+-----------------------------------------------------------------------------+
| PPU-SMI 9.9.9        Driver Version: 9.9.9                                  |
|-------------------------------+----------------------+----------------------+
| PPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | PPU-Util  Compute M. |
|===============================+======================+======================|
|   2  PPU-X9            On     | 00000000:09:00.0 Off |                    0 |
| N/A   61C   P0   300W / 400W  |  24576MiB / 98304MiB |     97%      Default |
+-------------------------------+----------------------+----------------------+
"""
EXPECTED = {
    "thead": {
        "2.gpu": 97.0, "2.temp": 61.0, "2.powerWatts": 300.0, "2.powerPercent": 75.0,
        "2.enforcedPowerLimitWatts": 400.0, "2.memoryAllocated": 25.0,
        "2.memoryAllocatedBytes": 24576 * MIB,
    },
    "enflame": {
        "0.gpu": 5.0, "0.temp": 39.0, "0.powerWatts": 75.0, "0.powerPercent": 25.0,
        "0.enforcedPowerLimitWatts": 300.0,
    },
    "biren": {
        "0.temp": 45.0, "0.powerWatts": 250.0, "0.memoryAllocated": 25.0,
        "0.memoryAllocatedBytes": 8192 * MIB,
    },
    "gaudi": {
        "1.gpu": 88.0, "1.temp": 51.0, "1.powerWatts": 300.0, "1.powerPercent": 50.0,
        "1.enforcedPowerLimitWatts": 600.0, "1.memoryAllocated": 25.0,
        "1.memoryAllocatedBytes": 24576 * MIB, "0.enforcedPowerLimitWatts": 600.0,
    },
    "hygon": {
        "1.gpu": 97.5, "1.temp": 61.0, "1.powerWatts": 100.0, "1.powerPercent": 25.0,
        "1.enforcedPowerLimitWatts": 400.0, "1.memoryAllocated": 25.0, "0.gpu": 0.0,
        "0.memoryAllocated": 0.0, "0.enforcedPowerLimitWatts": 400.0,
    },
    "moorethreads": {
        "0.gpu": 0.0, "0.temp": 48.0, "0.memoryAllocated": 0.0, "0.memoryAllocatedBytes": 0.0, "1.gpu": 61.0,
        "1.temp": 57.0, "1.memoryAllocated": 25.0, "1.memoryAllocatedBytes": 12288 * MIB,
    },
    "rebellions": {
        "0.gpu": 12.5, "0.temp": 39.0, "0.powerWatts": 45.2, "0.memoryAllocated": 25.0,
        "0.memoryAllocatedBytes": 4096 * MIB, "1.gpu": 0.0, "1.temp": 42.0, "1.memoryAllocated": 0.0,
        "1.memoryAllocatedBytes": 0.0,
    },
    "furiosa": {
        "0.gpu": 50.0, "0.temp": 28.88, "0.powerWatts": 38.0, "0.memoryAllocated": 25.0,
        "0.memoryAllocatedBytes": 12288 * MIB, "1.memoryAllocated": 0.0, "1.memoryAllocatedBytes": 0.0,
    },
}  # fmt: skip
TOOLS = {
    "gaudi": ("hl-smi", "1da3", GAUDI, 1),
    "hygon": ("hy-smi", "1d94", HYGON, 1),
    "hygon of DTK 23": ("rocm-smi", "1d94", HYGON.replace("HCU", "DCU"), 1),
    "moorethreads": ("mthreads-gmi", "1ed5", MOORE_THREADS, 1),
    "rebellions": ("rbln-stat", "1eff", REBELLIONS, 1),
    "enflame": ("efsmi", "1e36", ENFLAME, 1),
    "biren": ("brsmi", "1ee0", BIREN, 1),
    "thead": ("ppu-smi", "1ded", THEAD, 1),
    "furiosa": ("furiosa-smi", "1ed2", FURIOSA, 2),
}


def collector(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, rejection: str) -> Collector:
    """The source of a vendor whose tool responds to options with `rejection`."""
    tool, vendor_id, output, most = TOOLS[name]
    (folder / "table").write_text(output)
    show = f"sh {folder}/table $1" if name == "furiosa" else f"cat {folder}/table"
    program(folder / "bin", tool, f"if [ $# -ge {most} ]; then {rejection}; fi\n{show}\n")
    monkeypatch.setenv("PATH", f"{folder}/bin{os.pathsep}/usr/bin{os.pathsep}/bin")
    collectors = probe_all(
        plant(folder / "root", BARE_VM | pci("0000:17:00.0", vendor_id)), {name.split()[0]}
    )
    (only,) = collectors.collectors
    return only


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize(
    "rejection",
    ["echo 'error: unexpected argument' >&2; exit 2", "echo 'Usage: tool [options]'; exit 0"],
    ids=["with an error", "with its help"],
)
def test_the_table_is_read_if_the_machine_readable_format_is_rejected(
    name: str, rejection: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = collector(name, tmp_path, monkeypatch, rejection)
    expected = EXPECTED[name.split()[0]]
    seen: dict[str, float] = {}
    until_s, mono_s = time.monotonic() + PATIENCE_S, 100.0
    while seen.keys() != {f"gpu.{key}" for key in expected} and time.monotonic() < until_s:
        mono_s += 1.0
        tick = Tick(mono_s)
        try:
            source.sample(tick)
        except ToolFailed:
            pass  # options are left to try
        seen |= tick.gauges
        time.sleep(0.005)
    assert {key.removeprefix("gpu."): value for key, value in seen.items()} == expected
