"""Removes what a run has logged after a step: it goes back to it, or logs the steps after it again."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from starlette.concurrency import run_in_threadpool

from runvitals.model.batch_format import GAP
from runvitals.server.doors import recording
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.recorded_sessions import MergedRows
from runvitals.server.doors.wandb.run_ids import SECTION
from runvitals.server.doors.wandb.run_writers import MONITOR, RunWriters, event_number
from runvitals.server.doors.wandb.summaries import OUTDATED, STORED, SUMMARY, keys_of
from runvitals.server.ingest.envelope import Envelope
from runvitals.server.library.run_library import RunView, TooMuch
from runvitals.server.library.stored.writer_rows import WriterRows
from runvitals.server.runs.storage.log_summaries import LoggedValues, replace_logged_rows
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.service_parameters import door_recorder

_VALUES_PER_ENVELOPE: Final = 500_000
_MAX_REMOVED: Final = 20_000_000


async def replace_sessions(context: GraphQLContext, writers: RunWriters, merged: MergedRows) -> None:
    """Remove the rows of earlier sessions that those of a later one replace."""
    rows = sum(len(part.t) for part in merged.replaced)
    first = min(row.step for row in merged.new)
    text = f"{rows} rows from step {first:g} on were replaced by those of a later session"
    before_ms = min(row.time_ms for row in merged.new)
    before = math.nextafter(first, -math.inf)
    await remove_rows(context, writers, merged.replaced, before, text, "restarted", before_ms)


async def replace_rows(context: GraphQLContext, writers: RunWriters, step: float) -> None:
    """Remove what earlier processes have logged from a step on.

    Another one, which has not resumed the run, is about to log these steps.
    """
    before = math.nextafter(step, -math.inf)
    again = "the run was begun again without resuming it"
    try:
        removed = await run_in_threadpool(rows_to_remove, context, writers.client.run_id, before)
    except TooMuch as error:
        await _note(context, writers, "restarted", f"{again}; it {error}, so they are kept")
        return
    if removed:
        text = f"{again}: what it had logged from step {step:g} on was replaced"
        await remove_rows(context, writers, removed, before, text, name="restarted")


def rows_to_remove(context: GraphQLContext, run_id: int, step: float) -> list[WriterRows]:
    """Return the rows of a run after a step; call it in a thread.

    Raises:
        TooMuch: they have too many values to be removed.
    """
    library = context.services.library
    later = [rows.where(rows.steps > step) for rows in library.stored_rows(run_id)]
    if sum(len(rows.t) * len(rows.keys) for rows in later) > _MAX_REMOVED:
        raise TooMuch(f"has more than {_MAX_REMOVED:,} values after step {step:g}")
    return [rows for rows in later if len(rows.t)]


async def remove_rows(
    context: GraphQLContext,
    writers: RunWriters,
    removed: Sequence[WriterRows],
    step: float,
    text: str,
    name: str = "rewound",
    before_ms: int | None = None,
) -> None:
    """Remove rows, and media after a step. The summary is then that of the rows that are left.

    Args:
        name, text: of the event that notes it.
        before_ms: only media from before this time.
    """
    await _overwrite(context, writers, removed)
    await _note(context, writers, name, text)
    run_id = writers.client.run_id
    library = context.services.library
    opened = await library.open(writers.run.uid, run_id)
    opened.invalidate()
    summaries, last_step = await opened.use(_summaries)
    await run_in_threadpool(_replace_summary, context, run_id, summaries, last_step)
    await run_in_threadpool(context.metadata_store.media.delete_after, run_id, step, before_ms)
    opened.invalidate()


async def _overwrite(context: GraphQLContext, writers: RunWriters, removed: Sequence[WriterRows]) -> None:
    """Overwrite rows with nothing."""
    recorder = door_recorder(context.request)
    for rows in removed:
        count = max(1, _VALUES_PER_ENVELOPE // len(rows.keys))
        for first in range(0, len(rows.t), count):
            t = rows.t[first : first + count]
            nothing = np.full((len(t), len(rows.keys)), GAP)
            envelope: Envelope = recording.samples(
                writers.run.uid,
                rows.writer,
                rows.keys,
                t,
                nothing,
                project=writers.run.project,
                entity=writers.entity,
            )
            await recorder.record(context.request.scope, [envelope], 0)


async def _note(context: GraphQLContext, writers: RunWriters, name: str, text: str) -> None:
    """Add an event to the run."""
    now_ms = context.now_ms()
    event = {"t": now_ms, "name": name, "level": "info", "text": text}
    noted = writers.records(MONITOR, [(event_number(now_ms), "event", event)])
    await door_recorder(context.request).record(context.request.scope, [noted], 0)


def _summaries(view: RunView) -> tuple[dict[str, LoggedValues], float | None]:
    """Count, sum, minimum, maximum and last value of each name; and the highest step."""
    by_name: dict[str, LoggedValues] = {}
    last_steps: list[float] = []
    for process in view.logged_columns(()):
        for name, (steps, times, values) in process.columns.items():
            has_value = ~np.isnan(values)
            kept = values[has_value]
            if not len(kept):
                continue
            last_steps.append(float(steps[has_value].max()))
            with np.errstate(over="ignore", invalid="ignore"):
                part_values = LoggedValues(
                    len(kept),
                    float(kept.sum()),
                    float(kept.min()),
                    float(kept.max()),
                    float(kept[-1]),
                    int(times[has_value][-1]),
                )
            present = by_name.get(name)
            by_name[name] = part_values if present is None else _join(present, part_values)
    return by_name, max(last_steps, default=None)


def _join(part: LoggedValues, other: LoggedValues) -> LoggedValues:
    last = max(part, other, key=lambda values: values.last_ms)
    return LoggedValues(
        part.number + other.number,
        part.total + other.total,
        min(part.least, other.least),
        max(part.greatest, other.greatest),
        last.last,
        last.last_ms,
    )


def _replace_summary(
    context: GraphQLContext, run_id: int, summaries: Mapping[str, LoggedValues], last_step: float | None
) -> None:
    """Let the summary of a run be that of the rows that are left."""
    store, now_ms = context.metadata_store, context.now_ms()
    store.pending_summaries.flush({run_id})  # else they would be added to the summary of fewer rows
    logged = store.write(
        lambda connection: replace_logged_rows(connection, run_id, summaries, last_step, now_ms)
    )
    # The client has sent its own summary too, which counts more.
    stored = store.sections.read([run_id], STORED)[run_id]
    names = set(logged) if summaries else {*logged, *stored.shared.get(SUMMARY, {})}
    updates = [
        SectionUpdate(run_id, section, {}, now_ms, removed=tuple(keys))
        for section, keys in keys_of(stored, names).items()
    ]
    store.sections.merge([*updates, SectionUpdate(run_id, SECTION, {OUTDATED: True}, now_ms)])
