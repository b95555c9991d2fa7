"""`POST /files/{entity}/{project}/{run}/file_stream`: the lines of a run.

A client sends each line with its number, and sends it again until it got a response. What is stored is noted
in `MetadataStore.wandb_clients` after it is durable, so that nothing is lost if the server ends between the
two: the rows are then stored again in their place, and count twice in the mean of a summary.

A process that does not resume the run which it begins numbers its lines from zero again, as does `wandb sync`
of a run that is stored. Their times tell which it is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import anyio.to_thread
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.model.errors import UnknownRun
from runvitals.model.limits import ENVELOPE_RECORDS
from runvitals.server.doors.body_reading import read_body
from runvitals.server.doors.wandb import stream_body
from runvitals.server.doors.wandb.console_lines import console_record
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.logged_rows import (
    ParsedRows,
    event_envelopes,
    history_envelopes,
    parse_history,
    sent_ms,
)
from runvitals.server.doors.wandb.logged_values import media_records
from runvitals.server.doors.wandb.recorded_sessions import MergedRows, merge_rows
from runvitals.server.doors.wandb.row_removal import replace_rows, replace_sessions
from runvitals.server.doors.wandb.run_end import end_records, stop_requested
from runvitals.server.doors.wandb.run_ids import RESUMED_LINES, SECTION, ClientRun, find_run
from runvitals.server.doors.wandb.run_writers import (
    CONSOLE,
    MONITOR,
    TRAIN,
    RunWriters,
    event_number,
    host_name,
)
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.doors.wandb.stream_body import NewLines, StreamBody, StreamFile, new_lines
from runvitals.server.doors.wandb.summary_records import summary_records
from runvitals.server.ingest.envelope import Ack, Envelope
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.service_parameters import door_recorder

CLIENT_HEADER: Final = "x-wandb-async-client-id"
MAX_BODY_BYTES: Final = 16 << 20
MAX_UNPACKED_BYTES: Final = 48 << 20
_MAX_CLIENT_NAME: Final = 256
_IN_THREAD_BYTES: Final = 64 << 10
_MAX_REASONS: Final = 5
_NOT_KEPT: Final = 8
"""Added to the number of an event, after those of the same request."""


class _History(NamedTuple):
    """The rows of a request.

    Args:
        lines: how many lines are stored with them.
        replaced_from: the step from which on they replace those of earlier processes; None: they do not.
        merged: what they replace if they are of a recorded session.
    """

    parsed: ParsedRows
    lines: int
    replaced_from: float | None = None
    merged: MergedRows | None = None


class _Prepared(NamedTuple):
    """The envelopes of a request, and the state after them.

    Args:
        client: its state once that is durable.
        history: its rows.
    """

    envelopes: list[Envelope]
    client: WandbClient
    history: _History
    rewritten: list[ConsoleLine]
    console_writer: str


class FileStreams:
    """Stores requests. Those of a client are stored one after the other."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[tuple[str | None, str, str], asyncio.Lock] = WeakValueDictionary()

    async def store(self, request: Request, entity: str, project: str, run: str) -> dict[str, Any]:
        """Store what a request sends; returns the response once it is durable.

        Raises:
            HttpRejection: as `DoorRecorder.record`, and 400, 413 for the body.
            HTTPException: 404 if there is no such run or entity, 410 if it was deleted.
        """
        recorder = door_recorder(request)
        client = request.headers.get(CLIENT_HEADER, "")[:_MAX_CLIENT_NAME]
        with recorder.in_flight() as in_flight:
            data = await read_body(request, recorder, in_flight, MAX_BODY_BYTES, MAX_UNPACKED_BYTES)
            in_flight.reserve(4 * len(data))  # texts, rows and columns besides it
            work = partial(stream_body.decode_body, data)
            body = work() if len(data) <= _IN_THREAD_BYTES else await anyio.to_thread.run_sync(work)
            context = GraphQLContext(request)
            writers = await run_in_threadpool(writers_of, context, entity, project, run, client)
            key = writers.entity, writers.run.uid, client
            lock = self._locks.setdefault(key, asyncio.Lock())
            async with lock:
                return await _store(context, writers, body, len(data))


def writers_of(
    context: GraphQLContext, entity: str | None, project: str | None, name: str, client: str
) -> RunWriters:
    """Return the writers of a client in the run that it names.

    Raises:
        HTTPException: 404 if there is no such run or entity that the client may know of.
    """
    run: ClientRun | None
    try:
        node = context.entity_named(entity)
        run = find_run(context.metadata_store, node.number, project, name)
        if run.stored_run is not None and context.has_accounts:
            directory = context.access.directory
            directory.find_sent_run(context.requester.principal, run.uid, node.name)
    except (HTTPException, UnknownRun):
        run = None
    if run is None or run.stored_run is None:
        raise HTTPException(404, f"there is no run {name[:100]!r} in {entity or ''}/{project or ''}"[:300])
    number = run.stored_run.run_id
    state = _client(context, number, client)
    return RunWriters(run, node.name if context.has_accounts else None, state)


def _client(context: GraphQLContext, run_id: int, client: str) -> WandbClient:
    clients = context.metadata_store.wandb_clients
    state = clients.get(run_id, client)
    return state or WandbClient(run_id, client, host_name(None), context.now_ms())


async def _store(
    context: GraphQLContext, writers: RunWriters, body: StreamBody, body_bytes: int
) -> dict[str, Any]:
    prepared = await anyio.to_thread.run_sync(_prepare, context, writers, body)
    history = prepared.history
    if history.replaced_from is not None:
        await replace_rows(context, writers, history.replaced_from)
    elif history.merged is not None and history.merged.replaced:
        await replace_sessions(context, writers, history.merged)
    recorder = door_recorder(context.request)
    acks = await recorder.record(context.request.scope, prepared.envelopes, body_bytes)
    if any(ack.deleted for ack in acks):
        raise HTTPException(410, f"the run {writers.run.name!r} was deleted")
    stopping = await anyio.to_thread.run_sync(_finish, context, prepared, acks)
    return {"stopped": True} if stopping else {}


def _prepare(context: GraphQLContext, writers: RunWriters, body: StreamBody) -> _Prepared:
    """Return the envelopes of a request. Reads the database."""
    client = _client(context, writers.client.run_id, writers.client.client)  # as of now: the lock is held
    writers = replace(writers, client=client)
    now_ms = context.now_ms()

    history = _history(context, client, body.file(stream_body.HISTORY), now_ms)
    rows = history.parsed.rows
    envelopes = history_envelopes(rows, writers)
    faults: Counter[str] = Counter()
    envelopes += [writers.records(TRAIN, part) for part in _parts(media_records(rows, faults))]
    events = _events(client, body.file(stream_body.EVENTS), now_ms)
    samples, damaged = event_envelopes(events, writers, now_ms)
    envelopes += samples
    printed = _console_records(body, now_ms)
    fresh = [
        entry for entry in printed if entry[0] >= client.console_lines or entry[2]["t"] >= client.started_ms
    ]
    envelopes += [writers.records(CONSOLE, part) for part in _parts(fresh)]
    facts = _facts(context, body, history, damaged, client, now_ms)
    if faults:
        facts.append(_not_kept(faults, now_ms))
    # Always one, so that the run is alive: without facts, a heartbeat.
    envelopes.append(writers.records(MONITOR, facts) if facts else writers.heartbeat())
    if body.complete:
        envelopes += end_records(context, writers, body.exitcode, now_ms)
    after = replace(
        client,
        history_lines=history.lines,
        event_lines=max(client.event_lines, events.end),
        console_lines=max(client.console_lines, printed[-1][0] + 1 if printed else 0),
        row_ms=max(client.row_ms, history.parsed.row_ms),
        ended=bool(body.complete),
    )
    rewritten = [
        ConsoleLine(client.run_id, 0, number, value["t"], value["stream"], value["text"])
        for number, _, value in printed
        if number < client.console_lines
    ]
    return _Prepared(envelopes, after, history, rewritten, writers.name(CONSOLE))


def _history(context: GraphQLContext, client: WandbClient, file: StreamFile, now_ms: int) -> _History:
    """Return the rows of a request that are not stored yet. Reads the database."""

    def after_stored(line: str) -> bool:
        return (sent_ms(line, now_ms) or 0) > client.row_ms

    if client.row_ms and _is_recorded(client, file, now_ms):
        goes_on = file.offset == client.history_lines and after_stored(file.content[0])
        if not goes_on and not _counts_from_others(context, client):
            return _merged_history(context, client, file, now_ms)
    history = new_lines(file, client.history_lines, after_stored)
    begins_again = bool(history.lines) and history.first < client.history_lines
    parsed = parse_history(history, client.row_ms, now_ms)
    if not begins_again:
        return _History(parsed, max(client.history_lines, history.end))
    return _History(parsed, history.end, parsed.rows[0].step if parsed.rows else None)


def _is_recorded(client: WandbClient, file: StreamFile, now_ms: int) -> bool:
    """Return whether the lines of a process that has the run for itself are from before it began to send."""
    if client.client or not file.content:
        return False
    last_ms = sent_ms(file.content[-1], now_ms)
    return last_ms is not None and last_ms < client.started_ms


def _counts_from_others(context: GraphQLContext, client: WandbClient) -> bool:
    """Return whether a client knows of the rows of earlier sessions, and counts its steps from them."""
    stored = context.metadata_store.sections.read([client.run_id], (SECTION,))[client.run_id].shared
    return bool(stored.get(SECTION, {}).get(RESUMED_LINES, 0))


def _merged_history(context: GraphQLContext, client: WandbClient, file: StreamFile, now_ms: int) -> _History:
    library = context.services.library
    parsed = parse_history(NewLines(file.offset, file.content), 0, now_ms)
    media = context.metadata_store.media.times(client.run_id)
    merged = merge_rows(parsed.rows, library.stored_rows(client.run_id), media)
    last_ms = max((row.time_ms for row in merged.new), default=0)
    lines = max(client.history_lines, file.offset + len(file.content))
    return _History(ParsedRows(merged.new, last_ms, parsed.damaged), lines, None, merged)


def _events(client: WandbClient, file: StreamFile, now_ms: int) -> NewLines:
    """Return the system metrics of a request that are not stored yet.

    Those of a recorded session are stored again in their place.
    """

    def of_this_process(line: str) -> bool:
        return (sent_ms(line, now_ms) or 0) >= client.started_ms

    if _is_recorded(client, file, now_ms):
        return NewLines(file.offset, file.content)
    return new_lines(file, client.event_lines, of_this_process)


def _console_records(body: StreamBody, now_ms: int) -> list[tuple[int, str, dict[str, Any]]]:
    """Return lines of the console as records; stored ones keep their numbers."""
    console = body.file(stream_body.CONSOLE)
    lines = enumerate(console.content, console.offset)
    return [(number, "console", console_record(line, now_ms)) for number, line in lines]


def _parts(entries: list[tuple[int, str, dict[str, Any]]]) -> list[list[tuple[int, str, dict[str, Any]]]]:
    """Return records in parts that fit in an envelope."""
    starts = range(0, len(entries), ENVELOPE_RECORDS)
    return [entries[first : first + ENVELOPE_RECORDS] for first in starts]


def _facts(
    context: GraphQLContext,
    body: StreamBody,
    history: _History,
    damaged: int,
    client: WandbClient,
    now_ms: int,
) -> list[tuple[int, str, dict[str, Any]]]:
    """Return records of the monitor: the summary, and what happened."""
    entries: list[tuple[int, str, dict[str, Any]]] = []
    damaged += history.parsed.damaged
    summary = summary_records(context, client, body, history.parsed.rows, now_ms)
    damaged += summary.damaged
    entries += [(0, "info", {"t": now_ms, **record}) for record in summary.contents]
    number = event_number(now_ms)
    if history.merged is not None and history.merged.left_out:
        count = history.merged.left_out
        text = f"{count} rows of an earlier session were left out: a later one logged their steps again"
        entries.append((number, "event", {"t": now_ms, "name": "restarted", "level": "info", "text": text}))
        number += 1
    if damaged:
        text = f"{damaged} lines of the client are no JSON objects, and were left out"
        event = {"t": now_ms, "name": "bad_message", "level": "warning", "text": text, "count": damaged}
        entries.append((number, "event", event))
    if body.preempting:
        event = {
            "t": now_ms,
            "name": "preempting",
            "level": "info",
            "text": "the machine is being taken away",
        }
        entries.append((number + 1, "event", event))
    return entries


def _not_kept(faults: Counter[str], now_ms: int) -> tuple[int, str, dict[str, Any]]:
    """Return the event that says which logged values were not kept as they are."""
    reasons = ", ".join(f"{reason} ({count})" for reason, count in faults.most_common(_MAX_REASONS))
    text = f"logged values were changed, because they cannot be kept as they are: {reasons}"
    event = {"t": now_ms, "name": "bad_message", "level": "warning", "text": text, "count": faults.total()}
    return event_number(now_ms) + _NOT_KEPT, "event", event


def _finish(context: GraphQLContext, prepared: _Prepared, acks: list[Ack]) -> bool:
    """Note what is stored; returns whether the client is to stop."""
    store = context.metadata_store
    if prepared.rewritten:
        store.console.rewrite(prepared.client.run_id, prepared.console_writer, prepared.rewritten)
    store.wandb_clients.put(prepared.client)
    return any(ack.stop for ack in acks) and stop_requested(context, prepared.client)
