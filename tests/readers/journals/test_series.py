"""Samples as columns: the values as written, bit for bit, with their gaps."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.readers.journals import rates
from runvitals.readers.journals import series as columns_module
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.series import Columns, SampleTable, Series
from tests.readers.journals.journals import T0, Monitor

NAN = math.nan


@pytest.fixture(params=["numpy", "lists"], autouse=True)
def with_and_without_numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "lists":
        monkeypatch.setattr(columns_module, "numpy_or_none", lambda: None)


def metrics(directory: Path, *patterns: str, host: str | None = None, run_id: str = "abc") -> Columns:
    reader = RunReader(run_id, str(directory))
    reader.poll()
    return reader.columns(patterns, host)


def points(series: Series) -> list[tuple[int, float | None]]:
    """(ms since the start, value; None for a gap)."""
    return [(int(t) - T0, None if math.isnan(v) else float(v)) for t, v in zip(*series, strict=True)]


def test_series_by_key(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0, "gpu.0.temp": 50.0})
    monitor.sample(T0 + 1000, {"cpu": 2.0, "gpu.0.temp": 51.0})
    columns = metrics(tmp_path)
    assert dict(columns).keys() == {"cpu", "gpu.0.temp"}
    assert points(columns["cpu"]) == [(0, 1.0), (1000, 2.0)]
    assert (columns["cpu"].host, columns["cpu"].role, columns["cpu"].unit) == ("node1", "monitor", "%")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("cpu", {"cpu"}),
        ("gpu.*", {"gpu.0.temp", "gpu.1.temp"}),
        ("*", {"cpu", "gpu.0.temp", "gpu.1.temp", "memory_percent", "an odd [key]"}),
        ("memory", {"memory_percent"}),  # the older spelling
        ("mem*y", {"memory_percent"}),
        ("an odd [key]", {"an odd [key]"}),
        ("GPU.*", set()),
        ("nothing", set()),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, expected: set[str]) -> None:
    keys = ("cpu", "gpu.0.temp", "gpu.1.temp", "memory_percent", "an odd [key]")
    Monitor(tmp_path).sample(T0, dict.fromkeys(keys, 1.0))
    assert set(metrics(tmp_path, pattern)) == expected


def test_a_missing_key_has_no_point_and_a_nan_is_a_gap(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0, "slow": 10.0})
    monitor.sample(T0 + 1000, {"cpu": NAN})
    monitor.sample(T0 + 2000, {"cpu": 3.0, "slow": 30.0})
    columns = metrics(tmp_path)
    assert points(columns["cpu"]) == [(0, 1.0), (1000, None), (2000, 3.0)]
    assert points(columns["slow"]) == [(0, 10.0), (2000, 30.0)]


def test_keys_in_varying_order_are_ordered_by_time(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for i in range(10):
        keys = {"cpu": float(i), "x": 0.0} if i % 3 else {"y": 0.0, "cpu": float(i)}
        monitor.sample(T0 + i, keys)
    assert points(metrics(tmp_path)["cpu"]) == [(i, float(i)) for i in range(10)]


def test_a_restarted_monitor_leaves_a_gap_in_a_series(tmp_path: Path) -> None:
    for start, value in ((0, 1.0), (10_000, 5.0)):
        monitor = Monitor(tmp_path, start_ms=T0 + start)
        monitor.sample(T0 + start, {"cpu": value, "disk.in": value})
        monitor.sample(T0 + start + 1000, {"cpu": value + 1, "disk.in": value + 2})
    columns = metrics(tmp_path)
    assert points(columns["cpu"]) == [(0, 1.0), (1000, 2.0), (5500, None), (10_000, 5.0), (11_000, 6.0)]
    # No speed is known for the time in between, though the counter's total is.
    assert points(columns["disk.readMBps"]) == [(1000, 2.0), (5500, None), (10_000, None), (11_000, 2.0)]


def test_a_reset_counter_makes_no_spike(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for i, total in enumerate((0.0, 10.0, 4.0, 5.0, NAN, 9.0, 11.0)):
        monitor.sample(T0 + i * 1000, {"disk.in": total})
    assert points(metrics(tmp_path, "disk.readMBps")["disk.readMBps"]) == [
        (1000, 10.0), (2000, None), (3000, 1.0), (4000, None), (5000, None), (6000, 2.0),
    ]  # fmt: skip


def test_rates_have_the_factor_and_key_of_their_metric(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"network.eth0.sent": 0.0})
    monitor.sample(T0 + 500, {"network.eth0.sent": 2.0**20})
    columns = metrics(tmp_path, "network.*MBps")
    assert list(columns) == ["network.eth0.sentMBps"]
    assert points(columns["network.eth0.sentMBps"]) == [(500, 2.0)]
    assert columns["network.eth0.sentMBps"].unit == "MiB/s"


def test_one_of_several_hosts_is_selected_by_name(tmp_path: Path) -> None:
    Monitor(tmp_path, host="a").sample(T0, {"cpu": 1.0})
    Monitor(tmp_path, host="b").sample(T0, {"cpu": 2.0, "gpu.0.temp": 3.0})
    columns = metrics(tmp_path)
    assert columns.hosts == ["a", "b"]
    assert points(columns.on("b")["cpu"]) == [(0, 2.0)]
    assert points(columns["gpu.0.temp"]) == [(0, 3.0)]
    with pytest.raises(LookupError, match=r"several hosts have 'cpu' \(a, b\)"):
        columns["cpu"]
    with pytest.raises(LookupError, match="no series of host 'c'; hosts: a, b"):
        columns.on("c")
    assert metrics(tmp_path, host="a").hosts == ["a"]


def test_an_unknown_key_is_a_key_error_and_get_works(tmp_path: Path) -> None:
    Monitor(tmp_path).sample(T0, {"memory_percent": 1.0})
    columns = metrics(tmp_path)
    assert columns.get("gpu.0.temp") is None
    assert points(columns["memory"]) == [(0, 1.0)]  # the other spelling is fine here too


def test_reading_on_while_columns_are_in_use(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    monitor.sample(T0, {"cpu": 1.0})
    reader = RunReader("abc", str(tmp_path))
    reader.poll()
    column = reader.columns(["cpu"])["cpu"]
    monitor.sample(T0 + 1000, {"cpu": 2.0})
    assert reader.poll() == 1
    assert points(column) == [(0, 1.0)]
    assert points(reader.columns(["cpu"])["cpu"]) == [(0, 1.0), (1000, 2.0)]


def test_samples_after_a_sequence_number(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path)
    for i in range(4):
        monitor.sample(T0 + i, {"cpu": float(i)} if i % 2 else {"cpu": float(i), "x": 0.0})
    reader = RunReader("abc", str(tmp_path))
    reader.poll()
    samples = reader.samples.writers[monitor.journal.writer]
    everything = samples.after(-1)
    assert [(t - T0, row["cpu"]) for t, row in everything] == [(0, 0.0), (1, 1.0), (2, 2.0), (3, 3.0)]
    last = reader.last_seq[monitor.journal.writer]
    assert samples.after(last - 1) == everything[3:]
    assert (samples.count_after(last - 1), samples.count_after(last)) == (1, 0)
    assert samples.newest(last - 1) == {"cpu": (T0 + 2, 2.0), "x": (T0 + 2, 0.0)}


@settings(max_examples=30)
@given(rows=st.lists(st.tuples(st.integers(0, 5000), st.floats(width=64)), min_size=1, max_size=30))
def test_values_are_unchanged_and_ordered_by_time(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, float]]
) -> None:
    directory = tmp_path_factory.mktemp("data")
    monitor = Monitor(directory)
    for t, value in rows:
        monitor.sample(T0 + t, {"v": value})
    series = metrics(directory)["v"]
    in_order = sorted(
        rows, key=lambda row: row[0]
    )  # a clock that was set back; sorted() keeps ties as written
    assert [int(t) - T0 for t in series.t] == [t for t, _ in in_order]
    assert [struct.pack("<d", v) for v in series.values] == [struct.pack("<d", v) for _, v in in_order]


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 10_000), st.floats(allow_infinity=False, min_value=-1e200, max_value=1e200)),
        min_size=2,
        max_size=40,
    ),
    factor=st.sampled_from([1.0, 100.0, 2.0**-20]),
)
def test_rates_of_lists_and_of_arrays_are_the_same(rows: list[tuple[int, float]], factor: float) -> None:
    t, values = [row[0] for row in rows], [row[1] for row in rows]
    list_t, list_rates = rates.derive(t, values, factor)
    array_t, array_rates = rates.derive(np.array(t, np.int64), np.array(values), factor)
    assert list_t == array_t.tolist()
    np.testing.assert_array_equal(np.array(list_rates), array_rates)


class CountedName(str):
    """A key that counts how often it is compared with another one."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedName.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_finding_each_of_many_keys_compares_it_with_few_others() -> None:
    CountedName.comparisons = 0
    keys = tuple(CountedName(f"custom.metric{number}") for number in range(2000))
    table = SampleTable(keys)
    table.rows.extend(map(float, range(2000)))
    assert [float(table.column(key)[0]) for key in keys] == list(map(float, range(2000)))
    assert CountedName.comparisons < 20 * len(keys)
