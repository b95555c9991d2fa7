"""The metrics of a request as tables: every value in its row, each of several once."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.server.doors.mlflow.errors import MlflowError
from runvitals.server.doors.mlflow.metric_columns import MetricColumns, SentBatch

T0 = 1_760_000_000_000
KEYS = st.sampled_from(["a", "b", "c"])
SENT = st.lists(st.tuples(KEYS, st.floats(allow_nan=False), st.integers(0, 3), st.integers(-1, 2)))


def columns(sent: list[tuple[str, float, int, int]]) -> MetricColumns:
    return MetricColumns.of_objects(
        {"key": key, "value": value, "timestamp": T0 + t, "step": step} for key, value, t, step in sent
    )


@given(SENT)
def test_tables_have_every_value_once(sent: list[tuple[str, float, int, int]]) -> None:
    found: list[tuple[str, float, int, int]] = []
    cells = set()
    for names, timestamps, steps, repeats, values in columns(sent).distinct().tables():
        rows = list(zip(timestamps.tolist(), steps.tolist(), repeats.tolist(), strict=True))
        assert rows == sorted(rows)
        for (t, step, repeat), row in zip(rows, values.tolist(), strict=True):
            found += [(name, value, t - T0, step) for name, value in zip(names, row, strict=True)]
            cells |= {(name, t, step, repeat) for name in names}
    assert len(found) == len(cells)
    assert sorted(found) == sorted(set(sent))


def test_rows_with_the_same_metrics_are_one_table() -> None:
    sent = [(key, 1.0, t, t) for t in range(4) for key in "ab"]
    assert [len(table.timestamps) for table in columns(sent).tables()] == [4]
    assert [len(table.timestamps) for table in columns(sent[1:]).tables()] == [1, 3]


def test_the_newest_value_of_each_metric() -> None:
    sent = [("a", 1.0, 5, 2), ("a", 2.0, 9, 1), ("b", 3.0, 1, 0), ("a", 0.0, 5, 2)]
    assert list(columns(sent).newest()) == [("a", 1.0, T0 + 5, 2), ("b", 3.0, T0 + 1, 0)]


def test_usual_and_unusual_numbers_are_the_same() -> None:
    usual = {"key": "a", "value": 1.5, "timestamp": T0, "step": 3}
    batch = SentBatch.decode(json.dumps({"run_id": "1", "metrics": [usual]}).encode())
    assert batch is not None
    fast = MetricColumns.of_batch(batch.metrics)
    assert fast is not None
    as_texts = {name: str(value) for name, value in usual.items()}
    assert list(fast.points()) == list(MetricColumns.of_objects([as_texts]).points())
    [nan] = MetricColumns.of_objects([{**usual, "value": "NaN"}]).points()
    assert math.isnan(nan.value)


@pytest.mark.parametrize(
    "changed", [{"value": "NaN"}, {"step": 2**70}, {"step": 2**60}, {"timestamp": None}, {"key": 3}]
)
def test_unusual_numbers_are_left_to_the_checks(changed: dict[str, object]) -> None:
    metric = {"key": "a", "value": 1.5, "timestamp": T0, "step": 3, **changed}
    batch = SentBatch.decode(json.dumps({"run_id": "1", "metrics": [metric]}).encode())
    assert batch is None or MetricColumns.of_batch(batch.metrics) is None
    if changed != {"value": "NaN"}:
        with pytest.raises(MlflowError):
            MetricColumns.of_objects([metric])
