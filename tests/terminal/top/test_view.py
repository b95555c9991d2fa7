"""The layout of `runvitals top` on screens of all sizes."""

from __future__ import annotations

import io

import pytest

from runvitals.base.terminal_text import display_width, fitting, shows_unicode
from runvitals.terminal.top.drawing import ScreenLine, bar, format_size, sparkline
from runvitals.terminal.top.processes import ProcessLine
from runvitals.terminal.top.view import Style, View
from runvitals.terminal.top.vitals import Vitals, accelerators, device_names

GIB = 2.0**30
HOST = {
    "cpu.mean": 34.1, "cpu.user": 30.0, "cpu.system": 4.1, "cpu.iowait": 0.0, "cpu.steal": 0.0,
    "memory_percent": 21.5, "memory.usedMB": 5120.0, "proc.memory.availableMB": 18_000.0, "system.load1": 0.5,
    "disk./.usagePercent": 96.0, "disk./.availableGB": 12.0, "disk.in": 0.0, "disk.out": 0.0,
    "network.recv": 0.0, "network.sent": 0.0,
}  # fmt: skip


def gpus(count: int) -> dict[str, float]:
    return {
        f"gpu.{i}.{name}": value
        for i in range(count)
        for name, value in {
            "gpu": 97.0, "memoryAllocated": 80.5, "memoryAllocatedBytes": 68.5 * GIB, "powerWatts": 640.2,
            "enforcedPowerLimitWatts": 700.0, "temp": 71.0, "smClock": 1905.0, "graphicsClock": 1900.0,
        }.items()
    }  # fmt: skip


def shown(
    metrics: dict[str, float],
    width: int = 80,
    height: int = 24,
    command: str = "python train.py",
    **style: bool,
) -> list[str]:
    vitals = Vitals()
    vitals.add(100.0, metrics)
    grown = {
        key: value + 2**20 if key.startswith(("network.", "disk.in")) else value
        for key, value in metrics.items()
    }
    vitals.add(101.0, grown)
    processes = [ProcessLine(100 + i, "anna", 50.0 - i, 100.0, command) for i in range(40)]
    view = View("node1", Style(width, height, **style), "q quits")
    return view.lines(vitals, processes, 1_760_000_000.0)


def test_screen_of_common_size() -> None:
    lines = shown(HOST | gpus(8))
    assert len(lines) == 24
    assert lines[0].startswith("runvitals top  node1")
    assert lines[0].endswith("q quits")
    assert any("CPU" in line and "34.1 %" in line and "user 30.0" in line for line in lines)
    assert any("received  1.00 MiB/s" in line for line in lines)
    assert "8 × GPU" in lines
    (first,) = (line for line in lines if line.startswith("GPU 0"))
    assert all(part in first for part in ("97 %", "mem", "68.5 GiB", "640/700 W", "71 °C", "1905 MHz"))
    assert sum("python train.py" in line for line in lines) >= 3


@pytest.mark.parametrize("width", [1, 20, 40, 79, 80, 200])
@pytest.mark.parametrize("height", [1, 5, 24, 50])
@pytest.mark.parametrize("count", [0, 1, 8, 64, 512])
def test_layout_fits_the_screen(width: int, height: int, count: int) -> None:
    lines = shown(HOST | gpus(count), width, height, command="学習 " * 60)
    assert len(lines) <= height
    assert max(map(display_width, lines)) <= width


def test_many_devices_are_shown_in_a_grid_and_the_rest_is_counted() -> None:
    cores = {f"trn.{i}.neuroncore_utilization": float(i) for i in range(64)}
    lines = shown(HOST | cores)
    assert "64 × NeuronCore" in lines
    text = "\n".join(lines)
    assert all(f"{i:>4} " in text for i in range(20))
    many = shown({f"trn.{i}.neuroncore_utilization": 1.0 for i in range(640)})
    assert any(line.startswith("and ") and line.endswith(" more") for line in many)


def test_escape_sequences_in_commands_are_escaped() -> None:
    lines = shown(HOST, command="evil \x1b]0;title\x07\x1b[2J")
    assert not any("\x1b" in line or "\x07" in line for line in lines)
    assert any(r"evil \x1b]0;title\x07" in line for line in lines)


def test_ascii_terminals_get_ascii_bars() -> None:
    text = "\n".join(shown(gpus(2) | HOST, command="学習.py", unicode=False))
    assert text.isascii()
    assert all(part in text for part in ("#", "2 x GPU", "71 C", "??.py"))
    stream = io.TextIOWrapper(io.BytesIO(), "ascii")
    assert not shows_unicode(stream)
    assert fitting("2 × 85 °C …", stream) == "2 x 85 C ..."


@pytest.mark.parametrize(
    ("keys", "id", "values"),
    [
        ({"tpu.3.dutyCycle": 91.0, "tpu.3.memoryUsage": 40.0}, "3", {"use": 91.0, "memory": 40.0}),
        (
            {"trn.7.neuroncore_utilization": 55.0, "trn.7.neuroncore_memory_usage.tensors": 2.0,
             "trn.7.neuroncore_memory_usage.constants": 3.0},
            "7", {"use": 55.0, "memory_bytes": 5.0},
        ),
        (
            {"ipu.0.ipu utilisation (%)": 12.0, "ipu.0.average die temp (C)": 40.0,
             "ipu.0.clock (MHz)": 1850.0},
            "0", {"use": 12.0, "temp_c": 40.0, "clock_mhz": 1850.0},
        ),
        ({"gpu.1.mig.2.0.smActive": 33.0, "gpu.1.mig.2.0.memoryAllocated": 9.0}, "1.mig.2.0",
         {"use": 33.0, "memory": 9.0}),
    ],
)  # fmt: skip
def test_accelerators_of_every_family(keys: dict[str, float], id: str, values: dict[str, float]) -> None:
    others = {"gpu.process.0.gpu": 3.0, "trn.host_total_memory_usage": 9.0, "tpu": 1.0}
    (device,) = accelerators(keys | others)
    assert (device.id, device.values) == (id, values)


def test_device_names() -> None:
    machine = {"gpu_nvidia": [{"name": "NVIDIA H100"}, {"name": "NVIDIA H100"}, {"name": "NVIDIA T4"}]}
    assert device_names(machine, ["gpu"]) == "2 × NVIDIA H100, NVIDIA T4"
    whole = {"tpu": {"name": "v5e", "count": 4}, "trainium": {"name": "Trainium2", "neuron_device_count": 16}}
    assert device_names(whole, ["tpu", "trn"]) == "4 × v5e, 16 × Trainium2"


def test_stale_values_expire_and_gaps_are_ignored() -> None:
    vitals = Vitals()
    vitals.add(0.0, {"system.load1": 3.0, "gpu.0.gpu": 10.0})
    vitals.add(5.0, {"cpu.mean": float("nan"), "gpu.0.gpu": 20.0})
    assert vitals.metrics == {"system.load1": 3.0, "gpu.0.gpu": 20.0}
    vitals.add(30.0, {"cpu.mean": 1.0})
    assert vitals.metrics == {"cpu.mean": 1.0}
    assert vitals.accelerators == []


def test_bars_sparklines_and_sizes() -> None:
    assert (bar(100.0, 3), bar(0.0, 3), bar(-5.0, 2), bar(250.0, 2)) == ("███", "░░░", "░░", "██")
    assert sparkline([], 3) == "   "
    assert sparkline([0.0, 0.0], 3) == " ▁▁"
    assert sparkline([1.0, 2.0, 4.0], 2, unicode=False) == "=#"
    assert (format_size(0.0), format_size(999.0), format_size(1000.0)) == ("0 B", "999 B", "0.98 KiB")
    assert ScreenLine(3).add("学習").text == "学"
