"""The facts that texts about a run name, read from the metadata store."""

from __future__ import annotations

from typing import Final

from runvitals.monitoring.environment import redaction
from runvitals.server.alerts.texts import MAX_CONSOLE_LINES, AlertFacts, console_lines
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace

_CONSOLE_BYTES: Final = MAX_CONSOLE_LINES * 1024
_STEP: Final = "_step"


def run_facts(store: MetadataStore, place: RunPlace, now_ms: int, with_console: bool) -> AlertFacts:
    """Return the facts about a run.

    Args:
        with_console: also the end of its output, without what looks like a secret.
    """
    row = store.runs.get([place.run_id], now_ms).get(place.run_id)
    if row is None:  # purged meanwhile
        return AlertFacts(place.entity, place.project, place.uid, place.uid, 0, "unknown")
    step = store.sections.read([place.run_id])[place.run_id].summary().get(_STEP)
    console: tuple[str, ...] = ()
    if with_console:
        pieces = store.console.tail(place.run_id, _CONSOLE_BYTES).pieces
        whole = redaction.text("".join(piece.text for piece in pieces))  # private keys have several lines
        console = tuple(redaction.text(line) for line in console_lines([whole]))
    return AlertFacts(
        place.entity,
        place.project,
        row.name,
        place.uid,
        row.duration_ms,
        row.state,
        row.ending.exit_code,
        row.ending.signal,
        row.ending.out_of_memory,
        _ended_first(store, place.run_id),
        float(step) if isinstance(step, (int, float)) and not isinstance(step, bool) else None,
        console,
    )


def _ended_first(store: MetadataStore, run_id: int) -> str | None:
    """Host and rank of the first process that failed, or else of the first that ended."""
    ended = [process for process in store.writers.processes(run_id) if process.ended_ms is not None]
    failed = [process for process in ended if process.exit_code or process.signal]
    first = min(failed or ended, key=lambda process: process.ended_ms or 0, default=None)
    if first is None:
        return None
    return first.host if first.rank is None else f"{first.host}, rank {first.rank}"
