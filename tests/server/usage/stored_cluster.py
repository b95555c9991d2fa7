"""A simulated cluster in the stores of a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from runvitals.model.device import RunDevice
from runvitals.model.ending import Ending
from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.usage_marks import DirtyDay, UsageMarks
from runvitals.server.organisation.settings import checked_settings
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, Sender, WriterRegistration
from runvitals.server.runs.storage.writers import WriterEnd, WriterHeartbeat
from runvitals.server.usage.days import Calendar
from runvitals.server.usage.rollup import UsageRollup
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store
from tests.server.usage.figures.cluster import HostSamples, SimulatedCluster

INTERVAL_S = 180.0  # so that 15 minutes of silence are a gap
SETTINGS = {"idle_minutes": 45, "time_zone": "Europe/Berlin"}


class UsageStores:
    """A sample store and a metadata store with a roll-up. `now_ms`: the time."""

    def __init__(self, folder: Path, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.now_ms = 0
        self.store = SqliteChunks(str(folder / "store"))
        self.metadata_store = new_metadata_store(folder / "catalogue.db")
        self.metadata_store.accounts.settings.put(checked_settings({**SETTINGS, **settings}), CLI, 1)
        self.calendar = Calendar(str({**SETTINGS, **settings}["time_zone"]))
        self.rollup = self.new_rollup()
        self._seq = 0

    def new_rollup(self) -> UsageRollup:
        return UsageRollup(self.store, self.metadata_store, lambda: self.now_ms)

    def close(self) -> None:
        self.store.close()
        self.metadata_store.close()

    def join(
        self, run: str, host: str, started_ms: int, sender: Sender | None = None, project: str = "digits"
    ) -> RegisteredWriter:
        writer = WriterRegistration(
            run,
            f"monitor.{host}.1",
            project,
            "monitor",
            host,
            interval_s=INTERVAL_S,
            started_ms=started_ms,
            **({} if sender is None else {"sender": sender}),
        )
        (who,) = self.metadata_store.writers.join([writer], max(self.now_ms, 1))
        return who

    def join_training(self, monitor: RegisteredWriter, run: str, started_ms: int) -> RegisteredWriter:
        """The writer of `log()` beside a monitor."""
        writer = WriterRegistration(
            run, "train.1", "digits", "train", monitor.host, interval_s=None, started_ms=started_ms
        )
        (who,) = self.metadata_store.writers.join([writer], max(self.now_ms, 1))
        return who

    def devices(
        self, who: RegisteredWriter, names: list[str], used: bool | None = True, model: str = "NVIDIA H100"
    ) -> None:
        """Devices that a run uses, each by its name `host/index`."""
        devices = [
            RunDevice(who.host, uuid=f"GPU-{name}", position=int(name.split("/")[1]), used=used, model=model)
            for name in names
        ]
        self.metadata_store.devices.record(who.run_id, devices, 1)

    def append(self, who: RegisteredWriter, keys: list[str], t: NDArray[Any], values: NDArray[Any]) -> None:
        """Samples that arrive now, with what ingest notes about them."""
        if not len(t):
            return
        schema = self.metadata_store.metrics.schema(keys)
        self.metadata_store.metrics.record_schemas([(who.writer_id, schema.id)])
        self._seq += 1
        self.store.append(
            [
                SampleBatch(
                    who.lane_id, who.writer_id, self._seq, schema.metric_ids, t, np.ascontiguousarray(values)
                )
            ]
        )
        dirty = [
            DirtyDay(who.lane_id, day.name, who.run_id, max(int(t[0]), day.start_ms), self._seq)
            for day in self.calendar.days(int(t[0]), int(t[-1]))
        ]
        self.metadata_store.writers.record_heartbeats(
            [WriterHeartbeat(who.writer_id, self.now_ms, int(t[-1]))], UsageMarks(dirty)
        )

    def end(self, who: RegisteredWriter, time_ms: int, state: str = "finished") -> None:
        self.metadata_store.writers.record_ends([WriterEnd(who.writer_id, Ending(state, 0), time_ms)])


def replay(stores: UsageStores, cluster: SimulatedCluster, every_ms: int) -> Iterator[int]:
    """Let time pass from the beginning of a cluster to its end; yields each time after what arrived."""
    start = min(samples.times[0] for hosts in cluster.runs.values() for samples in hosts.values())
    end = max(samples.times[-1] for hosts in cluster.runs.values() for samples in hosts.values())
    writers: dict[tuple[int, str], RegisteredWriter] = {}
    stores.now_ms = start
    while stores.now_ms < end + 1:
        before, stores.now_ms = stores.now_ms, stores.now_ms + every_ms
        for run, hosts in cluster.runs.items():
            for host, samples in hosts.items():
                chosen = [i for i, t in enumerate(samples.times) if before <= t < stores.now_ms]
                if not chosen:
                    continue
                if (run, host) not in writers:
                    writers[run, host] = stores.join(f"run-{run}", host, samples.times[0])
                    stores.devices(writers[run, host], list(samples.devices))
                keys, values = _columns(samples, chosen)
                t = np.array([samples.times[i] for i in chosen], np.int64)
                stores.append(writers[run, host], keys, t, values)
                if chosen[-1] == len(samples.times) - 1:
                    stores.end(writers[run, host], int(t[-1]))
        yield stores.now_ms


def _columns(samples: HostSamples, chosen: list[int]) -> tuple[list[str], NDArray[Any]]:
    keys, columns = ["cpu.mean"], [np.ones(len(chosen))]
    for name, values in samples.devices.items():
        index = name.split("/")[1]
        for which, key in enumerate(("gpu", "energyJoules", "powerWatts")):
            if values[0][which] is not None:
                keys.append(f"gpu.{index}.{key}")
                columns.append(np.array([values[i][which] for i in chosen]))
    return keys, np.column_stack(columns)
