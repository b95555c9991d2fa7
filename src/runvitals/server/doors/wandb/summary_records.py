"""What a request to a file stream changes of the run's summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from runvitals.model.values import Sanitizer
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.history_rows import TIMESTAMP
from runvitals.server.doors.wandb.logged_rows import HistoryLine, sent_ms
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.doors.wandb.stream_body import SUMMARY as SUMMARY_FILE
from runvitals.server.doors.wandb.stream_body import StreamBody, parse_line
from runvitals.server.doors.wandb.summaries import (
    FORM,
    OUTDATED,
    STORED,
    SUMMARY,
    changed_summary,
)
from runvitals.server.runs.storage.search_columns import LOGGED
from runvitals.server.runs.storage.sections import RunSections


class SummaryRecords(NamedTuple):
    """The contents of records about a summary, and how many lines are damaged."""

    contents: list[dict[str, Any]]
    damaged: int = 0


def summary_records(
    context: GraphQLContext,
    client: WandbClient,
    body: StreamBody,
    rows: Sequence[HistoryLine],
    now_ms: int,
) -> SummaryRecords:
    """Return what a request changes of a summary. Reads the database.

    A client leaves out a summary that has become too large. What the rows say then counts.
    """
    names = {name for row in rows if row.time_ms > client.row_ms for name in row.numbers}
    lines = body.file(SUMMARY_FILE).content
    if not lines and not names:
        return SummaryRecords([])
    stored = context.metadata_store.sections.read([client.run_id], STORED)[client.run_id]
    if not lines:
        return SummaryRecords(_of_rows(stored, names))
    data = parse_line(lines[-1])
    if data is None:
        return SummaryRecords([], 1)
    if stored.shared.get(SECTION, {}).get(OUTDATED):  # it has been sent without names of earlier rows
        logged = context.metadata_store.sections.read([client.run_id], (LOGGED,))[client.run_id]
        names |= logged.shared.get(LOGGED, {}).keys()
    sent: dict[str, Any] = Sanitizer().value(data)
    before = {**stored.shared.get(SECTION, {}).get(SUMMARY, {}), **stored.shared.get(FORM, {})}
    complete = not client.client and _is_newest(client, lines[-1], sent, before, now_ms)
    if (
        not client.client
        and not complete
        and sent.get(TIMESTAMP, math.inf) < before.get(TIMESTAMP, -math.inf)
    ):
        sent = {key: value for key, value in sent.items() if key not in before}  # it was overwritten
    return SummaryRecords(changed_summary(stored, sent, names, complete).records())


def _is_newest(
    client: WandbClient, line: str, sent: dict[str, Any], before: dict[str, Any], now_ms: int
) -> bool:
    """Return whether a summary is of the present process, not of a session recorded before it began."""
    if TIMESTAMP not in sent:  # nothing was logged yet
        return TIMESTAMP not in before
    return (sent_ms(line, now_ms) or 0) >= client.started_ms


def _of_rows(stored: RunSections, names: set[str]) -> list[dict[str, Any]]:
    """Return what changes when rows with these names come without a summary."""
    outdated = sorted(names & stored.shared.get(SUMMARY, {}).keys())
    removed = {"removed": {SUMMARY: outdated}} if outdated else {}
    if not stored.shared.get(SECTION, {}).get(OUTDATED):
        return [{**removed, SECTION: {OUTDATED: True}}]
    return [removed] if removed else []
