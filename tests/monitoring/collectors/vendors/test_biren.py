"""Biren's tool: a query like nvidia-smi's, and tables, with made-up values."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.biren import BIREN
from tests.monitoring.collectors.vendors.test_vendors import device, read, who

MIB = 1024.0 * 1024.0


def test_query() -> None:
    text = (
        "index, name, uuid, pci.bus_id, utilization.gpu [%], memory.used [MiB], memory.total [MiB],"
        " temperature.gpu, power.draw [W], power.limit [W]\n"
        "1, Biren166M, GPU-b, 00000000:9A:00.0, 71 %, 16256 MiB, 65024 MiB, 55, 210.5 W, 421 W\n"
        "0, Biren166M, GPU-a, 00000000:1A:00.0, [N/A], N/A, 65024 MiB, N/A, [Not Supported], N/A\n"
    )
    devices = read(BIREN, text)
    assert device(devices, 1) == {
        "gpu": 71.0,
        "memoryAllocated": 25.0,
        "memoryAllocatedBytes": 16256 * MIB,
        "temp": 55.0,
        "powerWatts": 210.5,
        "powerPercent": 50.0,
        "enforcedPowerLimitWatts": 421.0,
    }
    assert device(devices, 0) == {}
    assert who(BIREN, text)[1] == {"name": "Biren166M", "uuid": "GPU-b", "pci": "0000:9a:00.0"}


def test_a_table_with_one_line_per_card() -> None:
    text = """\
+-----------------------------------------------------------------------------+
| GPU  Id  |     Name     |  Mode  |  Temperature  |  Power  |  Memory        |
|=============================================================================|
|   0      | BR106        |  N/A   |   45°C        |  250W   |  8GB/32GB      |
|   1      | BR106        |  N/A   |   N/A         |  N/A    |  0GB/32GB      |
+-----------------------------------------------------------------------------+
"""
    devices = read(BIREN, text)
    assert device(devices, 0) == {
        "memoryAllocated": 25.0, "memoryAllocatedBytes": 8192 * MIB, "temp": 45.0, "powerWatts": 250.0
    }  # fmt: skip
    assert device(devices, 1) == {"memoryAllocated": 0.0, "memoryAllocatedBytes": 0.0}


def test_a_table_like_that_of_nvidia_smi() -> None:
    text = """\
| GPU  Name        Persistence-M| Bus-Id               | SVI-Mode  Uncorr.Ecc |
| Fan  Temp   Perf Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Biren106B           Off  | 0000:1A:00.0         | Disabled           0 |
| N/A   44C   P0     75W / 300W |   8128MiB / 32512MiB |      3%      Default |
+-------------------------------+----------------------+----------------------+
"""
    values = device(read(BIREN, text), 0)
    assert (values["gpu"], values["temp"], values["powerPercent"], values["memoryAllocated"]) == (
        3.0, 44.0, 25.0, 25.0,
    )  # fmt: skip
    assert who(BIREN, text) == [{"name": "Biren106B", "pci": "0000:1a:00.0"}]
