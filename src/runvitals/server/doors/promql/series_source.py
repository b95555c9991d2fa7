"""Finds series of the store by matchers, and reads their samples.

Series have the names and labels that our Prometheus destination gives them, and `entity`, the team or user,
where there are accounts. Series that came by remote write without a key of ours have their own name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple

import numpy as np

from runvitals.base import deadline
from runvitals.base.buckets import Grid
from runvitals.model.batch_format import GAP_BITS
from runvitals.model.filter import Filter, Predicate, ReadableRuns
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.prometheus import LOG, LOG_STEP, free_label, to_prometheus
from runvitals.model.names import RESERVED, STEP
from runvitals.model.state import MONITOR, RUNNING
from runvitals.server.doors.otlp.prometheus_names import SECTION
from runvitals.server.doors.promql.patterns import compile_pattern
from runvitals.server.doors.promql.syntax import Matcher, QueryError
from runvitals.server.doors.promql.vectors import NAME, Labels, Range, sorted_labels
from runvitals.server.doors.routing import label_name, writer_host
from runvitals.server.doors.sample_batches import FOREIGN
from runvitals.server.http.workers import Workers
from runvitals.server.library.stored.lanes import Lane, lanes
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.store.samples.interface import SampleStore

MAX_RUNS: Final = 2000
MAX_SERIES: Final = 20_000
MAX_SAMPLES: Final = 5_000_000
_THREADS: Final = 2
_EXTERNAL = re.compile(r"([^{}]+)(?:\{(.*)\})?", re.DOTALL)
_LABEL = re.compile(r'([^=,{}"]+)="((?:[^"\\]|\\.)*)",?', re.DOTALL)
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_:]")
_DOORS: Final = ("0", "otlp")
"""The last parts of the names of writers whose series have names of their own: of remote write and OTLP."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class SelectedSeries(NamedTuple):
    """A series: its labels, its place in the store, and the factor to its unit.

    Args:
        has_nan: whether NaN is a value, as in Prometheus; otherwise it is a gap.
        as_sent: the same labels with the name as OpenTelemetry has it, without unit and `_total`; "": none.
    """

    labels: Labels
    lane: int
    metric: int
    factor: float
    has_nan: bool = False
    as_sent: str = ""


Match = Callable[[str], bool]
"""A condition on the value of a label."""


class SeriesSource:
    """The series that a requester may read.

    Args:
        readable: the runs that the requester may read; None: all.
        now_ms: the time now.
    """

    def __init__(
        self, store: SampleStore, metadata_store: MetadataStore, readable: ReadableRuns | None, now_ms: int
    ) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self._readable = readable
        self._now_ms = now_ms
        self._lanes: dict[int, list[Lane]] = {}
        self._names: dict[int, Mapping[str, Any]] = {}

    def find(self, matchers: Sequence[Matcher], t0: int, t1: int) -> list[SelectedSeries]:
        """Return the series of runs between two times, ms UTC, that fit all matchers.

        Raises:
            QueryError: too many fit, or an invalid pattern.
        """
        fits = [(matcher.label, _match(matcher)) for matcher in matchers]
        series_list: list[SelectedSeries] = []
        for row in self._runs(matchers, fits, t0, t1):
            for series in self._of_run(row):
                labels = dict(series.labels)
                if all(fit(labels.get(label, "")) for label, fit in fits):
                    series_list.append(series)
                elif series.as_sent:
                    labels[NAME] = series.as_sent
                    if all(fit(labels.get(label, "")) for label, fit in fits):
                        series_list.append(series._replace(labels=sorted_labels(labels)))
            deadline.check()
            if len(series_list) > MAX_SERIES:
                raise QueryError(f"more than {MAX_SERIES} series match: narrow the selector", "execution")
        return series_list

    def read(self, selected: Sequence[SelectedSeries], t0: int, t1: int) -> list[Range]:
        """Return the samples of series from `t0` to `t1`, both included, without gaps.

        Series without samples are left out.

        Raises:
            QueryError: too many samples.
        """
        by_lane: dict[int, dict[int, SelectedSeries]] = {}
        for series in selected:
            by_lane.setdefault(series.lane, {})[series.metric] = series
        total, lines = 0, []
        for lane, lane_series in by_lane.items():
            deadline.check()
            total += self._count(lane, list(lane_series), t0, t1)
            if total > MAX_SAMPLES:
                text = f"the query needs more than {MAX_SAMPLES} samples: narrow the selector or the time"
                raise QueryError(text, "execution")
            for samples in self._store.read([lane], list(lane_series), t0, t1).series:
                series = lane_series[samples.metric]
                is_gap = (
                    samples.values.view(np.int64) == GAP_BITS if series.has_nan else np.isnan(samples.values)
                )
                has_value = ~is_gap
                if has_value.any():
                    values = samples.values[has_value] * series.factor
                    gaps = None if has_value.all() else samples.t[~has_value]
                    lines.append(Range(series.labels, samples.t[has_value], values, gaps))
        return lines

    def _count(self, lane: int, metrics: list[int], t0: int, t1: int) -> int:
        on = Grid(t0, t1 - t0 + 1, 1)
        return sum(int(item.buckets.n.sum()) for item in self._store.read_buckets([lane], metrics, on).series)

    def _runs(
        self, matchers: Sequence[Matcher], fits: Sequence[tuple[str, Match]], t0: int, t1: int
    ) -> Iterator[RunRow]:
        equal = {matcher.label: matcher.value for matcher in matchers if matcher.operator == "="}
        project = equal.get("project") or None
        started = Predicate("started_ms", "<=", float(t1))
        ended = Filter(
            project, where=(started, Predicate("last_ms", ">=", float(t0))), readable=self._readable
        )
        # What a run that is running has sent in the last seconds is not in its `last_ms` yet.
        running = Filter(project, states=(RUNNING,), where=(started,), readable=self._readable)
        runs = self._metadata_store.runs
        ids = sorted({*runs.ids(ended, self._now_ms), *runs.ids(running, self._now_ms)})
        rows = [
            row
            for row in self._metadata_store.runs.get(ids, self._now_ms).values()
            if all(fit(row.uid) for label, fit in fits if label == "run")
            and all(fit(row.project) for label, fit in fits if label == "project")
        ]
        if len(rows) > MAX_RUNS:
            text = f"{len(rows)} runs match; at most {MAX_RUNS} are allowed: narrow it by run or project"
            raise QueryError(text, "execution")
        missing = [row.id for row in rows if row.id not in self._lanes]
        for run_id, writers in self._metadata_store.writers.of_runs(missing).items():
            deadline.check()
            self._lanes[run_id] = lanes(self._metadata_store, run_id, writers)
        for run_id, sections in self._metadata_store.sections.read(missing, (SECTION,)).items():
            self._names[run_id] = sections.shared.get(SECTION, {})
        yield from rows

    def _of_run(self, row: RunRow) -> Iterator[SelectedSeries]:
        otel = self._names.get(row.id, {})
        base = {"run": row.uid, "project": row.project, "entity": row.entity or ""}
        for lane in self._lanes.get(row.id, ()):
            of_lane = {**base, "host": lane.host}
            if lane.role != MONITOR:
                of_lane["rank"] = "" if lane.rank is None else str(lane.rank)
                if lane.rank is None:
                    of_lane["process"] = _process(lane.writers[0].writer) if lane.writers else ""
            names = {f"monitor.{writer_host(lane.host)}.{door}" for door in _DOORS}
            external = any(writer.writer in names for writer in lane.writers)
            for key, metric in lane.sampled.items():
                is_external = external and _is_external(key)
                name, labels, factor = _external(key) if is_external else _own(key)
                prometheus = _prometheus_name(key, otel) if is_external and otel else name
                pairs = sorted_labels({**dict(labels), **of_lane, NAME: prometheus})
                as_sent = name if prometheus != name else ""
                yield SelectedSeries(pairs, lane.id, metric, factor, is_external, as_sent)
            for key, metric in lane.logged.items():
                if key == STEP:
                    step = sorted_labels({**of_lane, NAME: LOG_STEP.sample})
                    yield SelectedSeries(step, lane.id, metric, 1.0)
                elif key not in RESERVED:
                    logged = sorted_labels({**of_lane, NAME: LOG.sample, "key": key})
                    yield SelectedSeries(logged, lane.id, metric, 1.0)


def _process(writer: str) -> str:
    """Return the part of a writer's name that distinguishes its process.

    It is the number of the process in the names that our own clients choose; others may choose any.

    Example:
        >>> _process("train.node1.4711.19f3b"), _process("curl")
        ('4711', 'curl')
    """
    parts = writer.split(".")
    return parts[-2] if len(parts) > 1 else writer


_Named = tuple[str, Labels, float]


def _own(key: str) -> _Named:
    family, labels, factor = to_prometheus(key)
    return family.sample, labels, factor


@lru_cache(16_384)
def _is_external(key: str) -> bool:
    return DEFINITIONS.find(key) is None and _EXTERNAL.fullmatch(key) is not None


@lru_cache(16_384)
def _external(key: str) -> _Named:
    """Return name and labels of a key that remote write or OTLP made of them, as Prometheus spells them."""
    match = _EXTERNAL.fullmatch(key)
    if match is None:
        return _own(key)
    pairs = _LABEL.findall(match[2] or "")
    labels = ((free_label(label_name(name)), _ESCAPED.sub(_unescape, value)) for name, value in pairs)
    name = _NOT_IN_NAME.sub("_", match[1].removeprefix(FOREIGN))
    return f"_{name}" if name[0].isdigit() else name, tuple(labels), 1.0


def _prometheus_name(key: str, names: Mapping[str, Any]) -> str:
    """Return the name in Prometheus of a key of OpenTelemetry: `tokens_total`, `latency_seconds_bucket`.

    Args:
        names: those of metrics, by the name that was sent.
    """
    sent = key.partition("{")[0].removeprefix(FOREIGN)
    if sent in names:
        return str(names[sent])
    metric, _, part = sent.rpartition(".")
    return f"{names[metric]}_{part}" if metric in names else _external(key)[0]


def _unescape(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _match(matcher: Matcher) -> Match:
    """Return the test of a label's value that a matcher asks for.

    Raises:
        QueryError: an invalid pattern, or one that may take very long.
    """
    value = matcher.value
    if matcher.operator == "=":
        return partial(_equals, value)
    if matcher.operator == "!=":
        return lambda text: text != value
    pattern = compile_pattern(value)
    matches = lru_cache(10_000)(lambda text: pattern.fullmatch(text) is not None)
    return matches if matcher.operator == "=~" else lambda text: not matches(text)


def _equals(value: str, text: str) -> bool:
    return value == text


class PromqlServer:
    """The stores and threads that the routes of Prometheus' query API work with.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = store
        self._metadata_store = metadata_store
        self.clock = clock
        self.workers = Workers(_THREADS)

    def source(self, readable: ReadableRuns | None) -> SeriesSource:
        """Return the series of the runs that a requester may read; None: of all runs."""
        return SeriesSource(self._store, self._metadata_store, readable, self.clock())
