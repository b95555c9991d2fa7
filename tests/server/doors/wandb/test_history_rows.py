"""Rows of history and of system metrics, from what runs logged and measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from runvitals.model.batch_format import GAP
from runvitals.readers.journals.series import Series
from runvitals.server.doors.wandb import history_rows
from runvitals.server.doors.wandb.history_rows import HistoryRows, json_safe, system_rows
from runvitals.server.library.run_library import LoggedColumns, TooMuch

START = 1_760_000_000_000


def process(rank: int | None = None, **columns: list[tuple[float, float]]) -> LoggedColumns:
    """What a process logged: (step, value) by name, a second for each step."""
    found = {}
    for name, pairs in columns.items():
        steps = np.array([step for step, _ in pairs])
        found[name] = (steps, START + 1000 * steps, np.array([value for _, value in pairs], np.float64))
    return LoggedColumns("node1", rank, found)


def rows_of(*processes: LoggedColumns, keys: tuple[str, ...] = (), samples: int = 500, **steps: Any) -> Any:
    rows = HistoryRows(processes, START)
    return rows.rows(rows.choose(samples, keys, **steps), keys)


def values(rows: list[dict[str, Any]], name: str) -> list[Any]:
    return [row.get(name) for row in rows]


def test_rows_are_in_the_order_of_steps() -> None:
    rows = rows_of(process(loss=[(2.0, 0.2), (0.0, 0.5), (1.5, 0.3)]))
    assert [list(row.values()) for row in rows] == [
        [0, START / 1000, 0.0, 0.5],
        [1.5, START / 1000 + 1.5, 1.5, 0.3],
        [2, START / 1000 + 2, 2.0, 0.2],
    ]
    assert isinstance(rows[0]["_step"], int)


def test_what_a_process_logs_at_one_step_is_one_row() -> None:
    rows = rows_of(process(loss=[(0.0, 0.5), (0.0, 0.4)], acc=[(0.0, 0.9), (1.0, 0.8)]))
    assert [(row["_step"], row.get("loss"), row["acc"]) for row in rows] == [(0, 0.4, 0.9), (1, None, 0.8)]


def test_processes_have_rows_of_their_own() -> None:
    rows = rows_of(process(0, loss=[(0.0, 1.0), (1.0, 2.0)]), process(1, loss=[(0.0, 3.0), (1.0, 4.0)]))
    assert [(row["_step"], row["loss"]) for row in rows] == [(0, 1.0), (0, 3.0), (1, 2.0), (1, 4.0)]


def test_a_page_has_all_rows_of_its_steps() -> None:
    """New clients ask for as many samples as steps, also of a run that several processes log to."""
    processes = [process(rank, loss=[(step, rank) for step in range(4)]) for rank in range(3)]
    page = rows_of(*processes, samples=2, first_step=1, end_step=3)
    assert [(row["_step"], row["loss"]) for row in page] == [
        (step, rank) for step in (1, 2) for rank in range(3)
    ]
    assert len(rows_of(*processes, samples=3, first_step=0, end_step=4)) == 3


def test_a_logged_nan_is_a_value_and_a_gap_is_none() -> None:
    rows = rows_of(process(loss=[(0.0, math.nan), (1.0, math.inf), (2.0, GAP)]))
    assert str(values(rows, "loss")) == "[nan, inf, None]"
    assert len(rows_of(process(loss=[(0.0, math.nan), (2.0, GAP)]), keys=("loss",))) == 1
    assert json_safe({"a": [math.inf, -math.inf, math.nan, 1.0]}) == {
        "a": ["Infinity", "-Infinity", "NaN", 1.0]
    }


def test_numbers_without_a_fraction_are_integers() -> None:
    rows = rows_of(process(epoch=[(0.0, 3.0), (1.0, 0.5), (2.0, 2.0**60), (3.0, -math.inf)]))
    assert [repr(value) for value in values(rows, "epoch")] == ["3", "0.5", "1.152921504606847e+18", "-inf"]


def test_rows_are_chosen_by_keys_and_steps() -> None:
    logged = process(loss=[(float(step), step) for step in range(10)], acc=[(4.0, 1.0), (8.0, 2.0)])
    assert values(rows_of(logged, keys=("_step", "loss", "acc")), "_step") == [4, 8]
    assert rows_of(logged, keys=("acc",)) == [{"acc": 1.0}, {"acc": 2.0}]
    assert values(rows_of(logged, first_step=3, end_step=6), "_step") == [3, 4, 5]
    assert rows_of(logged, keys=("unheard",)) == []


@pytest.mark.parametrize(
    ("samples", "steps"), [(3, [0, 4, 9]), (1, [0]), (0, []), (-5, []), (10**9, list(range(10)))]
)
def test_samples_are_evenly_spaced(samples: int, steps: list[int]) -> None:
    logged = process(loss=[(float(step), step) for step in range(10)])
    assert values(rows_of(logged, samples=samples), "_step") == steps


def test_a_run_without_rows_has_none() -> None:
    assert rows_of() == rows_of(process()) == []


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    logged = process(loss=[(float(step), step) for step in range(10)])
    monkeypatch.setattr(history_rows, "MAX_RESPONSE_VALUES", 9)
    with pytest.raises(TooMuch, match="more than 9 values: request fewer"):
        rows_of(logged)
    monkeypatch.setattr(history_rows, "MAX_VALUES", 9)
    with pytest.raises(TooMuch, match="10 values were logged"):
        HistoryRows([logged], START)


def series(key: str, samples: list[tuple[int, float]], host: str = "a") -> Series:
    times = np.array([START + t for t, _ in samples], np.int64)
    return Series(key, host, "monitor", times, np.array([value for _, value in samples]))


def test_system_metrics_of_one_time_are_one_row() -> None:
    rows = system_rows([series("cpu", [(0, 1.0), (10, 2.0)]), series("gpu.0.temp", [(10, 40.0)])], 500, START)
    assert rows == [
        {"_wandb": True, "_timestamp": START / 1000, "_runtime": 0.0, "system.cpu": 1.0},
        {
            "_wandb": True,
            "_timestamp": (START + 10) / 1000,
            "_runtime": 0.01,
            "system.cpu": 2.0,
            "system.gpu.0.temp": 40.0,
        },
    ]


def test_names_of_several_hosts_are_labelled() -> None:
    rows = system_rows([series("cpu", [(0, 1.0)], "a"), series("cpu", [(0, 2.0)], "b")], 500, START)
    assert [(row["system.cpu/l:a"], row["system.cpu/l:b"]) for row in rows] == [(1.0, 2.0)]


def test_a_gap_is_no_row() -> None:
    assert system_rows([series("cpu", [(0, math.nan)])], 500, START) == []
    assert system_rows([], 500, START) == []
    assert system_rows([series("cpu", [(0, 1.0)])], 0, START) == []
