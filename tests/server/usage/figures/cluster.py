"""A simulated cluster, and its figures computed minute by minute: slow, and written in another way."""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.server.usage.days import Calendar, Day
from runvitals.server.usage.device_time import DeviceSeries, TimedValues
from runvitals.server.usage.windows import Rules

MINUTE_MS = 60_000
STEP_MS = 5 * MINUTE_MS
RULES = Rules(silence_ms=15 * MINUTE_MS, idle_percent=5.0, idle_ms=45 * MINUTE_MS)


@dataclass
class HostSamples:
    """The samples of a run on a host. `devices`: utilisation, counter of joules, watts; None: no value."""

    times: list[int]
    devices: dict[str, list[tuple[float | None, float | None, float | None]]]


@dataclass
class SimulatedCluster:
    """Runs by id: what they recorded by host."""

    days: list[Day]
    runs: dict[int, dict[str, HostSamples]] = field(default_factory=dict)


def simulate(seed: int, zone: str, first: str, count: int) -> SimulatedCluster:
    """Runs that overlap, share devices, pause, cross midnight, lose their host; counters that are reset."""
    chance = random.Random(seed)
    calendar = Calendar(zone)
    day = date.fromisoformat(first)
    cluster = SimulatedCluster([calendar.day(day + timedelta(days=number)) for number in range(count)])
    start = cluster.days[0].start_ms
    end = cluster.days[-1].end_ms
    steps = (end - start) // STEP_MS
    for run in range(5):
        hosts = cluster.runs[run] = {}
        for host in chance.sample(["node1", "node2"], chance.choice([1, 1, 2])):
            first_ms = start + chance.randrange(-100, steps - 10) * STEP_MS
            hosts[host] = _recorded(chance, first_ms, chance.randrange(5, 50 * len(cluster.days)), host)
    return cluster


def _recorded(chance: random.Random, first_ms: int, count: int, host: str) -> HostSamples:
    times, at = [], first_ms
    for _ in range(count):
        times.append(at)
        at += STEP_MS * chance.choice([1] * 30 + [2, 3, 4, 12])  # 4 and 12 are gaps
    samples = HostSamples(times, {})
    for position in range(2):
        device = f"{host}/{position}"
        kind = chance.choice(["counter", "power", "nothing", "resets"])
        busy, joules, values = True, 0.0, []
        for _ in times:
            busy = busy if chance.random() < 0.95 else not busy
            joules = 0.0 if kind == "resets" and chance.random() < 0.02 else joules + chance.randrange(1000)
            values.append(
                (
                    float(chance.randrange(10, 100)) if busy else float(chance.randrange(5)),
                    joules if kind in ("counter", "resets") else None,
                    float(chance.randrange(700)) if kind == "power" else None,
                )
            )
        samples.devices[device] = values
    return samples


def times(samples: HostSamples, from_ms: int, until_ms: int) -> Integers:
    """The times of the samples between two times."""
    return np.array(samples.times[_index(samples, from_ms) : _index(samples, until_ms)], np.int64)


def devices(samples: HostSamples, from_ms: int, until_ms: int) -> dict[str, DeviceSeries]:
    """The values between two times, as `DeviceTime.add` takes them."""
    first, last = _index(samples, from_ms), _index(samples, until_ms)
    t = times(samples, from_ms, until_ms)
    by_name = {}
    for name, values in samples.devices.items():
        columns = np.array(values[first:last], np.float64).reshape(-1, 3).T  # None becomes NaN
        by_name[name] = DeviceSeries(*(TimedValues(t, column) for column in columns))
    return by_name


def _index(samples: HostSamples, time_ms: int) -> int:
    return bisect_left(samples.times, time_ms)


@dataclass
class SlowFigures:
    """Figures of one run, host, device and day, in minutes and joules."""

    share: Fraction = Fraction(0)
    busy: float = 0.0
    idle: Fraction = Fraction(0)
    measured: float = 0.0
    estimated: float = 0.0
    known: Fraction = Fraction(0)


class SlowMonth:
    """The figures of a cluster, minute by minute.

    Attributes:
        tracked: minutes by run and day.
        host: minutes by run, host and day.
        devices: figures by run, device and day.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._day_of: dict[int, str] = {}
        for day in cluster.days:
            for minute in range(day.start_ms, day.end_ms, MINUTE_MS):
                self._day_of[minute] = day.name
        self.tracked: dict[tuple[int, str], int] = {}
        self.host: dict[tuple[int, str, str], int] = {}
        self.devices: dict[tuple[int, str, str], SlowFigures] = {}
        covered = {
            (run, host): _covered_minutes(samples)
            for run, hosts in cluster.runs.items()
            for host, samples in hosts.items()
        }
        users: dict[tuple[str, int], int] = {}
        for (_, host), minutes in covered.items():
            for minute in minutes:
                users[host, minute] = users.get((host, minute), 0) + 1
        for run, hosts in cluster.runs.items():
            every: set[int] = set()
            for host, samples in hosts.items():
                every |= covered[run, host].keys()
                for minute in covered[run, host]:
                    if (day := self._day_of.get(minute)) is not None:
                        self.host[run, host, day] = self.host.get((run, host, day), 0) + 1
                for device, values in samples.devices.items():
                    self._device(run, host, device, samples.times, values, covered[run, host], users)
            for minute in every:
                if (day := self._day_of.get(minute)) is not None:
                    self.tracked[run, day] = self.tracked.get((run, day), 0) + 1

    def _device(
        self,
        run: int,
        host: str,
        device: str,
        times: list[int],
        values: list[Any],
        covered: dict[int, int],
        users: dict[tuple[str, int], int],
    ) -> None:
        idle = _idle_minutes(values, covered)
        for minute, i in covered.items():
            day = self._day_of.get(minute)
            if day is None:
                continue
            figures = self.devices.setdefault((run, device, day), SlowFigures())
            part = Fraction(1, users[host, minute])
            (u0, e0, p0), (u1, e1, p1) = values[i], values[i + 1]
            span = times[i + 1] - times[i]
            figures.share += part
            figures.busy += float(part) * (u0 + u1) / 2 / 100
            figures.idle += part if minute in idle else 0
            if e0 is not None and e1 >= e0:
                figures.measured += float(part) * (e1 - e0) * MINUTE_MS / span
                figures.known += part
            if p0 is not None:
                figures.estimated += float(part) * (p0 + p1) / 2 * 60
                figures.known += part


def _covered_minutes(samples: HostSamples) -> dict[int, int]:
    """Each covered minute, with the number of the sample before it."""
    minutes = {}
    for i, (a, b) in enumerate(zip(samples.times, samples.times[1:], strict=False)):
        if b - a <= RULES.silence_ms:
            for minute in range(a, b, MINUTE_MS):
                minutes[minute] = i
    return minutes


def _idle_minutes(values: list[Any], covered: dict[int, int]) -> set[int]:
    below = {m for m, i in covered.items() if max(values[i][0], values[i + 1][0]) < RULES.idle_percent}
    minutes: set[int] = set()
    for minute in sorted(below):
        if minute - MINUTE_MS in below:
            continue
        stretch = [minute]
        while stretch[-1] + MINUTE_MS in below:
            stretch.append(stretch[-1] + MINUTE_MS)
        if len(stretch) * MINUTE_MS >= RULES.idle_ms:
            minutes |= set(stretch)
    return minutes
