"""Runs from the metadata store as `model.run.Run`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from runvitals.model.defined_metrics import defined_metrics
from runvitals.model.records import LOST, event_name, lost_records
from runvitals.model.run import Event, Rank, Run
from runvitals.model.state import MONITOR
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.event_authors import EventAuthors
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.run_rows import RunRow
from runvitals.server.runs.storage.run_states import StoredWriter, hosts
from runvitals.server.runs.storage.search_columns import DELETED, LOGGED
from runvitals.server.runs.storage.sections import RunSections
from runvitals.server.runs.storage.writers import StoredProcess
from runvitals.store.samples.interface import SampleStore

_MAX_EVENTS = 10_000
_MAX_LOST_EVENTS = 100_000
_SHOWN_IN_LISTS = ("run", "summary", "metrics", LOGGED, DELETED)
LastValues = dict[str, dict[str, tuple[int, float]]]
"""Host → key → (time, value)."""


def events_of(
    run_id: int, writers: Sequence[StoredWriter], metadata_store: MetadataStore, skip: int, limit: int
) -> list[Event]:
    """Return the newest `limit` events after leaving out the newest `skip`, in order of time."""
    by_id = {writer.id: writer for writer in writers}
    return _events(metadata_store.events.of_run(run_id, skip, limit), by_id, metadata_store)


def listed_runs(
    rows: Sequence[RunRow],
    metadata_store: MetadataStore,
    store: SampleStore,
    metrics: Collection[int] | None,
    now_ms: int,
) -> list[Run]:
    """Return runs for lists. Fields that lists do not have are empty."""
    ids = [row.id for row in rows]
    writers = metadata_store.writers.of_runs(ids)
    sections = metadata_store.sections.read(ids, _SHOWN_IN_LISTS)
    last = last_values(
        [writer for of_run in writers.values() for writer in of_run], metadata_store, store, metrics
    )
    verdicts = metadata_store.findings.verdicts(ids)
    return [
        replace(
            _run(row, writers[row.id], sections[row.id], _values(last.get(row.id, {})), now_ms),
            verdict=verdicts.get(row.id),
        )
        for row in rows
    ]


def detailed_run(
    row: RunRow,
    metadata_store: MetadataStore,
    store: SampleStore,
    now_ms: int,
    metric_ids: Collection[int] | None = None,
) -> Run:
    """Everything known about a run except its series.

    Args:
        metric_ids: the metrics whose newest values are returned; None means all.
    """
    writers = metadata_store.writers.of_runs([row.id])[row.id]
    by_id = {writer.id: writer for writer in writers}
    newest = metadata_store.events.of_run(row.id)
    left_out = max(0, metadata_store.events.count(row.id) - len(newest)) if len(newest) >= _MAX_EVENTS else 0
    events = _events(newest, by_id, metadata_store)
    last = last_values(writers, metadata_store, store, metric_ids)
    run = _run(
        row, writers, metadata_store.sections.read([row.id])[row.id], _values(last.get(row.id, {})), now_ms
    )
    run.events[:] = events
    if left_out:
        run.problems.append(
            f"{left_out:,} older events are left out: /events?skip={len(newest)} returns them"
        )
    run.ranks[:] = _ranks(metadata_store.writers.processes(row.id), writers)
    events_of_loss = (
        metadata_store.events.of_run(row.id, limit=_MAX_LOST_EVENTS, name=LOST) if left_out else newest
    )
    lost = sum(lost_records(event.data) for event in events_of_loss if event.name == LOST)
    verdict = metadata_store.findings.verdicts([row.id]).get(row.id)
    return replace(run, lost_records=lost, verdict=verdict)


def _run(
    row: RunRow,
    writers: Sequence[StoredWriter],
    sections: RunSections,
    last: dict[str, dict[str, float]],
    now_ms: int,
) -> Run:
    about = sections.shared.get("run", {})
    machines = sections.by_host.get("machine", {})
    commands = (_texts(machine.get("command")) for machine in machines.values())
    tags = _texts(about.get("tags"))
    return Run(
        id=row.uid,
        project=row.project,
        name=row.name,
        group=row.group,
        job_type=row.job_type,
        tags=tags if set(tags) == set(row.tags) else list(row.tags),
        notes=str(about.get("notes") or ""),
        command=_texts(about.get("command")) or next((words for words in commands if words), []),
        ending=row.ending,
        started_ms=row.started_ms,
        ended_ms=row.ended_ms,
        duration_ms=row.duration_ms,
        config=sections.shared.get("config", {}),
        summary=sections.summary(),
        settings=sections.shared.get("settings", {}),
        machines=machines,
        sources=sections.by_host.get("sources", {}),
        hosts=hosts(writers, now_ms),
        ranks=[],
        events=[],
        lost_records=0,
        problems=[],
        last=last,
        stop_requested_ms=row.stop_requested_ms,
        entity=row.entity,
        author=row.author,
        service_account=row.service_account,
        defined_metrics=defined_metrics(sections.shared.get("metrics", {})),
        starred=about.get("starred") is True,
        deleted_ms=row.deleted_ms,
    )


def _events(
    events: Sequence[StoredEvent], writers: Mapping[int, StoredWriter], metadata_store: MetadataStore
) -> list[Event]:
    authors = metadata_store.events.authors(events)
    return [_event(event, writers, authors) for event in events]


def _event(event: StoredEvent, writers: Mapping[int, StoredWriter], authors: EventAuthors) -> Event:
    writer = writers.get(event.writer_id or 0)
    host, rank = (writer.host, writer.rank) if writer is not None else ("", None)
    return Event(
        event.time_ms,
        event_name(event.name),
        event.level,
        event.text,
        host,
        rank,
        event.data,
        authors.users.get(event.user_id or 0),
        authors.service_accounts.get(event.service_account_id or 0),
    )


def _ranks(processes: Sequence[StoredProcess], writers: Sequence[StoredWriter]) -> list[Rank]:
    """Return the processes that attached to a monitor, and those known only from their writers."""
    ranks = {
        (process.host, process.pid): Rank(
            process.host,
            process.pid,
            process.rank,
            process.local_rank,
            process.world_size,
            process.exit_code,
            process.signal,
            process.out_of_memory,
            process.ended_ms,
        )
        for process in processes
    }
    for writer in writers:
        if writer.role != MONITOR and writer.pid is not None:
            ranks.setdefault((writer.host, writer.pid), Rank(writer.host, writer.pid, writer.rank))
    return sorted(ranks.values(), key=lambda r: (r.rank is None, r.rank or 0, r.host, r.pid))


def last_values(
    writers: Iterable[StoredWriter],
    metadata_store: MetadataStore,
    store: SampleStore,
    metrics: Collection[int] | None,
) -> dict[int, LastValues]:
    """By run: the newest values of these metrics (None means all) from its monitors and other clients."""
    sampled = {writer.lane_id: writer for writer in writers if writer.role != "train"}
    by_run: dict[int, LastValues] = {}
    results = store.latest(sorted(sampled), metrics)
    numbers = {number for result in results for number in result.metrics.tolist()}
    keys = metadata_store.metrics.keys(numbers)
    for result in results:
        writer = sampled[result.run]
        values = by_run.setdefault(writer.run_id, {}).setdefault(writer.host, {})
        for number, t, value in zip(
            result.metrics.tolist(), result.t.tolist(), result.values.tolist(), strict=True
        ):
            if number in keys and not keys[number].startswith("_"):
                values[keys[number]] = (t, value)
    return by_run


def _values(last: LastValues) -> dict[str, dict[str, float]]:
    return {host: {key: value for key, (_, value) in values.items()} for host, values in last.items()}


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
