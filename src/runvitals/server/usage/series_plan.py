"""Which series of a host tell its covered time, and what its devices did."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from runvitals.base.buckets import Integers
from runvitals.model.names import STEP
from runvitals.server.usage.device_time import NO_SERIES, DeviceSeries, TimedValues
from runvitals.store.samples.interface import SeriesSamples

HOST: Final = "host"
"""The name under which the host's own energy is added up, beside its devices."""
HOST_SHARED: Final = "host shared"
"""The part of it that is of the time in which other runs are on the host."""
CPU: Final = "cpu"
CPU_SHARED: Final = "cpu shared"
"""The run's own use of CPUs, and the part of it of that time."""
_ALWAYS: Final = ("cpu.mean", "memory_percent", "cpu", "system.load1")
"""Keys that nearly every sample of a monitor has."""
_FEW: Final = 8
_DEVICE_KEY = re.compile(
    r"(gpu|gpu\.process|tpu)\.(\d+)\."
    r"(gpu|dutyCycle|energyJoules|totalEnergyConsumption|powerWatts|powerSuspect)"
)
_ENERGY_KEYS: Final = {
    "energyJoules": "joules",
    "totalEnergyConsumption": "millijoules",
    "powerWatts": "power",
    "powerSuspect": "suspect",
}
_HOST_ENERGY = re.compile(r"energy\.(?:package|dram)[^.]*")
_MJ_PER_J: Final = 1000.0


@dataclass(slots=True)
class _DeviceKeys:
    """The numbers of a device's metrics.

    `own_use` counts only while a process of the run uses it; `suspect`, only while the power is in doubt.
    """

    use: int | None = None
    own_use: int | None = None
    joules: int | None = None
    millijoules: int | None = None
    power: int | None = None
    suspect: int | None = None


@dataclass(slots=True)
class SeriesPlan:
    """The series to read of a host.

    Attributes:
        times: the metrics whose samples tell when it was sampled.
        devices: by index.
        has_steps: whether the steps of `log()` are among the metrics.
    """

    times: tuple[int, ...]
    devices: dict[str, _DeviceKeys] = field(default_factory=dict)
    host_energy: tuple[int, ...] = ()
    cpu: int | None = None
    has_steps: bool = False

    @classmethod
    def of(cls, keys: Mapping[str, int]) -> SeriesPlan:
        """The plan of a host with these metrics."""
        always = [keys[key] for key in _ALWAYS if key in keys][:2]
        plan = cls(tuple(always or sorted(keys.values())[:_FEW]))
        plan.host_energy = tuple(
            sorted(number for key, number in keys.items() if _HOST_ENERGY.fullmatch(key))
        )
        plan.cpu = keys.get("cpu")
        plan.has_steps = STEP in keys
        for key, number in keys.items():
            match = _DEVICE_KEY.fullmatch(key)
            if match is not None:
                _assign(plan.devices.setdefault(match[2], _DeviceKeys()), match[1], match[3], number)
        return plan

    def metrics(self) -> tuple[int, ...]:
        """The metrics of what the devices did."""
        metrics = set(self.host_energy) | ({self.cpu} if self.cpu is not None else set())
        for keys in self.devices.values():
            energy = keys.joules or keys.millijoules
            power = () if energy else (keys.power, keys.suspect)
            metrics |= {number for number in (keys.use, keys.own_use, energy, *power) if number is not None}
        return tuple(sorted(metrics))

    def device_series(self, series: Mapping[int, SeriesSamples]) -> dict[str, DeviceSeries]:
        """Return the series of each device and of the host, by index."""
        device_series = {}
        for index, keys in self.devices.items():
            joules = _series(series, keys.joules)
            if keys.joules is None and keys.millijoules is not None:
                counter = _series(series, keys.millijoules)
                joules = TimedValues(counter.t, counter.values / _MJ_PER_J)
            device_series[index] = DeviceSeries(_use(series, keys), joules, _power(series, keys))
        if self.host_energy:
            energy = DeviceSeries(energy=_sum([_series(series, number) for number in self.host_energy]))
            device_series[HOST] = device_series[HOST_SHARED] = energy
        if self.cpu is not None:
            device_series[CPU] = device_series[CPU_SHARED] = DeviceSeries(_series(series, self.cpu))
        return device_series


def _assign(keys: _DeviceKeys, scope: str, name: str, number: int) -> None:
    if name in ("gpu", "dutyCycle"):
        if scope == "gpu.process":
            keys.own_use = number
        else:
            keys.use = number
    elif scope == "gpu":
        setattr(keys, _ENERGY_KEYS[name], number)


def _series(series: Mapping[int, SeriesSamples], number: int | None) -> TimedValues:
    samples = None if number is None else series.get(number)
    return NO_SERIES if samples is None else TimedValues(samples.t, samples.values)


def _use(series: Mapping[int, SeriesSamples], keys: _DeviceKeys) -> TimedValues:
    """The utilisation by the run: none while none of its processes uses the device."""
    every, own = _series(series, keys.use), _series(series, keys.own_use)
    if keys.own_use is None or not len(every.t):
        return every if keys.own_use is None else own
    values = np.where(np.isfinite(every.values), 0.0, np.nan)
    own = own.present()
    at = np.searchsorted(every.t, own.t)
    inside = at < len(every.t)
    at, same = at[inside], own.values[inside]
    matching = every.t[at] == own.t[inside]
    values[at[matching]] = same[matching]
    return TimedValues(every.t, values)


def _power(series: Mapping[int, SeriesSamples], keys: _DeviceKeys) -> TimedValues:
    """The power, without that which is in doubt."""
    power, doubts = _series(series, keys.power), _series(series, keys.suspect).present()
    if not len(doubts.t):
        return power
    return TimedValues(power.t, np.where(np.isin(power.t, doubts.t), np.nan, power.values))


def _sum(parts: Sequence[TimedValues]) -> TimedValues:
    """The sum of counters, at the times at which all have a value."""
    if len(parts) == 1:
        return parts[0]
    total: dict[int, list[float]] = defaultdict(list)
    for part in parts:
        present = part.present()
        for t, value in zip(present.t.tolist(), present.values.tolist(), strict=True):
            total[t].append(value)
    complete = sorted(t for t, values in total.items() if len(values) == len(parts))
    return TimedValues(np.array(complete, np.int64), np.array([sum(total[t]) for t in complete]))


def sample_times(
    series: Sequence[SeriesSamples], others: Sequence[int], from_ms: int, until_ms: int
) -> Integers:
    """All times of some series, and other times in the range, ascending and unique."""
    arrays = [samples.t for samples in series]
    extra = [time for time in others if from_ms <= time < until_ms]
    if extra:
        arrays.append(np.array(extra, np.int64))
    if not arrays:
        return np.empty(0, np.int64)
    first = arrays[0]
    if all(len(samples) == len(first) and np.array_equal(samples, first) for samples in arrays[1:]):
        return first
    times: Integers = np.unique(np.concatenate(arrays))
    return times
