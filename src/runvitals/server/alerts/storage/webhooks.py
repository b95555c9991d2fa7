"""Webhooks of teams: where automations send what happened."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.alerts.storage.integrations import check_count, check_free, locked_team
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import Database
from runvitals.server.database.tables.integrations import team_secret, team_webhook
from runvitals.server.database.text import checked_name
from runvitals.store.errors import NotFound

MAX_WEBHOOKS: Final = 50
MAX_NAME: Final = 64
_HOST: Final = re.compile(r"^[a-z]+://([^/?#]*).*$", re.DOTALL | re.IGNORECASE)


class UnknownSecret(ValueError):
    """A webhook names a secret that the team does not have; the name may be a secret pasted by mistake.

    Attributes:
        field: which field names it.
    """

    def __init__(self, field: str) -> None:
        super().__init__("the team has no secret of this name")
        self.field = field


@dataclass(frozen=True, slots=True)
class WebhookRow:
    """A webhook. The secrets are names of the team's."""

    id: int
    name: str
    url: str
    access_secret: str | None
    signing_secret: str | None
    payload: str | None
    enabled: bool
    created_ms: int


_access, _signing = team_secret.alias("access_secret"), team_secret.alias("signing_secret")
_WEBHOOKS = (
    select(
        team_webhook.c.id,
        team_webhook.c.name,
        team_webhook.c.url,
        _access.c.name.label("access_secret"),
        _signing.c.name.label("signing_secret"),
        team_webhook.c.payload,
        team_webhook.c.enabled,
        team_webhook.c.created_ms,
    )
    .outerjoin(_access, _access.c.id == team_webhook.c.access_secret_id)
    .outerjoin(_signing, _signing.c.id == team_webhook.c.signing_secret_id)
)


class WebhookTable:
    """The table of webhooks."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_team(self, team_id: int) -> list[WebhookRow]:
        """All webhooks of a team, in the order in which they were created."""
        mine = _WEBHOOKS.where(team_webhook.c.team_id == team_id).order_by(team_webhook.c.id)
        with self._database.read() as connection:
            return [WebhookRow(**row._asdict()) for row in connection.execute(mine)]

    def get(self, team_id: int, webhook_id: int) -> WebhookRow:
        """
        Raises:
            NotFound: the team has no such webhook.
        """
        with self._database.read() as connection:
            return _webhook(connection, team_id, webhook_id)

    def create(self, team_id: int, values: Mapping[str, Any], by: Actor, now_ms: int) -> WebhookRow:
        """
        Args:
            values: all fields but the id and the time. The caller has checked the URL and the payload.

        Raises:
            ValueError: an invalid name.
            NameTaken: the team has a webhook with this name.
            LimitReached: the team has too many.
            UnknownSecret: the team has no such secret.
        """
        name = _checked_name(values["name"])

        def work(connection: Connection) -> WebhookRow:
            team = locked_team(connection, team_id)
            check_free(connection, team_webhook.c.name, team_id, name, "webhook")
            check_count(connection, team_webhook, team_id, MAX_WEBHOOKS, "webhooks")
            row = _stored(connection, team_id, {**values, "name": name})
            row |= {"team_id": team_id, "created_by": by.user_id, "created_ms": now_ms}
            connection.execute(insert(team_webhook).values(row))
            mine = (team_webhook.c.team_id == team_id, team_webhook.c.name == name)
            created = WebhookRow(**connection.execute(_WEBHOOKS.where(*mine)).one()._asdict())
            after = _audited(created)
            record(connection, now_ms, by, "webhook.create", entity=team, target=name, after=after)
            return created

        return self._database.write(work)

    def update(
        self, team_id: int, webhook_id: int, changes: Mapping[str, Any], by: Actor, now_ms: int
    ) -> WebhookRow:
        """Change fields; returns the webhook as it is now. Raises as `create`, or if there is no such one."""
        changes = dict(changes)
        if "name" in changes:
            changes["name"] = _checked_name(changes["name"])

        def work(connection: Connection) -> WebhookRow:
            team = locked_team(connection, team_id)
            before = _webhook(connection, team_id, webhook_id)
            if changes.get("name", before.name) != before.name:
                check_free(connection, team_webhook.c.name, team_id, changes["name"], "webhook")
            row = _stored(connection, team_id, changes)
            if row:
                connection.execute(update(team_webhook).where(team_webhook.c.id == webhook_id).values(row))
            after = _webhook(connection, team_id, webhook_id)
            if after != before:
                old, new = _audited(before), _audited(after)
                changed = [name for name in old if getattr(before, name) != getattr(after, name)]
                record(
                    connection,
                    now_ms,
                    by,
                    "webhook.update",
                    entity=team,
                    target=after.name,
                    before={name: old[name] for name in changed},
                    after={name: new[name] for name in changed},
                )
            return after

        return self._database.write(work)

    def delete(self, team_id: int, webhook_id: int, by: Actor, now_ms: int) -> None:
        """
        Raises:
            NotFound: the team has no such webhook.
        """

        def work(connection: Connection) -> None:
            team = locked_team(connection, team_id)
            row = _webhook(connection, team_id, webhook_id)
            connection.execute(delete(team_webhook).where(team_webhook.c.id == webhook_id))
            record(connection, now_ms, by, "webhook.delete", entity=team, target=row.name)

        self._database.write(work)


def _checked_name(name: str) -> str:
    return checked_name("name of a webhook", name.strip(), MAX_NAME)


def _webhook(connection: Connection, team_id: int, webhook_id: int) -> WebhookRow:
    mine = _WEBHOOKS.where(team_webhook.c.id == webhook_id, team_webhook.c.team_id == team_id)
    row = connection.execute(mine).first()
    if row is None:
        raise NotFound("the team has no such webhook")
    return WebhookRow(**row._asdict())


def _stored(connection: Connection, team_id: int, values: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of some fields: secrets by their ids."""
    row = {}
    for field, value in values.items():
        if field not in ("access_secret", "signing_secret"):
            row[field] = value
            continue
        secret_id = None
        if value is not None:
            mine = (team_secret.c.team_id == team_id, team_secret.c.name == value)
            secret_id = connection.execute(select(team_secret.c.id).where(*mine)).scalar()
            if secret_id is None:
                raise UnknownSecret(field)
        row[f"{field}_id"] = secret_id
    return row


def host_of(url: str) -> str:
    """The host of a URL, with its port: the rest may have a token in it."""
    return _HOST.sub(r"\1", url)


def _audited(row: WebhookRow) -> dict[str, Any]:
    """A webhook in the audit log: of the URL only the host, of the payload only whether there is one, since
    users write tokens into both."""
    return {
        "name": row.name,
        "url": host_of(row.url),
        "access_secret": row.access_secret,
        "signing_secret": row.signing_secret,
        "payload": row.payload is not None,
        "enabled": row.enabled,
    }
