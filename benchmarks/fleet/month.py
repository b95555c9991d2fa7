"""Cost of a chart of 30 days: a run that is sampled at 1 Hz, in the embedded store and in ClickHouse."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.store.samples.clickhouse.server import ClickHouseServer, installed

from benchmarks.fleet.stores import T0
from benchmarks.store.dataset import Fleet
from benchmarks.store.measure import Numbers, cpu_s, spent
from runvitals.base.buckets import grid
from runvitals.model.durations import DAY_MS
from runvitals.store.samples.clickhouse import ClickHouseSettings, ClickHouseStore
from runvitals.store.samples.interface import SampleBatch, SampleStore
from runvitals.store.samples.sqlite import SqliteChunks

_SERIES = 8
_POINTS = 1000
_TICKS_PER_DAY = DAY_MS // 1000


def embedded(fleet: Fleet, days: int, folder: str) -> Numbers:
    with SqliteChunks(os.path.join(folder, "month-embedded")) as store:
        _fill(store, fleet, days)
        store.compact()
        return _charts(store, days, lambda: 0.0)


def clickhouse(fleet: Fleet, days: int, folder: str) -> Numbers:
    kind = "chdb" if installed("chdb") else "debian"
    if not installed(kind):
        return {}
    server = ClickHouseServer(Path(folder) / "month-clickhouse", kind)
    try:
        assert server.process is not None
        pid = server.process.pid
        waiting = os.path.join(folder, "month-waiting")
        with ClickHouseStore(server.address(), waiting, ClickHouseSettings(gather_s=0.0)) as store:
            _fill(store, fleet, days)
            store.clickhouse.command("OPTIMIZE TABLE samples FINAL")
            return _charts(store, days, lambda: cpu_s(pid))
    finally:
        server.stop()


def _fill(store: SampleStore, fleet: Fleet, days: int) -> None:
    """A day in a batch; every day has the values of the first."""
    values = np.ascontiguousarray(fleet.run(0).values[:_TICKS_PER_DAY, :_SERIES])
    for day in range(days):
        t = T0 + day * DAY_MS + 1000 * np.arange(len(values), dtype=np.int64)
        store.append([SampleBatch(1, 1, day, tuple(range(_SERIES)), t, values)])


def _charts(store: SampleStore, days: int, engine_cpu_s: Callable[[], float]) -> Numbers:
    numbers: Numbers = {}
    on = grid(T0, T0 + days * DAY_MS - 1, _POINTS)
    for count in (1, _SERIES):
        before = engine_cpu_s()
        with spent() as here:
            store.read_buckets([1], range(count), on)
        numbers |= {
            f"chart of {count} series × {days} days, ms": here.wall_s * 1000,
            f"chart of {count} series × {days} days, ms CPU in the server": here.cpu_s * 1000,
            f"chart of {count} series × {days} days, ms CPU in the engine": (engine_cpu_s() - before) * 1000,
        }
    return numbers
