"""Service accounts: accounts of programs, which have keys and never sign in."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, delete, exists, func, insert, select, update

from runvitals.model.names import plain_text
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import api_key, entity, service_account
from runvitals.server.database.tables.sign_on import external_identity
from runvitals.server.database.text import checked_new_name
from runvitals.store.errors import NameTaken, NotFound

MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class ServiceAccountRow:
    """A service account.

    Attributes:
        kind: builtin; external if it shows tokens of an issuer; legacy for tokens from before accounts.
        team_id, team: None: of the organisation.
        default_team: where its runs go that name no team.
        keys: how many keys it has that are not revoked. `last_used_ms`: when one was last used.
    """

    id: int
    name: str
    kind: str
    team_id: int | None
    team: str | None
    default_team_id: int | None
    default_team: str | None
    reads_only: bool
    created_ms: int
    disabled_ms: int | None
    keys: int
    last_used_ms: int | None


_team, _default_team = entity.alias(), entity.alias()
_keys = (api_key.c.service_account_id == service_account.c.id, api_key.c.revoked_ms.is_(None))
_COMPUTED = {
    "kind": case(
        (exists().where(external_identity.c.service_account_id == service_account.c.id), "external"),
        else_=service_account.c.kind,
    ),
    "team": _team.c.name,
    "default_team": _default_team.c.name,
    "keys": select(func.count()).where(*_keys).scalar_subquery(),
    "last_used_ms": select(func.max(api_key.c.last_used_ms)).where(_keys[0]).scalar_subquery(),
}
_ACCOUNTS = (
    select(
        *[
            _COMPUTED[name].label(name) if name in _COMPUTED else service_account.c[name]
            for name in ServiceAccountRow.__dataclass_fields__
        ]
    )
    .select_from(service_account)
    .outerjoin(_team, _team.c.id == service_account.c.team_id)
    .outerjoin(_default_team, _default_team.c.id == service_account.c.default_team_id)
    .where(service_account.c.deleted_ms.is_(None))
)


class ServiceAccountTable(StoredTable):
    """The table of service accounts."""

    @in_transaction
    def create(
        self,
        connection: Connection,
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
        name = checked_new_name("service account", name.strip(), MAX_NAME)
        home = team_id if team_id is not None else default_team_id
        if home is None:
            raise ValueError("a service account of the organisation needs a default team")
        mine = _ACCOUNTS.where(*_has_name(name, team_id))
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
        row = ServiceAccountRow(**connection.execute(mine).one()._asdict())
        record(connection, now_ms, by, "service_account.create", entity=_owner(row), target=name)
        return row

    def by_name(self, name: str, team_id: int | None) -> ServiceAccountRow:
        """Return a service account of a team, or of the organisation (`team_id` None).

        Raises:
            NotFound: there is none with this name.
        """
        with self._database.read() as connection:
            row = connection.execute(_ACCOUNTS.where(*_has_name(name, team_id))).first()
        if row is None:
            raise NotFound(f"there is no service account {name!r}")
        return ServiceAccountRow(**row._asdict())

    def get(self, account_id: int) -> ServiceAccountRow:
        """Return a service account by its id, or raise NotFound."""
        with self._database.read() as connection:
            return _account(connection, account_id)

    def of_organisation(self) -> list[ServiceAccountRow]:
        """Return the service accounts of the organisation, by name."""
        statement = _ACCOUNTS.where(service_account.c.team_id.is_(None)).order_by(service_account.c.name)
        with self._database.read() as connection:
            return [ServiceAccountRow(**row._asdict()) for row in connection.execute(statement)]

    def all(self, team_id: int | None = None) -> list[ServiceAccountRow]:
        """Return all service accounts, or those of a team."""
        statement = _ACCOUNTS if team_id is None else _ACCOUNTS.where(service_account.c.team_id == team_id)
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(service_account.c.id))
            return [ServiceAccountRow(**row._asdict()) for row in rows]

    def legacy(self) -> ServiceAccountRow | None:
        """Return the account that tokens from before accounts act as; None before a team adopted them."""
        with self._database.read() as connection:
            row = connection.execute(_ACCOUNTS.where(service_account.c.kind == "legacy")).first()
        return None if row is None else ServiceAccountRow(**row._asdict())

    @in_transaction
    def update(
        self,
        connection: Connection,
        account_id: int,
        by: Actor,
        now_ms: int,
        *,
        name: str | None = None,
        default_team_id: int | None = None,
        reads_only: bool | None = None,
    ) -> ServiceAccountRow:
        """Change a service account; None leaves a field as it is.

        Raises:
            ValueError: an invalid name, or another default team for an account of a team.
            NameTaken: another one in the same place has the name.
            NotFound: there is no such account.
        """
        values = {"name": name, "default_team_id": default_team_id, "reads_only": reads_only}
        changes = {field: value for field, value in values.items() if value is not None}
        if name is not None:
            changes["name"] = checked_new_name("service account", name.strip(), MAX_NAME)
        before = _account(connection, account_id)
        changed = {field: value for field, value in changes.items() if getattr(before, field) != value}
        if "default_team_id" in changed and before.team_id is not None:
            raise ValueError("the default team of a team's service account is that team")
        if "name" in changed:
            same_name = _ACCOUNTS.where(*_has_name(str(changed["name"]), before.team_id))
            if connection.execute(same_name).first() is not None:
                raise NameTaken(f"the service account {changed['name']!r} already exists")
        if changed:
            mine = update(service_account).where(service_account.c.id == account_id)
            connection.execute(mine.values(changed))
            old = {field: getattr(before, field) for field in changed}
            record(
                connection,
                now_ms,
                by,
                "service_account.update",
                entity=_owner(before),
                target=before.name,
                before=old,
                after=changed,
            )
            rights_changed(connection)
        return _account(connection, account_id)

    @in_transaction
    def set_disabled(
        self, connection: Connection, account_id: int, disabled: bool, by: Actor, now_ms: int
    ) -> None:
        """Disable a service account, so that its keys stop working, or enable it again."""
        row = _account(connection, account_id)
        if (row.disabled_ms is not None) == disabled:
            return
        mine = update(service_account).where(service_account.c.id == account_id)
        connection.execute(mine.values(disabled_ms=now_ms if disabled else None))
        action = "service_account.disable" if disabled else "service_account.enable"
        record(connection, now_ms, by, action, entity=_owner(row), target=row.name)
        rights_changed(connection)

    @in_transaction
    def delete(self, connection: Connection, account_id: int, by: Actor, now_ms: int) -> None:
        """Delete a service account with its keys. Its runs stay; the name can be given again."""
        row = _account(connection, account_id)
        for table in (api_key, external_identity):
            connection.execute(delete(table).where(table.c.service_account_id == account_id))
        mine = update(service_account).where(service_account.c.id == account_id)
        connection.execute(mine.values(deleted_ms=now_ms))
        record(connection, now_ms, by, "service_account.delete", entity=_owner(row), target=row.name)
        rights_changed(connection)


def _account(connection: Connection, account_id: int) -> ServiceAccountRow:
    row = connection.execute(_ACCOUNTS.where(service_account.c.id == account_id)).first()
    if row is None:
        raise NotFound(f"there is no service account with id {account_id}")
    return ServiceAccountRow(**row._asdict())


def _has_name(name: str, team_id: int | None) -> tuple[ColumnElement[bool], ...]:
    team = service_account.c.team_id
    return team.is_(None) if team_id is None else team == team_id, service_account.c.name == plain_text(name)


def _owner(row: ServiceAccountRow) -> tuple[int, str] | None:
    """Return the team, for the audit log; None for an account of the organisation."""
    return None if row.team_id is None or row.team is None else (row.team_id, row.team)
