"""Removes what requests made of accounts before the first administrator, who must not inherit it unseen.

Requests may not make any of it, but earlier versions let them, and whoever reached the server first would
have kept access: by a secret of SCIM, an invitation or a service account. What the command line made stays,
unless requests have changed it.
"""

from __future__ import annotations

import json
from typing import Any, Final

from sqlalchemy import Column, Connection, Table, delete, exists, select, update

from runvitals.server.accounts.storage.administrators import lock_administrators
from runvitals.server.accounts.storage.entities import purge_space, release_name
from runvitals.server.accounts.storage.user_deletion import remove_user
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables import accounts as tables
from runvitals.server.database.tables import usage as usage_tables
from runvitals.server.database.tables.accounts import audit_event, entity, organisation_setting, user_account
from runvitals.server.database.tables.content import outgoing_mail
from runvitals.server.database.tables.projects import guest_link
from runvitals.server.database.tables.requests import audit_webhook
from runvitals.server.database.tables.runs import project
from runvitals.server.database.tables.sign_on import external_identity, jwt_issuer
from runvitals.server.organisation.storage.settings import CURSOR_KEY, SCIM_SETTINGS

REMOVED: Final = "setup.remove"
"""The event of the audit log that lists what was removed."""
_BILLING: Final = (
    usage_tables.statement_line,
    usage_tables.statement,
    usage_tables.entity_plan,
    usage_tables.plan_limit,
    usage_tables.plan,
    usage_tables.cost_centre_assignment,
    usage_tables.cost_centre,
    usage_tables.rate,
    usage_tables.billing_document,
)
_TRACES: Final = (outgoing_mail, tables.device_login, usage_tables.statement_counter)
"""What is removed without a word: mail that waits for a mail server, sign-ins that wait for a user, and how
many numbers statements took, which the server keeps even if there are none."""
Removed = dict[str, list[str]]
"""Names of what was removed, by what it is."""


def remove_planted(connection: Connection, by: Actor, now_ms: int) -> Removed:
    """Remove what requests made before there was an administrator; returns what it was.

    It has no effect if there is, or was, an administrator.
    """
    was_set_up = select(exists().where(user_account.c.created_via == "setup"))
    if lock_administrators(connection) or connection.execute(was_set_up).scalar():
        return {}
    history = _History(connection)
    removed = {
        "settings": _settings(connection, history),
        "audit webhook": _all(connection, audit_webhook, audit_webhook.c.url),
        "guest links": _guest_links(connection, history),
        "billing": [table.name for table in _BILLING if connection.execute(delete(table)).rowcount],
        "invitations": _invitations(connection, history),
        "token issuers": _issuers(connection, history),
        "service accounts": _service_accounts(connection, history),
        "users": _users(connection, history, by, now_ms),
        "teams": _teams(connection, history, by, now_ms),
        "roles": _roles(connection, history),
    }
    for table in _TRACES:
        connection.execute(delete(table))
    removed = {kind: sorted(names) for kind, names in removed.items() if names}
    if removed:
        record(connection, now_ms, by, REMOVED, before=removed)
        rights_changed(connection)
    return removed


class _History:
    """The makers of things, as the audit log has them."""

    def __init__(self, connection: Connection) -> None:
        self._by_command: dict[tuple[str, str | None], bool] = {}
        self._settings: dict[str, bool] = {}
        self._entities: dict[int, bool] = {}
        self._links: dict[str, bool] = {}
        column = audit_event.c
        columns = (column.action, column.via, column.ip, column.entity_id, column.target, column.after)
        by_somebody = column.actor_kind.in_(("cli", "system", "anonymous"))
        events = select(*columns).where(column.outcome == "ok", by_somebody).order_by(column.id)
        for event in connection.execute(events):
            if event.via == "" and event.ip is None:
                continue  # by the server itself
            self._add(event, event.via == "cli")

    def _add(self, event: Any, by_command: bool) -> None:
        kind = event.action.partition(".")[0]
        if event.action == "org.settings":
            self._settings |= dict.fromkeys(json.loads(event.after or "{}"), by_command)
        elif event.action == "scim.secret_create":
            self._settings |= dict.fromkeys(SCIM_SETTINGS, by_command)
        if event.action == "link.create":
            self._links[event.target] = by_command
        if event.entity_id is not None:
            created = event.action in ("user.create", "team.create")
            planted = self._entities.get(event.entity_id, created)
            self._entities[event.entity_id] = planted and by_command
        else:
            key = kind, event.target
            self._by_command[key] = self._by_command.get(key, True) and by_command

    def of_setting(self, name: str) -> bool:
        """Return whether the command line gave a setting its present value."""
        return self._settings.get(name, False)

    def of_entity(self, entity_id: int) -> bool:
        """Return whether the command line alone made and changed a user or team."""
        return self._entities.get(entity_id, False)

    def of_link(self, link_id: int) -> bool:
        """Return whether the command line made a guest link."""
        return self._links.get(str(link_id), False)

    def of(self, kind: str, target: str | None) -> bool:
        """Return whether the command line made a thing of the organisation; `target`: its name there."""
        return self._by_command.get((kind, target), False)

    def all_of(self, kind: str) -> bool:
        """Return whether no request did anything of a kind for the organisation."""
        return all(by_command for (done_kind, _), by_command in self._by_command.items() if done_kind == kind)


def _all(connection: Connection, table: Table, column: Column[Any]) -> list[str]:
    names = [str(name) for name in connection.execute(select(column)).scalars()]
    connection.execute(delete(table))
    return names


def _settings(connection: Connection, history: _History) -> list[str]:
    names = connection.execute(select(organisation_setting.c.name)).scalars()
    planted = [name for name in names if name != CURSOR_KEY and not history.of_setting(name)]
    connection.execute(delete(organisation_setting).where(organisation_setting.c.name.in_(planted)))
    return planted


def _invitations(connection: Connection, history: _History) -> list[str]:
    """Delete invitations to the organisation; returns whom to. Those to a team go with it."""
    column = tables.invitation.c
    pending = select(column.id, column.address).where(column.team_id.is_(None), column.state == "pending")
    planted = {
        row.id: row.address or "by a link"
        for row in connection.execute(pending).all()
        if not history.of("org", row.address)
    }
    connection.execute(delete(tables.invitation).where(column.id.in_(planted)))
    return list(planted.values())


def _guest_links(connection: Connection, history: _History) -> list[str]:
    ids = connection.execute(select(guest_link.c.id)).scalars()
    planted = [link_id for link_id in ids if not history.of_link(link_id)]
    connection.execute(delete(guest_link).where(guest_link.c.id.in_(planted)))
    return [str(link_id) for link_id in planted]


def _issuers(connection: Connection, history: _History) -> list[str]:
    issuers = connection.execute(select(jwt_issuer.c.id, jwt_issuer.c.url)).all()
    planted = {row.id: row.url for row in issuers if not history.of("issuer", row.url)}
    connection.execute(delete(external_identity).where(external_identity.c.issuer_id.in_(planted)))
    connection.execute(delete(jwt_issuer).where(jwt_issuer.c.id.in_(planted)))
    return list(planted.values())


def _service_accounts(connection: Connection, history: _History) -> list[str]:
    """Delete accounts of the organisation; returns their names. Those of a team go with it."""
    column = tables.service_account.c
    accounts = select(column.id, column.name).where(column.team_id.is_(None), column.deleted_ms.is_(None))
    keys_by_command = history.all_of("key")
    planted = {
        row.id: row.name
        for row in connection.execute(accounts).all()
        if not (keys_by_command and history.of("service_account", row.name))
    }
    connection.execute(delete(tables.service_account).where(column.id.in_(planted)))
    return list(planted.values())


def _users(connection: Connection, history: _History, by: Actor, now_ms: int) -> list[str]:
    users = (
        select(user_account.c.id, entity.c.id.label("entity_id"), entity.c.name)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .where(user_account.c.deleted_ms.is_(None))
    )
    planted = [row for row in connection.execute(users).all() if not history.of_entity(row.entity_id)]
    for row in planted:
        remove_user(connection, row.id, (row.entity_id, row.name), by, now_ms)
        if not _has_projects(connection, row.entity_id):
            purge_space(connection, row.entity_id, by, now_ms)
            release_name(connection, row.name, by, now_ms)
    return [row.name for row in planted]


def _teams(connection: Connection, history: _History, by: Actor, now_ms: int) -> list[str]:
    """Move teams to the trash, without anybody who could get at them; returns their names."""
    teams = select(entity.c.id, entity.c.name).where(entity.c.kind == "team", entity.c.purged_ms.is_(None))
    planted = [row for row in connection.execute(teams).all() if not history.of_entity(row.id)]
    for row in planted:
        mine = entity.c.id == row.id
        for table in (tables.membership, tables.invitation, tables.service_account):
            connection.execute(delete(table).where(table.c.team_id == row.id))
        connection.execute(update(entity).where(mine).values(deleted_ms=now_ms))
        record(connection, now_ms, by, "team.delete", entity=(row.id, row.name))
        if not _has_projects(connection, row.id):
            connection.execute(delete(tables.team).where(tables.team.c.entity_id == row.id))
            connection.execute(update(entity).where(mine).values(purged_ms=now_ms))
            release_name(connection, row.name, by, now_ms)
    return [row.name for row in planted]


def _roles(connection: Connection, history: _History) -> list[str]:
    names = connection.execute(select(tables.custom_role.c.name)).scalars()
    planted = [name for name in names if not history.of("role", name)]
    connection.execute(delete(tables.custom_role).where(tables.custom_role.c.name.in_(planted)))
    return planted


def _has_projects(connection: Connection, entity_id: int) -> bool:
    return bool(connection.execute(select(exists().where(project.c.entity_id == entity_id))).scalar())
