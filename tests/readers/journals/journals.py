"""Journals for tests, written by the real writer: record by record, or a realistic training run."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter

T0 = 1_760_000_000_000  # 2025-10-09 08:53:20 UTC


class Monitor:
    """The journal of one monitor.

    Example:
        >>> monitor = Monitor(tmp_path, "abc")
        >>> monitor.sample(T0 + 1000, {"cpu": 50.0})
        >>> monitor.end(T0 + 2000, "finished", exit_code=0)
    """

    role = "monitor"

    def __init__(
        self,
        directory: Path,
        run_id: str = "abc",
        host: str = "node1",
        start_ms: int = T0,
        interval_s: float = 1.0,
        project: str = "digits",
        **writer: Any,
    ) -> None:
        about = {"run": run_id, "project": project, "host": host, "role": "monitor", "pid": 41, "t": start_ms}
        name = f"monitor.{host}.{start_ms:x}"
        folder = run_dir(run_id, str(directory))
        self.journal = JournalWriter(
            folder, name, {**about, "interval_s": interval_s, "boot_id": "b"}, **writer
        )

    def sample(self, time_ms: int, values: dict[str, float]) -> None:
        assert self.journal.sample(time_ms, values)

    def info(self, time_ms: int, **sections: Any) -> None:
        assert self.journal.json(frames.INFO, {"t": time_ms, **sections})

    def lifecycle(self, time_ms: int, what: str, **facts: Any) -> None:
        assert self.journal.json(frames.LIFECYCLE, {"t": time_ms, "what": what, **facts})

    def event(self, time_ms: int, name: str, level: str = "info", text: str = "", **facts: Any) -> None:
        event = {"t": time_ms, "name": name, "level": level, "text": text, **facts}
        assert self.journal.json(frames.EVENT, event)

    def printed(self, time_ms: int, text: str | bytes, stream: int = 1) -> None:
        data = text.encode() if isinstance(text, str) else text
        assert self.journal.record(frames.CONSOLE, bytes([stream]) + time_ms.to_bytes(8, "little") + data)

    def end(
        self,
        time_ms: int,
        state: str = "finished",
        exit_code: int | None = None,
        signal: int | None = None,
        out_of_memory: bool = False,
    ) -> None:
        self.lifecycle(
            time_ms, "end", state=state, exit_code=exit_code, signal=signal, out_of_memory=out_of_memory
        )
        self.close()

    def close(self) -> None:
        self.journal.close()


class Trainer:
    """The journal of a training process that logs."""

    def __init__(
        self,
        directory: Path,
        run_id: str = "abc",
        host: str = "node1",
        pid: int = 4711,
        rank: int | None = None,
        start_ms: int = T0,
        project: str = "digits",
    ) -> None:
        about = {"run": run_id, "project": project, "host": host, "role": "train", "pid": pid, "rank": rank}
        name = f"train.{host}.{pid}.{start_ms:x}"
        self.journal = JournalWriter(run_dir(run_id, str(directory)), name, {**about, "t": start_ms})

    def log(self, time_ms: int, step: int | None, **data: Any) -> None:
        assert self.journal.json(frames.HISTORY, {"t": time_ms, "step": step, "data": data})

    def mark(self, time_ms: int, text: str) -> None:
        event = {"t": time_ms, "name": "marker", "level": "info", "text": text}
        assert self.journal.json(frames.EVENT, event)

    def printed(self, time_ms: int, text: str, stream: int = 1) -> None:
        head = bytes([stream]) + time_ms.to_bytes(8, "little")
        assert self.journal.record(frames.CONSOLE, head + text.encode())

    def info(self, time_ms: int, **sections: Any) -> None:
        assert self.journal.json(frames.INFO, {"t": time_ms, **sections})

    def close(self) -> None:
        self.journal.close()


MACHINE = {
    "host": "node1",
    "os": "Debian GNU/Linux 12",
    "kernel": "6.1.0-25-amd64",
    "cpu_model": "AMD EPYC 7543 32-Core Processor",
    "cpus": 16,
    "memory_gib": 125.8,
    "python": "3.11.7",
    "git": {"commit": "2b0dd25c1f", "dirty": True, "branch": "main"},
}

SOURCES = {
    "cpu": {"state": "on"},
    "memory": {"state": "on"},
    "disk": {"state": "on"},
    "network": {"state": "on"},
    "energy": {"state": "absent", "reason": "/sys/class/powercap has no readable RAPL domain"},
    "pressure": {"state": "failing", "reason": "/proc/pressure/cpu: Operation not supported"},
}


class Training:
    """A realistic run, written sample by sample, so that a test can stop or continue at any point.

    Args:
        gpus: how many; 0 = none.
        seed: the same seed gives the same numbers.
    """

    def __init__(
        self,
        directory: Path,
        run_id: str = "abc",
        start_ms: int = T0,
        interval_s: float = 1.0,
        cores: int = 4,
        gpus: int = 0,
        project: str = "digits",
        name: str = "",
        host: str = "node1",
        seed: int = 1,
        tags: tuple[str, ...] = ("baseline",),
    ) -> None:
        self.start_ms, self.interval_s, self.cores, self.gpus = start_ms, interval_s, cores, gpus
        self._random = random.Random(seed)
        self._ticks = 0
        self._totals = {"disk.in": 0.0, "disk.out": 0.0, "network.sent": 0.0, "network.recv": 0.0}
        self.monitor = Monitor(directory, run_id, host, start_ms, interval_s, project)
        self.trainer = Trainer(directory, run_id, host, 4711, 0, start_ms, project)
        self.monitor.lifecycle(
            start_ms, "attach", pid=4711, role="train", rank=0, local_rank=0, world_size=1, writer="train"
        )
        command = ["python", "train.py", "--epochs", "12"]
        self.monitor.info(start_ms, machine={**MACHINE, "host": host}, sources=SOURCES)
        self.trainer.info(
            start_ms,
            run={
                "name": name or run_id,
                "project": project,
                "tags": list(tags),
                "notes": "first try",
                "command": command,
            },
            config={"lr": 0.001, "batch_size": 64, "model": {"depth": 12, "width": 384}, "seed": seed},
            settings={"sampling_interval": interval_s, "disk_paths": ["/"]},
        )

    @property
    def now_ms(self) -> int:
        return self.start_ms + int(self._ticks * self.interval_s * 1000)

    def advance(self, ticks: int = 1) -> None:
        """Write this many samples, and log a step with each."""
        for _ in range(ticks):
            self.monitor.sample(self.now_ms, self._values())
            step = self._ticks
            loss = 2.3 * math.exp(-step / 200) + 0.05 + self._random.gauss(0, 0.02)
            self.trainer.log(self.now_ms, step, loss=loss, accuracy=1 - math.exp(-step / 150) * 0.9, lr=0.001)
            self._ticks += 1

    def _noise(self, mean: float, sigma: float, low: float = 0.0, high: float = math.inf) -> float:
        return min(high, max(low, self._random.gauss(mean, sigma)))

    def _values(self) -> dict[str, float]:
        phase = self._ticks % 60
        busy = 25.0 if phase < 6 else 82.0  # an evaluation every minute
        totals = self._totals
        totals["disk.in"] += self._noise(40.0 if phase < 6 else 2.0, 1.0)
        totals["disk.out"] += 180.0 if phase == 59 else self._noise(0.3, 0.2)
        totals["network.sent"] += self._noise(90_000, 20_000)
        totals["network.recv"] += self._noise(2_400_000, 500_000)
        cores = {f"cpu.{i}.cpu_percent": self._noise(busy, 9, 0, 100) for i in range(self.cores)}
        rss = 1800 + 900 * (1 - math.exp(-self._ticks / 120))
        values = {
            "cpu": self._noise(busy, 4, 0, 100),
            "cpu.mean": sum(cores.values()) / len(cores),
            "cpu.user": self._noise(busy * 0.8, 2),
            "cpu.system": self._noise(busy * 0.1, 1),
            "cpu.iowait": self._noise(1, 0.5),
            **cores,
            "system.load1": self._noise(3.1, 0.2),
            "memory_percent": 31 + rss / 1000,
            "memory.usedMB": 39_000 + rss,
            "proc.memory.availableMB": 86_000 - rss,
            "proc.memory.rssMB": rss + self._noise(0, 8, -30),
            "proc.memory.percent": rss / 1288,
            "proc.cpu.threads": 38.0,
            "proc.count": 5.0,
            "disk./.usagePercent": 61.25 + self._ticks * 0.0004,
            "disk./.usageGB": 214.6 + self._ticks * 0.0015,
            **totals,
            "monitor.sampleMs": self._noise(0.31, 0.02),
            "monitor.cpuPercent": self._noise(0.035, 0.005),
            "monitor.rssMB": 8.9,
        }
        for i in range(self.gpus):
            load = self._noise(0 if phase < 6 else 94, 3, 0, 100)
            values |= {
                f"gpu.{i}.gpu": load,
                f"gpu.{i}.memory": load * 0.55,
                f"gpu.{i}.memoryAllocated": 71.2,
                f"gpu.{i}.temp": self._noise(44 + load * 0.25, 0.6),
                f"gpu.{i}.powerWatts": self._noise(90 + load * 5.6, 8),
                f"gpu.{i}.smClock": 1980.0 if load > 50 else 345.0,
            }
        return values

    def end(self, state: str = "finished", **how: Any) -> None:
        """Write the end records of monitor and training process."""
        self.trainer.info(self.now_ms, summary={"accuracy": 0.97, "loss": 0.08, "best_epoch": 11})
        self.trainer.close()
        self.monitor.lifecycle(
            self.now_ms,
            "exit",
            pid=4711,
            exit_code=how.get("exit_code"),
            **{name: how.get(name) for name in ("signal", "out_of_memory")},
        )
        self.monitor.end(self.now_ms, state, **how)
