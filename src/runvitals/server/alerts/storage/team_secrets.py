"""Secrets of teams, which webhooks send: kept encrypted, and never shown again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, delete, insert, or_, select, update

from runvitals.server.alerts.storage.checks import check_count, locked_team
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.server.database.tables.destinations import destination, team_secret
from runvitals.store.errors import NotFound

MAX_SECRETS: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9_]{1,64}", re.ASCII)


class SecretInUse(ValueError):
    """Webhooks use a secret. `webhooks`: their names."""

    def __init__(self, name: str, webhooks: list[str]) -> None:
        super().__init__(f"webhooks use the secret {name!r}: {', '.join(webhooks)}")
        self.webhooks = webhooks


@dataclass(frozen=True, slots=True)
class TeamSecretRow:
    """A secret, without its value.

    Attributes:
        changed_by: the user who set the value; None: it was no user, or the user is deleted.
        webhooks: the names of those that use it.
    """

    id: int
    name: str
    created_ms: int
    changed_ms: int
    changed_by: str | None
    webhooks: tuple[str, ...]


_SECRETS = (
    select(
        team_secret.c.id,
        team_secret.c.name,
        team_secret.c.created_ms,
        team_secret.c.changed_ms,
        entity.c.name.label("changed_by"),
    )
    .outerjoin(user_account, user_account.c.id == team_secret.c.changed_by)
    .outerjoin(entity, (entity.c.id == user_account.c.entity_id) & entity.c.deleted_ms.is_(None))
)


class TeamSecretTable(StoredTable):
    """The table of secrets."""

    def of_team(self, team_id: int) -> list[TeamSecretRow]:
        """Return all secrets of a team, by name."""
        mine = _SECRETS.where(team_secret.c.team_id == team_id).order_by(team_secret.c.name)
        used = select(
            destination.c.name, destination.c.access_secret_id, destination.c.signing_secret_id
        ).where(destination.c.team_id == team_id)
        with self._database.read() as connection:
            webhooks: dict[int | None, set[str]] = {}
            for row in connection.execute(used):
                for secret_id in (row.access_secret_id, row.signing_secret_id):
                    webhooks.setdefault(secret_id, set()).add(row.name)
            return [
                TeamSecretRow(**row._asdict(), webhooks=tuple(sorted(webhooks.get(row.id, ()))))
                for row in connection.execute(mine)
            ]

    @in_transaction
    def put(
        self, connection: Connection, team_id: int, name: str, sealed: bytes, by: Actor, now_ms: int
    ) -> None:
        """Set a secret, in place of the value before.

        Args:
            sealed: the value, encrypted.

        Raises:
            ValueError: an invalid name.
            LimitReached: the team has too many.
        """
        if _NAME.fullmatch(name) is None:
            raise ValueError("invalid name of a secret; expected 1 to 64 letters A to Z, digits and _")
        value = {"sealed": sealed, "changed_by": by.user_id, "changed_ms": now_ms}
        team = locked_team(connection, team_id)
        present = _id_of(connection, team_id, name)
        if present is None:
            check_count(connection, team_secret, team_id, MAX_SECRETS, "secrets")
            new = {"team_id": team_id, "name": name, "created_by": by.user_id, "created_ms": now_ms}
            connection.execute(insert(team_secret).values(**new, **value))
        else:
            connection.execute(update(team_secret).where(team_secret.c.id == present).values(value))
        after = {"replaced": present is not None}
        record(connection, now_ms, by, "secret.set", entity=team, target=name, after=after)

    def sealed_value(self, team_id: int, name: str) -> bytes:
        """Return the encrypted value.

        Raises:
            NotFound: the team has no such secret.
        """
        mine = select(team_secret.c.sealed).where(
            team_secret.c.team_id == team_id, team_secret.c.name == name
        )
        with self._database.read() as connection:
            sealed: bytes | None = connection.execute(mine).scalar()
        if sealed is None:
            raise NotFound(f"the team has no secret {name!r}")
        return sealed

    @in_transaction
    def delete(
        self, connection: Connection, team_id: int, name: str, by: Actor, now_ms: int, *, force: bool = False
    ) -> None:
        """Delete a secret. `force`: though webhooks use it, which are then disabled.

        Raises:
            NotFound: the team has no such secret.
            SecretInUse: webhooks use it.
        """
        team = locked_team(connection, team_id)
        secret_id = _id_of(connection, team_id, name)
        if secret_id is None:
            raise NotFound(f"the team has no secret {name!r}")
        using = _using(connection, secret_id)
        if using and not force:
            raise SecretInUse(name, [webhook for _, webhook, _ in using])
        for webhook_id, webhook, enabled in using:
            disabled = update(destination).where(destination.c.id == webhook_id).values(enabled=False)
            connection.execute(disabled)
            old, new = {"enabled": enabled, "secret": name}, {"enabled": False, "secret": None}
            action = "webhook.update"
            record(connection, now_ms, by, action, entity=team, target=webhook, before=old, after=new)
        connection.execute(delete(team_secret).where(team_secret.c.id == secret_id))
        record(connection, now_ms, by, "secret.delete", entity=team, target=name)


def _id_of(connection: Connection, team_id: int, name: str) -> int | None:
    mine = select(team_secret.c.id).where(team_secret.c.team_id == team_id, team_secret.c.name == name)
    secret_id: int | None = connection.execute(mine).scalar()
    return secret_id


def _using(connection: Connection, secret_id: int) -> list[tuple[int, str, bool]]:
    """Id, name and whether it is enabled, of each webhook that uses a secret; by name."""
    columns = destination.c
    uses = or_(columns.access_secret_id == secret_id, columns.signing_secret_id == secret_id)
    statement = select(columns.id, columns.name, columns.enabled).where(uses).order_by(columns.name)
    return [(row.id, row.name, row.enabled) for row in connection.execute(statement)]
