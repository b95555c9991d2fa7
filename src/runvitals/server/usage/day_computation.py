"""Computes the figures of runs for one day from their samples, and goes on where it was the last time.

First the covered time of all, then their devices: what others covered decides how a device's time is shared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from runvitals.model.durations import MINUTE_MS
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.covered_time import CoveredTime
from runvitals.server.usage.days import Day
from runvitals.server.usage.device_time import NO_STEPS, DeviceFigures, DeviceTime, TimeShare
from runvitals.server.usage.host_lanes import UsageLane, UsageRun
from runvitals.server.usage.intervals import Interval, Share, length, overlap, union
from runvitals.server.usage.series_plan import CPU, CPU_SHARED, HOST, HOST_SHARED, sample_times
from runvitals.server.usage.step_times import StepTimes
from runvitals.server.usage.storage.figures import DeviceRunDay, HostRunDay, RunDay, UsedDevice
from runvitals.server.usage.windows import Rules, window_ends
from runvitals.store.samples.interface import SampleStore, SeriesSamples

_LANES_AT_ONCE: Final = 20
_MAX_KEPT: Final = 20_000
_MJ_PER_J: Final = 1000
_STEPS_LATE_MS: Final = 2 * MINUTE_MS
"""Steps may come so much later than samples of the devices, without a day being computed anew."""
_Covered = dict[tuple[int, str], list[Interval]]
"""The covered time by run and host."""
DeviceSlices = Mapping[tuple[int, str, int], frozenset[str]]
"""The slices of devices that runs use, by run, host and device; none: the whole device."""


@dataclass(slots=True)
class _Devices:
    """`signature`: what others covered of the time that was added."""

    time: DeviceTime
    signature: tuple[object, ...] = ()


class DayComputation:
    """Computes days; keeps what it has added up, as long as the day goes on.

    Args:
        idle_percent, idle_ms: as of `Rules`.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self._store = store
        self._figures = metadata_store.usage.figures
        self._covered: dict[tuple[int, str], CoveredTime] = {}
        self._devices: dict[tuple[int, str], _Devices] = {}
        self._steps = StepTimes(store, metadata_store)
        self.rules = Rules(0)

    def forget(self, lane_id: int, day: str, from_ms: int) -> None:
        """Drop what was added of a lane, if samples came for it that are older than what was added."""
        key = lane_id, day
        covered, devices = self._covered.get(key), self._devices.get(key)
        if covered is not None and from_ms < covered.done_ms:
            del self._covered[key]
        if devices is not None and from_ms < devices.time.done_ms:
            del self._devices[key]

    def forget_steps(self, run: UsageRun, day: str, from_ms: int) -> None:
        """Drop what was added of the devices of a run, if it logged steps that are older than that."""
        self._steps.forget_first(run.owner.run_id, from_ms)
        for lane in (lane for lanes in run.lanes.values() for lane in lanes):
            devices = self._devices.get((lane.id, day))
            if devices is not None and from_ms < devices.time.done_ms:
                del self._devices[lane.id, day]

    def forget_all(self) -> None:
        """Drop everything: a setting has changed."""
        self._covered.clear()
        self._devices.clear()

    def cover(self, day: Day, runs: Iterable[tuple[UsageRun, Iterable[str]]], now_ms: int) -> _Covered:
        """The covered time of runs on some of their hosts. It is stored, too."""
        lanes = [(run, lane) for run, hosts in runs for host in hosts for lane in run.lanes.get(host, ())]
        parts: dict[tuple[int, str], list[Interval]] = defaultdict(list)
        for first in range(0, len(lanes), _LANES_AT_ONCE):
            batch = lanes[first : first + _LANES_AT_ONCE]
            covered_times = {lane.id: self._covered_time(lane, day) for _, lane in batch}
            starts = {lane.id: covered_times[lane.id].done_ms for _, lane in batch}
            reads = [(lane, lane.plan.times, starts[lane.id]) for _, lane in batch]
            samples = self._read(reads, day, now_ms)
            for run, lane in batch:
                times = self._add_times(covered_times[lane.id], lane, day, now_ms, samples.get(lane.id, {}))
                parts[run.owner.run_id, lane.host] += times
        covered = {key: union(intervals) for key, intervals in parts.items()}
        self._figures.put_covered(
            [
                HostRunDay(run_id, day.name, host, tuple(times))
                for (run_id, host), times in covered.items()
                if times
            ]
        )
        return covered

    def _covered_time(self, lane: UsageLane, day: Day) -> CoveredTime:
        key = lane.id, day.name
        if key not in self._covered:
            self._shrink()
            self._covered[key] = CoveredTime(day, self._rules(lane))
        return self._covered[key]

    def _shrink(self) -> None:
        for cache in (self._covered, self._devices):
            while len(cache) >= _MAX_KEPT:
                del cache[next(iter(cache))]

    def _read(
        self, reads: Sequence[tuple[UsageLane, tuple[int, ...], int]], day: Day, now_ms: int
    ) -> dict[int, dict[int, SeriesSamples]]:
        """Samples by lane and metric. Lanes of which the same is wanted are read together."""
        alike: dict[tuple[tuple[int, ...], int, int], list[int]] = defaultdict(list)
        for lane, metrics, from_ms in reads:
            alike[metrics, from_ms, _until(day, self._rules(lane), now_ms)].append(lane.id)
        samples: dict[int, dict[int, SeriesSamples]] = defaultdict(dict)
        for (metrics, from_ms, until_ms), lane_ids in alike.items():
            if metrics and from_ms < until_ms:
                for series in self._store.read(lane_ids, metrics, from_ms, until_ms - 1).series:
                    samples[series.run][series.metric] = series
        return samples

    def _rules(self, lane: UsageLane) -> Rules:
        return replace(self.rules, silence_ms=lane.silence_ms)

    def _add_times(
        self,
        covered_time: CoveredTime,
        lane: UsageLane,
        day: Day,
        now_ms: int,
        samples: Mapping[int, SeriesSamples],
    ) -> list[Interval]:
        rules = self._rules(lane)
        until_ms = _until(day, rules, now_ms)
        times = sample_times(list(samples.values()), lane.marks, covered_time.done_ms, until_ms)
        newest = int(times[-1]) if len(times) else 0
        for end_ms in window_ends(day, rules, covered_time.done_ms, newest + 1):
            first, last = times.searchsorted([covered_time.done_ms, end_ms])
            if end_ms > newest:  # more samples may come
                covered_time = covered_time.copy()
            covered_time.add(end_ms, times[first:last])
        return covered_time.intervals

    def figures(
        self,
        day: Day,
        runs: Sequence[tuple[UsageRun, Sequence[str]]],
        covered: _Covered,
        slices: DeviceSlices,
        now_ms: int,
    ) -> tuple[list[HostRunDay], list[DeviceRunDay]]:
        """The figures of runs on some of their hosts.

        Args:
            covered, slices: of these and of all runs that share a host or device with them.
        """
        users = self._figures.users(
            day.name,
            {host for _, hosts in runs for host in hosts},
            {device.device_id for run, _ in runs for device in run.devices},
        )
        self._steps.forget()
        rows: tuple[list[HostRunDay], list[DeviceRunDay]] = ([], [])
        lanes = [
            (run, host) for run, hosts in runs for host in hosts if covered.get((run.owner.run_id, host))
        ]
        for first in range(0, len(lanes), _LANES_AT_ONCE):
            batch = []
            for run, host in lanes[first : first + _LANES_AT_ONCE]:
                others = {
                    HOST: [covered.get((other_run, host), []) for other_run in users.hosts[host]],
                    **{
                        str(device.position): [
                            covered.get(user, [])
                            for user in users.devices[device.device_id]
                            if _same_slices(device.slices, slices.get((*user, device.device_id)))
                        ]
                        for device in run.devices
                        if device.host == host
                    },
                }
                own = covered[run.owner.run_id, host]
                shares = {
                    name: [
                        sharer
                        for sharer in of_name
                        if sharer is not own and sharer != [] and overlap(own, sharer)
                    ]
                    for name, of_name in others.items()
                }
                batch.append(_RunOnHost(run, host, own, shares))
            self._add_batch(day, batch, now_ms, rows)
        return rows

    def _add_batch(
        self,
        day: Day,
        batch: Sequence[_RunOnHost],
        now_ms: int,
        rows: tuple[list[HostRunDay], list[DeviceRunDay]],
    ) -> None:
        kept_devices = {run.lane.id: self._device_time(run, day) for run in batch if run.lane is not None}
        reads = [
            (run.lane, run.lane.plan.metrics(), kept_devices[run.lane.id].time.done_ms)
            for run in batch
            if run.lane is not None
        ]
        samples = self._read(reads, day, now_ms)
        for run in batch:
            names = [str(device.position) for device in run.devices]
            if run.lane is None:
                figures = DeviceTime(day, self.rules, run.time_shares()).figures(run.own, names)
            else:
                until_ms = _until(day, self._rules(run.lane), now_ms)
                of_lane = samples.get(run.lane.id, {})
                time = self._add_devices(kept_devices[run.lane.id], run, day, of_lane, until_ms)
                figures = time.figures(run.own, names)
            rows[0].append(_host_row(run, day, figures))
            rows[1].extend(
                _device_row(run, day, device, figures[name])
                for name, device in zip(names, run.devices, strict=True)
            )

    def _device_time(self, run: _RunOnHost, day: Day) -> _Devices:
        assert run.lane is not None
        key = run.lane.id, day.name
        devices = self._devices.get(key)
        if devices is None or run.signature(devices.time.done_ms) != devices.signature:
            self._shrink()
            rules = self._rules(run.lane)
            step_ms = self._steps.logged_before(run.run, day.start_ms - rules.margin_ms)
            devices = self._devices[key] = _Devices(DeviceTime(day, rules, None, step_ms))
        devices.time = devices.time.copy(run.time_shares())
        return devices

    def _add_devices(
        self,
        devices: _Devices,
        run: _RunOnHost,
        day: Day,
        samples: Mapping[int, SeriesSamples],
        until_ms: int,
    ) -> DeviceTime:
        assert run.lane is not None
        time = devices.time
        has_devices = bool(run.lane.plan.devices)
        steps = self._steps.between(run.run, time.done_ms, until_ms) if has_devices else NO_STEPS
        newest = max((int(series.t[-1]) for series in samples.values() if len(series.t)), default=0)
        for end_ms in window_ends(day, self._rules(run.lane), time.done_ms, newest + 1):
            window = {number: _between(series, time.done_ms, end_ms) for number, series in samples.items()}
            if end_ms > newest - _STEPS_LATE_MS:
                time = time.copy()
            first, last = steps.searchsorted([time.done_ms, end_ms])
            time.add(end_ms, run.lane.plan.device_series(window), steps[first:last])
        devices.signature = run.signature(devices.time.done_ms)
        return time


@dataclass(slots=True)
class _RunOnHost:
    """A run on a host. `others`: by device, the covered time of the other runs that share it."""

    run: UsageRun
    host: str
    own: list[Interval]
    others: Mapping[str, list[list[Interval]]]

    @property
    def lane(self) -> UsageLane | None:
        """The lane with the devices' series: the first one of the host that has some."""
        lanes = self.run.lanes.get(self.host, ())
        return next((lane for lane in lanes if lane.plan.metrics()), None)

    @property
    def devices(self) -> list[UsedDevice]:
        return [device for device in self.run.devices if device.host == self.host]

    def time_shares(self) -> dict[str, TimeShare]:
        shares = {name: Share([self.own, *others]) for name, others in self.others.items() if others}
        on_host = [self.own, *self.others.get(HOST, ())]
        return {
            **shares,
            HOST_SHARED: Share(on_host, lambda count: 1 / count if count > 1 else 0.0),
            CPU_SHARED: Share(on_host, lambda count: float(count > 1)),
        }

    def signature(self, until_ms: int) -> tuple[object, ...]:
        """Return a key of the other runs' intervals before a time, which decide the shares."""
        return tuple(
            (name, tuple(sorted(_before(other, until_ms) for other in others)))
            for name, others in sorted(self.others.items())
            if others
        )


def _same_slices(mine: frozenset[str], others: frozenset[str] | None) -> bool:
    """Return whether runs share a device: both use all of it, or a slice in common."""
    return not mine or not others or bool(mine & others)


def _before(intervals: Sequence[Interval], until_ms: int) -> tuple[Interval, ...]:
    return tuple((start, min(end, until_ms)) for start, end in intervals if start < until_ms)


def _between(series: SeriesSamples, from_ms: int, until_ms: int) -> SeriesSamples:
    first, last = series.t.searchsorted([from_ms, until_ms])
    return replace(series, t=series.t[first:last], values=series.values[first:last])


def _until(day: Day, rules: Rules, now_ms: int) -> int:
    """Until when samples are read: an hour more than now, since clocks of hosts may be ahead."""
    return min(day.end_ms + rules.margin_ms, max(now_ms, day.start_ms) + 3_600_000)


def _host_row(run: _RunOnHost, day: Day, figures: Mapping[str, DeviceFigures]) -> HostRunDay:
    host = figures.get(HOST, DeviceFigures())
    cpus = run.run.cpus.get(run.host)
    cpu_ms, shared_cpu_ms = (
        round(figures[name].busy * cpus) if cpus is not None and name in figures else None
        for name in (CPU, CPU_SHARED)
    )
    return HostRunDay(
        run.run.owner.run_id,
        day.name,
        run.host,
        tuple(run.own),
        round(host.measured * _MJ_PER_J),
        max(0, length(run.own) - round(host.measured_ms)),
        cpu_ms,
        shared_cpu_ms,
        round(figures[HOST_SHARED].measured * _MJ_PER_J) if HOST_SHARED in figures else None,
    )


def _device_row(run: _RunOnHost, day: Day, device: UsedDevice, figures: DeviceFigures) -> DeviceRunDay:
    """The figures of a device. Of a slice of it, its part of what the whole device did."""
    return DeviceRunDay(
        run.run.owner.run_id,
        day.name,
        run.host,
        device.device_id,
        device.model,
        device.used,
        round(figures.share * device.part),
        round(figures.busy * device.part),
        round(figures.idle * device.part),
        round(figures.measured * _MJ_PER_J * device.part),
        round(figures.estimated * _MJ_PER_J * device.part),
        round(figures.unknown_ms * device.part),
        round(figures.hung * device.part),
    )


def run_days(
    day: Day, runs: Iterable[UsageRun], covered: Mapping[int, Mapping[str, Sequence[Interval]]]
) -> list[RunDay]:
    """How long runs took on a day, from the covered time of all their hosts."""
    days = []
    for run in runs:
        hosts = covered.get(run.owner.run_id, {})
        tracked = length(union(interval for intervals in hosts.values() for interval in intervals))
        if hosts:
            host_ms = sum(length(intervals) for intervals in hosts.values())
            days.append(RunDay(run.owner, day.name, tracked, host_ms))
    return days
