"""Events that automations of teams react to.

An event is written in the transaction of what it reports, and only if the team has an automation for its
kind: otherwise it costs one query of an index. `AutomationTable.react` takes it from there.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from runvitals.server.database.database import add_rows, among
from runvitals.server.database.tables.alerts import automation, raised_event
from runvitals.server.database.tables.artifacts import (
    artifact_alias,
    artifact_collection,
    artifact_membership,
    artifact_version,
)
from runvitals.server.database.tables.runs import project, run, run_tag
from runvitals.server.events.finding_changes import FindingChange, FindingClosed, FindingOpened

RUN_STATE: Final = "run.state"
RUN_TAG: Final = "run.tag"
FINDING: Final = "finding"
DEVICE_SILENT: Final = "device.silent"
FINDING_OPENED: Final = "finding.opened"
FINDING_CLOSED: Final = "finding.closed"
USAGE_THRESHOLD: Final = "usage.threshold"
REGISTRY_REQUEST: Final = "registry.request"
ARTIFACT_ALIAS: Final = "artifact.alias"
REPORT_PUBLISHED: Final = "report.published"
REPORT_COMMENTED: Final = "report.commented"


class RunReached(NamedTuple):
    """A run reached a state. `key`: tells apart the times that it did."""

    run_id: int
    state: str
    key: str
    time_ms: int


def raise_states(connection: Connection, reached: Sequence[RunReached]) -> None:
    """Write that runs reached states; what is written already stays."""
    teams = _teams(connection, RUN_STATE, {run_state.run_id for run_state in reached}) if reached else {}
    rows = [
        _row(
            teams[run_state.run_id],
            RUN_STATE,
            {"state": run_state.state},
            run_state.time_ms,
            key=f"{run_state.run_id}:{run_state.state}:{run_state.key}",
            run_id=run_state.run_id,
        )
        for run_state in reached
        if run_state.run_id in teams
    ]
    add_rows(connection, raised_event, rows)


def raise_for_run(
    connection: Connection, kind: str, run_id: int, data: Mapping[str, Any], time_ms: int, key: str
) -> None:
    """Write that something else happened to a run, such as a firing of a rule."""
    teams = _teams(connection, kind, {run_id})
    if teams:
        row = _row(teams[run_id], kind, data, time_ms, key=key, run_id=run_id)
        add_rows(connection, raised_event, [row])


def raise_findings(connection: Connection, changes: Iterable[FindingChange]) -> None:
    """Write that findings about runs opened or closed."""
    by_kind: dict[str, list[FindingChange]] = {FINDING_OPENED: [], FINDING_CLOSED: []}
    for change in changes:
        if isinstance(change, FindingOpened):
            by_kind[FINDING_OPENED].append(change)
        elif isinstance(change, FindingClosed):
            by_kind[FINDING_CLOSED].append(change)
    for kind, of_kind in by_kind.items():
        teams = _teams(connection, kind, {change.run_id for change in of_kind}) if of_kind else {}
        rows = [
            _row(
                teams[change.run_id],
                kind,
                {"found": change.finding.to_json(), "host": ", ".join(change.finding.hosts[:1])},
                change.up_to_ms,
                key=f"{change.run_id}:{change.number}:{change.up_to_ms}",
                run_id=change.run_id,
            )
            for change in of_kind
            if change.run_id in teams
        ]
        add_rows(connection, raised_event, rows)


def raise_for_team(
    connection: Connection, kind: str, team_id: int, data: Mapping[str, Any], time_ms: int, key: str
) -> None:
    """Write that something happened to a team, such as that it used a part of its plan."""
    if _is_watched(connection, kind, team_id):
        add_rows(connection, raised_event, [_row(team_id, kind, data, time_ms, key=key)])


def raise_metric(
    connection: Connection, automation_id: int, team_id: int, run_id: int, kind: str, data: Mapping[str, Any]
) -> None:
    """Write that a metric of a run met the condition of an automation."""
    row = _row(team_id, kind, data, 0, run_id=run_id)
    add_rows(connection, raised_event, [{**row, "automation_id": automation_id}])


def raise_tags(connection: Connection, run_ids: Iterable[int], tags: Sequence[Mapping[str, Any]]) -> None:
    """Write which tags runs get. Call it before the tags are stored.

    Args:
        run_ids: all runs whose tags are set.
        tags: rows of the table of tags.
    """
    teams = _teams(connection, RUN_TAG, set(run_ids)) if tags else {}
    if not teams:
        return
    statement = select(run_tag.c.run_id, run_tag.c.tag).where(among(connection, run_tag.c.run_id, teams))
    before = {(row.run_id, row.tag) for row in connection.execute(statement)}
    new = [row for row in tags if row["run_id"] in teams and (row["run_id"], row["tag"]) not in before]
    rows = [_row(teams[row["run_id"]], RUN_TAG, {"tag": row["tag"]}, 0, run_id=row["run_id"]) for row in new]
    add_rows(connection, raised_event, rows)


def raise_version(connection: Connection, kind: str, membership_id: int, now_ms: int) -> None:
    """Write that a collection of artifacts has a new version: logged or, in a registry, linked."""
    team_id, run_id, data = _version(connection, membership_id)
    if _is_watched(connection, kind, team_id):
        add_rows(connection, raised_event, [_row(team_id, kind, data, now_ms, run_id=run_id)])


def raise_aliases(
    connection: Connection, collection_id: int, membership_id: int, aliases: Iterable[str]
) -> None:
    """Write which aliases a version gets. Call it before they are stored."""
    team_id, run_id, data = _version(connection, membership_id)
    if not _is_watched(connection, ARTIFACT_ALIAS, team_id):
        return
    columns = artifact_alias.c
    own = select(columns.alias).where(
        columns.collection_id == collection_id, columns.membership_id == membership_id
    )
    new = set(aliases) - set(connection.execute(own).scalars())
    rows = [
        _row(team_id, ARTIFACT_ALIAS, {**data, "alias": alias}, 0, run_id=run_id) for alias in sorted(new)
    ]
    add_rows(connection, raised_event, rows)


def raise_request(
    connection: Connection, membership_id: int, alias: str, author: str, now_ms: int, key: str
) -> None:
    """Write that somebody requests a protected alias of a version in a registry."""
    team_id, run_id, data = _version(connection, membership_id)
    if _is_watched(connection, REGISTRY_REQUEST, team_id):
        about = {**data, "alias": alias, "author": author}
        row = _row(team_id, REGISTRY_REQUEST, about, now_ms, key=key, run_id=run_id)
        add_rows(connection, raised_event, [row])


def _teams(connection: Connection, kind: str, run_ids: set[int]) -> dict[int, int]:
    """Return the teams with an automation for a kind of event, by the ids of those runs that are theirs."""
    watched = (
        select(run.c.id, run.c.entity_id)
        .join(automation, automation.c.team_id == run.c.entity_id)
        .where(automation.c.event == kind, automation.c.enabled, among(connection, run.c.id, run_ids))
    )
    return dict(connection.execute(watched.distinct()).all())


def _is_watched(connection: Connection, kind: str, team_id: int | None) -> bool:
    watched = select(automation.c.id).where(
        automation.c.event == kind, automation.c.team_id == team_id, automation.c.enabled
    )
    return connection.execute(watched.limit(1)).first() is not None


def _version(connection: Connection, membership_id: int) -> tuple[Any, int | None, dict[str, Any]]:
    """Return the team, the run and the names of a version in a collection."""
    statement = (
        select(
            project.c.entity_id,
            project.c.id.label("project_id"),
            project.c.name.label("project"),
            artifact_version.c.run_id,
            artifact_collection.c.name.label("collection"),
            artifact_collection.c.type,
            artifact_membership.c.number.label("version"),
        )
        .select_from(artifact_membership)
        .join(artifact_version, artifact_version.c.id == artifact_membership.c.version_id)
        .join(artifact_collection, artifact_collection.c.id == artifact_membership.c.collection_id)
        .join(project, project.c.id == artifact_collection.c.project_id)
        .where(artifact_membership.c.id == membership_id)
    )
    row = connection.execute(statement).one()
    data = {name: getattr(row, name) for name in ("project", "project_id", "collection", "type", "version")}
    return row.entity_id, row.run_id, data


def _row(
    team_id: int,
    kind: str,
    data: Mapping[str, Any],
    time_ms: int,
    *,
    key: str | None = None,
    run_id: int | None = None,
) -> dict[str, Any]:
    """Return a row. Without `key`, the event is another one each time that it is written."""
    return {
        "team_id": team_id,
        "kind": kind,
        "key": f"{kind}:{key or secrets.token_hex(8)}",
        "run_id": run_id,
        "automation_id": None,
        "time_ms": time_ms,
        "data": json.dumps(data),
    }
