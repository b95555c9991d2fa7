"""Cost of terminal UIs: the time until the first chart is on the screen, and their CPU while they follow.

    scripts/bench leet [--seconds 30] [--history-minutes 60] [--starts 3]

A run is recorded once a second in a journal and, with the same values, in a `.wandb` file: 8 GPUs with four
metrics each, the host, and 12 logged names, with `--history-minutes` of history. Each program runs in a tmux
of 160 × 50 cells. `first paint` is the wall time from starting it until anything is on the screen, `charts`
until a chart, meter or process is, the best of `--starts`; `paint CPU` and `charts CPU` are its CPU time
until then, which can be compared on a busy machine, too. `CPU` is that of its processes in percent of one
core, over `--seconds`, and `sent` is what it writes to the terminal meanwhile. The first row is what Python
and Textual need for a program that shows one character: no Textual program starts faster.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

from tests.readers.journals.journals import Monitor, Trainer

from runvitals.readers.wandb_files import encoding

_TICKS = os.sysconf("SC_CLK_TCK")
_NUMBERS = count()
_PATIENCE_S = 60.0
_CHART = re.compile("[⠁-⣿█▇▆▅▄▃▂▁]")
_TEXTUAL_ALONE = """
import gc
gc.disable()
from textual.app import App
from textual.widget import Widget

class Character(Widget):
    def render(self):
        return "⣿"

class Alone(App):
    ENABLE_COMMAND_PALETTE = False
    def compose(self):
        yield Character()

Alone(ansi_color=True).run()
"""
_GPU_KEYS = ("gpu", "temp", "powerWatts", "memoryAllocated")
_HOST_KEYS = ("cpu", "memory_percent", "network.sent", "network.recv")


class Measured(NamedTuple):
    """Wall and CPU time to the first text and to the first chart in s, CPU in percent of a core, and bytes
    sent per second.
    """

    paint_s: float
    paint_cpu_s: float
    start_s: float
    start_cpu_s: float
    cpu_percent: float
    sent: float


class LiveRun:
    """A run that is written once a second to a journal and to a `.wandb` file.

    Args:
        folder: for both.
        history_s: how much it has before it goes on.
    """

    def __init__(self, folder: Path, history_s: int) -> None:
        self.data, self.wandb = folder / "data", folder / "wandb" / "run-20260101_000000-bench"
        self.wandb.mkdir(parents=True)
        self.file = self.wandb / "run-bench.wandb"
        self._second = 0
        self._start_ms = time.time_ns() // 1_000_000 - history_s * 1000
        self._monitor = Monitor(self.data, "bench", start_ms=self._start_ms)
        self._trainer = Trainer(self.data, "bench", start_ms=self._start_ms)
        self._number = 0
        started = encoding.run("bench", "", "bench", "bench", "node1", self._start_ms, {"lr": 0.1})
        self._append([encoding.header(), started])
        for _ in range(history_s):
            self.write()

    def write(self) -> None:
        """Write the next second."""
        second, now_ms = self._second, self._start_ms + self._second * 1000
        self._second += 1
        wave = 50.0 + 40.0 * math.sin(second / 60.0)
        values = {f"gpu.{index}.{key}": wave + index for index in range(8) for key in _GPU_KEYS}
        values |= {key: wave + second * key.startswith("network") for key in _HOST_KEYS}
        self._monitor.sample(now_ms, values)
        row = {f"train/{index}": math.exp(-second / 4000.0) + index for index in range(12)}
        self._trainer.log(now_ms, second, **row)
        history = encoding.history(second, {**row, "_timestamp": now_ms / 1000, "_runtime": float(second)})
        self._append([encoding.stats(now_ms, values), history])

    def _append(self, records: list[bytes]) -> None:
        size = self.file.stat().st_size if self.file.exists() else 0
        data, self._number = encoding.frame(records, size, self._number)
        with open(self.file, "ab") as file:
            file.write(data)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """Write once a second in a thread."""
        done = threading.Event()

        def write() -> None:
            while not done.wait(1.0):
                self.write()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


class TmuxPane:
    """A program in a terminal of 160 × 50 cells.

    Args:
        folder: for the socket and what the program writes.
        command: for the shell.
    """

    def __init__(self, folder: Path, command: str) -> None:
        number = next(_NUMBERS)  # a server that ends still has its socket
        self._socket, self._sent = str(folder / f"tmux{number}"), folder / "sent"
        self._sent.unlink(missing_ok=True)
        environ = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", "COLORTERM": "truecolor"}
        self.began_s = time.monotonic()
        self._call(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "160",
            "-y",
            "50",
            f"exec {command}",
            environ=environ,
        )
        self._call("pipe-pane", f"cat > '{self._sent}'")

    def _call(self, *arguments: str, environ: dict[str, str] | None = None) -> str:
        command = ["tmux", "-u", "-S", self._socket, *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=_PATIENCE_S)
        return done.stdout

    def wait_for(self, is_shown: Callable[[str], bool]) -> float:
        """The time until the screen shows something, in s.

        Raises:
            RuntimeError: it did not.
        """
        while not is_shown(text := self._call("capture-pane", "-p")):
            if time.monotonic() - self.began_s > _PATIENCE_S:
                raise RuntimeError(f"nothing was drawn: {text.strip()[:300]!r}")
            time.sleep(0.01)
        return time.monotonic() - self.began_s

    def cpu_s(self) -> float:
        """CPU time of the program and its children so far."""
        pid = int(self._call("list-panes", "-F", "#{pane_pid}") or 0)
        return sum(map(_cpu_s, _tree(pid)))

    @property
    def sent(self) -> int:
        """Bytes that the program wrote."""
        return self._sent.stat().st_size if self._sent.exists() else 0

    def close(self) -> None:
        self._call("kill-server")


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = path.read_text().split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child))


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measure(folder: Path, command: str, starts: int, seconds: float) -> Measured:
    """Start a program several times, and watch the last one."""
    paint = paint_cpu = best = best_cpu = math.inf
    for number in range(starts):
        pane = TmuxPane(folder, command)
        try:
            paint = min(paint, pane.wait_for(lambda text: bool(text.strip())))
            paint_cpu = min(paint_cpu, pane.cpu_s())
            best = min(best, pane.wait_for(lambda text: bool(_CHART.search(text))))
            best_cpu = min(best_cpu, pane.cpu_s())
            if number == starts - 1:
                time.sleep(3.0)  # what it does after its first picture
                began_s, cpu_s, sent = time.monotonic(), pane.cpu_s(), pane.sent
                time.sleep(seconds)
                took_s = time.monotonic() - began_s
                shares = (pane.cpu_s() - cpu_s) / took_s * 100.0, (pane.sent - sent) / took_s
        finally:
            pane.close()
    return Measured(paint, paint_cpu, best, best_cpu, *shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--history-minutes", type=int, default=60)
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="short, and not recorded")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.seconds, arguments.starts = 5.0, 1
    if shutil.which("tmux") is None:
        sys.exit("tmux is not installed")
    python = sys.executable
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = LiveRun(folder, arguments.history_minutes * 60)
        alone = folder / "textual_alone.py"
        alone.write_text(_TEXTUAL_ALONE, encoding="utf-8")
        commands = {
            "a Textual program with one character": f"{python} {alone}",
            "runvitals leet, a run": f"{python} -m runvitals leet bench --dir {run.data}",
            "runvitals leet, a .wandb file": f"{python} -m runvitals leet {run.file}",
            "wandb leet, a .wandb file": f"{python} -m wandb leet {run.file}",
            "runvitals top": f"{python} -m runvitals top",
            "wandb leet symon": f"{python} -m wandb leet symon",
            "nvitop": f"{python} -m nvitop monitor",
        }
        print("| program | first paint | paint CPU | charts | charts CPU | CPU | sent |")
        print("|---|---|---|---|---|---|---|")
        for title, command in commands.items():
            try:
                with run.going_on():
                    result = measure(folder, command, arguments.starts, arguments.seconds)
            except RuntimeError as error:
                print(f"| {title} | {' '.join(str(error).split())[:160]} | – | – | – | – | – |", flush=True)
                continue
            paint = f"{result.paint_s:.2f} s | {result.paint_cpu_s:.2f} s"
            charts = f"{result.start_s:.2f} s | {result.start_cpu_s:.2f} s"
            shown = f"{charts} | {result.cpu_percent:.1f} % | {result.sent / 1000.0:.1f} kB/s"
            print(f"| {title} | {paint} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
