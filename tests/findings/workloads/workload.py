"""A workload: what its hosts measure and its training logs, in seconds from its start, and its label."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.findings.observation import HostSamples, observe, reads
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.training import LoggedColumn, Mark

Floats = NDArray[np.float64]
START_MS = 1_790_000_000_000
GIB = 2.0**30
MINUTE, HOUR = 60.0, 3600.0
MOMENTS = (0.03, 0.07, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97)
"""Shares of a run at which it is judged while it goes on."""


@dataclass(slots=True)
class Label:
    """What is right to say of a workload.

    Args:
        expected: ids of which one must be found; none for a healthy run.
        allowed: ids that may be found besides.
        described: the expected finding accuses nobody: its severity is `info`.
        verdicts: allowed headlines; by default the expected and allowed ids, or `healthy`.
        not_before_s: no moment before it may report the expected finding.
        from_s: when the expected finding begins.
        to_s: when it ends.
        open: it, and the run, go on at the end.
        devices: that it names.
        named_hosts: that it names.
    """

    expected: Sequence[str] = ()
    allowed: Sequence[str] = ()
    described: bool = False
    verdicts: Sequence[str] = ()
    not_before_s: float = 0.0
    from_s: float | None = None
    to_s: float | None = None
    open: bool = False
    devices: Iterable[int] | None = None
    named_hosts: Sequence[str] | None = None


class Workload:
    """A run under construction. Times are seconds from its start.

    Args:
        duration_s: how long it goes on.
        interval_s: between samples.
        hosts: how many.
        state: at its end, unless it goes on.
        label: see `Label`.
    """

    def __init__(
        self,
        name: str,
        duration_s: float,
        interval_s: float,
        hosts: int = 1,
        state: str = "finished",
        goes_on: bool = False,
        **label: Any,
    ) -> None:
        self.name, self.duration_s, self.interval_s = name, float(duration_s), float(interval_s)
        self.noise = np.random.default_rng(zlib.crc32(name.encode()))
        self.label = Label(**label)
        self.t: Floats = np.arange(0.4, duration_s, interval_s)
        self.t = self.t + self.noise.uniform(0, 0.04 * interval_s, len(self.t))
        self.series: dict[str, dict[str, Floats]] = {f"node{number}": {} for number in range(hosts)}
        self.machine: dict[str, dict[str, Any]] = {
            host: {"cpu": {"logical_cores": 96, "available": 96.0}} for host in self.series
        }
        self.sampled: dict[str, NDArray[np.bool_]] = {}
        self.logged: dict[str, tuple[Floats, NDArray[np.int64], Floats]] = {}
        self.marks: list[tuple[float, str]] = []
        self.state, self.out_of_memory, self.goes_on = state, None, goes_on or self.label.open

    def put(
        self,
        host: str,
        key: str,
        values: Any,
        spread: float = 0.0,
        least: float | None = None,
        most: float | None = None,
    ) -> None:
        """Set a series, with noise and within bounds."""
        column = np.broadcast_to(np.asarray(values, float), self.t.shape).copy()
        if spread:
            column = column + self.noise.normal(0, spread, len(column))
        if least is not None or most is not None:
            column = np.clip(column, least, most)
        self.series[host][key] = column

    def between(self, *spans: tuple[float, float]) -> NDArray[np.bool_]:
        """The samples in some spans of time."""
        inside = np.zeros(len(self.t), dtype=np.bool_)
        for begin, end in spans:
            inside |= (self.t >= begin) & (self.t < end)
        return inside

    def counter(self, host: str, key: str, rate: Any, start: float = 0.0) -> None:
        """Set a counter that grows at a rate per second."""
        rates = np.broadcast_to(np.asarray(rate, float), self.t.shape)
        self.series[host][key] = start + np.cumsum(rates * np.gradient(self.t))

    def busy(self, mean: float = 95.0, spread: float = 3.0, least: float = 0.0) -> Floats:
        """A load about a mean, 0 to 100."""
        return np.clip(mean + self.noise.normal(0, spread, len(self.t)), least, 100)

    def gpu(
        self,
        host: str,
        index: int,
        load: Any,
        *,
        tdp: float = 700.0,
        top: float = 1980,
        memory_gib: float = 80.0,
        used: Any = 85.0,
        keys: str = "full",
        watts: Any = None,
        clock: Any = None,
        temp: Any = None,
        active: Any = None,
        tensor: Any = None,
        dram: Any = None,
        throttle: Mapping[str, Any] | None = None,
        name: str = "NVIDIA H100 80GB HBM3",
        own: bool = True,
        nvlink: Any = None,
    ) -> None:
        """Add what is measured of a GPU, by its load in percent.

        Args:
            keys: `full` as our monitor measures, `dcgm` as an exporter, `wandb` only what that client sends.
            throttle: shares of time by reason.
            own: whether the processes of the run hold its memory.
        """
        seconds, noise = self.t, self.noise
        load = np.broadcast_to(np.asarray(load, float), seconds.shape)
        if watts is None:
            spread = np.where(load > 2, 0.015 * tdp, 0.4)
            power = 0.1 * tdp + 0.76 * tdp * load / 100 + noise.normal(0, 1, len(seconds)) * spread
        else:
            steady = np.broadcast_to(np.asarray(watts, float), seconds.shape)
            power = steady + noise.normal(0, 0.006 * tdp, len(seconds))
        power = np.clip(power, 0.06 * tdp, None)
        if clock is None:
            working = top - noise.choice([0, 15, 30, 45], len(seconds))
            clock = np.where(load > 3, working, top if tdp > 500 else 210)
        if temp is None:
            temp = self._temperatures(30 + 42 * np.clip(power / tdp, 0, 1.1))
        allocated = np.broadcast_to(np.asarray(used, float), seconds.shape)
        columns: dict[str, Any] = {
            "gpu": np.round(load),
            "memoryAllocated": allocated,
            "powerWatts": power,
        }
        if keys in ("full", "dcgm"):
            transfers = 0.45 * load + noise.normal(0, 2, len(seconds)) * (load > 2)
            columns |= {
                "memory": np.round(np.clip(transfers, 0, 100)),
                "temp": temp,
                "smClock": clock,
                "memoryClock": 2619,
                "memoryTemp": temp + 8,
                "memoryAllocatedBytes": allocated / 100 * memory_gib * GIB,
            }
            self.counter(host, f"gpu.{index}.energyJoules", power, 1e7)
        if keys == "full":
            columns |= {
                "powerPercent": power / tdp * 100,
                "enforcedPowerLimitWatts": tdp,
                "graphicsClock": clock,
                **dict.fromkeys(("pcieLinkGen", "maxPcieLinkGen"), 5),
                **dict.fromkeys(("pcieLinkWidth", "maxPcieLinkWidth"), 16),
                **dict.fromkeys(_ZERO_AT_FIRST, 0),
            }
            if own:
                held = np.where(allocated > 1.5, allocated / 100 * memory_gib * GIB - 0.4 * GIB, np.nan)
                self.series[host][f"gpu.process.{index}.memoryAllocatedBytes"] = held
            self.counter(host, f"gpu.{index}.pcieReplays", 0)
            for reason, share in {**dict.fromkeys(_REASONS, 0.0), **(throttle or {})}.items():
                before = 37.2 if reason == "swPowerCap" else 0
                self.counter(host, f"gpu.{index}.throttle.{reason}Seconds", share, before)
        if active is not None:
            columns |= {
                "smActive": np.clip(active, 0, 100),
                "graphicsActive": load,
                "pipeTensorActive": 0.35 * np.asarray(active) if tensor is None else tensor,
                "dramActive": 0.45 * np.asarray(active) if dram is None else dram,
                "smOccupancy": np.asarray(active) * 0.3,
            }
        for key, values in columns.items():
            self.put(host, f"gpu.{index}.{key}", values)
        if nvlink is not None:
            self.counter(host, f"gpu.{index}.nvlinkBytes", nvlink, 4e13)
        self.machine[host].setdefault("gpu_nvidia", []).append(
            {"index": index, "name": name, "max_sm_clock_mhz": top, "visible": True}
        )

    def _temperatures(self, goals: Floats) -> Floats:
        keeps = np.exp(-np.diff(self.t, prepend=self.t[0]) / 120)
        result = np.empty(len(self.t))
        degrees = 32.0
        for place, (goal, keep) in enumerate(zip(goals, keeps, strict=True)):
            degrees = goal + (degrees - goal) * keep
            result[place] = degrees
        return np.round(result)

    def host(
        self,
        host: str,
        cpu: Any,
        *,
        keys: str = "full",
        mem: Any = 25.0,
        rss: Any = 120_000.0,
        cpus: int = 96,
        total: Any = None,
        read: Any = 20.0,
        write: Any = 2.0,
        recv: Any = 1.0,
        sent: Any = 0.5,
        iowait: Any = 0.3,
        threads: float = 140,
        procs: float = 18,
        disk: Any = 55.0,
        io_psi: Any = 1.0,
        cpu_psi: Any = 1.0,
        swap: Any = 0.0,
        mem_psi: Any = 0.0,
    ) -> None:
        """Add what is measured of a host, by the load of the run's processes in percent.

        Args:
            keys: `full` as our monitor measures, `wandb` only what that client sends.
        """
        count = len(self.t)
        cpu = np.broadcast_to(np.asarray(cpu, float), self.t.shape)
        total = np.clip(cpu + 3, 0, 100) if total is None else np.asarray(total)
        self.machine[host]["cpu"] = {"logical_cores": cpus, "available": float(cpus)}

        def percent(key: str, values: Any, spread: float = 0.0) -> None:
            self.put(host, key, values, spread, 0, 100)

        def amount(key: str, values: Any, spread: float = 0.0) -> None:
            self.put(host, key, values, spread, 0)

        def rate(key: str, values: Any, spread: float, factor: float = 1.0, start: float = 0.0) -> None:
            varied = np.asarray(values) * (1 + self.noise.normal(0, spread, count)) * factor
            self.counter(host, key, np.clip(varied, 0, None), start)

        percent("cpu", cpu, 1.2)
        percent("memory_percent", mem, 0.3)
        amount("proc.memory.rssMB", rss, 60)
        percent("disk./.usagePercent", disk)
        rate("network.recv", recv, 0.03, 2**20, 1e9)
        rate("network.sent", sent, 0.03, 2**20, 1e9)
        rate("disk.in", read, 0.1)
        rate("disk.out", write, 0.1)
        if keys == "wandb":
            percent("proc.memory.percent", mem)
            amount("proc.memory.availableMB", (100 - np.asarray(mem)) * 10_000)
            return
        amount("proc.cpu.threads", threads)
        for key, values, spread in (
            ("cpu.mean", total, 1.0),
            ("cpu.user", total * 0.85, 1.0),
            ("cpu.system", total * 0.12, 0.3),
            ("cpu.iowait", iowait, 0.2),
            ("cpu.steal", 0, 0.0),
            ("proc.memory.percent", mem, 0.2),
            ("host.memory_percent", mem, 0.3),
            ("swap.used_percent", np.asarray(swap) / (64 * GIB) * 100, 0.0),
            ("io.pressureAvg10", io_psi, 0.4),
            ("cpu.pressureAvg10", cpu_psi, 0.4),
            ("memory.pressureAvg10", mem_psi, 0.0),
            ("disk.nvme0n1.utilization", np.clip(np.asarray(read) / 30, 0, 100), 0.5),
        ):
            percent(key, values, spread)
        for key, values, spread in (
            ("system.load1", total / 100 * cpus, 2.0),
            ("proc.count", procs, 0.0),
            ("proc.memory.availableMB", (100 - np.asarray(mem)) * 10_000, 0.0),
            ("swap.used", swap, 0.0),
            ("memory.cachedMB", 200_000, 500.0),
            ("cpu.freqMHz", 3100, 50.0),
            ("cpu.avg_temp", 60, 1.0),
        ):
            amount(key, values, spread)
        self.counter(host, "proc.io.readMB", read)
        self.counter(host, "proc.io.writeMB", write)
        for resource, values in (("io", io_psi), ("cpu", cpu_psi), ("memory", mem_psi)):
            self.counter(host, f"{resource}.pressureSeconds", np.clip(np.asarray(values) / 100, 0, 1))

    def steps(
        self,
        start: float,
        end: float,
        step_s: float,
        *,
        every: int = 1,
        spread: float = 0.03,
        pauses: Sequence[tuple[float, float]] = (),
        slow: Callable[[float], float] | None = None,
        name: str = "train/loss",
        loss: Callable[[Floats], Any] | None = None,
        loss_spread: float = 0.03,
        first: int = 0,
        extra: Mapping[str, Callable[[Floats], Any]] | None = None,
    ) -> None:
        """Log a row at each `every`th step.

        Args:
            pauses: no steps in them.
            slow: by what factor a step takes longer at a time.
            loss: by the share of the steps, 0 to 1.
            first: step that was logged before.
            extra: other values, as `loss`.
        """
        times: list[float] = []
        now = float(start)
        while True:
            usual = step_s * (slow(now) if slow else 1.0) * every
            following = now + usual * max(0.3, 1 + self.noise.normal(0, spread))
            for begin, until in sorted(pauses):
                if now <= begin < following:
                    following += until - begin
            if following > end:
                break
            now = following
            times.append(now)
        numbers = np.arange(1, len(times) + 1) * every + first
        progress = np.linspace(0, 1, max(len(times), 1))[: len(times)]
        falling = loss or (lambda share: 1.5 + 3 * np.exp(-5 * share))
        values = np.asarray(falling(progress), float) * (1 + self.noise.normal(0, loss_spread, len(times)))
        self.log(name, times, numbers, values)
        self.log("train/lr", times, numbers, 3e-4 * np.ones(len(times)))
        for key, column in (extra or {}).items():
            self.log(key, times, numbers, column(progress))

    def log(self, name: str, times: Any, steps: Any, values: Any) -> None:
        """Add rows of a value."""
        rows = (
            np.asarray(times, float),
            np.asarray(steps, np.int64),
            np.broadcast_to(np.asarray(values, float), np.shape(times)).copy(),
        )
        before = self.logged.get(name)
        if before is not None:
            rows = tuple(np.concatenate(each) for each in zip(before, rows, strict=True))
        self.logged[name] = rows

    def last_step(self) -> int:
        """The last step of the loss."""
        return int(self.logged["train/loss"][1][-1])

    def mark(self, time_s: float, text: str) -> None:
        """Mark a moment, as callbacks do."""
        self.marks.append((time_s, text))

    def drop(self, host: str, begin: float, end: float) -> None:
        """Take no samples at all in between."""
        kept = self.sampled.setdefault(host, np.ones(len(self.t), dtype=np.bool_))
        kept &= ~((self.t >= begin) & (self.t < end))

    def blank(self, host: str, key: str, begin: float, end: float) -> None:
        """Have no value of a series in between."""
        self.series[host][key][(self.t >= begin) & (self.t < end)] = np.nan

    def run(self, until_s: float | None = None) -> ObservedRun:
        """Return the run as rules see it: at its end, or as it was going on after some seconds."""
        end = self.duration_s if until_s is None else until_s
        hosts = []
        for host, series in self.series.items():
            kept = self.sampled.get(host, np.ones(len(self.t), dtype=np.bool_)) & (self.t <= end)
            times_ms = START_MS + (self.t[kept] * 1000).astype(np.int64)
            columns = {key: (times_ms, column[kept]) for key, column in series.items() if reads(key)}
            columns = {key: each for key, each in columns.items() if not np.isnan(each[1]).all()}
            if columns:
                hosts.append(HostSamples(host, columns, self.interval_s, self.machine[host]))
        logged = {}
        for name, (times, steps, values) in self.logged.items():
            inside = times <= end
            if inside.any():
                row_ms = START_MS + (times[inside] * 1000).astype(np.int64)
                logged[name] = LoggedColumn(row_ms, steps[inside], values[inside])
        goes_on = until_s is not None or self.goes_on
        now_ms = START_MS + int(end * 1000)
        return observe(
            hosts,
            logged,
            [Mark(START_MS + int(at * 1000), text) for at, text in self.marks if at <= end],
            state="running" if goes_on else self.state,
            started_ms=START_MS,
            ended_ms=None if goes_on else now_ms,
            now_ms=now_ms,
            out_of_memory=None if goes_on else self.out_of_memory,
        )


Build = Callable[[], Workload]


class Workloads(dict[str, Build]):
    """Builders of workloads, by name. Decorates functions that fill a workload made with its arguments."""

    def __call__(self, *arguments: Any, **named: Any) -> Callable[[Callable[[Workload], None]], Build]:
        """Return a decorator that adds a workload with the name of its function."""

        def add(fill: Callable[[Workload], None]) -> Build:
            def build() -> Workload:
                run = Workload(fill.__name__, *arguments, **named)
                fill(run)
                return run

            self[fill.__name__] = build
            return build

        return add


_REASONS = ("swPowerCap", "swThermal", "hwThermal", "hwSlowdown", "hwPowerBrake")
_ZERO_AT_FIRST = (
    "correctedMemoryErrors",
    "unCorrectedMemoryErrors",
    "encoderUtilization",
    "otherMemoryBytes",
    "recoveryAction",
    "criticalErrors",
    "remapPending",
    "remapFailed",
)


def pauses_of(every: float, long: float, duration_s: float) -> list[tuple[float, float]]:
    """Pauses of a length, each some time after the one before."""
    begins = np.arange(every, duration_s - long, every + long)
    return [(float(begin), float(begin + long)) for begin in begins]
