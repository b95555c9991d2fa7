"""Automations of teams, and what happened that they react to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.model.account_names import ORGANISATION
from runvitals.model.durations import HOUR_MS
from runvitals.model.registry_names import registry_name
from runvitals.model.state import LOST
from runvitals.server.alerts.storage.checks import check_count, check_free, locked_team
from runvitals.server.audit.storage.audit import SYSTEM, Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction, put_rows
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity, membership, user_account
from runvitals.server.database.tables.alerts import automation, automation_firing, raised_event
from runvitals.server.database.tables.runs import project, run, run_tag
from runvitals.server.database.text import checked_new_name
from runvitals.server.events.automation_events import RUN_STATE, RunReached, raise_states
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import NotFound

MAX_AUTOMATIONS: Final = 200
MAX_NAME: Final = 64
MAX_COOLDOWN_MS: Final = 168 * HOUR_MS
_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """An automation.

    Attributes:
        registry_id: the project id of the only registry of the organisation that it is about.
        registry: its name.
        definition: event, filter, actions and cool-down, as JSON.
        created_by: the user name of its creator, with whose rights it changes runs; None: deleted.
        problem: why the server switched it off.
    """

    id: int
    team_id: int
    registry_id: int | None
    registry: str | None
    name: str
    enabled: bool
    definition: Mapping[str, Any]
    creator_id: int | None
    created_by: str | None
    created_ms: int
    changed_ms: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class RaisedEvent:
    """Something that happened, with what is known of it now.

    Attributes:
        key: the same for the same event.
        automation_id: the only automation that it is for; None: all for its kind.
        team: the name of the team.
        run: the run id; run_number is its id here, run_project_id its project.
        project_id: where it happened: the project of the run, or of the artifact.
        tags: of the run.
        data: what belongs to this kind of event.
    """

    id: int
    key: str
    kind: str
    team_id: int
    team: str
    time_ms: int
    automation_id: int | None
    run_number: int | None
    run: str
    name: str
    project: str
    project_id: int | None
    author: str
    tags: tuple[str, ...]
    data: Mapping[str, Any]
    run_project_id: int | None = None


@dataclass(frozen=True, slots=True)
class Reaction:
    """The reaction of an automation to an event. `subject`: what its cool-down is about."""

    subject: str
    cooldown_ms: int
    notifications: tuple[Notification, ...]


React = Callable[[AutomationRow, RaisedEvent], Reaction | None]

_creator, _registry = entity.alias("creator"), project.alias("registry")
_AUTOMATIONS = (
    select(automation, _creator.c.name.label("creator"), _registry.c.name.label("registry"))
    .outerjoin(_registry, _registry.c.id == automation.c.registry_id)
    .outerjoin(user_account, user_account.c.id == automation.c.created_by)
    .outerjoin(_creator, _creator.c.id == user_account.c.entity_id)
)


class AutomationTable(StoredTable):
    """The table of automations."""

    def of_team(self, team_id: int, registry_id: int | None = None) -> list[AutomationRow]:
        """Return the automations of a team or the organisation, in the order in which they were created.

        Args:
            registry_id: only those about this registry; None: all.
        """
        mine = [automation.c.team_id == team_id]
        if registry_id is not None:
            mine.append(automation.c.registry_id == registry_id)
        with self._database.read() as connection:
            return _read(connection, *mine)

    def of_kinds(self, kinds: Sequence[str]) -> list[AutomationRow]:
        """Return the automations of all teams for some kinds of events, that are switched on."""
        with self._database.read() as connection:
            return _read(connection, automation.c.event.in_(kinds), automation.c.enabled)

    def get(self, team_id: int, automation_id: int, registry_id: int | None = None) -> AutomationRow:
        """Return an automation of a team or the organisation; with a registry, one that is about it.

        Raises:
            NotFound: there is none.
        """
        with self._database.read() as connection:
            row = _automation(connection, team_id, automation_id)
        if registry_id is not None and row.registry_id != registry_id:
            raise NotFound("the registry has no such automation")
        return row

    def find(self, automation_id: int) -> AutomationRow | None:
        """Return an automation of any team; None if there is none."""
        with self._database.read() as connection:
            return next(iter(_read(connection, automation.c.id == automation_id)), None)

    @in_transaction
    def create(
        self,
        connection: Connection,
        team_id: int,
        name: str,
        enabled: bool,
        definition: Mapping[str, Any],
        by: Actor,
        now_ms: int,
        registry_id: int | None = None,
    ) -> AutomationRow:
        """Add an automation, and return it.

        Args:
            definition: a valid one.
            registry_id: the only registry of the organisation that it is about.

        Raises:
            ValueError: an invalid name.
            NameTaken: the team has an automation of this name.
            LimitReached: the team has too many.
        """
        name = _checked_name(name)
        values = {**_columns(definition), "team_id": team_id, "name": name, "enabled": enabled}
        values["registry_id"] = registry_id
        values |= {"created_by": by.user_id, "created_ms": now_ms, "changed_ms": now_ms}
        team = locked_team(connection, team_id)
        same = automation.c.registry_id.is_not_distinct_from(registry_id)
        check_free(connection, automation.c.name, team_id, name, "automation", same)
        check_count(connection, automation, team_id, MAX_AUTOMATIONS, "automations")
        added = insert(automation).values(values).returning(automation.c.id)
        number = connection.execute(added).scalar_one()
        after = {"event": values["event"], "enabled": enabled}
        record(connection, now_ms, by, "automation.create", entity=team, target=name, after=after)
        return _automation(connection, team_id, number)

    @in_transaction
    def update(
        self,
        connection: Connection,
        team_id: int,
        automation_id: int,
        changes: Mapping[str, Any],
        by: Actor,
        now_ms: int,
    ) -> AutomationRow:
        """Change name, definition, or whether it is switched on. Raises as `create`, or if there is none.

        Whoever changes what it does becomes its creator: it acts with that user's rights.
        """
        values: dict[str, Any] = {"changed_ms": now_ms}
        if "name" in changes:
            values["name"] = _checked_name(changes["name"])
        if "definition" in changes:
            values |= {**_columns(changes["definition"]), "created_by": by.user_id}
        if "enabled" in changes:
            values |= {"enabled": changes["enabled"], "problem": None}
        team = locked_team(connection, team_id)
        before = _automation(connection, team_id, automation_id)
        if values.get("name", before.name) != before.name:
            same = automation.c.registry_id.is_not_distinct_from(before.registry_id)
            check_free(connection, automation.c.name, team_id, values["name"], "automation", same)
        connection.execute(update(automation).where(automation.c.id == automation_id).values(values))
        audited_fields = ("name", "enabled", "event")
        changed: dict[str, Any] = {name: values[name] for name in audited_fields if name in values}
        name = values.get("name", before.name)
        record(connection, now_ms, by, "automation.update", entity=team, target=name, after=changed)
        return _automation(connection, team_id, automation_id)

    @in_transaction
    def delete(
        self, connection: Connection, team_id: int, automation_id: int, by: Actor, now_ms: int
    ) -> None:
        """Delete an automation.

        Raises:
            NotFound: the team has no such automation.
        """
        team = locked_team(connection, team_id)
        row = _automation(connection, team_id, automation_id)
        connection.execute(delete(automation).where(automation.c.id == automation_id))
        record(connection, now_ms, by, "automation.delete", entity=team, target=row.name)

    @in_transaction
    def switch_off(self, connection: Connection, automation_id: int, problem: str, now_ms: int) -> None:
        """Switch off an automation that cannot do its work, and mail the administrators of its team."""
        same = automation.c.id == automation_id
        change = update(automation).where(same, automation.c.enabled)
        if not connection.execute(change.values(enabled=False, problem=problem)).rowcount:
            return
        row = connection.execute(select(automation).where(same)).one()
        team = locked_team(connection, row.team_id)
        after = {"enabled": False}
        record(connection, now_ms, SYSTEM, "automation.update", entity=team, target=row.name, after=after)
        admins = select(membership.c.user_id).where(
            membership.c.team_id == row.team_id, membership.c.role == "admin"
        )
        if team[1] == ORGANISATION:
            admins = select(user_account.c.id).where(user_account.c.org_role == "admin")
        for user_id in connection.execute(admins).scalars():
            add(connection, _switched_off(user_id, team[1], automation_id, row.name, problem, now_ms))

    def note_lost(self, after_ms: int, until_ms: int) -> None:
        """Write that runs are lost that were to be heard from between two times."""
        between = (run.c.alive_until_ms > after_ms, run.c.alive_until_ms <= until_ms)
        lost = select(run.c.id, run.c.alive_until_ms).where(*between, run.c.settled_state == LOST)

        def work(connection: Connection) -> None:
            rows = connection.execute(lost.where(run.c.deleted_ms.is_(None))).all()
            raise_states(
                connection, [RunReached(row.id, LOST, f"{row.alive_until_ms}", until_ms) for row in rows]
            )

        if self.of_kinds((RUN_STATE,)):
            self._database.write(work)

    def react(self, react: React, now_ms: int) -> int:
        """Let automations react to what was raised; returns how many events there were.

        All in one transaction: an event is gone exactly if what it caused is in the outbox.

        Args:
            react: what an automation does about an event; None: nothing. It only computes.
        """
        if not self.waiting():
            return 0
        return self._database.write(lambda connection: _react(connection, react, now_ms))

    def waiting(self) -> bool:
        """Return whether there are events that nothing reacted to yet."""
        with self._database.read() as connection:
            return connection.execute(select(raised_event.c.id).limit(1)).first() is not None

    def purge_firings(self, now_ms: int) -> None:
        """Forget firings after the longest cool-down."""
        old = delete(automation_firing).where(automation_firing.c.fired_ms < now_ms - MAX_COOLDOWN_MS)
        self._database.write(lambda connection: connection.execute(old))


def _react(connection: Connection, react: React, now_ms: int) -> int:
    oldest = select(raised_event.c.id).order_by(raised_event.c.id).limit(_AT_ONCE)
    ids = list(connection.execute(oldest.with_for_update(skip_locked=True)).scalars())
    events = _events(connection, ids)
    kinds, teams = {event.kind for event in events}, {event.team_id for event in events}
    automations = _read(
        connection, automation.c.enabled, automation.c.event.in_(kinds), automation.c.team_id.in_(teams)
    )
    for event in events:
        for row in automations:
            if row.team_id != event.team_id or event.automation_id not in (None, row.id):
                continue
            if row.registry_id not in (None, event.project_id):
                continue
            reaction = react(row, event)
            if reaction is not None and _fires(connection, row, reaction, now_ms):
                for notification in reaction.notifications:
                    # Retries and limits count from now: an event may be old, or its time unknown.
                    add(connection, replace(notification, created_ms=now_ms))
    connection.execute(delete(raised_event).where(among(connection, raised_event.c.id, ids)))
    return len(ids)


def _fires(connection: Connection, row: AutomationRow, reaction: Reaction, now_ms: int) -> bool:
    """Return whether the cool-down of an automation is over; it begins anew."""
    same = (automation_firing.c.automation_id == row.id, automation_firing.c.subject == reaction.subject)
    fired_ms = connection.execute(select(automation_firing.c.fired_ms).where(*same)).scalar()
    if fired_ms is not None and now_ms < fired_ms + reaction.cooldown_ms:
        return False
    firing = {"automation_id": row.id, "subject": reaction.subject, "fired_ms": now_ms}
    put_rows(connection, automation_firing, [firing])
    return True


def _events(connection: Connection, ids: Sequence[int]) -> list[RaisedEvent]:
    team, author = entity.alias("team"), entity.alias("author")
    statement = (
        select(
            raised_event,
            team.c.name.label("team"),
            run.c.uid.label("run"),
            run.c.name,
            project.c.name.label("project"),
            run.c.project_id,
            author.c.name.label("author"),
        )
        .join(team, team.c.id == raised_event.c.team_id)
        .outerjoin(run, run.c.id == raised_event.c.run_id)
        .outerjoin(project, project.c.id == run.c.project_id)
        .outerjoin(user_account, user_account.c.id == run.c.author_id)
        .outerjoin(author, author.c.id == user_account.c.entity_id)
        .where(among(connection, raised_event.c.id, ids))
        .order_by(raised_event.c.id)
    )
    rows = connection.execute(statement).all()
    tags = _tags(connection, {row.run_id for row in rows if row.run_id is not None})
    return [
        RaisedEvent(
            row.id,
            row.key,
            row.kind,
            row.team_id,
            row.team,
            row.time_ms,
            row.automation_id,
            row.run_id,
            row.run or "",
            row.name or "",
            row.project or "",
            data.get("project_id", row.project_id),
            row.author or "",
            tuple(tags.get(row.run_id, ())),
            data,
            row.project_id,
        )
        for row in rows
        for data in [stored_object(row.data, f"the event of run {row.run_id}")]
    ]


def _tags(connection: Connection, run_ids: set[int]) -> dict[int, list[str]]:
    """Return the tags of runs that have some."""
    tags: dict[int, list[str]] = {}
    theirs = among(connection, run_tag.c.run_id, run_ids)
    for run_id, tag in connection.execute(select(run_tag.c.run_id, run_tag.c.tag).where(theirs)):
        tags.setdefault(run_id, []).append(tag)
    return tags


def _read(connection: Connection, *conditions: Any) -> list[AutomationRow]:
    rows = connection.execute(_AUTOMATIONS.where(*conditions).order_by(automation.c.id))
    return [
        AutomationRow(
            row.id,
            row.team_id,
            row.registry_id,
            None if row.registry is None else registry_name(row.registry),
            row.name,
            row.enabled,
            stored_object(row.definition, f"the automation {row.id}"),
            row.created_by,
            row.creator,
            row.created_ms,
            row.changed_ms,
            row.problem,
        )
        for row in rows
    ]


def _automation(connection: Connection, team_id: int, automation_id: int) -> AutomationRow:
    rows = _read(connection, automation.c.id == automation_id, automation.c.team_id == team_id)
    if not rows:
        raise NotFound("the team has no such automation")
    return rows[0]


def _columns(definition: Mapping[str, Any]) -> dict[str, Any]:
    return {"event": definition["event"]["kind"], "definition": json.dumps(definition)}


def _checked_name(name: str) -> str:
    return checked_new_name("name of an automation", name.strip(), MAX_NAME)


def _switched_off(
    user_id: int, team: str, automation_id: int, name: str, problem: str, now_ms: int
) -> Notification:
    of_team = team != ORGANISATION
    whose = f"team {team}" if of_team else "the organisation"
    text = f"The automation “{name}” of {whose} was switched off\n{problem}"
    path = f"/{team}/-/settings/notifications" if of_team else f"/{team}/-/registries"
    link = {"path": path, "link": "Open the automations of the team" if of_team else "Open the registries"}
    key = f"automation.off:{automation_id}:{now_ms}:{user_id}"
    subject = f"automation:{automation_id}"
    return Notification(key, "automation.off", f"user:{user_id}", subject, text, link, now_ms)
