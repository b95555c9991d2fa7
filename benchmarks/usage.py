"""CPU time of the roll-up of usage: hosts that sample once a second, computed every five minutes.

    scripts/bench usage [--hosts 1000] [--devices 8] [--minutes 30]

Every host has a run of its own with `--devices` GPUs, whose utilisation and energy counter are recorded
beside two metrics of the host. The samples of five minutes are stored, as ingest does, and then the roll-up
runs; its CPU time is that of its thread. The first pass also reads what is known of the runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from runvitals.model.device import RunDevice
from runvitals.server.events.usage_marks import DirtyDay, UsageMarks
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.server.usage.rollup import EVERY_S, UsageRollup
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks

T0 = 1_795_435_200_000  # 2026-11-23, noon
_STEP_MS = round(EVERY_S * 1000)
_WRITTEN_AT_ONCE = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--minutes", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteChunks(str(Path(folder, "store")))
        with store, open_metadata_store(str(Path(folder, "catalogue.db"))) as metadata_store:
            measure(store, metadata_store, arguments.hosts, arguments.devices, arguments.minutes)


def measure(
    store: SqliteChunks, metadata_store: MetadataStore, hosts: int, devices: int, minutes: int
) -> None:
    writers = [_join(metadata_store, number, devices) for number in range(hosts)]
    keys = ["cpu.mean", "memory_percent"]
    keys += [f"gpu.{index}.{name}" for index in range(devices) for name in ("gpu", "energyJoules")]
    schema = metadata_store.metrics.schema(keys)
    metadata_store.metrics.record_schemas([(writer.writer_id, schema.id) for writer in writers])
    now_ms = T0
    rollup = UsageRollup(store, metadata_store, lambda: now_ms)
    passes = []
    for number in range(minutes * 60_000 // _STEP_MS):
        t = np.arange(now_ms, now_ms + _STEP_MS, 1000, dtype=np.int64)
        values = np.random.default_rng(number).random((len(t), len(keys))) * 100
        values[:, 3::2] = np.cumsum(values[:, 3::2], axis=0) + number * 1e6
        now_ms += _STEP_MS
        for first in range(0, hosts, _WRITTEN_AT_ONCE):
            some = writers[first : first + _WRITTEN_AT_ONCE]
            store.append([_batch(writer, number, schema.metric_ids, t, values) for writer in some])
        day = time.strftime("%Y-%m-%d", time.gmtime(T0 / 1000))
        dirty = [DirtyDay(each.lane_id, day, each.run_id, int(t[0]), number) for each in writers]
        metadata_store.usage.marks.add(UsageMarks(dirty))
        rollup.update()
        passes.append(rollup.seconds)
        print(f"  pass {number + 1} {rollup.seconds:18.2f} s of CPU")
    later = passes[1:] or passes
    mean = sum(later) / len(later)
    print(f"  {hosts} hosts × {devices} devices, 1 Hz: {mean:.2f} s every {EVERY_S:.0f} s,")
    print(f"  {mean / EVERY_S:.2%} of a core")


def _join(metadata_store: MetadataStore, number: int, devices: int) -> RegisteredWriter:
    host = f"node{number}"
    registration = WriterRegistration(
        f"run-{number}", f"monitor.{host}.1", "digits", "monitor", host, started_ms=T0
    )
    (writer,) = metadata_store.writers.join([registration], T0)
    used_devices = [
        RunDevice(host, uuid=f"GPU-{number}-{index}", position=index, used=True, model="NVIDIA H100")
        for index in range(devices)
    ]
    metadata_store.devices.record(writer.run_id, used_devices, T0)
    return writer


def _batch(
    writer: RegisteredWriter, seq: int, metrics: tuple[int, ...], t: np.ndarray, values: np.ndarray
) -> SampleBatch:
    return SampleBatch(writer.lane_id, writer.writer_id, seq, metrics, t, values)


if __name__ == "__main__":
    main()
