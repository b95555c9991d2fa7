"""How a run ends when a client says that it is complete."""

from __future__ import annotations

from typing import Any, Final

from runvitals.model.ending import Ending
from runvitals.server.doors import recording
from runvitals.server.doors.wandb.context import GraphQLContext
from runvitals.server.doors.wandb.run_ids import NEWEST_SESSION_MS, SECTION, SESSION_MS
from runvitals.server.doors.wandb.run_settings import was_offline
from runvitals.server.doors.wandb.run_writers import MONITOR, RunWriters
from runvitals.server.doors.wandb.storage.clients import WandbClient
from runvitals.server.ingest.envelope import Envelope

_INTERRUPTED: Final = 255
"""The exit code that clients send when the user or the server interrupted the program."""


def end_records(
    context: GraphQLContext, writers: RunWriters, exit_code: int | None, now_ms: int
) -> list[Envelope]:
    """Return the last records of the run's monitors. Reads the database.

    A session that was recorded before another one of the run ends as that one has, or not if it goes on.
    """
    client = writers.client
    mine = writers.name(MONITOR)
    ended: Ending | None = ending(exit_code, stop_requested(context, client))
    stored = context.metadata_store.writers.of_runs([client.run_id])[client.run_id]
    others = [writer for writer in stored if writer.role == MONITOR and writer.name != mine]
    hosts = {mine: client.host}
    if _is_of_earlier_session(context, client):
        ended = others[-1].ending if others else ended
    else:
        # How an earlier process ended does not count any more. In a shared run, others end on their own.
        hosts |= {writer.name: writer.host for writer in others if not client.client or writer.ending is None}
    if ended is None:
        return []
    record = (0, "lifecycle", {"t": now_ms, "what": "end", **ended.as_dict()})
    return [
        recording.records(
            writers.run.uid,
            name,
            [record],
            project=writers.run.project,
            entity=writers.entity,
            about=writers.about(MONITOR, host),
        )
        for name, host in hosts.items()
    ]


def stop_requested(context: GraphQLContext, client: WandbClient) -> bool:
    """Return whether a user has asked the process to end: a request to an earlier process does not count."""
    requested = context.metadata_store.runs.stops_requested([client.run_id])
    return requested.get(client.run_id, -1) >= client.started_ms


def ending(exit_code: int | None, stop_requested: bool) -> Ending:
    """Return the end of a run that a client reports with an exit code.

    Example:
        >>> ending(0, False).state, ending(1, False).state, ending(255, False).state
        ('finished', 'failed', 'stopped')
    """
    if exit_code in (0, None):
        return Ending("finished", exit_code, None, None)
    if stop_requested or exit_code == _INTERRUPTED:
        return Ending("stopped", exit_code, None, None)
    return Ending("failed", exit_code, None, None)


def _is_of_earlier_session(context: GraphQLContext, client: WandbClient) -> bool:
    """Return whether `wandb sync` sends a session that began before another one of the run."""
    sections = context.metadata_store.sections.read([client.run_id], (SECTION,))[client.run_id]
    own: dict[str, Any] = sections.shared.get(SECTION, {})
    began_ms = own.get(SESSION_MS)
    return (
        not client.client
        and began_ms is not None
        and began_ms < own.get(NEWEST_SESSION_MS, began_ms)
        and was_offline(own.get("config", {}))
    )
