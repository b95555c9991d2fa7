"""Computes what runs used, every five minutes: the days of which samples have come since, nothing else."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, timedelta
from typing import Final

from runvitals.model.durations import HOUR_MS, MINUTE_MS
from runvitals.server.events.usage_marks import DirtyDay, UsageMarks
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.usage.day_computation import DayComputation, run_days
from runvitals.server.usage.days import LATEST_MS, Day, Month
from runvitals.server.usage.host_lanes import UsageRun, UsageRunReader
from runvitals.server.usage.settings import UsageSettings, usage_settings
from runvitals.server.usage.storage.figures import StorageRow
from runvitals.server.usage.stored_bytes import storage_of
from runvitals.server.usage.windows import Rules
from runvitals.store.samples.interface import SampleStore
from runvitals.store.supervised_thread import SupervisedThread

EVERY_S: Final = 300.0
_HEARD_MS: Final = 5 * MINUTE_MS
_NEXT_DAY_MS: Final = HOUR_MS
"""Samples from the beginning of a day may change the end of the day before."""
_RUNS_AT_ONCE: Final = 200

log = logging.getLogger("runvitals.server")


class UsageRollup:
    """A supervised thread that computes usage; `with` ends it.

    Args:
        clock: the time now, ms UTC.
        after: called after each computation, with the settings and the time.
        leads: whether this server does it; another one does otherwise.

    Attributes:
        seconds: CPU time that the last computation took.
    """

    def __init__(
        self,
        store: SampleStore,
        metadata_store: MetadataStore,
        clock: Callable[[], int],
        after: Callable[[UsageSettings, int], None] = lambda settings, now_ms: None,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._leads = leads
        self._store = store
        self._metadata_store = metadata_store
        self._usage = metadata_store.usage
        self._clock = clock
        self._after = after
        self._reader = UsageRunReader(metadata_store)
        self._days = DayComputation(store, metadata_store)
        self._settings: UsageSettings | None = None
        self._started = False
        self._computing = threading.Lock()
        self.seconds = 0.0
        self.thread = SupervisedThread("usage", self._turn, every_s=EVERY_S)

    def __enter__(self) -> UsageRollup:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.thread.close()

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        if self._leads():
            self.update()
        return True

    def update(self) -> None:
        """Compute what has changed."""
        with self._computing:
            self._update()

    def _update(self) -> None:
        started_s = time.thread_time()
        now_ms = self._clock()
        settings = self._current_settings()
        if not self._started:
            self._mark_heard_last(settings, now_ms)
            self._started = True
        self._compute_dirty(settings, now_ms)
        self._usage.figures.settle_states(now_ms)
        self._snapshot_storage(settings, now_ms)
        self._usage.figures.copy_names()
        self._after(settings, now_ms)
        self.seconds = time.thread_time() - started_s

    def keep_before(self, time_ms: int) -> None:
        """Compute what has changed, and keep the figures of all days up to a time: their samples may go."""
        with self._computing:
            settings = self._current_settings()
            self._compute_dirty(settings, self._clock())
            last = settings.calendar.date_at(time_ms)
            self._usage.figures.mark_final((last + timedelta(days=1)).isoformat())

    def rebuild(self, month: Month) -> int:
        """Compute a month anew from the samples, but for final days; returns how many days of runs."""
        with self._computing:
            return self._rebuild(month)

    def _rebuild(self, month: Month) -> int:
        settings, now_ms = self._current_settings(), self._clock()
        calendar = settings.calendar
        first, last = calendar.day(month.first), calendar.day(month.last)
        self._days.forget_all()
        self._usage.figures.forget_days(first.name, last.name)
        lanes = self._usage.marks.lanes_between(first.start_ms, min(last.end_ms, now_ms))
        dirty = [
            DirtyDay(lane_id, day.name, run_id, day.start_ms, now_ms)
            for lane_id, run_id, from_ms, until_ms in lanes
            for day in calendar.days(max(from_ms, first.start_ms), min(until_ms, last.end_ms - 1))
        ]
        return self._compute(dirty, settings, now_ms)

    def _current_settings(self) -> UsageSettings:
        settings = usage_settings(self._metadata_store)
        if settings != self._settings:
            self._settings = settings
            self._days.forget_all()
            self._days.rules = Rules(0, settings.idle_percent, settings.idle_ms)
        return settings

    def _mark_heard_last(self, settings: UsageSettings, now_ms: int) -> None:
        """Compute the days of the writers that an earlier server heard last: it may have been killed."""
        calendar = settings.calendar
        days = (
            (lane_id, run_id, calendar.day(calendar.date_at(last_ms)))
            for lane_id, run_id, last_ms in self._usage.marks.lanes_heard_last(_HEARD_MS)
            if last_ms > now_ms - LATEST_MS
        )
        dirty = [DirtyDay(lane_id, day.name, run_id, day.start_ms, now_ms) for lane_id, run_id, day in days]
        self._usage.marks.add(UsageMarks(dirty))

    def _compute_dirty(self, settings: UsageSettings, now_ms: int) -> None:
        dirty = self._usage.marks.dirty()
        computable = [mark for mark in dirty if mark.from_ms > now_ms - LATEST_MS]
        before = [
            DirtyDay(mark.lane_id, day.name, mark.run_id, day.end_ms - 1, mark.marked_ms)
            for mark in computable
            if mark.from_ms < self._day(settings, mark.day).start_ms + _NEXT_DAY_MS
            for day in [settings.calendar.day(date.fromisoformat(mark.day) - timedelta(days=1))]
        ]
        marks = {(mark.lane_id, mark.day): mark for mark in (*before, *computable)}
        self._compute(list(marks.values()), settings, now_ms)
        self._usage.marks.remove(dirty)

    def _day(self, settings: UsageSettings, name: str) -> Day:
        return settings.calendar.day(date.fromisoformat(name))

    def _compute(self, dirty: Collection[DirtyDay], settings: UsageSettings, now_ms: int) -> int:
        """Compute days, the oldest first; returns how many days of runs."""
        final = self._usage.figures.final_days(sorted({mark.day for mark in dirty}))
        by_day: dict[str, dict[int, dict[int, int]]] = defaultdict(lambda: defaultdict(dict))
        for mark in dirty:
            if (mark.run_id, mark.day) not in final:
                self._days.forget(mark.lane_id, mark.day, mark.from_ms)
                by_day[mark.day][mark.run_id][mark.lane_id] = mark.from_ms
        count = 0
        for name in sorted(by_day):
            count += self._compute_day(self._day(settings, name), by_day[name], settings, now_ms)
        return count

    def _compute_day(
        self, day: Day, lanes: Mapping[int, Mapping[int, int]], settings: UsageSettings, now_ms: int
    ) -> int:
        """Compute a day of runs: first the covered time of all of them, then their devices.

        Args:
            lanes: from when on samples came, by run and lane.
        """
        runs = self._reader.runs(lanes, now_ms)
        self._usage.figures.forget_runs(day.name, lanes.keys() - runs.keys())
        for run_id, run in runs.items():
            for lane_id in run.step_lanes & lanes[run_id].keys():
                self._days.forget_steps(run, day.name, lanes[run_id][lane_id])
        hosts = {run_id: _hosts_of(run, lanes[run_id]) for run_id, run in runs.items()}
        self._days.cover(day, [(run, hosts[run_id]) for run_id, run in runs.items()], now_ms)
        sharing = self._sharing(day, runs)
        final = {run_id for run_id, _ in self._usage.figures.final_days([day.name])}
        for run_id, run in self._reader.runs(sharing.keys() - runs.keys() - final, now_ms).items():
            runs[run_id] = run
            hosts[run_id] = [host for host in run.lanes if host in sharing[run_id]]
        covered = self._usage.figures.covered(day.name, {*runs, *sharing})
        flat = {
            (run_id, host): list(intervals)
            for run_id, of_run in covered.items()
            for host, intervals in of_run.items()
        }
        slices = {
            (run_id, device.host, device.device_id): device.slices
            for run_id, run in runs.items()
            for device in run.devices
        }
        ids = list(runs)
        today = settings.calendar.date_at(now_ms).isoformat()
        for first in range(0, len(ids), _RUNS_AT_ONCE):
            batch = [runs[run_id] for run_id in ids[first : first + _RUNS_AT_ONCE]]
            runs_of_hosts = [(run, hosts[run.owner.run_id]) for run in batch]
            host_rows, device_rows = self._days.figures(day, runs_of_hosts, flat, slices, now_ms)
            self._usage.figures.put(run_days(day, batch, covered), host_rows, device_rows, today)
        return len(ids)

    def _sharing(self, day: Day, runs: Mapping[int, UsageRun]) -> dict[int, set[str]]:
        """The runs that were on the same hosts or used the same devices, with their hosts."""
        users = self._usage.figures.users(
            day.name,
            {host for run in runs.values() for host in run.lanes},
            {device.device_id for run in runs.values() for device in run.devices},
        )
        sharing: dict[int, set[str]] = defaultdict(set)
        for host, on_host in users.hosts.items():
            for run_id in on_host if len(on_host) > 1 else ():
                sharing[run_id].add(host)
        for of_device in users.devices.values():
            for run_id, host in of_device if len(of_device) > 1 else ():
                sharing[run_id].add(host)
        return sharing

    def _snapshot_storage(self, settings: UsageSettings, now_ms: int) -> None:
        """Once a day, note what each project stores."""
        today = settings.calendar.date_at(now_ms).isoformat()
        if self._usage.figures.last_storage_day() == today:
            return
        rows = []
        for entity_id in self._usage.figures.entities():
            for project in storage_of(self._store, self._metadata_store, entity_id):
                rows += [
                    StorageRow(today, project.project_id, kind, entity_id, size)
                    for kind, size in project.by_kind.items()
                    if size
                ]
        self._usage.figures.put_storage(rows)


def _hosts_of(run: UsageRun, lanes: Iterable[int]) -> list[str]:
    """The hosts of a run with one of these lanes; all of them, if it logs steps in one."""
    lane_ids = set(lanes)
    if lane_ids & run.step_lanes:
        return list(run.lanes)
    return [host for host, of_host in run.lanes.items() if any(lane.id in lane_ids for lane in of_host)]
