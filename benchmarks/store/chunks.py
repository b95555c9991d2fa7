"""Measures `SqliteChunks`, the sample store of this project."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from benchmarks.store.dataset import METRICS, Fleet, RunSamples
from benchmarks.store.measure import Numbers, drop_from_cache, memory_mb, once_ms, repeated_ms, size, spent
from runvitals.base.buckets import grid
from runvitals.model import batch_body
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks

CHURN_RUNS, CHURN_TICKS = 10_000, 10


def measure(fleet: Fleet, runs: int, folder: str) -> Numbers:
    """Run all measurements, in subfolders of `folder`."""
    samples = [fleet.run(number) for number in range(runs)]
    numbers: Numbers = {}
    for ticks, group, max_points in (
        (10, 32, 8_000_000),
        (10, 1, 1_000_000),
        (1, 100, 1_000_000),
        (1, 1, 120_000),
    ):
        numbers |= _ingest(samples, ticks, group, max_points, os.path.join(folder, "ingest"))
    numbers |= _sealed(samples, os.path.join(folder, "sealed"))
    numbers |= _churn(fleet, os.path.join(folder, "churn"))
    return numbers


def _batches(samples: Iterable[RunSamples], ticks: int) -> Iterator[SampleBatch]:
    """Batches as clients send them, in order of time, then run, packed by the client."""
    runs = list(samples)
    for seq, first in enumerate(range(0, len(runs[0].t), ticks)):
        for run in runs:
            t, values = run.t[first : first + ticks], run.values[first : first + ticks]
            t, values = batch_body.unpack(packed := batch_body.pack(t, values), len(METRICS))
            yield SampleBatch(run.run, run.run, seq, METRICS, t, values, packed)


def _ingest(samples: list[RunSamples], ticks: int, group: int, max_points: int, folder: str) -> Numbers:
    """`group` writers that each repeatedly send a batch and wait until it is durable."""
    batches = list(itertools.islice(_batches(samples, ticks), max_points // (ticks * len(METRICS))))
    points = len(batches) * ticks * len(METRICS)
    with SqliteChunks(folder) as store, spent() as cost:
        waits = [
            once_ms(partial(_append_each, store, batches[first : first + group]))
            for first in range(0, len(batches), group)
        ]
    shutil.rmtree(folder)
    name = f"ingest {len(METRICS)}x{ticks} by {group}"
    return {
        f"{name}, points/s": points / cost.wall_s,
        f"{name}, us CPU/point": cost.cpu_s / points * 1e6,
        f"{name}, ack p50 ms": float(np.percentile(waits, 50)),
        f"{name}, ack p99 ms": float(np.percentile(waits, 99)),
        f"{name}, ack max ms": max(waits),
    }


def _append_each(store: SqliteChunks, batches: Iterable[SampleBatch]) -> None:
    """Submit each batch separately, like many clients, and wait until all are durable."""
    for future in [store.submit([batch]) for batch in batches]:
        future.result()


def _sealed(samples: list[RunSamples], folder: str) -> Numbers:
    """Measure all runs in compacted form: size on disk and time to read."""
    points = sum(of_run.values.size for of_run in samples)
    before_mb = memory_mb()
    store = SqliteChunks(folder)
    with spent() as filling:
        for of_run in samples:
            store.append([SampleBatch(of_run.run, of_run.run, 0, METRICS, of_run.t, of_run.values)])
        store.flush()
    with spent() as compacting:
        store.compact()
    numbers = {
        "fill, points/s": points / filling.wall_s,
        "fill, us CPU/point": filling.cpu_s / points * 1e6,
        "compact, us CPU/point": compacting.cpu_s / points * 1e6,
        "memory after filling, MB": memory_mb() - before_mb,
    }
    store.close()
    numbers["bytes/point"] = size(folder) / points

    first = samples[0]
    on = grid(int(first.t[0]), int(first.t[-1]), 1000)
    t0, t1 = min(int(r.t[0]) for r in samples), max(int(r.t[-1]) for r in samples)
    runs = [r.run for r in samples]
    by_run = {run: run for run in runs}
    chart, wide = METRICS[:8], grid(t0, t1, 1000)
    queries: dict[str, Callable[[SqliteChunks], object]] = {
        "chart of 8 series": lambda store: store.read_buckets([first.run], chart, on),
        "1 metric of all runs": lambda store: store.read_buckets(runs, chart[:1], wide),
        "latest of all series": lambda store: store.latest(runs),
        "mean per run over the month": lambda store: store.aggregate(51, runs, t0, t1, None, by_run),
        "hourly mean over all runs": lambda store: store.aggregate(51, runs, t0, t1, 3_600_000),
    }
    for name, query in queries.items():
        drop_from_cache(folder)
        store = SqliteChunks(folder)
        numbers[f"{name}, cold ms"] = once_ms(partial(query, store))
        numbers[f"{name}, warm ms"] = repeated_ms(partial(query, store))
        store.close()
    shutil.rmtree(folder)
    return numbers


def _churn(fleet: Fleet, folder: str) -> Numbers:
    """Ten thousand runs of ten ticks."""
    source = fleet.run(0)
    series = CHURN_RUNS * len(METRICS)
    values = [source.values[first : first + CHURN_TICKS] for first in range(0, 5000, CHURN_TICKS)]
    batches = [
        SampleBatch(run, run, 0, METRICS, source.t[:CHURN_TICKS] + run * 1000, values[run % len(values)])
        for run in range(CHURN_RUNS)
    ]
    before_mb = memory_mb()
    store = SqliteChunks(folder)
    with spent() as cost:
        for first in range(0, CHURN_RUNS, 100):
            store.append(batches[first : first + 100])
        store.flush()
    numbers = {
        "churn, series/s": series / cost.wall_s,
        "churn, us CPU/series": cost.cpu_s / series * 1e6,
        "churn, memory MB": memory_mb() - before_mb,
    }
    runs = range(CHURN_RUNS)
    t1 = int(batches[-1].t[-1])
    numbers["churn, 1 metric over all runs, ms"] = repeated_ms(lambda: store.aggregate(1, runs, 0, t1), 3)
    store.compact()
    store.close()
    numbers["churn, bytes/series"] = size(folder) / series
    shutil.rmtree(folder)
    return numbers
