"""Past events that an automation would have reacted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Select, literal, select

from runvitals.server.alerts.storage.automations import RaisedEvent
from runvitals.server.database.database import StoredTable, among
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.artifacts import (
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.findings import finding
from runvitals.server.database.tables.runs import project, run, run_tag
from runvitals.server.events.automation_events import FINDING_CLOSED, FINDING_OPENED, RUN_STATE, RUN_TAG

MOST: Final = 10_000
_LINKED: Final = {"artifact.version": "sequence", "registry.link": "portfolio"}


class PastEvents(StoredTable):
    """Finds what happened in the past, as far as it is still known."""

    def of_team(self, team_id: int, kind: str, since_ms: int, now_ms: int) -> list[RaisedEvent] | None:
        """Return the newest events of a kind, the oldest first; None: it is not known when there were any.

        Which states a run had before its last one, and when it got its tags, is not known.
        """
        with self._database.read() as connection:
            if kind in (RUN_STATE, RUN_TAG):
                return _of_runs(connection, team_id, kind, since_ms, now_ms)
            if kind in (FINDING_OPENED, FINDING_CLOSED):
                return _of_findings(connection, team_id, kind, since_ms)
            if kind in _LINKED:
                return _of_artifacts(connection, team_id, kind, since_ms)
        return None


def _of_runs(
    connection: Connection, team_id: int, kind: str, since_ms: int, now_ms: int
) -> list[RaisedEvent]:
    columns = [run.c.settled_state, run.c.alive_until_ms, run.c.last_ms.label("time_ms"), *_of_run()]
    statement = (
        _with_authors(select(*columns).join(project, project.c.id == run.c.project_id))
        .where(run.c.entity_id == team_id, run.c.last_ms >= since_ms, run.c.deleted_ms.is_(None))
        .order_by(run.c.last_ms.desc())
        .limit(MOST)
    )
    rows = connection.execute(statement).all()
    tags = _tags(connection, {row.run_number for row in rows})
    events = []
    for row in reversed(rows):
        of_run = tags.get(row.run_number, ())
        if kind == RUN_TAG:
            events += [_to_event(row, team_id, kind, {"tag": tag}, of_run) for tag in of_run]
            continue
        events.append(_to_event(row, team_id, kind, {"state": "running"}, of_run))
        if row.alive_until_ms is None or row.alive_until_ms < now_ms:
            events.append(_to_event(row, team_id, kind, {"state": row.settled_state}, of_run))
    return events


def _of_artifacts(connection: Connection, team_id: int, kind: str, since_ms: int) -> list[RaisedEvent]:
    membership, collection = artifact_membership.c, artifact_collection.c
    columns = [membership.created_ms.label("time_ms"), membership.number, collection.name.label("collection")]
    statement = (
        _with_authors(
            select(*columns, collection.type, *_of_run())
            .select_from(artifact_membership)
            .join(artifact_collection, collection.id == membership.collection_id)
            .join(project, project.c.id == collection.project_id)
            .join(artifact_version, artifact_version.c.id == membership.version_id)
            .outerjoin(run, run.c.id == artifact_version.c.run_id)
        )
        .where(project.c.entity_id == team_id, membership.created_ms >= since_ms)
        .where(collection.kind == _LINKED[kind])
        .order_by(membership.created_ms.desc())
        .limit(MOST)
    )
    rows = connection.execute(statement).all()
    tags = _tags(connection, {row.run_number for row in rows if row.run_number is not None})
    return [
        _to_event(
            row,
            team_id,
            kind,
            {
                "project": row.project,
                "collection": row.collection,
                "type": row.type,
                "version": row.number,
            },
            tags.get(row.run_number, ()),
        )
        for row in reversed(rows)
    ]


def _of_findings(connection: Connection, team_id: int, kind: str, since_ms: int) -> list[RaisedEvent]:
    time_ms = finding.c.opened_ms if kind == FINDING_OPENED else finding.c.to_ms
    columns = [time_ms.label("time_ms"), finding.c.rule, finding.c.severity, finding.c.text, *_of_run()]
    statement = (
        _with_authors(
            select(*columns)
            .select_from(finding)
            .join(run, run.c.id == finding.c.run_id)
            .join(project, project.c.id == run.c.project_id)
        )
        .where(run.c.entity_id == team_id, run.c.deleted_ms.is_(None), time_ms >= since_ms)
        .order_by(time_ms.desc())
        .limit(MOST)
    )
    rows = connection.execute(statement).all()
    tags = _tags(connection, {row.run_number for row in rows})
    return [
        _to_event(
            row,
            team_id,
            kind,
            {"found": {"id": row.rule, "severity": row.severity, "text": row.text}},
            tags.get(row.run_number, ()),
        )
        for row in reversed(rows)
    ]


def _of_run() -> list[Any]:
    return [
        run.c.id.label("run_number"),
        run.c.uid,
        run.c.name.label("run_name"),
        project.c.id.label("project_id"),
        project.c.name.label("project"),
    ]


def _with_authors(statement: Select[Any]) -> Select[Any]:
    """With the user name of the run's author."""
    return (
        statement.add_columns(entity.c.name.label("author"), literal("").label("team"))
        .outerjoin(user_account, user_account.c.id == run.c.author_id)
        .outerjoin(entity, entity.c.id == user_account.c.entity_id)
    )


def _tags(connection: Connection, run_ids: set[int]) -> dict[int, tuple[str, ...]]:
    tags: dict[int, tuple[str, ...]] = {}
    theirs = among(connection, run_tag.c.run_id, run_ids)
    for run_id, tag in connection.execute(select(run_tag.c.run_id, run_tag.c.tag).where(theirs)):
        tags[run_id] = (*tags.get(run_id, ()), tag)
    return tags


def _to_event(row: Any, team_id: int, kind: str, data: dict[str, Any], tags: Sequence[str]) -> RaisedEvent:
    return RaisedEvent(
        0,
        "",
        kind,
        team_id,
        row.team,
        row.time_ms,
        None,
        row.run_number,
        row.uid or "",
        row.run_name or "",
        row.project,
        row.project_id,
        row.author or "",
        tuple(tags),
        data,
    )
