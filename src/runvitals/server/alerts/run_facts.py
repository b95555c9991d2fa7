"""The facts that texts about a run name, read from the metadata store."""

from __future__ import annotations

from typing import Final

from runvitals.server.alerts.run_failure import failure_of_run
from runvitals.server.alerts.texts import AlertFacts
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace

_STEP: Final = "_step"


def run_facts(store: MetadataStore, run: RunPlace, now_ms: int, with_console: bool) -> AlertFacts:
    """Return the facts about a run.

    Args:
        with_console: also the end of its output, without what looks like a secret.
    """
    row = store.runs.get([run.run_id], now_ms).get(run.run_id)
    if row is None:  # purged meanwhile
        return AlertFacts(run.entity, run.project, run.uid, run.uid, 0, "unknown")
    step = store.sections.read([run.run_id])[run.run_id].summary().get(_STEP)
    failure = failure_of_run(store, run.run_id, row.ending, row.ended_ms, with_console)
    return AlertFacts(
        run.entity,
        run.project,
        row.name,
        run.uid,
        row.duration_ms,
        row.state,
        row.ending.exit_code,
        row.ending.signal,
        row.ending.out_of_memory,
        None if failure is None or failure.host is None else _process(failure.host, failure.rank),
        float(step) if isinstance(step, (int, float)) and not isinstance(step, bool) else None,
        () if failure is None else tuple(line.text for line in failure.lines),
        None if failure is None else failure.title,
    )


def _process(host: str, rank: int | None) -> str:
    return host if rank is None else f"{host}, rank {rank}"
