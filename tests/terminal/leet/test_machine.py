"""The screen of this machine: its processes, their GPUs, meters, and the end of a process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runvitals.monitoring.collectors.nvidia.nvml import Nvml
from runvitals.monitoring.settings.settings import resolve
from runvitals.terminal.leet.machine.machine_data import MachineData
from runvitals.terminal.leet.machine.machine_screen import MachineApp, MachineScreen
from runvitals.terminal.leet.machine.meters import meters
from runvitals.terminal.leet.machine.process_table import ProcessTable
from runvitals.terminal.leet.question_screen import QuestionScreen
from runvitals.terminal.leet.sources.run_source import now_ms
from runvitals.terminal.top.gpu_processes import GpuProcesses, GpuUse
from runvitals.terminal.top.processes import ProcessLine, ProcessList, kill
from runvitals.terminal.top.vitals import Vitals
from tests.monitoring.collectors.nvidia.fake import FakeGpu, FakeNvml
from tests.patience import PATIENCE_S
from tests.terminal.leet.test_app import EVIL, until

GIB = 2.0**30


def line(pid: int, cpu: float, parent: int = 1, command: str = "", rss: float = 1.0) -> ProcessLine:
    return ProcessLine(pid, "anna", cpu, rss, command or f"job {pid}", parent, "R", 60.0, started=pid * 10)


def pids(table: ProcessTable) -> list[int]:
    return [process.process.pid for process in table.shown]


def test_processes_are_sorted_filtered_and_a_tree() -> None:
    table = ProcessTable()
    processes = [line(10, 1.0), line(11, 50.0, 10, rss=9.0), line(12, 70.0, 10, EVIL), line(20, 5.0)]
    use = {11: GpuUse(("0", "1"), 40 * GIB), 20: GpuUse(("2",), None)}
    table.set_processes(processes, use)
    assert pids(table) == [12, 11, 20, 10]
    table.move(1)
    table.set_processes([replace(processes[1], cpu_percent=99.0), *processes[2:]], use)
    assert (pids(table), table.current and table.current.pid) == ([11, 12, 20], 11)  # the cursor stays
    table.set_processes(processes, use)
    orders = []
    for _ in range(4):
        table.next_order()
        orders.append((table.order, pids(table)[0]))
    assert orders == [("memory", 11), ("GPU memory", 11), ("CPU time", 12), ("PID", 10)]
    table.toggle_tree()
    assert [(process.process.pid, process.depth) for process in table.shown] == [
        (10, 0),
        (11, 1),
        (12, 1),
        (20, 0),
    ]
    rows = ["".join(text for text, _ in row) for row in table.rows(120, 0, 10)]
    assert all(row.isprintable() for row in rows)
    assert "0,1    40 GiB  └ job 11" in rows[2]
    assert "USER" in rows[0]
    narrow = ["".join(text for text, _ in row) for row in table.rows(60, 0, 10)]
    assert (narrow[0].split()[-1], narrow[2].index("job 11") < 50) == ("COMMAND", True)
    table.set_processes(processes, {})
    assert "GPU" not in table.rows(120, 0, 10)[0][0][0]
    table.set_processes(processes, use)
    table.set_filter("job 1[01]")
    assert pids(table) == [10, 11]
    with pytest.raises(ValueError, match="invalid regular expression"):
        table.set_filter("(")


def test_processes_of_gpus() -> None:
    first, second = FakeGpu(0), FakeGpu(1)
    first.computing = [(4711, int(8 * GIB)), (4712, int(GIB))]
    second.computing = [(4711, int(2 * GIB))]
    nvml = Nvml(FakeNvml([first, second]))
    nvml.call("nvmlInit_v2")
    gpus = GpuProcesses("/proc", nvml)
    assert gpus.read([], 100.0) == {
        4711: GpuUse(("0", "1"), 10 * GIB),
        4712: GpuUse(("0",), GIB),
    }
    second.computing = []
    assert gpus.read([], 101.0)[4711].devices == ("0", "1")  # not asked again at once
    assert gpus.read([], 105.0)[4711] == GpuUse(("0",), 8 * GIB)
    gpus.close()


def test_meters_of_many_cores_and_accelerators() -> None:
    vitals = Vitals()
    values = {f"cpu.{core}.cpu_percent": float(core) for core in range(96)}
    values |= {
        "cpu.mean": 50.0,
        "memory_percent": 95.0,
        "memory.usedMB": 2048.0,
        "disk.a\x1b.usagePercent": 1.0,
    }
    values |= {"gpu.0.gpu": 97.0, "gpu.0.temp": 61.0, "gpu.0.memoryAllocated": 10.0, "trn.1.x": 1.0}
    vitals.add(1.0, values)
    rows = meters(vitals, 46)
    texts = ["".join(text for text, _ in row) for row in rows]
    assert all(text.isprintable() and len(text) <= 46 for text in texts), texts
    assert sum(text.count("█") for text in texts[1:4]) > 0  # the cores, one character each
    assert any("GPU 0" in text and "61 °C" in text for text in texts)
    (memory,) = [row for row in rows if row[0][0].startswith("Memory")]
    assert memory[1][1] == "bad"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def test_only_the_process_that_was_shown_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    shown = {process.pid: process for process in ProcessList("/proc").everything(1.0)}[sleeper.pid]
    with pytest.raises(ProcessLookupError):
        kill(replace(shown, started=shown.started + 1), signal.SIGTERM)
    assert sleeper.poll() is None
    kill(shown, signal.SIGTERM)
    assert sleeper.wait(PATIENCE_S) == -signal.SIGTERM


def test_machine_screen(sleeper: subprocess.Popen[bytes]) -> None:
    values = resolve({}, os.environ, os.getcwd())

    async def use(readonly: bool) -> None:
        app = MachineApp(MachineData(values, 0.4, f"host {EVIL}", now_ms), 0.4, readonly)
        async with app.run_test(size=(140, 44)) as pilot:
            screen = app.screen
            assert isinstance(screen, MachineScreen)
            await until(pilot, lambda: "Memory" in screen.meters.text and screen.metrics.charts)
            assert screen.header.text.isprintable()
            await pilot.press("f", *f"^{sleeper.pid} ", "enter")
            await until(pilot, lambda: pids(screen.table) == [sleeper.pid])
            await until(pilot, lambda: "sleep 1000" in screen.processes.text)
            await pilot.press("t", "T")
            await until(pilot, lambda: "by memory · tree" in screen.processes.text)
            await pilot.press("k")
            if readonly:
                await until(pilot, lambda: "--readonly" in screen.footer.text)
                await pilot.press("escape")
            else:
                await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
                await pilot.press("n")
                await until(pilot, lambda: app.screen is screen)
                assert sleeper.poll() is None
                await pilot.press("k")
                await until(pilot, lambda: isinstance(app.screen, QuestionScreen))
                await pilot.press("y")
                await until(pilot, lambda: sleeper.poll() is not None)
                await until(pilot, lambda: not screen.table.shown)
            await pilot.press("tab", "enter")
            await until(pilot, lambda: screen.metrics.size.width == 140)
            await pilot.press("escape", "ctrl+f", "left_square_bracket", "backslash", *"^memory", "enter")
            await until(pilot, lambda: "with ^memory" in screen.metrics.text)
            await until(pilot, lambda: len(screen.table.shown) > 1 and not screen.meters.is_on_screen)
            await pilot.press("ctrl+backslash", "C", "1", "escape")
            await until(pilot, lambda: screen.processes.has_focus and len(screen.metrics.shown) == 2)
            await pilot.press("0")
            await until(pilot, lambda: len(screen.metrics.shown) == 6)
            await pilot.resize_terminal(60, 20)
            await until(pilot, lambda: not screen.metrics.is_on_screen)
            await pilot.press("q")

    asyncio.run(use(readonly=True))
    assert sleeper.poll() is None
    asyncio.run(use(readonly=False))
    assert sleeper.wait(PATIENCE_S) == -signal.SIGTERM
