"""How much a run used the devices of a host on a day: time, utilisation, idle and hung time, energy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.server.alerts.ready_rules import HUNG_ABOVE_PERCENT, HUNG_MS
from runvitals.server.usage.days import Day
from runvitals.server.usage.intervals import Interval
from runvitals.server.usage.windows import Rules

Booleans = NDArray[np.bool_]
_HUNDRED: Final = 100.0
_MS_PER_S: Final = 1000.0
_MAX_WATTS: Final = 50_000
"""More than any device or host takes."""
_NOTHING: Final = np.empty(0, np.int64)


class TimeShare(Protocol):
    """How much of some intervals belongs to the run."""

    def between(self, starts: Integers, ends: Integers) -> Floats:
        """Return the part of each interval that belongs to the run, in ms."""


class WholeTime:
    """All of the time: nobody shares the device."""

    def between(self, starts: Integers, ends: Integers) -> Floats:
        """Return the whole length of each period, in ms."""
        return (ends - starts).astype(np.float64)


WHOLE_TIME: Final = WholeTime()


@dataclass(frozen=True, slots=True)
class TimedValues:
    """Values by time, ascending; NaN is a missing value."""

    t: Integers
    values: Floats

    def present(self) -> TimedValues:
        """Return the samples whose value is finite."""
        is_finite = np.isfinite(self.values)
        return self if is_finite.all() else TimedValues(self.t[is_finite], self.values[is_finite])


NO_SERIES: Final = TimedValues(_NOTHING, np.empty(0))
NO_STEPS: Final = _NOTHING


@dataclass(frozen=True, slots=True)
class DeviceSeries:
    """The samples of a device in a window.

    Args:
        utilisation: percent.
        energy: a counter of joules.
        power: watts.
    """

    utilisation: TimedValues = NO_SERIES
    energy: TimedValues = NO_SERIES
    power: TimedValues = NO_SERIES


@dataclass(frozen=True, slots=True)
class DeviceFigures:
    """The figures of a device. Times in ms, energies in joules.

    Attributes:
        busy: utilisation × time.
        hung: the time in which the device was busy, but the run logged no step.
        measured_ms, estimated_ms: for how long the energy is known, from a counter or from power.
    """

    share: float = 0.0
    busy: float = 0.0
    idle: float = 0.0
    hung: float = 0.0
    measured: float = 0.0
    estimated: float = 0.0
    measured_ms: float = 0.0
    estimated_ms: float = 0.0

    @property
    def unknown_ms(self) -> float:
        """For how long nothing is known of the energy."""
        return max(0.0, self.share - self.measured_ms - self.estimated_ms)


@dataclass(frozen=True, slots=True)
class _Stretches:
    """Time in stretches of at least `least_ms`. `total`: of those that are over; `open`: may grow."""

    least_ms: int
    total: float = 0.0
    open: Interval | None = None

    def add(self, steps: _Steps, inside: Booleans, day: Day, share: TimeShare) -> _Stretches:
        """With the steps that are inside a stretch."""
        joined = inside[1:] & inside[:-1] & (steps.starts[1:] == steps.ends[:-1])
        firsts = np.flatnonzero(inside & ~np.concatenate(([False], joined)))
        lasts = np.flatnonzero(inside & ~np.concatenate((joined, [False])))
        total, last = self.total, self.open
        for start, end in zip(steps.starts[firsts].tolist(), steps.ends[lasts].tolist(), strict=True):
            if last is not None and last[1] == start:
                last = last[0], end
            else:
                total += self._time_of(last, day, share)
                last = start, end
        return _Stretches(self.least_ms, total, last)

    def time(self, day: Day, share: TimeShare) -> float:
        return self.total + self._time_of(self.open, day, share)

    def _time_of(self, stretch: Interval | None, day: Day, share: TimeShare) -> float:
        """How much of a stretch counts: all that is in the day, or nothing if it was short."""
        if stretch is None or stretch[1] - stretch[0] < self.least_ms:
            return 0.0
        inside = np.clip(stretch, day.start_ms, day.end_ms)
        return float(share.between(inside[:1], inside[1:])[0])


@dataclass(slots=True)
class _Device:
    idle: _Stretches
    hung: _Stretches = _Stretches(HUNG_MS)
    busy: float = 0.0
    measured: float = 0.0
    estimated: float = 0.0
    measured_ms: float = 0.0
    estimated_ms: float = 0.0
    last: dict[str, tuple[int, float]] = field(default_factory=dict)

    def figures(self, share: float, day: Day, time_share: TimeShare) -> DeviceFigures:
        return DeviceFigures(
            share,
            self.busy,
            self.idle.time(day, time_share),
            self.hung.time(day, time_share),
            self.measured,
            self.estimated,
            self.measured_ms,
            self.estimated_ms,
        )


class DeviceTime:
    """Adds up the figures of devices, window by window.

    Args:
        shares: how much of each device's time is the run's; default: all of it.
        last_step_ms: when the run logged its last step before the samples that are added; None: none yet.

    Attributes:
        done_ms: until when samples were added.
    """

    def __init__(
        self,
        day: Day,
        rules: Rules,
        shares: Mapping[str, TimeShare] | None = None,
        last_step_ms: int | None = None,
    ) -> None:
        self._day = day
        self._rules = rules
        self._shares = shares or {}
        self._last_step_ms = last_step_ms
        self._devices: dict[str, _Device] = {}
        self.done_ms = day.start_ms - rules.margin_ms

    def copy(self, shares: Mapping[str, TimeShare] | None = None) -> DeviceTime:
        """A copy, to which a window can be added that is not complete yet.

        Args:
            shares: other ones, which are the same for what was added.
        """
        chosen = self._shares if shares is None else shares
        copied = DeviceTime(self._day, self._rules, chosen, self._last_step_ms)
        copied.done_ms = self.done_ms
        copied._devices = {
            name: replace(device, last=dict(device.last)) for name, device in self._devices.items()
        }
        return copied

    def add(
        self, until_ms: int, devices: Mapping[str, DeviceSeries], step_times: Integers = NO_STEPS
    ) -> None:
        """Add the samples before `until_ms`, by the name of the device.

        Args:
            step_times: when the run logged steps in this time, ascending.
        """
        self.done_ms = until_ms
        if self._last_step_ms is not None:
            step_times = np.concatenate(([self._last_step_ms], step_times))
        for name, series in devices.items():
            self._add_device(name, series, step_times)
        if len(step_times):
            self._last_step_ms = int(step_times[-1])

    def figures(self, covered: Sequence[Interval], names: Iterable[str] = ()) -> dict[str, DeviceFigures]:
        """The figures of each device so far, and of others by name that have no samples.

        Args:
            covered: the covered time of the host.
        """
        times = np.array(covered, np.int64).reshape(-1, 2)
        figures = {}
        for name in dict.fromkeys((*self._devices, *names)):
            time_share = self._shares.get(name, WHOLE_TIME)
            share = float(time_share.between(times[:, 0], times[:, 1]).sum())
            device = self._devices.get(name, self._new_device())
            figures[name] = device.figures(share, self._day, time_share)
        return figures

    def _new_device(self) -> _Device:
        return _Device(_Stretches(self._rules.idle_ms))

    def _add_device(self, name: str, series: DeviceSeries, step_times: Integers) -> None:
        device = self._devices.setdefault(name, self._new_device())
        share = self._shares.get(name, WHOLE_TIME)
        steps = self._steps(device, "utilisation", series.utilisation, share)
        if steps is not None:
            device.busy += float((steps.weight * steps.mean).sum()) / _HUNDRED
            idle = (steps.before < self._rules.idle_percent) & (steps.after < self._rules.idle_percent)
            device.idle = device.idle.add(steps, idle, self._day, share)
            busy = (steps.before > HUNG_ABOVE_PERCENT) & (steps.after > HUNG_ABOVE_PERCENT)
            device.hung = device.hung.add(steps, busy & _without_step(steps, step_times), self._day, share)
        energy = self._steps(device, "energy", series.energy, share)
        if energy is not None:
            growth = energy.after - energy.before
            # A counter that fell was reset: how much it grew is not known. One that rose too fast is another
            # counter, of a monitor that started anew after the clock was set back.
            counted = (growth >= 0) & (growth * _MS_PER_S <= _MAX_WATTS * (energy.ends - energy.starts))
            device.measured += float((growth * energy.part)[counted].sum())
            device.measured_ms += float(energy.weight[counted].sum())
        elif not np.isfinite(series.energy.values).any():
            power = self._steps(device, "power", series.power, share)
            if power is not None:
                device.estimated += float((power.mean * power.weight).sum()) / _MS_PER_S
                device.estimated_ms += float(power.weight.sum())

    def _steps(self, device: _Device, quantity: str, series: TimedValues, share: TimeShare) -> _Steps | None:
        """The steps between consecutive values that are close enough; None if there are none."""
        series = series.present()
        if not len(series.t):
            return None
        before = device.last.get(quantity)
        t, v = series.t, series.values
        if before is not None:
            t, v = np.concatenate(([before[0]], t)), np.concatenate(([before[1]], v))
        device.last[quantity] = int(t[-1]), float(v[-1])
        close = np.diff(t) <= self._rules.silence_ms
        if not close.any():
            return None
        starts, ends = t[:-1][close], t[1:][close]
        inside_starts = np.clip(starts, self._day.start_ms, self._day.end_ms)
        inside_ends = np.clip(ends, self._day.start_ms, self._day.end_ms)
        weight = share.between(inside_starts, inside_ends)
        return _Steps(starts, ends, v[:-1][close], v[1:][close], weight)


@dataclass(frozen=True, slots=True)
class _Steps:
    """From value to value. `weight`: the share of the time in the day, ms."""

    starts: Integers
    ends: Integers
    before: Floats
    after: Floats
    weight: Floats

    @property
    def mean(self) -> Floats:
        return (self.before + self.after) / 2

    @property
    def part(self) -> Floats:
        """Which part of the step belongs to the run and the day."""
        return self.weight / (self.ends - self.starts)


def _without_step(steps: _Steps, step_times: Integers) -> Booleans:
    """In which steps the run logged none, though it had logged some before."""
    before = np.searchsorted(step_times, steps.starts, "right")
    without: Booleans = (before > 0) & (before == np.searchsorted(step_times, steps.ends, "right"))
    return without
