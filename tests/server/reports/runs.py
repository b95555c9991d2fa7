"""Runs with values, of teams on a server with accounts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runvitals.model.ending import Ending
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.log_summaries import LoggedRows, LoggedValues, add_logged_rows
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import (
    RegisteredWriter,
    Sender,
    WriterRegistration,
)
from runvitals.server.runs.storage.writers import WriterEnd
from runvitals.store.samples.interface import SampleBatch
from tests.server.accounts_server import AccountsServer

_SECOND_MS = 1000


def record_run(
    server: AccountsServer,
    uid: str,
    logged: Mapping[str, Sequence[float]],
    *,
    project: str = "digits",
    team: str = "vision",
    author: str = "bob",
    system: Mapping[str, Sequence[float]] | None = None,
    config: Mapping[str, Any] | None = None,
    printed: str = "",
) -> None:
    """Store a run that has ended: what it logged at steps 0, 1, 2 …, and what was sampled each second."""
    entity_id = server.accounts.teams.by_name(team).id
    sender = Sender(entity_id, server.accounts.users.by_name(author).id, None)
    started_ms = server.clock() - 3_600_000
    about: dict[str, Any] = {"host": "node", "started_ms": started_ms, "interval_s": 1, "sender": sender}
    rank = WriterRegistration(uid, f"rank.{uid}", project, role="rank", rank=0, pid=7, **about)
    monitor = WriterRegistration(uid, f"monitor.{uid}", project, role="monitor", **about)
    trainer, sampler = server.metadata_store.writers.join([rank, monitor], server.clock())
    if config is not None:
        update = SectionUpdate(trainer.run_id, "config", dict(config), started_ms, "node")
        server.metadata_store.sections.merge([update])
    if printed:
        line = ConsoleLine(trainer.run_id, trainer.writer_id, 1, started_ms, 1, printed)
        server.metadata_store.console.add([line])
    steps = range(max((len(values) for values in logged.values()), default=0))
    _append(server, trainer, started_ms, {**logged, "_step": [float(step) for step in steps]})
    _summarize(server, trainer, started_ms, logged)
    if system:
        _append(server, sampler, started_ms, system)
    ends = [
        WriterEnd(writer.writer_id, Ending("finished", 0, None, None), started_ms + 60_000)
        for writer in (trainer, sampler)
    ]
    server.metadata_store.writers.record_ends(ends)


def _append(
    server: AccountsServer, writer: RegisteredWriter, first_ms: int, columns: Mapping[str, Sequence[float]]
) -> None:
    schema = server.metadata_store.metrics.schema(tuple(columns))
    server.metadata_store.metrics.record_schemas([(writer.writer_id, schema.id)])
    rows = np.ascontiguousarray(np.array(list(columns.values()), np.float64).T)
    times = first_ms + _SECOND_MS * np.arange(len(rows), dtype=np.int64)
    batch = SampleBatch(writer.lane_id, writer.writer_id, 1, schema.metric_ids, times, rows)
    server.store.append([batch])


def _summarize(
    server: AccountsServer, writer: RegisteredWriter, time_ms: int, logged: Mapping[str, Sequence[float]]
) -> None:
    metrics = {
        name: LoggedValues(len(values), sum(values), min(values), max(values), values[-1], time_ms)
        for name, values in logged.items()
    }
    rows = LoggedRows(writer.run_id, f"rank.{writer.run_id}", 0, 1, metrics)
    server.metadata_store.write(lambda connection: add_logged_rows(connection, [rows]))
