"""Series as the API answers them: columns in groups of one time vector, raw or on the bucket grid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from runvitals import deadline
from runvitals.buckets import Buckets, Floats, Integers, grid, reduce
from runvitals.metrics import SUBJECTS, mlflow
from runvitals.query.key_filter import find, unit
from runvitals.query.series import Series
from runvitals.server.library import (
    BucketedSeries,
    Calls,
    Position,
    RunView,
    SeriesSelection,
    SeriesSummary,
    TooMuch,
)

MAX_RAW_VALUES = 2_000_000
"""Numbers in one answer: 40 MB of JSON, half a second of work. More is for `runvitals export`."""
MAX_COUNTED_VALUES = 20_000_000
"""Numbers that one answer of statistics goes through: half a second of work."""
STEP_WIDTHS: tuple[int, ...] = tuple(n * 10**power for power in range(16) for n in (1, 2, 5))
_SUBJECT_OF = {metric.key: subject for subject, metrics in SUBJECTS.items() for metric in metrics}


def series_infos(found: Sequence[SeriesSummary]) -> list[dict[str, Any]]:
    """The `SeriesInfo` of each of a run's series."""
    with_host_memory = {one.host for one in found if one.key == mlflow.OF_HOST}
    return [{**_info(one), "mlflow": _in_mlflow(one.key, one.host in with_host_memory)} for one in found]


def _in_mlflow(key: str, host_memory: bool) -> dict[str, Any] | None:
    named = mlflow.rename(key, host_memory)
    return None if named is None else {"name": named[0], "unit": mlflow.unit_of(named[0]), "factor": named[1]}


def _info(series: SeriesSummary) -> dict[str, Any]:
    """A key the catalogue does not know is charted alone."""
    about: dict[str, Any] = {"key": series.key, "host": series.host, "role": series.role}
    match = find(series.key)
    if match is None:
        about |= {"template": series.key, "unit": "", "kind": None, "subject": "Other", "chart": series.key}
        about |= {"text": "", "source": ""}
    else:
        metric = match.metric
        about |= {"template": metric.key, "unit": unit(series.key), "kind": metric.kind}
        about |= {"subject": _SUBJECT_OF[metric.key], "chart": metric.chart}
        about |= {"text": metric.text, "source": metric.source}
    extent = {name: getattr(series, name) for name in ("n", "first_ms", "last_ms", "min", "max", "last")}
    return {**about, **extent}


def metrics(
    view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None, max_points: int | None
) -> dict[str, Any]:
    """The `Metrics` answer.

    Args:
        t0, t1: ms UTC, both included; from the first sample, to the last.
        max_points: for each series. Where all have fewer samples, the answer is the samples. None = always
            the samples.

    Raises:
        TooMuch: samples beyond `MAX_RAW_VALUES`.
        ValueError: t1 before t0.
    """
    problems = view.note_problems()
    position = view.position()
    start, end = stretch(view, selection, t0, t1)
    answer: dict[str, Any] = {"run": view.run_id, "t0": start, "t1": end, "cursor": cursor(position)}
    if max_points is None:
        raw = view.samples(selection, start, end, MAX_RAW_VALUES)
        answer |= {"resolution": "raw", "bucket_ms": None, "groups": _raw_groups(raw)}
        return {**answer, "problems": list(problems)}
    on = grid(start, end, max_points)
    found = view.charted(selection, start, end, on, max_points)
    if found.buckets is None:
        answer |= {"resolution": "raw", "bucket_ms": None, "groups": _raw_groups(found.samples)}
    else:
        groups = _bucket_groups(found.buckets)
        answer |= {"resolution": "buckets", "bucket_ms": on.width_ms, "groups": groups}
    return {**answer, "problems": list(problems)}


def stretch(view: RunView, selection: SeriesSelection, t0: int | None, t1: int | None) -> tuple[int, int]:
    """The times that are meant where some are left open: from the first sample, to the last.

    Raises:
        ValueError: t1 before t0.
    """
    if t0 is not None and t1 is not None:
        if t1 < t0:
            raise ValueError(f"t1 ({t1}) lies before t0 ({t0})")
        return t0, t1
    extent = view.extent(selection)
    if t0 is not None:
        return t0, max(t0, extent[1] if extent else t0)
    if t1 is not None:
        return min(t1, extent[0] if extent else t1), t1
    return extent or (0, 0)


def _raw_groups(series: Iterable[Series]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes], dict[str, Any]] = {}
    for one in series:
        deadline.check()
        place = (one.host, one.role, one.t.tobytes())
        if place not in groups:
            about = {"host": one.host, "role": one.role, "t": one.t.tolist(), "n": None}
            groups[place] = {**about, "series": {}, "min": None, "max": None}
        groups[place]["series"][one.key] = one.values.tolist()
    return list(groups.values())


def _bucket_groups(series: Iterable[BucketedSeries]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes, bytes], dict[str, Any]] = {}
    for one in series:
        deadline.check()
        buckets = one.buckets
        place = (one.host, one.role, buckets.t.tobytes(), buckets.n.tobytes())
        group = groups.get(place)
        if group is None:
            about = {"host": one.host, "role": one.role, "t": buckets.t.tolist()}
            group = groups[place] = {**about, **_columns(buckets)}
        _add(group, one.key, buckets, merged(one.key, buckets))
    return list(groups.values())


def _columns(buckets: Buckets) -> dict[str, Any]:
    return {"n": buckets.n.tolist(), "series": {}, "min": {}, "max": {}}


def _add(group: dict[str, Any], key: str, buckets: Buckets, values: Floats) -> None:
    group["series"][key] = values.tolist()
    group["min"][key] = buckets.min.tolist()
    group["max"][key] = buckets.max.tolist()


def merged(key: str, buckets: Buckets) -> Floats:
    """The one value of each bucket: what the catalogue's `merge` says, else the mean."""
    match = find(key)
    return buckets.mean if match is None else buckets.statistic(match.metric.merge)


def cursor(position: Position) -> str:
    """A position as text: the last number of each source, as `source:number`, with commas between."""
    return ",".join(f"{source}:{number}" for source, number in position.items())


class Logged(NamedTuple):
    """One name that one process logged: steps, times in ms UTC, columns by what comes behind the name."""

    key: str
    host: str
    rank: int | None
    step: Floats
    t: Floats
    columns: dict[str, Floats | Integers]


def logged(
    view: RunView, wanted: list[str], max_points: int | None, rank: int | None = None
) -> dict[str, Any]:
    """The `Logged` answer.

    Names that were logged at the same steps together, on a grid of steps where there are more than
    `max_points`; never where that is None.

    Raises:
        TooMuch: values beyond `MAX_RAW_VALUES`.
    """
    problems = view.note_problems()
    position = view.position()
    groups: list[dict[str, Any]] = []
    for calls in _made(view, wanted, max_points, rank):
        place = {"host": calls.host, "rank": calls.rank}
        groups += [{**place, **group} for group in _logged_groups(calls, max_points)]
    return {"run": view.run_id, "cursor": cursor(position), "groups": groups, "problems": list(problems)}


def logged_columns(
    view: RunView, wanted: list[str], max_points: int | None, rank: int | None = None
) -> Iterator[Logged]:
    """The same, name by name. Of a bucket there are the mean, and as `:min`, `:max`, `:n` what else is known.

    Raises:
        TooMuch: values beyond `MAX_RAW_VALUES`.
    """
    for calls in _made(view, wanted, max_points, rank):
        for key, (steps, times, values) in calls.columns.items():
            if max_points is None or len(steps) <= max_points:
                yield Logged(key, calls.host, calls.rank, steps, times, {"": values})
                continue
            buckets, newest = _on_grid(*_by_step(steps, times, values), max_points)
            columns: dict[str, Floats | Integers] = {"": buckets.mean, ":n": buckets.n}
            columns |= {":min": buckets.min, ":max": buckets.max}
            yield Logged(key, calls.host, calls.rank, buckets.t.astype(np.float64), newest, columns)


def _made(view: RunView, wanted: list[str], max_points: int | None, rank: int | None) -> list[Calls]:
    made = [calls for calls in view.calls(wanted) if rank in (None, calls.rank)]
    if max_points is None:
        _check_logged(made)
    return made


def _by_step(steps: Floats, times: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    order = np.argsort(steps, kind="stable")
    return steps[order], times[order], values[order]


def _on_grid(steps: Floats, times: Floats, values: Floats, max_points: int) -> tuple[Buckets, Floats]:
    """What was logged on a grid of steps, which ascend, and the time of the newest call in each bucket."""
    whole: Integers = np.floor(steps).astype(np.int64)
    on = grid(int(whole[0]), int(whole[-1]), max_points, STEP_WIDTHS)
    return reduce(on, whole, values), reduce(on, whole, times).last


def _check_logged(made: Iterable[Calls]) -> None:
    total = sum(len(values) for calls in made for _, _, values in calls.columns.values())
    if total > MAX_RAW_VALUES:
        raise TooMuch(
            f"{total:,} values were logged; one answer holds {MAX_RAW_VALUES:,}: ask for fewer names or for "
            "one rank, or use `runvitals export`"
        )


def _logged_groups(calls: Calls, max_points: int | None) -> list[dict[str, Any]]:
    groups: dict[bytes, dict[str, Any]] = {}
    for key, (steps, times, values) in calls.columns.items():
        steps, times, values = _by_step(steps, times, values)
        if max_points is None or len(steps) <= max_points:
            about: dict[str, Any] = {"step": steps.tolist(), "t": times.tolist(), "n": None, "series": {}}
            place = steps.tobytes() + times.tobytes()
            group = groups.setdefault(place, {**about, "min": None, "max": None})
            group["series"][key] = values.tolist()
            continue
        buckets, newest = _on_grid(steps, times, values, max_points)
        place = buckets.t.tobytes() + buckets.n.tobytes() + newest.tobytes()
        if place not in groups:
            groups[place] = {"step": buckets.t.tolist(), "t": newest.tolist(), **_columns(buckets)}
        _add(groups[place], key, buckets, buckets.mean)
    return list(groups.values())
