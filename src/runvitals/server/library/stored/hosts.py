"""The hosts of the runs of a store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from cachetools import LRUCache

from runvitals.model.device import RunDevice
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.host import Host
from runvitals.model.state import RUNNING, TRAIN
from runvitals.server.hosts.hosts import SEEN_MS, FleetHost, HostReading, HostRun, Recent, fleet, shown_keys
from runvitals.server.library.stored.metric_selection import MetricSelection
from runvitals.server.library.stored.run_facts import last_values
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.runs.storage.run_states import StoredWriter, hosts
from runvitals.store.samples.interface import SampleStore

_FRESH_MS: Final = 5000
"""A list that was made within this time is returned again, to everyone with the same rights: however many
look at it, it is made once."""
_MAX_LISTS: Final = 64
_DEVICES_FRESH_MS: Final = 60_000
_RECENT_FRESH_MS: Final = 30_000
"""How long the means of the last minutes are kept: they change slowly, and are most of the work."""


@dataclass(frozen=True, slots=True)
class _MadeList:
    made_ms: int
    hosts: list[FleetHost]


class StoredHosts:
    """The hosts of the runs of a store. Thread-safe.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._clock = clock
        self._metrics = MetricSelection(metadata_store)
        self._lock = threading.Lock()
        self._lists: LRUCache[ReadableRuns | None, _MadeList] = LRUCache(_MAX_LISTS)
        self._devices: dict[int, list[RunDevice]] = {}
        self._devices_ms = 0
        self._recent: dict[tuple[str, int], Recent | None] = {}
        self._recent_ms = 0

    def list_hosts(self, readable: ReadableRuns | None) -> list[FleetHost]:
        """Implements `HostLibrary.hosts`."""
        with self._lock:
            now_ms = self._clock()
            listing = self._lists.get(readable)
            if listing is None or not 0 <= now_ms - listing.made_ms < _FRESH_MS:
                listing = self._lists[readable] = _MadeList(now_ms, self._list(readable, now_ms))
            return listing.hosts

    def runs_on(
        self, host: str, t0: int, t1: int, limit: int, readable: ReadableRuns | None
    ) -> list[HostRun] | None:
        """Implements `HostLibrary.host_runs`."""
        now_ms, runs = self._clock(), self._metadata_store.host_runs
        ids = runs.on_host(host, t0, t1, limit, now_ms, readable)
        if not ids and not runs.on_host(host, 0, 2**62, 1, now_ms, readable):
            return None
        rows = self._metadata_store.runs.get(ids, now_ms)
        writers = self._metadata_store.writers.of_runs(ids)
        devices = self._metadata_store.devices.of_runs(ids)
        return [
            _host_run(rows[run_id], part, devices[run_id])
            for run_id in ids
            if run_id in rows
            for part in hosts(writers[run_id], now_ms)
            if part.name == host
        ]

    def _list(self, readable: ReadableRuns | None, now_ms: int) -> list[FleetHost]:
        newest = self._metadata_store.host_runs.newest(now_ms - SEEN_MS, now_ms, readable)
        running = self._metadata_store.runs.ids(Filter(states=(RUNNING,), readable=readable), now_ms)
        ids = sorted({*running, *newest.values()})
        rows = self._metadata_store.runs.get(ids, now_ms)
        writers = self._metadata_store.writers.of_runs(ids)
        parts = {run_id: {part.name: part for part in hosts(writers[run_id], now_ms)} for run_id in ids}
        devices = self._devices_of(running, now_ms)
        newest_runs = {
            host: _host_run(rows[run_id], parts[run_id][host], ())
            for host, run_id in newest.items()
            if run_id in rows and host in parts[run_id]
        }
        alive = [run_id for run_id in running if run_id in rows]
        readings = self._readings(alive, rows, writers, parts, devices)
        return fleet(self._with_recent(readings, writers, now_ms), newest_runs)

    def _readings(
        self,
        running: Sequence[int],
        rows: Mapping[int, RunRow],
        writers: Mapping[int, Sequence[StoredWriter]],
        parts: Mapping[int, Mapping[str, Host]],
        devices: Mapping[int, Sequence[RunDevice]],
    ) -> list[tuple[int, HostReading]]:
        """By run and host on which it is running."""
        of_running = [writer for run_id in running for writer in writers[run_id]]
        numbers = self._metrics.numbers(shown_keys())
        values = last_values(of_running, self._metadata_store, self._store, numbers)
        host_readings = []
        for run_id in running:
            for host, part in parts[run_id].items():
                if part.ending.state != RUNNING:
                    continue
                seen = [device for device in devices.get(run_id, ()) if device.host == host]
                about = _host_run(rows[run_id], part, seen)
                newest = values.get(run_id, {}).get(host, {})
                host_readings.append((run_id, HostReading(host, about, part.interval_s, newest, seen)))
        return host_readings

    def _with_recent(
        self,
        readings: Iterable[tuple[int, HostReading]],
        writers: Mapping[int, Sequence[StoredWriter]],
        now_ms: int,
    ) -> list[HostReading]:
        """Return the same with the series of the last minutes that they ask for."""
        hosts = []
        if not 0 <= now_ms - self._recent_ms < _RECENT_FRESH_MS:
            self._recent, self._recent_ms = {}, now_ms
        requests = []
        for run_id, reading in readings:
            lanes = [
                writer.lane_id
                for writer in writers[run_id]
                if writer.host == reading.host and writer.role != TRAIN
            ]
            requests.append((reading, lanes, reading.windows(now_ms)))
        self._read_recent(requests, now_ms)
        for reading, lanes, windows in requests:
            recent = {
                key: value
                for key in windows
                for lane in lanes
                if (value := self._recent.get((key, lane))) is not None
            }
            hosts.append(replace(reading, recent=recent) if recent else reading)
        return hosts

    def _read_recent(
        self, requests: Iterable[tuple[HostReading, Sequence[int], Mapping[str, int]]], now_ms: int
    ) -> None:
        """Read the series of the last minutes, unless that was done a moment ago."""
        missing: dict[tuple[str, int], list[int]] = {}
        for _, lanes, windows in requests:
            for key, window_ms in windows.items():
                new = [lane for lane in lanes if (key, lane) not in self._recent]
                missing.setdefault((key, window_ms), []).extend(new)
        numbers = self._metadata_store.metrics.find({key for (key, _), lanes in missing.items() if lanes})
        for (key, window_ms), lanes in missing.items():
            self._recent.update(dict.fromkeys(((key, lane) for lane in lanes), None))
            if key not in numbers or not lanes:
                continue
            by_lane = {lane: lane for lane in lanes}
            result = self._store.aggregate(
                numbers[key], sorted(by_lane), now_ms - window_ms, now_ms, None, by_lane
            )
            for series in result.series:
                growth = float(series.max[0]) - float(series.min[0])
                self._recent[key, series.group] = Recent(float(series.mean[0]), growth)

    def _devices_of(self, run_ids: Sequence[int], now_ms: int) -> Mapping[int, Sequence[RunDevice]]:
        """Return the devices of runs.

        They rarely change, and reading those of a thousand hosts takes a while.
        """
        if not 0 <= now_ms - self._devices_ms < _DEVICES_FRESH_MS:
            self._devices, self._devices_ms = {}, now_ms
        missing = [run_id for run_id in run_ids if not self._devices.get(run_id)]  # it may have just begun
        if missing:
            self._devices.update(self._metadata_store.devices.of_runs(missing))
        return self._devices


def _host_run(row: RunRow, part: Host, devices: Iterable[RunDevice]) -> HostRun:
    used = [
        device.position
        for device in devices
        if device.host == part.name and device.used and device.position is not None
    ]
    return HostRun(
        id=row.uid,
        entity=row.entity,
        project=row.project,
        name=row.name,
        author=row.author,
        state=part.ending.state,
        started_ms=part.started_ms,
        last_ms=part.last_ms,
        devices=tuple(sorted(used)) or None,
        number=row.id,
    )
