"""Users: the people with an account."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, case, func, insert, or_, select, update

from runvitals.model.account_names import display_name as checked_display_name
from runvitals.model.durations import DAY_MS
from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.administrators import (
    check_team_administrators,
    lock_administrators,
    note_group_administrator,
)
from runvitals.server.accounts.storage.emails import add_address
from runvitals.server.accounts.storage.entities import claim_name
from runvitals.server.accounts.storage.user_deletion import remove_user, team_ids
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import Database, StoredTable, among, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables import accounts as tables
from runvitals.server.database.tables.accounts import entity, invitation, membership, user_account
from runvitals.server.organisation.storage.settings import SettingTable
from runvitals.server.teams.storage.teams import revoke_invitations
from runvitals.store.errors import LastAdministrator, NotAnAdministrator, NotFound

MAX_PAGE = 200


@dataclass(frozen=True, slots=True)
class UserRow:
    """A user. Times are ms UTC; `delete_after_ms`: when the requested deletion is carried out."""

    id: int
    entity_id: int
    name: str
    display_name: str
    state: str
    org_role: str
    access: str
    billing_role: str
    created_ms: int
    created_via: str
    last_seen_ms: int | None
    delete_after_ms: int | None
    deleted_ms: int | None


_COLUMNS = [
    entity.c.name if name == "name" else user_account.c[name] for name in UserRow.__dataclass_fields__
]
_USERS = select(*_COLUMNS).join(entity, entity.c.id == user_account.c.entity_id)


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user in a list. `address`: the primary one. `password`: whether one is set."""

    user: UserRow
    address: str | None
    teams: tuple[str, ...]
    password: bool


class UserTable(StoredTable):
    """The table of users."""

    def __init__(self, database: Database, settings: SettingTable) -> None:
        super().__init__(database)
        self._settings = settings

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        by: Actor,
        now_ms: int,
        *,
        display_name: str = "",
        address: str | None = None,
        verified: bool = False,
        org_role: str = "member",
        access: str = "full",
        hashed_password: str | None = None,
        via: str = "cli",
    ) -> UserRow:
        """Create a user. The first administrator is also the billing administrator.

        Args:
            address: the primary e-mail address. Unless it is `verified`, the user is unverified until it is.
            hashed_password: the argon2id hash of the password; None: none is set.

        Raises:
            ValueError: an invalid or reserved name, or an invalid address.
            NameTaken: the name is taken, or another user has verified the address.
        """
        shown_name = checked_display_name(display_name or name)
        owner = claim_name(connection, "user", name, now_ms)
        first = org_role == "admin" and not lock_administrators(connection)
        values = {
            "entity_id": owner[0],
            "display_name": shown_name,
            "profile": "{}",
            "state": "active" if verified or address is None else "unverified",
            "org_role": org_role,
            "access": access,
            "billing_role": "admin" if first else "none",
            "created_ms": now_ms,
            "created_via": via,
        }
        connection.execute(insert(user_account).values(values))
        user = _user(connection, user_account.c.entity_id == owner[0])
        if address is not None:
            add_address(connection, user.id, address, now_ms, verified=verified, primary=True)
        if hashed_password is not None:
            row = {"user_id": user.id, "hash": hashed_password, "set_ms": now_ms, "must_change": False}
            connection.execute(insert(tables.password).values(row))
        record(connection, now_ms, by, "user.create", entity=owner, after={"org_role": org_role})
        rights_changed(connection)
        return user

    def get(self, user_id: int) -> UserRow:
        """Return a user by id, or raise NotFound."""
        with self._database.read() as connection:
            return _user(connection, user_account.c.id == user_id)

    def of_entities(self, entity_ids: Collection[int]) -> list[UserRow]:
        """Return the users, by name, whose own spaces these are and who are not deleted."""
        with self._database.read() as connection:
            mine = among(connection, user_account.c.entity_id, entity_ids)
            living = _USERS.where(mine, user_account.c.deleted_ms.is_(None)).order_by(entity.c.name)
            return [UserRow(**row._asdict()) for row in connection.execute(living)]

    def active_among(self, names: Collection[str]) -> dict[str, int]:
        """Return the ids of those with these names who are active, by name; at most a few dozen."""
        with self._database.read() as connection:
            rows = connection.execute(_USERS.where(entity.c.name.in_(names)))
            return {row.name: row.id for row in rows if row.state == "active"}

    def by_name(self, name: str) -> UserRow:
        """Return a user by name, or raise NotFound."""
        with self._database.read() as connection:
            return user_by_name(connection, name)

    def by_address(self, key: str) -> UserRow | None:
        """Return the user who verified this address (`address_key`); None if nobody has."""
        owner = select(tables.email.c.user_id).where(
            tables.email.c.address_key == key, tables.email.c.verified_ms.is_not(None)
        )
        with self._database.read() as connection:
            row = connection.execute(_USERS.where(user_account.c.id == owner.scalar_subquery())).first()
        return None if row is None else UserRow(**row._asdict())

    def unverified_by_address(self, key: str) -> UserRow | None:
        """Return the newest user who signed up with this address and has not verified it, or None."""
        pending = (
            _USERS.join(tables.email, tables.email.c.user_id == user_account.c.id)
            .where(tables.email.c.address_key == key, tables.email.c.is_primary)
            .where(user_account.c.state == "unverified")
            .order_by(user_account.c.id.desc())
        )
        with self._database.read() as connection:
            row = connection.execute(pending.limit(1)).first()
        return None if row is None else UserRow(**row._asdict())

    def search(self, text: str, near_user_id: int, limit: int = 10) -> list[UserRow]:
        """Active users whose name or display name begins with a text, those first who share a team."""
        theirs = select(membership.c.team_id).where(membership.c.user_id == near_user_id)
        text = plain_text(text)
        shared = select(membership.c.user_id).where(membership.c.team_id.in_(theirs))
        fits = or_(
            entity.c.name.startswith(text.lower(), autoescape=True),
            func.lower(user_account.c.display_name).startswith(text.lower(), autoescape=True),
        )
        near = case((user_account.c.id.in_(shared), 0), else_=1)
        statement = _USERS.where(fits, user_account.c.state == "active").order_by(near, entity.c.name)
        with self._database.read() as connection:
            return [UserRow(**row._asdict()) for row in connection.execute(statement.limit(limit))]

    def page(self, after_id: int = 0, limit: int = 50) -> list[UserRow]:
        """Users who are not deleted, in the order of their ids, after `after_id`."""
        living = _USERS.where(user_account.c.id > after_id, user_account.c.deleted_ms.is_(None))
        with self._database.read() as connection:
            rows = connection.execute(living.order_by(user_account.c.id).limit(min(limit, MAX_PAGE)))
            return [UserRow(**row._asdict()) for row in rows]

    def listed(self) -> list[ListedUser]:
        """Return all users who are not deleted, by name, each with the primary address and the teams."""
        primary = (tables.email.c.user_id == user_account.c.id) & tables.email.c.is_primary
        statement = (
            _USERS.add_columns(tables.email.c.address, tables.password.c.user_id.label("password"))
            .outerjoin(tables.email, primary)
            .outerjoin(tables.password, tables.password.c.user_id == user_account.c.id)
            .where(user_account.c.deleted_ms.is_(None))
            .order_by(entity.c.name)
        )
        in_teams = select(membership.c.user_id, entity.c.name).join(
            entity, entity.c.id == membership.c.team_id
        )
        with self._database.read() as connection:
            teams: dict[int, list[str]] = {}
            for user_id, name in connection.execute(in_teams.order_by(entity.c.name)):
                teams.setdefault(user_id, []).append(name)
            return [
                ListedUser(
                    UserRow(**{name: row[name] for name in UserRow.__dataclass_fields__}),
                    row["address"],
                    tuple(teams.get(row["id"], ())),
                    row["password"] is not None,
                )
                for row in connection.execute(statement).mappings()
            ]

    def any_administrator(self) -> bool:
        """Return whether there is an active administrator: before, the server offers the first-run page."""
        with self._database.read() as connection:
            return bool(lock_administrators(connection))

    def administrators(self) -> list[str]:
        """Return the display names of the active administrators."""
        active = (user_account.c.org_role == "admin", user_account.c.state == "active")
        names = select(user_account.c.display_name).where(*active).order_by(user_account.c.id)
        with self._database.read() as connection:
            return list(connection.execute(names).scalars())

    @in_transaction
    def update(
        self,
        connection: Connection,
        /,
        user_id: int,
        by: Actor,
        now_ms: int,
        *,
        group_of: str | None = None,
        **changes: str,
    ) -> UserRow:
        """Change state, org_role, access, billing_role or display_name.

        Pending invitations by a user who is suspended, or no longer an administrator, end.

        Args:
            group_of: the provider whose group makes the user an administrator; None: it is done by hand.

        Raises:
            LastAdministrator: nobody would administer the organisation, or its billing.
            NotAnAdministrator: a billing administrator has to administer the organisation.
            ValueError: an invalid value.
            NotFound: there is no such user.
        """
        _check_changes(changes)
        lock_administrators(connection)  # locked before the user, always in the same order
        before = _user(connection, user_account.c.id == user_id, lock=True)
        org_role = changes.get("org_role", before.org_role)
        if changes.get("billing_role") == "admin" and org_role != "admin":
            needed = "as billing administrators have to be"
            raise NotAnAdministrator(f"{before.name} is no administrator of the organisation, {needed}")
        changed = {name: value for name, value in changes.items() if getattr(before, name) != value}
        if changed.get("org_role") == "member" and before.billing_role == "admin":
            changed["billing_role"] = "none"
        if not changed:
            return before
        connection.execute(update(user_account).where(user_account.c.id == user_id).values(changed))
        if "org_role" in changed:
            note_group_administrator(connection, user_id, group_of)
        if changed.keys() & {"state", "org_role", "billing_role"}:
            _check_administrators(connection, before)
        if changed.get("state") == "suspended":
            _end_sessions(connection, user_id, now_ms)
        if changed.get("state") == "suspended" or changed.get("org_role") == "member":
            revoke_invitations(connection, now_ms, invitation.c.invited_by == user_id)
        _record_changes(connection, before, changed, by, now_ms)
        rights_changed(connection)
        return _user(connection, user_account.c.id == user_id)

    def note_seen(self, user_id: int, now_ms: int) -> None:
        """Note the day on which a user was active."""
        day = now_ms - now_ms % DAY_MS
        later = update(user_account).where(
            user_account.c.id == user_id, func.coalesce(user_account.c.last_seen_ms, 0) < day
        )
        self._database.write(
            lambda connection: connection.execute(later.values(last_seen_ms=day)), durable=False
        )

    @in_transaction
    def request_deletion(
        self, connection: Connection, user_id: int, by: Actor, now_ms: int, after_ms: int
    ) -> None:
        """Ask for the deletion of an account, to be carried out after a waiting period.

        Raises:
            LastAdministrator: the user is the last administrator of the organisation or of a team.
        """
        lock_administrators(connection)
        user = _user(connection, user_account.c.id == user_id, lock=True)
        _check_deletion(connection, user)
        values = {"delete_after_ms": now_ms + after_ms}
        connection.execute(update(user_account).where(user_account.c.id == user_id).values(values))
        record(connection, now_ms, by, "user.deletion_request", entity=(user.entity_id, user.name))

    @in_transaction
    def cancel_deletion(self, connection: Connection, user_id: int, by: Actor, now_ms: int) -> None:
        """Keep an account whose deletion was requested."""
        user = _user(connection, user_account.c.id == user_id, lock=True)
        connection.execute(
            update(user_account).where(user_account.c.id == user_id).values(delete_after_ms=None)
        )
        record(connection, now_ms, by, "user.deletion_cancel", entity=(user.entity_id, user.name))

    def delete(self, user_id: int, by: Actor, now_ms: int, *, leave_teams: bool = False) -> None:
        """Delete an account now. Its runs, its name and its entries in the audit log stay.

        Everything personal goes: e-mails, password, sessions, keys, memberships, profile. The user's own
        space goes to the trash, and so do the teams that have no other member.

        Args:
            leave_teams: also where that leaves members without an administrator.

        Raises:
            LastAdministrator: the user is the last administrator of the organisation or of a team.
        """
        anonymise = self._settings.anonymises()
        self._database.write(
            lambda connection: _delete(connection, user_id, by, now_ms, anonymise, leave_teams)
        )

    def deletion_due(self, now_ms: int) -> list[UserRow]:
        """Return the users whose requested deletion is to be carried out."""
        due = _USERS.where(user_account.c.delete_after_ms <= now_ms, user_account.c.deleted_ms.is_(None))
        with self._database.read() as connection:
            return [UserRow(**row._asdict()) for row in connection.execute(due)]

    @in_transaction
    def purge_unverified(self, connection: Connection, before_ms: int, by: Actor, now_ms: int) -> int:
        """Remove the sign-ups from before this time that were never confirmed; returns how many.

        Their names are free again: nobody else has seen anything of them.
        """
        anonymise = self._settings.anonymises()
        old = _USERS.where(user_account.c.state == "unverified", user_account.c.created_ms < before_ms)
        users = [UserRow(**row._asdict()) for row in connection.execute(old)]
        for user in users:
            _delete(connection, user.id, by, now_ms, anonymise)
            free = {"name": f"~{user.entity_id}", "purged_ms": now_ms}
            connection.execute(update(entity).where(entity.c.id == user.entity_id).values(free))
        return len(users)


def user_by_name(connection: Connection, name: str) -> UserRow:
    """Return a user by name, in a transaction, or raise NotFound."""
    row = connection.execute(_USERS.where(entity.c.name == plain_text(name).lower())).first()
    if row is None or row.deleted_ms is not None:
        raise NotFound(f"there is no user {name!r}")
    return UserRow(**row._asdict())


def _user(connection: Connection, condition: Any, lock: bool = False) -> UserRow:
    statement = _USERS.where(condition, user_account.c.deleted_ms.is_(None))
    row = connection.execute(statement.with_for_update(of=user_account) if lock else statement).first()
    if row is None:
        raise NotFound("there is no such user")
    return UserRow(**row._asdict())


_VALUES = {
    "state": ("active", "suspended"),
    "org_role": ("member", "admin"),
    "access": ("full", "viewer", "none"),
    "billing_role": ("none", "viewer", "admin"),
}


def _check_changes(changes: dict[str, str]) -> None:
    for name, value in changes.items():
        if name == "display_name":
            changes[name] = checked_display_name(value)
        elif name not in _VALUES:
            raise ValueError(
                f"unknown field {name!r}; expected one of {', '.join((*_VALUES, 'display_name'))}"
            )
        elif value not in _VALUES[name]:
            raise ValueError(f"invalid {name} {value!r}; expected one of {', '.join(_VALUES[name])}")


def _check_administrators(connection: Connection, before: UserRow) -> None:
    administrators = lock_administrators(connection)
    if before.org_role == "admin" and before.state == "active" and not administrators:
        raise LastAdministrator(f"{before.name} is the last administrator; make another user one first")
    billing = [row for row in administrators if row.billing_role == "admin"]
    if before.billing_role == "admin" and before.state == "active" and not billing:
        raise LastAdministrator(
            f"{before.name} is the last billing administrator; make another user one first"
        )


def _check_deletion(connection: Connection, user: UserRow, leave_teams: bool = False) -> None:
    other_administrators = [row for row in lock_administrators(connection) if row.id != user.id]
    if user.org_role == "admin" and user.state == "active" and not other_administrators:
        raise LastAdministrator(f"{user.name} is the last administrator; make another user one first")
    if user.billing_role == "admin" and not any(row.billing_role == "admin" for row in other_administrators):
        raise LastAdministrator(f"{user.name} is the last billing administrator; make another user one first")
    for team_id in [] if leave_teams else team_ids(connection, user.id):
        check_team_administrators(connection, team_id, user.id)


def _record_changes(
    connection: Connection, before: UserRow, changed: dict[str, str], by: Actor, now_ms: int
) -> None:
    for name, value in changed.items():
        action = _ACTIONS.get(name, "user.update")
        if name == "state":
            action = "user.suspend" if value == "suspended" else "user.reactivate"
        old, new = {name: getattr(before, name)}, {name: value}
        owner = (before.entity_id, before.name)
        record(connection, now_ms, by, action, entity=owner, target=before.name, before=old, after=new)


_ACTIONS = {"org_role": "org.member_role", "access": "org.member_access", "billing_role": "billing.role"}


def _end_sessions(connection: Connection, user_id: int, now_ms: int) -> None:
    living = update(tables.session).where(
        tables.session.c.user_id == user_id, tables.session.c.revoked_ms.is_(None)
    )
    connection.execute(living.values(revoked_ms=now_ms))


def _delete(
    connection: Connection, user_id: int, by: Actor, now_ms: int, anonymise: bool, leave_teams: bool = False
) -> None:
    lock_administrators(connection)
    user = _user(connection, user_account.c.id == user_id, lock=True)
    _check_deletion(connection, user, leave_teams)
    remove_user(connection, user_id, (user.entity_id, user.name), by, now_ms, anonymise=anonymise)
