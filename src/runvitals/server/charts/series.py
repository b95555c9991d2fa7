"""Series as the API returns them: columns in groups that share a time vector, as samples or as buckets."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runvitals.base import deadline
from runvitals.base.buckets import Buckets, Floats, Grid, Partition, grid
from runvitals.model.logged_media import LoggedValue, ValueSelection
from runvitals.model.metrics import mlflow
from runvitals.readers.journals.globs import Glob, check_globs, is_glob
from runvitals.readers.journals.key_filter import find
from runvitals.readers.journals.series import Series
from runvitals.server.charts.attempts import RankAttempts, attempts_of_ranks, resumes_of
from runvitals.server.charts.log_time import log_grids, read_log_buckets
from runvitals.server.charts.overlay.axis import Axis, Extract, scale_of
from runvitals.server.charts.series_definitions import definition, mlflow_name
from runvitals.server.library.run_library import (
    BucketedSeries,
    ChartData,
    LoggedColumn,
    LoggedColumns,
    Position,
    RunView,
    SeriesSelection,
    SeriesSummary,
    TooMuch,
)

MAX_RAW_VALUES = 2_000_000
"""Numbers in one response: 40 MB of JSON, half a second of work. `runvitals export` has no limit."""
MAX_STATISTICS_VALUES = 20_000_000
"""Numbers that one response of statistics may read: half a second of work."""
_BY_STEP = Axis("step")
MAX_OTHERS = 200_000
"""Logged values that are not numbers in one response."""
OTHER = ":other"
"""The suffix of columns of values that are not numbers, in tables."""
_OTHER = ("host", "rank", "key", "step", "time_ms", "value")


def series_infos(summaries: Sequence[SeriesSummary]) -> list[dict[str, Any]]:
    """Return the fields of `models.SeriesInfo` for each series of a run."""
    with_host_memory = {series.host for series in summaries if series.key == mlflow.OF_HOST}
    return [
        {**_info(series), "mlflow": mlflow_name(series.key, series.host in with_host_memory)}
        for series in summaries
    ]


def _info(series: SeriesSummary) -> dict[str, Any]:
    about: dict[str, Any] = {"key": series.key, "host": series.host, "role": series.role}
    extent = {name: getattr(series, name) for name in ("n", "first_ms", "last_ms", "min", "max", "last")}
    return {**about, **definition(series.key), **extent}


def metrics(
    view: RunView,
    selection: SeriesSelection,
    t0: int | None,
    t1: int | None,
    max_points: int | None,
    log_from: int | None = None,
) -> dict[str, Any]:
    """Return the fields of `models.Metrics`.

    Args:
        t0, t1: ms UTC, both included. None means the first and the last sample.
        max_points: for each series. If none has more samples, the samples are returned, otherwise buckets.
            None returns samples always.
        log_from: ms UTC; buckets get wider with the time since then, and what is older is left out.

    Raises:
        TooMuch: more than `MAX_RAW_VALUES` samples.
        ValueError: t1 before t0.
    """
    problems = view.note_problems()
    position = view.position()
    start, end = time_range(view, selection, t0, t1, log_from)
    body: dict[str, Any] = {"run": view.run_id, "t0": start, "t1": end, "cursor": cursor(position)}
    if max_points is None:
        raw = view.samples(selection, start, end, MAX_RAW_VALUES)
        body |= {"resolution": "raw", "bucket_ms": None, "groups": _raw_groups(raw)}
        return {**body, "problems": list(problems)}
    chart, width = read_chart(view, selection, start, end, max_points, log_from)
    if chart.buckets is None:
        body |= {"resolution": "raw", "bucket_ms": None, "groups": _raw_groups(chart.samples)}
    else:
        body |= {"resolution": "buckets", "bucket_ms": width, "groups": _bucket_groups(chart.buckets)}
    return {**body, "problems": list(problems)}


def read_chart(
    view: RunView, selection: SeriesSelection, t0: int, t1: int, max_points: int, log_from: int | None
) -> tuple[ChartData, int | None]:
    """Return samples if they are few, otherwise buckets, and how wide these are if all are alike."""
    on = grid(t0, t1, max_points)
    chart = view.read_chart(selection, t0, t1, on, max_points)
    if log_from is None or chart.buckets is None:
        return chart, on.width_ms
    grids = log_grids(t0 - log_from, t1 - log_from, max_points)
    return ChartData([], read_log_buckets(view, selection, log_from, grids)), None


def time_range(
    view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None, log_from: int | None = None
) -> tuple[int, int]:
    """Return the requested times, with those of the first and the last sample where `t0` or `t1` is None.

    Args:
        log_from: both times are after this one.

    Raises:
        ValueError: t1 before t0.
    """
    start, end = _time_range(view, selection, t0, t1)
    return (start, end) if log_from is None else (max(start, log_from + 1), max(end, log_from + 1))


def _time_range(view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None) -> tuple[int, int]:
    if t0 is not None and t1 is not None:
        if t1 < t0:
            raise ValueError(f"t1 ({t1}) is before t0 ({t0})")
        return t0, t1
    extent = view.extent(selection)
    if t0 is not None:
        return t0, max(t0, extent[1] if extent else t0)
    if t1 is not None:
        return min(t1, extent[0] if extent else t1), t1
    return extent or (0, 0)


def _raw_groups(series: Iterable[Series]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes], dict[str, Any]] = {}
    for item in series:
        deadline.check()
        key = (item.host, item.role, item.t.tobytes())
        if key not in groups:
            about = {"host": item.host, "role": item.role, "t": item.t.tolist(), "n": None}
            groups[key] = {**about, "series": {}, "min": None, "max": None}
        groups[key]["series"][item.key] = item.values.tolist()
    return list(groups.values())


def _bucket_groups(series: Iterable[BucketedSeries]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes, bytes], dict[str, Any]] = {}
    for item in series:
        deadline.check()
        buckets = item.buckets
        key = (item.host, item.role, buckets.t.tobytes(), buckets.n.tobytes())
        group = groups.get(key)
        if group is None:
            about = {"host": item.host, "role": item.role, "t": buckets.t.tolist()}
            group = groups[key] = {**about, **_columns(buckets)}
        _add(group, item.key, buckets, bucket_values(item.key, buckets))
    return list(groups.values())


def _columns(buckets: Buckets) -> dict[str, Any]:
    return {"n": buckets.n.tolist(), "series": {}, "min": {}, "max": {}}


def _add(group: dict[str, Any], key: str, buckets: Buckets, values: Floats) -> None:
    group["series"][key] = values.tolist()
    group["min"][key] = buckets.min.tolist()
    group["max"][key] = buckets.max.tolist()


def bucket_values(key: str, buckets: Buckets) -> Floats:
    """Return the value of each bucket: the metric's `merge` statistic, otherwise the mean."""
    match = find(key)
    return buckets.mean if match is None else buckets.statistic(match.metric.merge)


def cursor(position: Position) -> str:
    """Return a position as text: `source:number,source:number…`."""
    return ",".join(f"{source}:{number}" for source, number in position.items())


class LoggedSeries(NamedTuple):
    """The values that one process logged under one name.

    Args:
        t: ms UTC.
        columns: by suffix of the name: `""` are the values; of buckets also `:min`, `:max`, `:n`; `:other`
            are texts, and what else is not a number, as JSON.
    """

    key: str
    host: str
    rank: int | None
    step: Floats
    t: Floats
    columns: dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class LoggedSelection:
    """Which logged values are requested.

    Args:
        names: () means all.
        rank: None means all.
        first_step, last_step: both included; None: no limit.
    """

    names: tuple[str, ...] = ()
    rank: int | None = None
    first_step: float | None = None
    last_step: float | None = None

    def of_globs(self, view: RunView) -> LoggedSelection:
        """Return the selection with the names that its globs match.

        A name that was logged with a wildcard in it is that name. What matches nothing stays as it is.

        Raises:
            ValueError: too many globs, or one that is too long.
        """
        globs = [name for name in self.names if is_glob(name)]
        check_globs(globs)
        if not globs:
            return self
        logged = sorted(view.logged_names().union(view.other_names()))
        names: dict[str, None] = {}
        for name in self.names:
            matches = [name] if name in logged or not is_glob(name) else list(filter(Glob(name), logged))
            names.update(dict.fromkeys(matches) or {name: None})
        return replace(self, names=tuple(names))

    def unmatched_names(self, view: RunView) -> list[str]:
        """Return the names and globs under which nothing was logged."""
        missing = set(self.names) - view.logged_names() if self.names else set()
        return sorted(missing.difference(view.other_names())) if missing else []

    def others(self, view: RunView, most: int | None) -> list[LoggedValue]:
        """Return the selected texts, lists and objects; the newest `most` of them.

        Raises:
            TooMuch: more than `MAX_OTHERS`, and `most` is None.
        """
        selection = ValueSelection(self.names, self.first_step, self.last_step)
        others = view.logged_others(selection, MAX_OTHERS + 1 if most is None else most)
        if len(others) > MAX_OTHERS:
            raise TooMuch(
                f"more than {MAX_OTHERS:,} texts, lists and objects were logged: request fewer names or steps"
            )
        return [other for other in others if self.rank in (None, other.rank)]

    def columns(self, view: RunView) -> list[LoggedColumns]:
        """Return the selected values, of each process."""
        return [replace(process, columns=self.parts(process.columns)) for process in self.processes(view)]

    def processes(self, view: RunView) -> list[LoggedColumns]:
        """Return the values of all steps, of each process."""
        return [process for process in view.logged_columns(self.names) if self.rank in (None, process.rank)]

    def parts(self, columns: Mapping[str, LoggedColumn]) -> dict[str, LoggedColumn]:
        """Return the selected steps of columns, without those that have none."""
        low = -math.inf if self.first_step is None else self.first_step
        high = math.inf if self.last_step is None else self.last_step
        selected = {}
        for key, (steps, times, values) in columns.items():
            is_in_range = (steps >= low) & (steps <= high)
            if is_in_range.all():
                selected[key] = (steps, times, values)
            elif is_in_range.any():
                selected[key] = (steps[is_in_range], times[is_in_range], values[is_in_range])
        return selected


def logged_values(view: RunView, selection: LoggedSelection, part: Extract | None) -> dict[str, Any]:
    """Return the fields of `logged_models.Logged`.

    Names that were logged at the same steps are grouped. A name with more than the requested number of values
    is reduced to buckets of steps, and what a resumed training replaced is apart; without `part`, all values
    are returned.

    Raises:
        TooMuch: more than `MAX_RAW_VALUES` values.
    """
    problems = view.note_problems()
    position = view.position()
    selection = selection.of_globs(view)
    groups: list[dict[str, Any]] = []
    resumes: list[dict[str, Any]] = []
    if part is None:
        for process in _raw_columns(view, selection):
            groups += _logged_groups(process, None, False)
    else:
        ranks = attempts_of_ranks(selection.processes(view))
        resumes = resumes_of(ranks)
        for rank in ranks:
            groups += _logged_groups(_newest_columns(rank, selection), part, False)
            for columns in _replaced_columns(rank, selection):
                groups += _logged_groups(columns, part, True)
    return {
        "run": view.run_id,
        "cursor": cursor(position),
        "groups": groups,
        "others": [
            {name: getattr(other, name) for name in _OTHER}
            for other in selection.others(view, None if part is None else part.points)
        ],
        "resumes": resumes,
        "unmatched": selection.unmatched_names(view),
        "problems": list(problems),
    }


def logged_series(view: RunView, selection: LoggedSelection, part: Extract | None) -> Iterator[LoggedSeries]:
    """Yield the same by name, for tables; what was replaced only without `part`.

    Raises:
        TooMuch: more than `MAX_RAW_VALUES` values.
    """
    selection = selection.of_globs(view)
    if part is None:
        processes = _raw_columns(view, selection)
    else:
        ranks = attempts_of_ranks(selection.processes(view))
        processes = [_newest_columns(rank, selection) for rank in ranks]
    for process in processes:
        for key, (steps, times, values) in process.columns.items():
            if part is None or len(steps) <= part.points:
                yield LoggedSeries(key, process.host, process.rank, steps, times, {"": values})
                continue
            bucket_steps, newest, buckets = _on_grid(steps, times, values, part)
            columns: dict[str, NDArray[Any]] = {"": buckets.mean, ":n": buckets.n}
            columns |= {":min": buckets.min, ":max": buckets.max}
            yield LoggedSeries(key, process.host, process.rank, bucket_steps, newest, columns)
    yield from _series_of(selection.others(view, None if part is None else part.points))


def _series_of(others: Iterable[LoggedValue]) -> Iterator[LoggedSeries]:
    """Yield texts, lists and objects by name and process."""
    by_name: dict[tuple[str, str, int | None], list[LoggedValue]] = {}
    for other in others:
        by_name.setdefault((other.key, other.host, other.rank), []).append(other)
    for (key, host, rank), values in by_name.items():
        steps = np.array([value.step for value in values], np.float64)
        times = np.array([value.time_ms for value in values], np.float64)
        texts = np.array([as_text(value.value) for value in values], object)
        yield LoggedSeries(key, host, rank, steps, times, {OTHER: texts})


def as_text(value: object) -> str:
    """Return a logged value as text: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _raw_columns(view: RunView, selection: LoggedSelection) -> list[LoggedColumns]:
    """Return everything that is selected, of each process."""
    processes = selection.columns(view)
    _check_logged(processes)
    return processes


def _newest_columns(rank: RankAttempts, selection: LoggedSelection) -> LoggedColumns:
    newest = {key: attempts.newest for key, attempts in rank.columns.items()}
    return LoggedColumns(rank.host, rank.rank, selection.parts(newest))


def _replaced_columns(rank: RankAttempts, selection: LoggedSelection) -> Iterator[LoggedColumns]:
    """Yield what was replaced, of each attempt."""
    most = max((len(attempts.replaced) for attempts in rank.columns.values()), default=0)
    for number in range(most):
        columns = {
            key: attempts.replaced[number]
            for key, attempts in rank.columns.items()
            if number < len(attempts.replaced)
        }
        yield LoggedColumns(rank.host, rank.rank, selection.parts(columns))


def _by_step(steps: Floats, times: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    order = np.argsort(steps, kind="stable")
    return steps[order], times[order], values[order]


def _on_grid(steps: Floats, times: Floats, values: Floats, part: Extract) -> tuple[Floats, Floats, Buckets]:
    """Logged values in ascending order of steps as buckets: where they begin, and the newest time in each."""
    rows = part.within(steps)
    scale = scale_of(_BY_STEP, [steps[rows]], part)
    indices = scale.indices(steps[rows])
    first, last = (int(indices[0]), int(indices[-1])) if len(indices) else (0, 0)
    partition = Partition(Grid(first, 1, last - first + 1), indices)
    buckets = partition.reduce(values[rows])
    return scale.x(buckets.t), partition.reduce(times[rows]).last, buckets


def _check_logged(processes: Iterable[LoggedColumns]) -> None:
    total = sum(len(values) for process in processes for _, _, values in process.columns.values())
    if total > MAX_RAW_VALUES:
        raise TooMuch(
            f"{total:,} values were logged; a response holds at most {MAX_RAW_VALUES:,}: request fewer names "
            "or one rank, or use `runvitals export`"
        )


def _logged_groups(process: LoggedColumns, part: Extract | None, replaced: bool) -> list[dict[str, Any]]:
    groups: dict[bytes, dict[str, Any]] = {}
    labels = {"host": process.host, "rank": process.rank, "replaced": replaced}
    for key, (steps, times, values) in process.columns.items():
        steps, times, values = _by_step(steps, times, values)
        if part is None or len(steps) <= part.points:
            about: dict[str, Any] = {**labels, "step": steps.tolist(), "t": times.tolist()}
            times_key = steps.tobytes() + times.tobytes()
            group = groups.setdefault(times_key, {**about, "n": None, "series": {}, "min": None, "max": None})
            group["series"][key] = values.tolist()
            continue
        bucket_steps, newest, buckets = _on_grid(steps, times, values, part)
        times_key = bucket_steps.tobytes() + buckets.n.tobytes() + newest.tobytes()
        if times_key not in groups:
            about = {**labels, "step": bucket_steps.tolist(), "t": newest.tolist()}
            groups[times_key] = {**about, **_columns(buckets)}
        _add(groups[times_key], key, buckets, buckets.mean)
    return list(groups.values())


def summary(series: Series) -> SeriesSummary:
    """Return the summary of a series. Without values its times are 0."""
    has_value = ~np.isnan(series.values)
    t, values = series.t[has_value], series.values[has_value]
    labels = (series.key, series.host, series.role)
    if not len(values):
        return SeriesSummary(*labels, 0, 0, 0, None, None, None)
    extremes = float(values.min()), float(values.max()), float(values[-1])
    return SeriesSummary(*labels, len(values), int(t[0]), int(t[-1]), *extremes)


def within(series: Series, t0: int, t1: int) -> Series:
    """Return the part of a series from `t0` to `t1`, both included."""
    first, last = np.searchsorted(series.t, t0, side="left"), np.searchsorted(series.t, t1, side="right")
    return Series(series.key, series.host, series.role, series.t[first:last], series.values[first:last])


def check_value_count(at_most: int | None, total: int) -> None:
    """Check how many values a response would hold.

    Raises:
        TooMuch: `total` is more than `at_most`.
    """
    if at_most is not None and total > at_most:
        raise TooMuch(
            f"{total:,} values at full resolution; a response holds at most {at_most:,}: "
            "request fewer keys or a shorter time, or use `runvitals export`"
        )
