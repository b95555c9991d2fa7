"""Recovers lost metadata: from a damaged SQLite file, or from the samples of unknown runs."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from sqlalchemy import Connection, Table, insert, select
from sqlalchemy.exc import IntegrityError, StatementError

from runvitals.model.search_text import search_text
from runvitals.model.state import LOST
from runvitals.server.database.database import add_rows
from runvitals.server.database.tables import metadata
from runvitals.server.database.tables.runs import (
    metric,
    run,
    run_text,
    schema,
    writer,
    writer_schema,
)
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.projects.storage.projects import NOBODY, ensure_projects
from runvitals.server.runs.storage.metrics import pack_numbers
from runvitals.server.runs.storage.run_places import copy_entities
from runvitals.store import sqlite_salvage

PROJECT = "recovered"
_WRITER = "api.recovered"


@dataclass(frozen=True, slots=True)
class RecoveredRun:
    """A run of which only samples are left.

    Args:
        lane: the id under which they are stored.
        metrics: their ids.
        first_ms, last_ms: the times of the first and the last one.
    """

    lane: int
    metrics: tuple[int, ...]
    first_ms: int
    last_ms: int


def fill_from_damaged(metadata_store: MetadataStore, path: str) -> int:
    """Copy the readable rows of a damaged SQLite file into an empty metadata store; returns how many.

    Rows that reference lost rows are left out.
    """

    def work(connection: Connection) -> int:
        with closing(sqlite_salvage.open_damaged(path)) as source:
            copied = sum(_copy(connection, source, table) for table in metadata.sorted_tables)
        copy_entities(connection)  # a store of an earlier version has none
        return copied

    return metadata_store.write(work)


def _copy(connection: Connection, source: sqlite3.Connection, table: Table) -> int:
    count = 0
    names = {column.name for column in table.c}
    for row in sqlite_salvage.rows(source, table.name):
        try:
            with connection.begin_nested():
                connection.execute(insert(table).values({k: v for k, v in row.items() if k in names}))
        except (IntegrityError, StatementError):  # references a lost row, or is itself damaged
            continue
        count += 1
    return count


def recover(metadata_store: MetadataStore, runs: Sequence[RecoveredRun]) -> None:
    """Create runs for samples that belong to no known run, and keys for their metrics."""
    metadata_store.write(lambda connection: _recover(connection, runs))


def recover_metrics(metadata_store: MetadataStore, by_lane: Mapping[int, tuple[int, ...]]) -> None:
    """Create keys for metrics that known runs have samples of, by their lanes."""

    def work(connection: Connection) -> None:
        _add_metric_keys(connection, {number for numbers in by_lane.values() for number in numbers})
        rows = [
            {"writer_id": lane, "schema_id": _schema(connection, numbers)}
            for lane, numbers in by_lane.items()
        ]
        add_rows(connection, writer_schema, rows)

    metadata_store.write(work)


def _recover(connection: Connection, runs: Sequence[RecoveredRun]) -> None:
    first_ms = min(recovered.first_ms for recovered in runs)
    (project_id,) = ensure_projects(connection, [(PROJECT, NOBODY)], first_ms).values()
    _add_metric_keys(connection, {number for recovered in runs for number in recovered.metrics})
    for recovered in runs:
        uid = f"recovered-{recovered.lane}"
        about = {
            "uid": uid,
            "name": uid,
            "project_id": project_id,
            "group_name": "",
            "job_type": "",
            "created_ms": recovered.first_ms,
            "started_ms": recovered.first_ms,
            "last_ms": recovered.last_ms,
            "settled_state": LOST,
        }
        connection.execute(insert(run).values(about))
        mine = select(run.c.id).where(run.c.uid == uid, run.c.entity_id.is_(None))
        run_id = connection.execute(mine).scalar_one()
        add_rows(connection, run_text, [{"run_id": run_id, "text": search_text(uid, {}, {})}])
        connection.execute(insert(writer).values(_writer(recovered, run_id)))
        rows = [{"writer_id": recovered.lane, "schema_id": _schema(connection, recovered.metrics)}]
        add_rows(connection, writer_schema, rows)


def _writer(recovered: RecoveredRun, run_id: int) -> dict[str, object]:
    return {
        "id": recovered.lane,
        "run_id": run_id,
        "name": _WRITER,
        "lane_id": recovered.lane,
        "role": "api",
        "host": "unknown",
        "started_ms": recovered.first_ms,
        "last_ms": recovered.last_ms,
        "heard_ms": 0,
    }


def _add_metric_keys(connection: Connection, numbers: Iterable[int]) -> None:
    """Create keys for metrics whose keys are lost."""
    metric_ids = set(connection.execute(select(metric.c.id)).scalars())
    missing = sorted(set(numbers) - metric_ids)
    add_rows(connection, metric, [{"id": number, "key": f"recovered.metric_{number}"} for number in missing])


def _schema(connection: Connection, numbers: tuple[int, ...]) -> int:
    packed = pack_numbers(numbers)
    digest = hashlib.sha256(packed).digest()
    add_rows(connection, schema, [{"digest": digest, "metric_ids": packed}])
    return int(connection.execute(select(schema.c.id).where(schema.c.digest == digest)).scalar_one())
