"""The rows that a run logged, as wandb's clients read them: one for each step of each process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Floats, Integers
from runvitals.model.batch_format import GAP_BITS
from runvitals.model.logged_media import LoggedValue
from runvitals.readers.journals.series import Series
from runvitals.server.library.run_library import LoggedColumns, TooMuch

MAX_VALUES: Final = 20_000_000
"""Values that one request may read: half a second of work."""
MAX_OTHERS: Final = 200_000
"""Values that are not numbers which one request may read."""
MAX_ROWS: Final = 100_000
"""Rows in one response."""
MAX_RESPONSE_VALUES: Final = 2_000_000
_MAX_INTEGER: Final = 2.0**53
STEP: Final = "_step"
RUNTIME: Final = "_runtime"
TIMESTAMP: Final = "_timestamp"
_OF_ROWS: Final = (STEP, RUNTIME, TIMESTAMP)
Row = dict[str, Any]


def logged_names(keys: Iterable[str]) -> tuple[str, ...]:
    """Return those of some requested keys that are names of logged values, not of every row."""
    return tuple(key for key in keys if key not in _OF_ROWS)


class HistoryRows:
    """Rows by step.

    What a process logged at one step in several calls is one row, in which the last value of a name counts. A
    NaN that was logged is a value, unlike a gap.

    Args:
        started_ms: when the run started, from which `_runtime` counts.
        others: what was logged besides numbers.

    Raises:
        TooMuch: more than `MAX_VALUES` values.
    """

    def __init__(
        self, processes: Sequence[LoggedColumns], started_ms: int, others: Sequence[LoggedValue] = ()
    ) -> None:
        total = sum(len(values) for logged in processes for _, _, values in logged.columns.values())
        if total > MAX_VALUES:
            raise TooMuch(f"{total:,} values were logged; request fewer keys: at most {MAX_VALUES:,} values")
        self._started_ms = float(started_ms)
        self._columns: dict[str, list[tuple[Integers, Floats]]] = {}
        self._others: dict[str, list[tuple[int, Any]]] = {}
        rows_at: dict[tuple[str, int | None, float], int] = {}
        all_steps: list[Floats] = []
        all_times: list[Floats] = []
        before = 0
        for process in processes:
            if not process.columns:
                continue
            steps: Floats = np.unique(np.concatenate([steps for steps, _, _ in process.columns.values()]))
            times: Floats = np.full(len(steps), -math.inf)
            for name, (of_steps, of_times, values) in process.columns.items():
                deadline.check()
                rows = np.searchsorted(steps, of_steps)
                np.maximum.at(times, rows, of_times)
                has_value = values.view(np.int64) != GAP_BITS
                self._columns.setdefault(name, []).append((rows[has_value] + before, values[has_value]))
            if others:
                label = process.host, process.rank
                rows_at.update(((*label, step), row) for row, step in enumerate(steps.tolist(), before))
            all_steps.append(steps)
            all_times.append(times)
            before += len(steps)
        alone: list[LoggedValue] = []
        for other in others:
            row = rows_at.setdefault((other.host, other.rank, other.step), before)
            if row == before:  # a row without numbers
                alone.append(other)
                before += 1
            self._others.setdefault(other.key, []).append((row, other.value))
        all_steps.append(np.array([other.step for other in alone], np.float64))
        all_times.append(np.array([other.time_ms for other in alone], np.float64))
        self._arrange(all_steps, all_times)

    def _arrange(self, all_steps: Sequence[Floats], all_times: Sequence[Floats]) -> None:
        """Put the rows of all processes in the order of their steps."""
        steps: Floats = np.concatenate(all_steps) if all_steps else np.empty(0)
        times: Floats = np.concatenate(all_times) if all_times else np.empty(0)
        order = np.argsort(steps, kind="stable")
        position: Integers = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        self._steps, self._times = steps[order], times[order]
        # The rows of a run that another one goes on from are older than that one.
        self._started_ms = min(self._started_ms, float(times.min(initial=math.inf)))
        self._columns = {
            name: [(position[rows], values) for rows, values in parts]
            for name, parts in self._columns.items()
        }
        self._others = {
            name: [(int(position[row]), value) for row, value in values]
            for name, values in self._others.items()
        }

    def __len__(self) -> int:
        return len(self._steps)

    def choose(
        self,
        samples: int,
        keys: Sequence[str] = (),
        first_step: float | None = None,
        end_step: float | None = None,
    ) -> Integers:
        """Return at most `samples` rows, evenly spaced, the first and the last among them.

        If there are as many samples as steps, a client reads page by page: it gets all rows, also several of
        a step, which processes that share a run have logged.

        Args:
            keys: only rows with all of these.
            first_step, end_step: only rows from one step to before the other.
        """
        is_wanted = np.ones(len(self._steps), np.bool_)
        if first_step is not None:
            is_wanted &= self._steps >= first_step
        if end_step is not None:
            is_wanted &= self._steps < end_step
        for name in logged_names(keys):
            has_name = np.zeros(len(self._steps), np.bool_)
            for of_name, _ in self._columns.get(name, ()):
                has_name[of_name] = True
            has_name[[row for row, _ in self._others.get(name, ())]] = True
            is_wanted &= has_name
        rows: Integers = np.flatnonzero(is_wanted)
        if first_step is not None and end_step is not None and samples >= end_step - first_step:
            samples = MAX_ROWS
        samples = max(0, min(samples, MAX_ROWS))
        if len(rows) <= samples:
            return rows
        return rows[_spread(len(rows), samples)]

    def rows(self, row_indices: Integers, keys: Sequence[str] = ()) -> list[Row]:
        """Return rows with `_step`, `_runtime`, `_timestamp` and what was logged.

        Only `keys` of these if there are some.

        Raises:
            TooMuch: they have more than `MAX_RESPONSE_VALUES` values.
        """
        result = [
            {
                STEP: int(step) if step.is_integer() else step,
                TIMESTAMP: time / 1000,
                RUNTIME: (time - self._started_ms) / 1000,
            }
            for step, time in zip(
                self._steps[row_indices].tolist(), self._times[row_indices].tolist(), strict=True
            )
        ]
        of_row = np.full(len(self._steps), -1, np.int64)
        of_row[row_indices] = np.arange(len(row_indices))
        count = 0
        for name, parts in self._columns.items():
            deadline.check()
            if keys and name not in keys:
                continue
            for rows, values in parts:
                is_chosen = of_row[rows] >= 0
                count += int(is_chosen.sum())
                if count > MAX_RESPONSE_VALUES:
                    raise TooMuch(f"more than {MAX_RESPONSE_VALUES:,} values: request fewer rows or keys")
                for row, value in zip(
                    of_row[rows[is_chosen]].tolist(), _numbers(values[is_chosen]), strict=True
                ):
                    result[row][name] = value
        for name, others in self._others.items():
            if not keys or name in keys:
                for row, value in others:
                    if of_row[row] >= 0:
                        result[of_row[row]][name] = value
        if keys:
            return [{key: row[key] for key in keys if key in row} for row in result]
        return result


def _numbers(values: Floats) -> list[float]:
    """Return values as wandb's clients send them: integers, if they have no fraction.

    So `row["epoch"]` is an index, as it is with wandb's server.
    """
    numbers: list[float] = values.tolist()
    is_integer = (values == np.trunc(values)) & (np.abs(values) < _MAX_INTEGER)
    for index in np.flatnonzero(is_integer).tolist():
        numbers[index] = int(numbers[index])
    return numbers


def _spread(count: int, samples: int) -> Integers:
    """Return at most this many places among `count`, evenly spaced, the first and the last among them."""
    positions: Integers = np.linspace(0, count - 1, min(samples, count)).round().astype(np.int64)
    return positions


def system_rows(series: Sequence[Series], samples: int, started_ms: int) -> list[Row]:
    """Return the rows of system metrics, by time, under wandb's names; at most `samples`, evenly spaced.

    Where there are several hosts, a name ends in `/l:` and the host, as wandb labels them.
    """
    with_samples = [line for line in series if len(line)]
    if not with_samples or samples <= 0:
        return []
    has_hosts = len({line.host for line in with_samples}) > 1
    times = np.unique(np.concatenate([line.t for line in with_samples]))
    times = times[_spread(len(times), min(samples, MAX_ROWS))]
    rows: list[Row] = [
        {"_wandb": True, TIMESTAMP: t / 1000, RUNTIME: (t - started_ms) / 1000} for t in times.tolist()
    ]
    for line in with_samples:
        deadline.check()
        name = f"system.{line.key}/l:{line.host}" if has_hosts else f"system.{line.key}"
        index = np.minimum(np.searchsorted(times, line.t), len(times) - 1)
        has_value = (times[index] == line.t) & ~np.isnan(line.values)
        for row, value in zip(index[has_value].tolist(), _numbers(line.values[has_value]), strict=True):
            rows[row][name] = value
    return [row for row in rows if any(name.startswith("system.") for name in row)]


def json_safe(value: Any) -> Any:
    """Return a value for JSON, which has no NaN and no infinity.

    These become texts, as from wandb's server.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: json_safe(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_safe(item) for item in value]
    return value
