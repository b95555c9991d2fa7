"""The summaries of logged rows, by run: each row is added once, as it arrives.

They are stored in the section `logged`; the state needed to update them, and how far each writer's rows are
included, is in the section `tally`. Values set explicitly are in the section `summary` and take precedence.
The highest step is only a field, to filter and sort by: `LAST_STEP`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection

from runvitals.model import fields
from runvitals.model.fields import MAX_FIELDS
from runvitals.model.names import STEP
from runvitals.model.summary import WriterSummary, is_summary_state
from runvitals.server.database.section_documents import (
    SectionDocument,
    SectionKey,
    read_documents,
    write_documents,
)
from runvitals.server.runs.storage import search_columns
from runvitals.server.runs.storage.run_locks import lock_known_runs
from runvitals.server.runs.storage.search_columns import DELETED, LOGGED

TALLY = "tally"
LAST_STEP = f"summary.{STEP}"
_STATE, _SEQS, _STORED, _LAST_STEP = "state", "seqs", "stored", "last_step"
_METRICS, _SUMMARY = "metrics", "summary"
_MAX_WRITERS = 5000


class LoggedValues(NamedTuple):
    """The summary of one metric's values in some rows. `number`: how many values there are."""

    number: int
    total: float
    least: float
    greatest: float
    last: float
    last_ms: int


@dataclass(frozen=True, slots=True)
class LoggedRows:
    """Rows of `log()` that a writer sent together.

    Args:
        writer: its name.
        names: identifies this list of names among those of the writer.
        seq: the number of the first row; rows of the same names come in the order of their numbers.
        metrics: by name.
        what: "sent": a request, which may be included already: its number tells; "new": not included;
            "all": all rows of the run, some of which are included.
        stored: with "all", ranges of the numbers of the requests that it has rows of, by writer. They may be
            sent again, and are included now.
        last_step: the highest step; None: not known.
    """

    run_id: int
    writer: str
    names: int
    seq: int
    metrics: Mapping[str, LoggedValues]
    what: Literal["sent", "new", "all"] = "sent"
    stored: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    last_step: float | None = None


def add_logged_rows(connection: Connection, batches: Sequence[LoggedRows]) -> None:
    """Add rows to the summaries of their runs, unless they are included already.

    Raises:
        UnknownRun: one of the runs does not exist.
    """
    runs = lock_known_runs(connection, {rows.run_id for rows in batches})
    documents = read_documents(connection, runs, (LOGGED, TALLY, DELETED, _METRICS, _SUMMARY))
    keys = {SectionKey(run_id, LOGGED, "") for run_id in runs}
    before = _fields(documents, keys)
    for key in keys:
        fresh = [rows for rows in batches if rows.run_id == key.run_id]
        defined = documents.get(key._replace(section=_METRICS), SectionDocument()).values
        tally = documents.get(key._replace(section=TALLY), SectionDocument())
        documents[key._replace(section=TALLY)], documents[key] = _add_rows(tally, fresh, defined)
    write_documents(connection, {key: documents[key] for key in documents if key.section in (LOGGED, TALLY)})
    search_columns.write_fields(connection, before, _fields(documents, keys))


def replace_logged_rows(
    connection: Connection,
    run_id: int,
    metrics: Mapping[str, LoggedValues],
    last_step: float | None,
    now_ms: int,
) -> set[str]:
    """Let the summary of a run be that of these values only, after rows were removed.

    Returns:
        the names that it had a summary of before.

    Raises:
        UnknownRun: the run does not exist.
    """
    lock_known_runs(connection, [run_id])
    documents = read_documents(connection, [run_id], (LOGGED, TALLY, DELETED, _METRICS, _SUMMARY))
    key = SectionKey(run_id, LOGGED, "")
    before = _fields(documents, {key})
    names = set(documents.get(key, SectionDocument()).values)
    tally = documents.get(key._replace(section=TALLY), SectionDocument())
    # What a writer repeats of what it sent before must not count again.
    for name in (_STATE, _LAST_STEP):
        tally.values.pop(name, None)
    defined = documents.get(key._replace(section=_METRICS), SectionDocument()).values
    rows = [LoggedRows(run_id, "", 0, now_ms, metrics, last_step=last_step)]
    documents[key._replace(section=TALLY)], documents[key] = _add_rows(tally, rows, defined)
    write_documents(connection, {key: documents[key] for key in documents if key.section in (LOGGED, TALLY)})
    search_columns.write_fields(connection, before, _fields(documents, {key}))
    return names


def _fields(
    documents: Mapping[SectionKey, SectionDocument], keys: Iterable[SectionKey]
) -> search_columns.FieldsOfRuns:
    """Return the fields of summaries, with the last step."""
    by_run = search_columns.fields_of(documents, keys)
    for key in keys:
        tally = documents.get(key._replace(section=TALLY), SectionDocument())
        last_step = fields.scalar(tally.values.get(_LAST_STEP))
        if last_step is not None:
            by_run[key.run_id][LAST_STEP] = last_step
    return by_run


def _add_rows(
    before: SectionDocument, batches: Iterable[LoggedRows], defined: Mapping[str, Any]
) -> tuple[SectionDocument, SectionDocument]:
    """Return the state and the summary after adding some rows."""
    summary = WriterSummary()
    summary.rules.define(defined)
    if is_summary_state(before.values.get(_STATE)):
        summary.restore(before.values[_STATE])
    seqs: dict[str, dict[str, int]] = dict(before.values.get(_SEQS) or {})
    stored_seqs: dict[str, Sequence[Sequence[int]]] = dict(before.values.get(_STORED) or {})
    set_ms = before.set_ms
    last_step = before.values.get(_LAST_STEP)
    for rows in batches:
        if rows.last_step is not None:
            last_step = rows.last_step if last_step is None else max(last_step, rows.last_step)
        if rows.what == "all":
            set_ms = max(set_ms, _add(summary, _without_included(summary, rows.metrics)))
            stored_seqs.update(rows.stored)
            continue
        if rows.what == "sent" and any(a <= rows.seq <= b for a, b in stored_seqs.get(rows.writer, ())):
            continue
        of_writer = seqs.pop(rows.writer, {})
        included = of_writer.get(str(rows.names), -1)
        if rows.what == "new" or rows.seq > included:
            of_writer[str(rows.names)] = max(rows.seq, included)
            set_ms = max(set_ms, _add(summary, rows.metrics))
        seqs[rows.writer] = of_writer  # keeps the order of last use
    while len(seqs) > _MAX_WRITERS:
        del seqs[next(iter(seqs))]
    tally = {_STATE: summary.state(), _SEQS: seqs, **({_STORED: stored_seqs} if stored_seqs else {})}
    if last_step is not None:
        tally[_LAST_STEP] = last_step
    state = SectionDocument(tally, set_ms)
    return state, SectionDocument(summary.values_of(summary.values), set_ms)


def _add(summary: WriterSummary, metrics: Mapping[str, LoggedValues]) -> int:
    """Add values to a summary; returns the time of the last one."""
    last_ms = 0
    for name, values in metrics.items():
        if name in summary.values or len(summary.values) < MAX_FIELDS:
            summary.add_many(name, *values)
            last_ms = max(last_ms, values.last_ms)
    return last_ms


def _without_included(summary: WriterSummary, metrics: Mapping[str, LoggedValues]) -> dict[str, LoggedValues]:
    """Return what to add of all rows of a run. A mean begins anew, unless old samples have been deleted."""
    documents = {}
    for name, values in metrics.items():
        if summary.rules.kind(name) == "mean":
            if values.number < summary.counts.get(name, 0):
                continue
            summary.counts.pop(name, None)
        documents[name] = values
    return documents
