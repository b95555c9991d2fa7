"""`/entities/{entity}/alert-rules/history`: when rules fired, who was notified by what, and if it arrived."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any, Final, Literal

from fastapi import Path, Query
from pydantic import Field

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.permission import needs
from runvitals.server.alerts.routes.choices import Level
from runvitals.server.alerts.storage.destinations import KINDS
from runvitals.server.alerts.storage.firings import Firing
from runvitals.server.events.outbox import StoredNotification
from runvitals.server.http.bodies import ResponseBody
from runvitals.server.http.errors import answering
from runvitals.server.http.listing import ThePage
from runvitals.server.http.router import Router
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.routes.project_parameters import TheEntity
from runvitals.server.service_parameters import TheAccess, TheRequester
from runvitals.store.errors import NotFound

Id = Annotated[int, Path(ge=1, le=2**53)]
_PATH: Final = "/entities/{entity}/alert-rules/history"
_STATES: Final = {"sent": "finished"}

router = Router()


class FiringNotification(ResponseBody):
    """A message about a firing to one receiver."""

    id: int
    channel: str = Field(description="By what it is sent.")
    receiver: str = Field(description="Its name; empty if it was deleted.")
    state: Literal["pending", "finished", "failed", "dropped"]
    tries: int
    status: int | None
    answer: str | None = Field(description="What the receiver answered, for those who may change rules.")
    error: str | None
    ended_ms: int | None


class FiringSchema(ResponseBody):
    """A time at which a rule fired for a series."""

    id: int
    rule_id: int
    rule: str
    run: str
    project: str
    key: str
    host: str
    severity: Level
    value: float | None
    fired_ms: int
    ended_ms: int | None = Field(description="None while it fires.")
    notified: str = Field(validation_alias="told", description="Who was to be, or why nobody was.")
    notifications: list[FiringNotification]


class FiringsPage(ResponseBody):
    """The history of the rules of a team or user."""

    firings: list[FiringSchema]
    total: int
    next: str | None
    may: list[str]


@router.get(_PATH, needs("automation:read"), response_model=FiringsPage)
def history(
    entity: TheEntity,
    access: TheAccess,
    requester: TheRequester,
    page: ThePage,
    project: Annotated[str | None, Query(max_length=256)] = None,
    rule: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Only of this rule.")] = None,
    firing: Annotated[bool, Query(description="Only what fires now.")] = False,
) -> dict[str, Any]:
    """When rules fired, for which series, and who was notified by what; the newest first."""
    readable = access.directory.readable_runs(requester.principal)
    projects = None if readable is None else readable.projects
    number = None
    if project is not None:
        named_project = access.directory.project_named(entity.id, project)
        number = -1 if named_project is None else named_project.id
    table = access.metadata_store.alerts.firings
    rows = table.of_entity(
        entity.id, page.limit + 1, page.after_id or None, rule, number, projects, only_open=firing
    )
    listed = rows[: page.limit]
    sent = _notifications_of(access, listed)
    names = _receiver_names(
        access.metadata_store, [notification for of_row in sent for notification in of_row]
    )
    manages = access.may(requester, Action.AUTOMATION_MANAGE, entity)
    return {
        "firings": [
            asdict(row) | {"notifications": [_show(notification, names, manages) for notification in of_row]}
            for row, of_row in zip(listed, sent, strict=True)
        ],
        "total": table.count(entity.id, rule, number, projects, only_open=firing),
        "next": str(listed[-1].id) if len(rows) > len(listed) else None,
        "may": [Action.AUTOMATION_MANAGE.value] if manages else [],
    }


@router.post(
    f"{_PATH}/{{firing}}/notifications/{{notification}}/send-again",
    needs("automation:manage"),
    response_model=FiringNotification,
)
def send_firing_again(
    entity: TheEntity, firing: Id, notification: Id, access: TheAccess, requester: TheRequester
) -> dict[str, Any]:
    """Send what a rule said once more, to the same receiver."""
    readable = access.directory.readable_runs(requester.principal)
    alerts = access.metadata_store.alerts
    row = alerts.firings.get(entity.id, firing, None if readable is None else readable.projects)
    [sent] = _notifications_of(access, [row])
    if notification not in {row_sent.id for row_sent in sent}:
        raise NotFound("there is no such notification")
    with answering(409):
        again = alerts.outbox.send_again(None, notification, access.clock())
    return _show(again, _receiver_names(access.metadata_store, [again]), True)


def _notifications_of(access: AccessControl, rows: Sequence[Firing]) -> list[list[StoredNotification]]:
    """Return the notifications of firings: to channels, and to users, who get them as events of the run."""
    alerts = access.metadata_store.alerts
    events = alerts.events.of_firings({row.run_id for row in rows}, {row.event_key for row in rows})
    prefixes = [(row.key_prefix, f"run-event:{events.get((row.run_id, row.event_key), 0)}:") for row in rows]
    notifications = alerts.outbox.beginning_with([prefix for pair in prefixes for prefix in pair])
    return [
        [notification for notification in notifications if notification.dedupe_key.startswith(pair)]
        for pair in prefixes
    ]


def _receiver_names(store: MetadataStore, sent: Iterable[StoredNotification]) -> dict[str, str]:
    """Return the names of receivers, by the targets of notifications; what was deleted has none."""
    by_kind: dict[str, set[tuple[int | None, str]]] = {}
    for notification in sent:
        kind, _, receiver = notification.target.partition(":")
        by_kind.setdefault(kind, set()).add((notification.team_id, receiver))
    names = {f"member:{name}": name for _, name in by_kind.get("member", ())}
    for kind in ("user", "user-slack"):
        for _, number in by_kind.get(kind, ()):
            with suppress(NotFound):
                names[f"{kind}:{number}"] = store.accounts.users.get(int(number)).name
    for destination_kind in KINDS:
        for team_id in {team_id for team_id, _ in by_kind.get(destination_kind, ()) if team_id is not None}:
            rows = store.alerts.destinations.of_team(destination_kind, team_id)
            names |= {f"{destination_kind}:{row.id}": row.name for row in rows}
    return names


def _show(row: StoredNotification, names: dict[str, str], manages: bool) -> dict[str, Any]:
    return {
        "id": row.id,
        "channel": row.target.partition(":")[0],
        "receiver": names.get(row.target, ""),
        "state": _STATES.get(row.state, row.state),
        "tries": row.tries,
        "status": row.status,
        "answer": row.answer if manages else None,
        "error": row.error if manages else None,
        "ended_ms": row.ended_ms,
    }
