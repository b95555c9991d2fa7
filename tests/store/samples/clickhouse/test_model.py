"""After random writes the store in ClickHouse returns what the model does."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from runvitals.base.buckets import grid
from runvitals.store.samples.clickhouse import ClickHouseSettings
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.store.samples.clickhouse.server import ClickHouseServer, open_store
from tests.store.samples.comparison import assert_equal
from tests.store.samples.conformance import ALL, DAY, T0
from tests.store.samples.model import Model
from tests.store.samples.test_properties import RANGES, RUNS, STEPS, Append, Repeat

_numbers = itertools.count()
IN_CLICKHOUSE = ClickHouseSettings(gather_s=0.0, raw_samples=0)
"""All buckets are computed by ClickHouse."""


@pytest.mark.parametrize("limits", [ClickHouseSettings(gather_s=0.0), IN_CLICKHOUSE], ids=["here", "there"])
def test_the_store_returns_the_same_as_the_model(
    clickhouse_server: ClickHouseServer, tmp_path: Path, limits: ClickHouseSettings
) -> None:
    @settings(max_examples=4, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def compare(steps: Sequence[Append | Repeat | str | int]) -> None:
        number = next(_numbers)
        model, sent = Model(), list[SampleBatch]()
        database = clickhouse_server.new_database(f"model_{number}")
        with open_store(database, tmp_path / str(number), limits) as store:
            for step in steps:
                if isinstance(step, int):
                    store.delete([step])
                    model.delete([step])
                elif isinstance(step, Append):
                    sent.append(step.batch(len(sent)))
                    assert store.append([sent[-1]]) == model.append([sent[-1]])
                elif isinstance(step, Repeat) and sent:
                    again = sent[step.index % len(sent)]
                    assert store.append([again]) == model.append([again])
            assert_equal(store, model, RUNS, RANGES)

    compare()


def test_buckets_are_those_of_the_embedded_store_to_the_last_bit(
    clickhouse_server: ClickHouseServer, tmp_path: Path, folder: str
) -> None:
    rng = np.random.default_rng(7)
    database = clickhouse_server.new_database("bits")
    with open_store(database, tmp_path / "store") as store, SqliteChunks(folder) as embedded:
        for seq in range(5):
            t = T0 + seq * DAY // 3 + np.sort(rng.integers(0, DAY, 400))
            values = rng.normal(size=(400, 3)) * 10.0 ** rng.integers(-300, 300, (400, 1))
            values[rng.random((400, 3)) < 0.1] = np.nan
            for each in (store, embedded):
                each.append([SampleBatch(1, 1, seq, (1, 2, 3), t, values)])
        for points in (7, 300):
            on = grid(T0, T0 + 3 * DAY, points)
            ours, theirs = (each.read_buckets([1], None, on).series for each in (store, embedded))
            for mine, other in zip(ours, theirs, strict=True):
                for name in ("t", "n", "min", "max", "mean", "last"):
                    bits = [getattr(each.buckets, name).tobytes() for each in (mine, other)]
                    assert bits[0] == bits[1], (name, points)
        raw = [
            [(s.t.tobytes(), s.values.tobytes()) for s in each.read([1], None, *ALL).series]
            for each in (store, embedded)
        ]
        assert raw[0] == raw[1]
