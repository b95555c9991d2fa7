"""The queries of Prometheus' API over a store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeGuard

import numpy as np

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.metric import Metric
from runvitals.model.metrics.prometheus import LOG, LOG_STEP, OTHER
from runvitals.server.doors.promql import responses
from runvitals.server.doors.promql.evaluator import LOOK_BACK_MS, Evaluator
from runvitals.server.doors.promql.functions import LABEL_NAME, unique
from runvitals.server.doors.promql.parser import parse, parse_selector
from runvitals.server.doors.promql.series_source import SelectedSeries, SeriesSource
from runvitals.server.doors.promql.syntax import (
    Call,
    Expression,
    Matcher,
    QueryError,
    Selector,
    StringLiteral,
    Subquery,
)
from runvitals.server.doors.promql.texts import number_text
from runvitals.server.doors.promql.vectors import NAME

MAX_STEPS: Final = 11_000
_ALL: Final = (Matcher(NAME, "!=", ""),)


def query(source: SeriesSource, text: str, t: int) -> dict[str, Any]:
    """Return the result of `/query`: the value of an expression at a time, ms UTC.

    Raises:
        QueryError: the query is wrong or too large.
    """
    node = parse(text)
    evaluator = Evaluator(source, np.array([t], np.int64))
    if _is_range(node):
        return responses.samples(evaluator.range(node))
    if isinstance(node, StringLiteral):
        return {"resultType": "string", "result": [responses.seconds(t), node.value]}
    result = evaluator.evaluate(node)
    checked = result if not isinstance(result, list) else unique(result)
    return responses.instant(checked, t, _keeps_order(node))


def _is_range(node: Expression) -> TypeGuard[Selector | Subquery]:
    return isinstance(node, Subquery) or (isinstance(node, Selector) and node.range_ms > 0)


def _keeps_order(node: Expression) -> bool:
    return isinstance(node, Call) and node.function in ("sort", "sort_desc")


def query_range(source: SeriesSource, text: str, start: int, end: int, step_ms: int) -> dict[str, Any]:
    """Return the result of `/query_range`: values of an expression from `start` to `end`, ms UTC.

    Raises:
        QueryError: the query is wrong or too large.
    """
    if step_ms <= 0:
        raise QueryError('invalid parameter "step": a step must be longer than zero')
    if end < start:
        raise QueryError('invalid parameter "end": end timestamp must not be before start time')
    if (end - start) // step_ms >= MAX_STEPS:
        raise QueryError("exceeded maximum resolution of 11,000 points per timeseries: use a longer step")
    node = parse(text)
    if isinstance(node, StringLiteral) or _is_range(node):
        raise QueryError("invalid expression type for range query, must be Scalar or instant Vector")
    steps = np.arange(start, end + 1, step_ms, dtype=np.int64)
    result = Evaluator(source, steps).evaluate(node)
    return responses.matrix(unique(result) if isinstance(result, list) else result, steps)


def select_series(source: SeriesSource, matches: Sequence[str], start: int, end: int) -> list[SelectedSeries]:
    """Return the series that fit any of some selectors; all without one.

    Raises:
        QueryError: an invalid selector, or too many series.
    """
    selectors = [parse_selector(text).matchers for text in matches] or [_ALL]
    by_labels = {
        series.labels: series for matchers in selectors for series in source.find(matchers, start, end)
    }
    return [by_labels[labels] for labels in sorted(by_labels)]


def series(source: SeriesSource, matches: Sequence[str], start: int, end: int) -> list[dict[str, str]]:
    """Return the result of `/series`; raise QueryError for no or invalid selectors, or too many series."""
    if not matches:
        raise QueryError("no match[] parameter provided")
    return [dict(selected_series.labels) for selected_series in select_series(source, matches, start, end)]


def labels(source: SeriesSource, matches: Sequence[str], start: int, end: int) -> list[str]:
    """Return the result of `/labels`: their names."""
    return sorted(
        {
            name
            for selected_series in select_series(source, matches, start, end)
            for name, _ in selected_series.labels
        }
    )


def label_values(source: SeriesSource, label: str, matches: Sequence[str], start: int, end: int) -> list[str]:
    """Return the result of `/label/<name>/values`.

    Raises:
        QueryError: an invalid name, an invalid selector, or too many series.
    """
    if LABEL_NAME.fullmatch(label) is None:
        raise QueryError(f"invalid label name: {label[:100]!r}")
    selected_series = select_series(source, matches, start, end)
    return sorted(
        {value for one_series in selected_series for name, value in one_series.labels if name == label}
    )


def federated(source: SeriesSource, matches: Sequence[str], now_ms: int) -> bytes:
    """Return the newest sample of each series that fits, if it is not older than five minutes, as text.

    Raises:
        QueryError: no or invalid selectors, or too many series.
    """
    if not matches:
        raise QueryError("no match[] parameter provided")
    selected = select_series(source, matches, now_ms - LOOK_BACK_MS, now_ms)
    lines: list[tuple[str, str]] = []
    for samples in source.read(selected, now_ms - LOOK_BACK_MS, now_ms):
        if samples.gaps is not None and samples.gaps.max() > samples.t[-1]:
            continue  # the series has ended
        labels = dict(samples.labels)
        name = labels.pop(NAME)
        inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels.items())
        value = number_text(float(samples.values[-1]))
        lines.append((name, f"{name}{{{inner}}} {value} {int(samples.t[-1])}\n"))
    parts: list[str] = []
    last = ""
    for name, line in sorted(lines):
        if name != last:
            parts.append(f"# TYPE {name} untyped\n")
            last = name
        parts.append(line)
    return "".join(parts).encode()


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def exemplars(text: str) -> list[Any]:
    """Return the result of `/query_exemplars`, which is empty, or raise QueryError for a wrong query."""
    parse(text)
    return []


def metadata(name: str | None, limit: int | None) -> dict[str, list[dict[str, str]]]:
    """Return the result of `/metadata`: kind and description of our metrics."""
    entries = {
        metric.prometheus: [{"type": metric.kind, "help": metric.text, "unit": ""}]
        for metric in DEFINITIONS.metrics
        if _is_exported(metric) and (name is None or metric.prometheus == name)
    }
    for family in (LOG, LOG_STEP, OTHER):
        if name is None or name == family.sample:
            entries[family.sample] = [{"type": family.kind, "help": family.help, "unit": ""}]
    return dict(list(entries.items())[:limit])


def _is_exported(metric: Metric) -> bool:
    return bool(metric.prometheus)


def milliseconds(seconds_: float, parameter: str) -> int:
    """Return a time in seconds as ms UTC, or raise QueryError."""
    if not math.isfinite(seconds_) or not -1e11 < seconds_ < 1e11:
        raise QueryError(f'invalid parameter "{parameter}": {seconds_} is not a time')
    return round(seconds_ * 1000)
