"""The text output of a reading."""

from __future__ import annotations

import pytest

from runvitals.cli.sample_text import lines
from runvitals.sdk.probe import MachineReading


def laid_out(reading: MachineReading) -> str:
    return "\n".join(lines(reading))


def test_order_of_sections() -> None:
    reading = MachineReading(
        metrics={
            "ipu.0.clock (MHz)": 1300.0,
            "gpu.10.gpu": 50.0,
            "gpu.process.9.memoryAllocatedBytes": 2.0**30,
            "gpu.9.gpu": 87.5,
            "memory_percent": 40.0,
            "fridge.temp": 4.5,
            "cpu.mean": 12.5,
            "gpu.9.correctedMemoryErrors": 0.0,
        },
        states={
            "cpu": {"state": "on"},
            "memory": {"state": "on"},
            "filesystem": {"state": "on", "reason": "/data: no such folder"},
            "energy": {"state": "absent", "reason": "no powercap"},
            "amd": {"state": "failing", "reason": "ToolFailed: rocm-smi exited with 1"},
        },
        machine={
            "gpu_nvidia": [
                {"index": 9, "name": "NVIDIA H100", "pci": "0000:18:00.0"},
                {"index": 10, "name": "NVIDIA H100", "pci": "0000:19:00.0", "lost": True},
            ],
            "ipu": {"vendor": "Graphcore", "devices": [{"id": "0", "board type": "C600"}]},
            "nvidia_driver": "570.1",
        },
    )
    assert (
        laid_out(reading)
        == """\
CPU
  cpu.mean                                    12.5 %

Memory
  memory_percent                                40 %

Other sources
  fridge.temp                                  4.5

GPU 9: NVIDIA H100, 0000:18:00.0
  gpu.process.9.memoryAllocatedBytes             1 GiB
  gpu.9.correctedMemoryErrors                    0
  gpu.9.gpu                                   87.5 %

GPU 10: NVIDIA H100, 0000:19:00.0, lost
  gpu.10.gpu                                    50 %

IPU 0: C600
  ipu.0.clock (MHz)                          1,300 MHz

Sources
  working: cpu, memory
  failing:
    amd         ToolFailed: rocm-smi exited with 1
  partial:
    filesystem  /data: no such folder
  absent:
    energy      no powercap"""
    )


@pytest.mark.parametrize(
    ("key", "machine", "heading"),
    [
        ("gpu.0.powerWatts", {"apple": {"name": "Apple M3 Max", "gpu_cores": 40}}, "GPU 0: Apple M3 Max"),
        ("tpu.3.dutyCycle", {"tpu": {"name": "v4", "devices": [{"index": 3, "id": 11}]}}, "TPU 3: v4"),
        ("trn.1.neuroncore_utilization", {"trainium": {"name": "trn1"}}, "Trainium core 1: trn1"),
        ("gpu.2.gpu", {"gpu_amd": [{"index": 0, "name": "MI210"}], "tpu": "?", "ipu": None}, "GPU 2"),
        (
            "gpu.2.gpu",
            {"gpu_amd": [], "accelerator_gaudi": [{"index": 2, "name": "HL-325L"}]},
            "GPU 2: HL-325L",
        ),
    ],
)
def test_devices_are_named_by_their_sources(key: str, machine: dict[str, object], heading: str) -> None:
    assert laid_out(MachineReading(metrics={key: 30.0}, machine=machine)).startswith(f"{heading}\n")


def test_empty_reading() -> None:
    assert laid_out(MachineReading()) == "Sources"


def test_control_characters_are_escaped() -> None:
    reading = MachineReading(
        metrics={"openmetrics.x.\x1b[2J": 1.0},
        states={"bad": {"state": "absent", "reason": "\x1b]0;gone\x07"}},
        machine={"gpu_amd": [{"index": 0, "name": "\x1b[31m"}]},
    )
    assert "\x1b" not in laid_out(reading)


def test_keys_that_resemble_those_of_devices() -> None:
    text = laid_out(MachineReading(metrics={"tpu": 12.0, "gpu": 1.0, "gpu.process": 2.0, "gpu.x.y": 3.0}))
    assert "GPU " not in text
    assert "  gpu.x.y" in text
