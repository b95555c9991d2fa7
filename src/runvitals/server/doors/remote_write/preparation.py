"""Turns the samples of a message into envelopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from runvitals.base.buckets import Floats, Integers
from runvitals.model.batch_format import GAP
from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.recording import records
from runvitals.server.doors.remote_write.message import SentSamples
from runvitals.server.doors.remote_write.rivals import SECTION
from runvitals.server.doors.remote_write.series_table import NOT_STORED, SeriesTable
from runvitals.server.doors.remote_write.targets import ColumnList, Target
from runvitals.server.ingest.envelope import ArrayEnvelope, Envelope

_BLANK_64: Final = 9.2e18
_BLANK_32: Final = (0x7FFFFFF0, 0x7FFFFFFF)
MAX_UNSENT: Final = 10_000

Outputs = tuple[Target, int, dict[str, float]]
"""Where and when derived metrics were computed, and their values by key."""

_STALE: Final = np.uint64(0x7FF0000000000002)
"""The NaN by which Prometheus marks the end of a series."""


@dataclass
class Prepared:
    """The envelopes of one request, and what it rejected.

    Args:
        columns: of the first envelopes; the others have no samples.
        targets: that it stores samples of.
        outputs: the derived metrics in it, which are computed only once: if the envelopes cannot be stored,
            they are kept for the next request.
        written: samples that are stored, or are used for derived metrics; without those of histograms.
        histograms: native histograms of which the count is stored.
        too_old, too_new, too_many: samples that are not, and why.
        unknown: native histograms that are not, because of their buckets.
        invalid: what is wrong with each series and histogram that is not.
    """

    envelopes: list[Envelope]
    columns: list[ColumnList]
    targets: list[Target]
    outputs: list[Outputs]
    written: int
    histograms: int = 0
    too_old: int = 0
    too_new: int = 0
    too_many: int = 0
    unknown: int = 0
    invalid: Sequence[str] = ()

    @property
    def problems(self) -> str:
        """A text about what was not stored; "" if everything was."""
        causes = (
            (self.too_old, "samples are too old"),
            (self.too_new, "samples are too far in the future"),
            (self.too_many, "samples are of more series than a host may have"),
            (self.unknown, "native histograms have buckets of an unknown kind"),
        )
        texts = [f"{count} {cause}" for count, cause in causes if count]
        if self.invalid:
            texts.append(
                f"{len(self.invalid)} series or histograms are invalid, the first: {self.invalid[0]}"
            )
        return "; ".join(texts)


@dataclass
class _Row:
    """Values of one target at one time: ascending columns."""

    t: int
    values: Floats


@dataclass
class _Rows:
    """Rows of one target with the same columns."""

    target: Target
    columns: list[int]
    packed: bytes
    rows: list[_Row] = field(default_factory=list)


def prepare(
    samples: SentSamples,
    table: SeriesTable,
    oldest_ms: int,
    newest_ms: int,
    unsent: Sequence[Outputs],
    now_ms: int,
) -> Prepared:
    """Return the envelopes of the samples of one message.

    Args:
        oldest_ms, newest_ms: times outside are not stored.
        unsent: derived metrics of earlier requests that could not be stored.
    """
    series, t = samples.series, samples.t
    table.separate(series, t, samples.values)
    sent_values = np.where(np.isnan(samples.values), np.nan, samples.values)  # its markers are signals
    ends = samples.values.view(np.uint64) == _STALE
    old, new = t < oldest_ms, t > newest_ms
    skipped = table.is_skipped[series]
    values = np.minimum(sent_values, table.highest[series])
    rejected = old | new | skipped
    usable = ~rejected & ~((sent_values < table.least[series]) | (sent_values > table.most[series]))
    blanks = table.has_blanks[series]
    if blanks.any():
        usable &= ~(blanks & _is_blank(sent_values))
    outputs = [*unsent, *_derive(series, t, values, table, usable & table.has_inputs[series])]
    stored = usable & (table.column[series] != NOT_STORED)
    numbers = series[stored]
    scaled = values[stored] * table.factor[numbers]
    scaled[ends[stored]] = GAP
    grouped = _group(table, numbers, t[stored], scaled)
    _add_outputs(grouped, outputs)
    targets = list({id(rows.target): rows.target for rows in grouped.values()}.values())
    parts = [part for rows in grouped.values() for part in _envelopes(rows)]
    names = [name for target in targets if (name := _run_name(target, oldest_ms)) is not None]
    return Prepared(
        [*(envelope for envelope, _ in parts), *names, *_told_apart(table, now_ms)],
        [columns for _, columns in parts],
        targets,
        outputs,
        int(len(series) - samples.of_histograms - rejected[: len(series) - samples.of_histograms].sum()),
        int((~rejected[list(samples.counts)]).sum()),
        int(old.sum()),
        int(new.sum()),
        int((skipped & ~old & ~new).sum()),
        samples.unknown_histograms,
        samples.invalid,
    )


def _run_name(target: Target, time_ms: int) -> Envelope | None:
    """Return an envelope that names the run, the first time that its host sends; None if its id is the name.

    Args:
        time_ms: earlier than any change by users, which then counts: this is sent after each restart.
    """
    route = target.route
    if target.is_named or route.run_name is None:
        return None
    target.is_named = True
    name = [(0, "info", {"t": time_ms, "run": {"name": route.run_name}})]
    return records(
        route.run, target.writer, name, project=route.project, entity=route.entity, about=target.about
    )


def _told_apart(table: SeriesTable, now_ms: int) -> Iterator[Envelope]:
    """Yield what a later start of the server needs to know of series that were told apart."""
    for number in sorted(table.newly_told_apart):
        target = table.targets[number]
        route, facts = target.route, table.told_apart.facts(*table.of(target))
        info = [(0, "info", {"t": now_ms, SECTION: facts})]
        yield records(
            route.run, target.writer, info, project=route.project, entity=route.entity, about=target.about
        )
    table.newly_told_apart.clear()


def _is_blank(values: Floats) -> NDArray[np.bool_]:
    """Return where values are DCGM's codes for "no value"; NaN, which ends a series, is not one of them."""
    low, high = _BLANK_32
    blank: NDArray[np.bool_] = (np.abs(values) >= _BLANK_64) | (
        (values >= low) & (values <= high) & (values == np.floor(values))
    )
    return blank


def _derive(
    series: NDArray[np.int64], t: Integers, values: Floats, table: SeriesTable, is_wanted: NDArray[np.bool_]
) -> list[Outputs]:
    """Add inputs of derived metrics; returns those that are complete."""
    rows = np.flatnonzero(is_wanted)
    if not len(rows):
        return []
    touched: dict[DerivedMetric, Target] = {}
    numbers = series[rows]
    for number, target_number, time_ms, value in zip(
        numbers.tolist(),
        table.target[numbers].tolist(),
        t[rows].tolist(),
        values[rows].tolist(),
        strict=True,
    ):
        target = table.targets[target_number]
        for input_ in table.inputs[number]:
            touched[target.add_input(input_, time_ms, value)] = target
    return [
        (target, moment.t, dict(moment.outputs))
        for metric, target in touched.items()
        for moment in metric.pop_completed()
        if moment.outputs
    ]


_Part = tuple[Envelope, ColumnList]
_Grouped = dict[tuple[int, bytes], _Rows]
"""By the id of the target and its columns."""


def _group(table: SeriesTable, numbers: NDArray[np.int64], t: Integers, values: Floats) -> _Grouped:
    """Return the samples as rows: what a target has at one time is a row."""
    grouped: _Grouped = {}
    if not len(numbers):
        return grouped
    target, column = table.target[numbers], table.column[numbers]
    order = np.lexsort((column, t, target))
    target, column, t, values = target[order], column[order], t[order], values[order]
    same_row = (target[1:] == target[:-1]) & (t[1:] == t[:-1])
    last = np.append(~(same_row & (column[1:] == column[:-1])), True)  # of a repeated sample, the last counts
    if not last.all():
        target, column, t, values = target[last], column[last], t[last], values[last]
        same_row = (target[1:] == target[:-1]) & (t[1:] == t[:-1])
    ends = np.append(np.flatnonzero(~same_row) + 1, len(t)).tolist()
    start = 0
    for end in ends:
        columns = column[start:end]
        row_target = table.targets[int(target[start])]
        packed = columns.tobytes()
        key = (id(row_target), packed)
        rows = grouped.get(key)
        if rows is None:
            rows = grouped[key] = _Rows(row_target, columns.tolist(), packed)
        rows.rows.append(_Row(int(t[start]), values[start:end]))
        start = end
    return grouped


def _add_outputs(grouped: _Grouped, outputs: Sequence[Outputs]) -> None:
    """Add derived metrics as rows."""
    together: dict[tuple[int, int], tuple[Target, dict[int, float]]] = {}
    for target, t, values in outputs:
        _, row = together.setdefault((id(target), t), (target, {}))
        row.update((target.column(key), value) for key, value in values.items())
    for (number, t), (target, row) in together.items():
        columns = sorted(row)
        packed = np.array(columns, np.int64).tobytes()
        rows = grouped.setdefault((number, packed), _Rows(target, columns, packed))
        rows.rows.append(_Row(t, np.array([row[column] for column in columns])))


def _envelopes(rows: _Rows) -> Iterator[_Part]:
    target, route = rows.target, rows.target.route
    times = [row.t for row in rows.rows]
    target.add_times(sorted(times))
    t, values = np.array(times, np.int64), np.array([row.values for row in rows.rows])
    at = 0
    for columns in target.column_lists(rows.columns, rows.packed):
        part = values[:, at : at + columns.width]
        at += columns.width
        envelope = ArrayEnvelope(
            route.run,
            target.writer,
            None,
            route.project,
            route.entity,
            target.about,
            keys=columns.keys if columns.schema is None else (),
            schema=columns.schema,
            t=t,
            values=part,
        )
        yield envelope, columns
