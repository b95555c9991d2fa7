"""Series as the API answers them: columns in groups of one time vector, raw or on the bucket grid."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from runvitals.buckets import Buckets, Floats, Grid, Integers, grid, reduce
from runvitals.catalog import CATALOG, SUBJECTS
from runvitals.query.columns import Series
from runvitals.query.history import History
from runvitals.query.reader import RunReader

MAX_RAW_VALUES = 2_000_000
"""Numbers in one answer: 40 MB of JSON, half a second of work. More is for `runvitals export`."""
STEP_WIDTHS: tuple[int, ...] = tuple(n * 10**power for power in range(16) for n in (1, 2, 5))
_SUBJECT_OF = {metric.key: subject for subject, metrics in SUBJECTS.items() for metric in metrics}


class TooMuch(ValueError):
    """More was asked for than one answer holds."""


def info(series: Series) -> dict[str, Any]:
    """The `SeriesInfo` of a series. A key the catalogue does not know is charted alone."""
    about: dict[str, Any] = {"key": series.key, "host": series.host, "role": series.role}
    match = CATALOG.find(series.key)
    if match is None:
        about |= {"template": series.key, "unit": "", "kind": None, "subject": "Other", "chart": series.key}
        about |= {"text": "", "source": ""}
    else:
        metric = match.metric
        about |= {"template": metric.key, "unit": metric.unit, "kind": metric.kind}
        about |= {"subject": _SUBJECT_OF[metric.key], "chart": metric.chart}
        about |= {"text": metric.text, "source": metric.source}
    return {**about, "n": len(series), **_extent(series)}


def _extent(series: Series) -> dict[str, Any]:
    values = series.values[~np.isnan(series.values)]
    return {
        "first_ms": int(series.t[0]) if len(series) else 0,
        "last_ms": int(series.t[-1]) if len(series) else 0,
        "min": float(values.min()) if len(values) else None,
        "max": float(values.max()) if len(values) else None,
        "last": float(series.values[-1]) if len(series) else None,
    }


def metrics(
    reader: RunReader,
    keys: list[str],
    host: str | None,
    t0: int | None,
    t1: int | None,
    max_points: int | None,
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
    series = [one for one in reader.columns(keys, host).series if len(one)]
    if t0 is not None and t1 is not None and t1 < t0:
        raise ValueError(f"t1 ({t1}) lies before t0 ({t0})")
    start = min((int(one.t[0]) for one in series), default=t1 or 0) if t0 is None else t0
    end = max((int(one.t[-1]) for one in series), default=start) if t1 is None else t1
    start, end = (start, max(start, end)) if t1 is None else (min(start, end), end)
    within = [_within(one, start, end) for one in series]
    raw = max_points is None or all(len(one) <= max_points for one in within)
    answer: dict[str, Any] = {"run": reader.run_id, "t0": start, "t1": end, "cursor": cursor(reader)}
    if raw or max_points is None:
        total = sum(len(one) for one in within)
        if total > MAX_RAW_VALUES:
            raise TooMuch(
                f"{total:,} values at full resolution; one answer holds {MAX_RAW_VALUES:,}: "
                "ask for fewer keys or a shorter time, or use `runvitals export`"
            )
        return {**answer, "resolution": "raw", "bucket_ms": None, "groups": _raw_groups(within)}
    on = grid(start, end, max_points)
    return {**answer, "resolution": "buckets", "bucket_ms": on.width_ms, "groups": _bucket_groups(within, on)}


def _within(series: Series, t0: int, t1: int) -> Series:
    first, last = np.searchsorted(series.t, t0, side="left"), np.searchsorted(series.t, t1, side="right")
    return Series(series.key, series.host, series.role, series.t[first:last], series.values[first:last])


def _raw_groups(series: Iterable[Series]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes], dict[str, Any]] = {}
    for one in series:
        place = (one.host, one.role, one.t.tobytes())
        if place not in groups:
            about = {"host": one.host, "role": one.role, "t": one.t.tolist(), "n": None}
            groups[place] = {**about, "series": {}, "min": None, "max": None}
        groups[place]["series"][one.key] = one.values.tolist()
    return [group for group in groups.values() if group["t"]]


def _bucket_groups(series: Iterable[Series], on: Grid) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str, bytes, bytes], dict[str, Any]] = {}
    for one in series:
        buckets = reduce(on, one.t, one.values)
        if not len(buckets.t):
            continue
        place = (one.host, one.role, buckets.t.tobytes(), buckets.n.tobytes())
        group = groups.get(place)
        if group is None:
            group = groups[place] = {
                "host": one.host,
                "role": one.role,
                "t": buckets.t.tolist(),
                **_columns(buckets),
            }
        _add(group, one.key, buckets, _merged(one.key, buckets))
    return list(groups.values())


def _columns(buckets: Buckets) -> dict[str, Any]:
    return {"n": buckets.n.tolist(), "series": {}, "min": {}, "max": {}}


def _add(group: dict[str, Any], key: str, buckets: Buckets, values: Floats) -> None:
    group["series"][key] = values.tolist()
    group["min"][key] = buckets.min.tolist()
    group["max"][key] = buckets.max.tolist()


def _merged(key: str, buckets: Buckets) -> Floats:
    match = CATALOG.find(key)
    return buckets.mean if match is None else buckets.statistic(match.metric.merge)


def cursor(reader: RunReader) -> str:
    """Where the reader is: the last record of each writer, as `writer:number`, with commas between."""
    return ",".join(f"{writer}:{seq}" for writer, seq in reader.last_seq.items())


def logged(reader: RunReader, wanted: list[str], max_points: int) -> dict[str, Any]:
    """The `Logged` answer.

    Names that were logged at the same steps together, on a grid of steps where there are too many.
    """
    groups: list[dict[str, Any]] = []
    for writer, history in reader.histories.items():
        about = reader.facts.writer(writer)
        place = {"host": about.host, "rank": about.rank}
        groups += [{**place, **group} for group in _logged_groups(history, wanted, max_points)]
    return {"run": reader.run_id, "cursor": cursor(reader), "groups": groups}


def _logged_groups(history: History, wanted: list[str], max_points: int) -> list[dict[str, Any]]:
    groups: dict[bytes, dict[str, Any]] = {}
    for key in history.keys:
        if wanted and key not in wanted:
            continue
        steps, times, values = (np.array(column, np.float64) for column in history.column(key))
        order = np.argsort(steps, kind="stable")
        steps, times, values = steps[order], times[order], values[order]
        if len(steps) <= max_points:
            group = groups.setdefault(
                steps.tobytes() + times.tobytes(),
                {
                    "step": steps.tolist(),
                    "t": times.tolist(),
                    "n": None,
                    "series": {},
                    "min": None,
                    "max": None,
                },
            )
            group["series"][key] = values.tolist()
            continue
        whole: Integers = np.floor(steps).astype(np.int64)
        on = grid(int(whole[0]), int(whole[-1]), max_points, STEP_WIDTHS)
        buckets = reduce(on, whole, values)
        newest = reduce(on, whole, times).last
        place = buckets.t.tobytes() + buckets.n.tobytes() + newest.tobytes()
        if place not in groups:
            groups[place] = {"step": buckets.t.tolist(), "t": newest.tolist(), **_columns(buckets)}
        _add(groups[place], key, buckets, buckets.mean)
    return list(groups.values())
