"""Service accounts: accounts of programs, which have keys and never sign in."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.store.errors import NameTaken, UnknownAccount
from runvitals.store.metadata.accounts.audit import Actor, record
from runvitals.store.metadata.accounts.generation import rights_changed
from runvitals.store.metadata.accounts.tables import api_key, service_account
from runvitals.store.metadata.database import Database
from runvitals.store.metadata.text import checked_name

MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class ServiceAccountRow:
    """A service account. `team_id` null: of the organisation. `kind`: builtin, or legacy for old tokens."""

    id: int
    name: str
    kind: str
    team_id: int | None
    default_team_id: int | None
    reads_only: bool
    created_ms: int
    disabled_ms: int | None


_ACCOUNTS = select(*[service_account.c[name] for name in ServiceAccountRow.__dataclass_fields__]).where(
    service_account.c.deleted_ms.is_(None)
)


class ServiceAccountTable:
    """The table of service accounts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        name: str,
        team_id: int | None,
        by: Actor,
        now_ms: int,
        *,
        default_team_id: int | None = None,
        reads_only: bool = False,
    ) -> ServiceAccountRow:
        """Create a service account of a team, or of the organisation (`team_id` None).

        Raises:
            ValueError: an invalid name, or an account of the organisation without a default team.
            NameTaken: there is one of this name in the same place.
        """
        name = checked_name("service account", name.strip(), MAX_NAME)
        home = team_id if team_id is not None else default_team_id
        if home is None:
            raise ValueError("a service account of the organisation needs a default team")

        def work(connection: Connection) -> ServiceAccountRow:
            place = (
                service_account.c.team_id.is_(None)
                if team_id is None
                else service_account.c.team_id == team_id
            )
            mine = _ACCOUNTS.where(place, service_account.c.name == name)
            if connection.execute(mine).first() is not None:
                raise NameTaken(f"the service account {name!r} already exists")
            values = {
                "name": name,
                "kind": "builtin",
                "team_id": team_id,
                "default_team_id": home,
                "reads_only": reads_only,
                "created_by": by.user_id,
                "created_ms": now_ms,
            }
            connection.execute(insert(service_account).values(values))
            record(connection, now_ms, by, "service_account.create", target=name)
            return ServiceAccountRow(**connection.execute(mine).one()._asdict())

        return self._database.write(work)

    def all(self, team_id: int | None = None) -> list[ServiceAccountRow]:
        """All service accounts, or those of a team."""
        statement = _ACCOUNTS if team_id is None else _ACCOUNTS.where(service_account.c.team_id == team_id)
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(service_account.c.id))
            return [ServiceAccountRow(**row._asdict()) for row in rows]

    def legacy(self) -> ServiceAccountRow | None:
        """The account that tokens from before accounts act as; None before a team adopted them."""
        with self._database.read() as connection:
            row = connection.execute(_ACCOUNTS.where(service_account.c.kind == "legacy")).first()
        return None if row is None else ServiceAccountRow(**row._asdict())

    def set_disabled(self, account_id: int, disabled: bool, by: Actor, now_ms: int) -> None:
        """Disable a service account, so that its keys stop working, or enable it again."""

        def work(connection: Connection) -> None:
            name = _name(connection, account_id)
            mine = update(service_account).where(service_account.c.id == account_id)
            connection.execute(mine.values(disabled_ms=now_ms if disabled else None))
            action = "service_account.disable" if disabled else "service_account.enable"
            record(connection, now_ms, by, action, target=name)
            rights_changed(connection)

        self._database.write(work)

    def delete(self, account_id: int, by: Actor, now_ms: int) -> None:
        """Delete a service account with its keys. Its runs stay; the name can be given again."""

        def work(connection: Connection) -> None:
            name = _name(connection, account_id)
            connection.execute(delete(api_key).where(api_key.c.service_account_id == account_id))
            mine = update(service_account).where(service_account.c.id == account_id)
            connection.execute(mine.values(deleted_ms=now_ms))
            record(connection, now_ms, by, "service_account.delete", target=name)
            rights_changed(connection)

        self._database.write(work)


def _name(connection: Connection, account_id: int) -> str:
    row = connection.execute(_ACCOUNTS.where(service_account.c.id == account_id)).first()
    if row is None:
        raise UnknownAccount(f"there is no service account with id {account_id}")
    return str(row.name)
