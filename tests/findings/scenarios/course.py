"""A run that is made up: loads of its hosts and devices over time, and the samples that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.findings.observation import HostSamples, observe
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.training import LoggedColumn, Mark

Floats = NDArray[np.float64]
START_MS = 1_790_000_000_000
GIB = 2**30

VENDORS = {
    "h100": {
        "name": "NVIDIA H100 80GB HBM3",
        "watts": 700.0,
        "clock": 1980.0,
        "memory": 80 * GIB,
        "profile": True,
    },
    "a100": {
        "name": "NVIDIA A100-SXM4-80GB",
        "watts": 400.0,
        "clock": 1410.0,
        "memory": 80 * GIB,
        "profile": False,
    },
    "mi300x": {
        "name": "AMD Instinct MI300X",
        "watts": 750.0,
        "clock": 2100.0,
        "memory": 192 * GIB,
        "profile": False,
    },
    "tpu": {"name": "TPU v5e", "watts": 0.0, "clock": 0.0, "memory": 16 * GIB, "profile": False},
    "trn": {"name": "Trainium2", "watts": 0.0, "clock": 0.0, "memory": 24 * GIB, "profile": False},
}


class Course:
    """The course of a run on some hosts with devices. Change the loads, then `run()` it.

    Args:
        minutes: how long it goes on.
        interval_s: between samples.
        devices: per host.
        step_s: between logged steps; 0 logs none.
        start_s: before the first step.

    Attributes:
        t: seconds since the start of each sample.
        busy, active, tensor, dram, power, memory: of each device, percent; rows are devices of all hosts.
        clock: as a share of the highest.
        host: series of each host by key, gauges and counters alike.
    """

    def __init__(
        self,
        vendor: str = "h100",
        *,
        minutes: float = 60,
        interval_s: float = 2.0,
        devices: int = 8,
        hosts: int = 1,
        seed: int = 0,
        step_s: float = 2.0,
        start_s: float = 60.0,
        cpus: int = 32,
        state: str = "finished",
    ) -> None:
        self.vendor, self.seed, self.interval_s = vendor, seed, interval_s
        self.noise = np.random.default_rng(seed)
        self.t = np.arange(0.0, minutes * 60, interval_s)
        count = devices * hosts
        self.device_count, self.host_count = devices, hosts
        self.step_s, self.start_s, self.state, self.cpus = step_s, start_s, state, cpus
        self.minutes = minutes
        started = self.t >= start_s
        shape = (count, len(self.t))

        def about(value: float, spread: float) -> Floats:
            return np.where(started, value + self.noise.normal(0, spread, shape), 0.0)

        self.busy = about(96, 1.5).clip(0, 100)
        self.active = about(78, 2).clip(0, 100)
        self.tensor = about(48, 2).clip(0, 100)
        self.dram = about(40, 2).clip(0, 100)
        self.power = np.where(
            started, 88 + self.noise.normal(0, 1.5, shape), 12 + self.noise.normal(0, 0.3, shape)
        )
        self.memory = np.where(started, 82.0, 1.0) + np.zeros(shape)
        self.clock = np.where(started, 0.93 + self.noise.normal(0, 0.005, shape), 0.2)
        self.temp = np.where(started, 62 + self.noise.normal(0, 1, shape), 34.0)
        self.throttled: dict[str, Floats] = {
            reason: np.zeros(shape)
            for reason in ("swPowerCap", "swThermal", "hwThermal", "hwSlowdown", "hwPowerBrake")
        }
        self.extra_devices: dict[str, Floats] = {}
        self.without: set[str] = set()
        self.hosts: list[dict[str, Floats]] = [self._quiet_host(started) for _ in range(hosts)]
        self.machine: dict[str, Any] = {}
        self.device_facts: dict[str, Any] = {}
        self.steps_s = np.arange(start_s, minutes * 60, step_s) if step_s else np.empty(0)
        self.logged: dict[str, Floats] = {}
        self.marks: list[Mark] = []
        self.kept = np.ones(len(self.t), dtype=np.bool_)

    def _quiet_host(self, started: Any) -> dict[str, Floats]:
        n = len(self.t)
        cpu = np.where(started, 30 + self.noise.normal(0, 3, n), 12.0).clip(0, 100)
        return {
            "cpu": cpu,
            "cpu.mean": cpu + 2,
            "cpu.iowait": np.abs(self.noise.normal(0.3, 0.2, n)),
            "cpu.steal": np.zeros(n),
            "memory_percent": 35 + self.noise.normal(0, 0.5, n),
            "proc.memory.rssMB": 60_000 + self.noise.normal(0, 50, n),
            "proc.count": np.full(n, 33.0),
            "disk.in": self.counter(120.0),
            "disk.out": self.counter(1.0),
            "network.recv": self.counter(2.0 * 2**20),
            "network.sent": self.counter(1.0 * 2**20),
            "io.pressureSeconds": self.counter(0.01),
            "cpu.pressureSeconds": self.counter(0.02),
            "memory.pressureSeconds": self.counter(0.0),
            "disk./.usagePercent": np.full(n, 41.0),
            "swap.used": np.zeros(n),
        }

    def counter(self, per_second: float | Floats) -> Floats:
        """Return a counter that grows at a rate, with noise."""
        rate = np.broadcast_to(np.asarray(per_second, dtype=np.float64), self.t.shape)
        growth = rate * self.interval_s * (1 + 0.05 * self.noise.normal(0, 1, len(self.t)))
        return np.cumsum(growth.clip(0))

    def between(self, from_min: float, to_min: float | None = None) -> Any:
        """Return a mask of the samples between two minutes."""
        to_s = np.inf if to_min is None else to_min * 60
        return (self.t >= from_min * 60) & (self.t < to_s)

    def every(self, period_s: float, length_s: float, from_min: float = 5) -> Any:
        """Return a mask of samples in pauses of some length that come again."""
        return (self.t >= from_min * 60) & ((self.t - from_min * 60) % period_s < length_s)

    def rest(self, where: Any, *, memory: bool = True, devices: Any = slice(None)) -> None:
        """Let devices do nothing; their memory is kept, or given back."""
        for column, value in (
            (self.busy, 0.0),
            (self.active, 0.0),
            (self.tensor, 0.0),
            (self.dram, 0.0),
            (self.power, 13.0),
            (self.clock, 0.3),
            (self.temp, 40.0),
        ):
            part = column[devices]
            part[:, where] = value
            column[devices] = part
        if not memory:
            part = self.memory[devices]
            part[:, where] = 0.4
            self.memory[devices] = part

    def scale(self, where: Any, factor: float, *, devices: Any = slice(None)) -> None:
        """Let devices work less, by a factor; their power follows."""
        for column in (self.busy, self.active, self.tensor, self.dram):
            part = column[devices]
            part[:, where] *= factor
            column[devices] = part
        part = self.power[devices]
        part[:, where] = 14 + (part[:, where] - 14) * factor
        self.power[devices] = part

    def stop_steps(self, from_min: float, to_min: float = 1e9) -> None:
        """Log no steps between two minutes."""
        self.steps_s = self.steps_s[(self.steps_s < from_min * 60) | (self.steps_s >= to_min * 60)]

    def slow_steps(self, factor: float) -> None:
        """Log steps less often."""
        self.steps_s = np.arange(self.start_s, self.minutes * 60, self.step_s * factor)

    def loss(self) -> Floats:
        """Return the values of a loss that falls, one for each step."""
        n = len(self.steps_s)
        return 2.0 + 3.0 * np.exp(-np.arange(n) / max(n / 5, 1)) + self.noise.normal(0, 0.03, n)

    def samples(self) -> list[HostSamples]:
        """Return what the hosts measured."""
        times = START_MS + (self.t * 1000).astype(np.int64)
        times = times[self.kept]
        result = []
        for number in range(self.host_count):
            series = {key: (times, values[self.kept]) for key, values in self.hosts[number].items()}
            for place in range(self.device_count):
                for key, values in self._device(number * self.device_count + place, place).items():
                    if key not in self.without:
                        series[key] = (times, values[self.kept])
            series = {
                key: value
                for key, value in series.items()
                if not any(key.endswith(each) for each in self.without)
            }
            result.append(
                HostSamples(
                    f"node{number}",
                    series,
                    None,
                    self._facts(),
                    {place: number * self.device_count + place for place in range(self.device_count)},
                )
            )
        return result

    def _facts(self) -> dict[str, Any]:
        about = VENDORS[self.vendor]
        facts: dict[str, Any] = {
            "cpu": {"available": float(self.cpus), "logical_cores": self.cpus},
            **self.machine,
        }
        if self.vendor in ("h100", "a100", "mi300x"):
            listed = [
                {
                    "index": index,
                    "name": about["name"],
                    "memory_bytes": about["memory"],
                    "visible": True,
                    "used": True,
                    **self.device_facts,
                }
                for index in range(self.device_count)
            ]
            if self.vendor != "mi300x":
                for each in listed:
                    each.setdefault("max_sm_clock_mhz", about["clock"])
            facts["gpu_nvidia" if self.vendor != "mi300x" else "gpu_amd"] = listed
        return facts

    def _device(self, row: int, index: int) -> dict[str, Floats]:
        about: dict[str, Any] = VENDORS[self.vendor]
        if self.vendor == "tpu":
            return {
                f"tpu.{index}.dutyCycle": self.busy[row],
                f"tpu.{index}.tensorcoreUtilization": self.tensor[row],
                f"tpu.{index}.memoryUsage": self.memory[row],
            }
        if self.vendor == "trn":
            return {f"trn.{index}.neuroncore_utilization": self.busy[row]}
        prefix = f"gpu.{index}."
        values = {
            "gpu": self.busy[row],
            "memoryAllocated": self.memory[row],
            "memoryAllocatedBytes": self.memory[row] / 100 * about["memory"],
            "powerPercent": self.power[row],
            "powerWatts": self.power[row] / 100 * about["watts"],
            "enforcedPowerLimitWatts": np.full(len(self.t), about["watts"]),
            "temp": self.temp[row],
            "unCorrectedMemoryErrors": np.zeros(len(self.t)),
        }
        if self.vendor != "mi300x":
            values["smClock"] = self.clock[row] * about["clock"]
            for reason, share in self.throttled.items():
                values[f"throttle.{reason}Seconds"] = np.cumsum(share[row] * self.interval_s)
            values["recoveryAction"] = np.zeros(len(self.t))
        else:
            values["graphicsClock"] = self.clock[row] * about["clock"]
        if about["profile"]:
            values |= {
                "smActive": self.active[row],
                "pipeTensorActive": self.tensor[row],
                "dramActive": self.dram[row],
                "graphicsActive": self.busy[row],
            }
        named = {prefix + name: column for name, column in values.items()}
        named |= {
            key: column
            for key, column in self.extra_devices.items()
            if key.startswith((prefix, f"gpu.process.{index}."))
        }
        return named

    def columns(self) -> dict[str, LoggedColumn]:
        """Return what was logged."""
        n = len(self.steps_s)
        if not n:
            return {}
        times = START_MS + (self.steps_s * 1000).astype(np.int64)
        steps = np.arange(n, dtype=np.int64)
        logged = {"train/loss": self.loss()} | self.logged
        return {
            name: LoggedColumn(times[: len(values)], steps[: len(values)], values)
            for name, values in logged.items()
        }

    def run(self, until_s: float | None = None) -> ObservedRun:
        """Return the run as rules see it: at its end, or as it was going on after some seconds."""
        end_ms = START_MS + int(self.minutes * 60_000)
        if until_s is None:
            ended_ms = None if self.state == "running" else end_ms
            return observe(
                self.samples(),
                self.columns(),
                self.marks,
                state=self.state,
                started_ms=START_MS,
                ended_ms=ended_ms,
                now_ms=end_ms,
            )
        now_ms = START_MS + int(until_s * 1000)
        hosts = [
            HostSamples(
                host.name,
                {key: _before(now_ms, times, values) for key, (times, values) in host.series.items()},
                self.interval_s,
                host.machine,
                host.ranks,
            )
            for host in self.samples()
        ]
        logged = {
            name: LoggedColumn(*_before(now_ms, column.time_ms, column.step, column.values))
            for name, column in self.columns().items()
        }
        marks = [mark for mark in self.marks if mark.time_ms < now_ms]
        return observe(
            hosts, logged, marks, state="running", started_ms=START_MS, ended_ms=None, now_ms=now_ms
        )


def _before(time_ms: int, times_ms: Any, *columns: Any) -> Any:
    """The rows of columns before a time."""
    count = int(np.searchsorted(times_ms, time_ms))
    return (times_ms[:count], *(column[:count] for column in columns))


@dataclass(frozen=True, slots=True)
class Scenario:
    """A labelled run.

    Args:
        name: of the scenario.
        course: the run.
        expected: ids of findings that must be there.
        allowed: ids of warnings or critical findings that may be there too.
        verdict: what the headline must be, if it matters.
    """

    name: str
    course: Course
    expected: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    verdict: str | None = None
    info: tuple[str, ...] = field(default=())


Build = Callable[..., Course]


class Courses(dict[str, tuple[Build, tuple[str, ...], tuple[str, ...]]]):
    """By name: how the run is made, for which vendors, and which other findings may be there.

    Decorates functions that change a course.
    """

    def __call__(
        self, *vendors: str, name: str = "", allowed: tuple[str, ...] = (), **options: Any
    ) -> Callable[[Callable[[Course], None]], Build]:
        """Return a decorator; the function then makes a course of a vendor, with these and other options."""

        def add(change: Callable[[Course], None]) -> Build:
            def build(vendor: str, **more: Any) -> Course:
                course = Course(vendor, **options, **more)
                change(course)
                return course

            self[name or change.__name__] = build, vendors, allowed
            return build

        return add
