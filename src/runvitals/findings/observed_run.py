"""What rules see of a run: its hosts, devices, training and ending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from runvitals.findings.devices import Device, devices_of
from runvitals.findings.spans import above, known
from runvitals.findings.training import MAX_START_S, LoggedTraining
from runvitals.findings.windows import Bools, Floats, HostColumns, TimeWindows

_AT_WORK = 0.20
"""A device at this utilisation does some work."""
_MAY_BE_START_S = 600.0


@dataclass(frozen=True, eq=False)
class ObservedHost:
    """A host of a run.

    Args:
        columns: its series.
        machine: facts about it.
        devices: of the run, on it.
    """

    columns: HostColumns
    machine: Mapping[str, Any]
    devices: Sequence[Device]

    @property
    def name(self) -> str:
        """Its name."""
        return self.columns.name

    @cached_property
    def cpus(self) -> float | None:
        """How many processors the run may use; None if unknown."""
        limit = self.columns.mean("cgroup.cpu.limit")
        if known(limit).any():
            return float(np.nanmedian(limit))
        cpu = self.machine.get("cpu")
        for name in ("available", "logical_cores", "count"):
            value = cpu.get(name) if isinstance(cpu, Mapping) else None
            if isinstance(value, int | float) and value > 0:
                return float(value)
        return None


@dataclass(frozen=True, eq=False)
class ObservedRun:
    """A run, as rules see it.

    Args:
        windows: of all columns.
        hosts: with what they measured.
        training: steps and logged values.
        state: `running`, `finished`, `failed`, `crashed`, `stopped` or `lost`.
        started_ms: ms UTC.
        ended_ms: ms UTC; None while it goes on.
        now_ms: until when it is judged.
        out_of_memory: whether the kernel ended it because memory ran out.
        price_per_device_hour: None without prices.
    """

    windows: TimeWindows
    hosts: Sequence[ObservedHost]
    training: LoggedTraining
    state: str
    started_ms: int
    ended_ms: int | None
    now_ms: int
    out_of_memory: bool | None = None
    price_per_device_hour: float | None = None

    @cached_property
    def devices(self) -> list[Device]:
        """The devices of all hosts."""
        return [device for host in self.hosts for device in host.devices]

    @property
    def device_hours(self) -> float:
        """The hours of all its devices."""
        return len(self.devices) * self.duration_ms / 3_600_000

    @property
    def duration_ms(self) -> int:
        """How long it is or was going on."""
        return max(1, (self.ended_ms or self.now_ms) - self.started_ms)

    @cached_property
    def work(self) -> Floats:
        """How much its devices worked in each window, 0 to 1, as a mean of those that tell."""
        columns = [device.work for device in self.devices if device.has("busy")]
        return mean_of(columns, self.windows.count)

    @cached_property
    def first_work(self) -> int | None:
        """The first window in which a device works or a step was logged; None if there is none."""
        working = [
            int(np.argmax(at_work))
            for device in self.devices
            if (at_work := above(device.work, _AT_WORK)).any()
        ]
        if len(self.training.steps_ms):
            working.append(self.windows.index(int(self.training.steps_ms[0])))
        return min(working) if working else None

    @cached_property
    def training_windows(self) -> Bools:
        """The windows of the training itself: after its start, before its tail, without marked validations.

        They begin with the first step, or, without steps, when a device begins to work, and end with the last
        step, or, without steps, when no device works any more.
        """
        inside = np.zeros(self.windows.count, dtype=np.bool_)
        if self.training.has_steps:
            inside |= self.training.is_between_steps()
        else:
            at_work = above(self.work, _AT_WORK / 2)
            if at_work.any():
                positions = np.flatnonzero(at_work)
                inside[positions[0] : positions[-1] + 1] = True
            elif not self.devices:
                inside[:] = True
        inside &= ~self.training.validation()
        return inside

    @cached_property
    def training_so_far(self) -> Bools:
        """The windows of the training, so that what comes later does not move its begin.

        It begins with the first step, unless devices worked for ten minutes before it: then with their work,
        as rows are rare. While no step was logged and those ten minutes last, nobody knows.
        """
        inside: Bools = self.training_windows.copy()
        work, steps_ms = self.first_work, self.training.steps_ms
        if not self.devices or work is None:
            return inside
        start = self.windows.number(_MAY_BE_START_S)
        first = self.windows.index(int(steps_ms[0])) if len(steps_ms) else None
        if first is None:
            if self.ended_ms is None and self.windows.count - work < start:
                inside[:] = False
        elif first - work > start:
            inside[work:first] = ~self.training.validation()[work:first]
        elif not self.training.has_steps:
            inside[:first] = False
        return inside

    @cached_property
    def start_windows(self) -> Bools:
        """The windows of the start: until the first step or the first work, at most 20 minutes."""
        inside = np.zeros(self.windows.count, dtype=np.bool_)
        first = self.windows.count if self.first_work is None else self.first_work
        inside[: min(first, self.windows.number(MAX_START_S))] = True
        return inside


def mean_of(columns: Sequence[Floats], count: int) -> Floats:
    """Return the mean of columns per window, of those that have a value; NaN where none has."""
    if not columns:
        return np.full(count, np.nan)
    stacked = np.vstack(columns)
    present = (~np.isnan(stacked)).sum(axis=0)
    return np.where(present > 0, np.nansum(stacked, axis=0) / np.maximum(present, 1), np.nan)


def host_of(
    columns: HostColumns, machine: Mapping[str, Any], ranks: Mapping[int, int] | None = None
) -> ObservedHost:
    """Return a host with its devices."""
    return ObservedHost(columns, machine, devices_of(columns, machine, ranks))
