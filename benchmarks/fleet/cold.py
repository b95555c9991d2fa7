"""Costs and savings of cold storage: samples of hosts, moved to a folder that stands for a bucket."""

from __future__ import annotations

import os
import shutil

import numpy as np

from benchmarks.fleet.stores import T0
from benchmarks.store.dataset import METRICS, Fleet
from benchmarks.store.measure import Numbers, size, spent
from runvitals.base.buckets import grid
from runvitals.model.durations import DAY_MS
from runvitals.store.samples.cold.storage import CACHE_FOLDER, ColdSettings
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks

_HOSTS = 10
_TICKS = 43_200
"""Half a day at 1 Hz."""


def measure(fleet: Fleet, folder: str) -> Numbers:
    bucket = os.path.join(folder, "bucket")
    os.mkdir(bucket)
    points = _HOSTS * _TICKS * len(METRICS)
    cold = ColdSettings(bucket, after_ms=DAY_MS)
    # The clock stands when all are recent, so that nothing moves before it is measured.
    clock_ms = [T0]
    with SqliteChunks(os.path.join(folder, "cold"), clock_ms=lambda: clock_ms[0], cold=cold) as store:
        for host in range(_HOSTS):
            values = np.ascontiguousarray(np.resize(fleet.run(host).values, (_TICKS, len(METRICS))))
            t = T0 + 1000 * np.arange(_TICKS, dtype=np.int64)
            store.append([SampleBatch(host, 1, 1, METRICS, t, values)])
        store.compact()
        before = size(store.folder)
        clock_ms[0] = T0 + 90 * DAY_MS
        with spent() as moving:
            store.move_to_cold_storage()
        store.compact()
        cache = os.path.join(store.folder, CACHE_FOLDER)
        numbers = {
            "bytes/point on disk before": before / points,
            "bytes/point on disk after": (size(store.folder) - size(cache)) / points,
            "bytes/point in the bucket": size(bucket) / points,
            "moving, µs CPU/point": moving.cpu_s / points * 1e6,
        }
        end = T0 + 1000 * _TICKS - 1
        for name, on in (("an hour", grid(T0, T0 + 3_600_000, 1000)), ("half a day", grid(T0, end, 1000))):
            for state in ("from the bucket", "from the cache"):
                if state == "from the bucket":
                    shutil.rmtree(cache)
                with spent() as reading:
                    store.read_buckets([3], METRICS[:8], on)
                numbers[f"chart of 8 series over {name}, {state}, ms CPU"] = reading.cpu_s * 1000
                numbers[f"MB fetched for {name}"] = size(cache) / 1e6
        return numbers
