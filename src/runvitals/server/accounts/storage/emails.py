"""E-mail addresses of users."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from runvitals.model.account_names import address_key
from runvitals.server.accounts.storage.entities import lock_user, whose
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import email, user_account
from runvitals.store.errors import LimitReached, NameTaken, NotFound

MAX_ADDRESSES = 10


@dataclass(frozen=True, slots=True)
class EmailRow:
    """An address of a user.

    `verified_ms` null: it is not verified. `failing_since_ms`: since when the mail server refuses it.
    """

    id: int
    user_id: int
    address: str
    address_key: str
    verified_ms: int | None
    is_primary: bool
    created_ms: int
    failing_since_ms: int | None


_EMAILS = select(*[email.c[name] for name in EmailRow.__dataclass_fields__])


class EmailTable(StoredTable):
    """The table of e-mail addresses. Many users may add an address; the first to verify it has it."""

    def of_user(self, user_id: int) -> list[EmailRow]:
        """Return the addresses of a user, the primary one first."""
        statement = _EMAILS.where(email.c.user_id == user_id).order_by(email.c.is_primary.desc(), email.c.id)
        with self._database.read() as connection:
            return [EmailRow(**row._asdict()) for row in connection.execute(statement)]

    def of_users(self, user_ids: Collection[int]) -> dict[int, list[EmailRow]]:
        """Return the addresses of users, by their ids, each with the primary one first."""
        by_user: dict[int, list[EmailRow]] = {}
        with self._database.read() as connection:
            mine = among(connection, email.c.user_id, user_ids)
            rows = connection.execute(_EMAILS.where(mine).order_by(email.c.is_primary.desc(), email.c.id))
            for row in rows:
                by_user.setdefault(row.user_id, []).append(EmailRow(**row._asdict()))
        return by_user

    def primary(self, user_id: int) -> EmailRow | None:
        """Return the primary address of a user, confirmed or not; None: there is none."""
        statement = _EMAILS.where(email.c.user_id == user_id, email.c.is_primary)
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        return None if row is None else EmailRow(**row._asdict())

    def get(self, email_id: int) -> EmailRow:
        """Return an address by its id, or raise NotFound."""
        with self._database.read() as connection:
            return _email(connection, email_id)

    @in_transaction
    def add(self, connection: Connection, user_id: int, address: str, by: Actor, now_ms: int) -> EmailRow:
        """Add an unverified address. Says nothing about whether another user has it.

        Raises:
            ValueError: not an address.
            LimitReached: the user has too many.
            NameTaken: the user has it already.
        """
        added = add_address(connection, user_id, address, now_ms, verified=False, primary=False)
        record(connection, now_ms, by, "user.email_add", **whose(connection, user_id))
        return added

    @in_transaction
    def verify(self, connection: Connection, email_id: int, by: Actor, now_ms: int) -> EmailRow:
        """Mark an address as verified; other users lose it, and an unverified user becomes active.

        Raises:
            NameTaken: another user has verified it before.
            NotFound: there is no such address.
        """
        row = _email(connection, email_id)
        if row.verified_ms is not None:
            return row
        _check_unverified_elsewhere(connection, row.address_key, row.user_id)
        of_other_users = (email.c.address_key == row.address_key, email.c.user_id != row.user_id)
        connection.execute(delete(email).where(*of_other_users, ~email.c.is_primary))
        connection.execute(update(email).where(email.c.id == email_id).values(verified_ms=now_ms))
        waiting = (user_account.c.id == row.user_id, user_account.c.state == "unverified")
        connection.execute(update(user_account).where(*waiting).values(state="active"))
        record(connection, now_ms, by, "user.email_verify", **whose(connection, row.user_id))
        rights_changed(connection)
        return _email(connection, email_id)

    @in_transaction
    def make_primary(self, connection: Connection, email_id: int, by: Actor, now_ms: int) -> None:
        """Make an address the primary one of its user.

        Raises:
            ValueError: the address is not verified.
        """
        row = _email(connection, email_id)
        if row.verified_ms is None:
            raise ValueError("only a verified address can be the primary one")
        connection.execute(update(email).where(email.c.user_id == row.user_id).values(is_primary=False))
        connection.execute(update(email).where(email.c.id == email_id).values(is_primary=True))
        record(connection, now_ms, by, "user.email_primary", **whose(connection, row.user_id))

    @in_transaction
    def delete(self, connection: Connection, email_id: int, by: Actor, now_ms: int) -> None:
        """Remove an address.

        Raises:
            ValueError: it is the primary address.
        """
        row = _email(connection, email_id)
        if row.is_primary:
            raise ValueError("the primary address cannot be deleted; make another address primary first")
        connection.execute(delete(email).where(email.c.id == email_id))
        record(connection, now_ms, by, "user.email_delete", **whose(connection, row.user_id))

    def purge_unverified(self, before_ms: int) -> int:
        """Remove addresses that were added before this time and never verified; returns how many."""
        old = delete(email).where(
            email.c.verified_ms.is_(None), ~email.c.is_primary, email.c.created_ms < before_ms
        )
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def add_address(
    connection: Connection, user_id: int, address: str, now_ms: int, *, verified: bool, primary: bool
) -> EmailRow:
    """Add an address in a transaction. Raises as `EmailTable.add`; NameTaken also for a verified one."""
    key = address_key(address)
    lock_user(connection, user_id)
    theirs = connection.execute(select(email.c.address_key).where(email.c.user_id == user_id)).scalars().all()
    if key in theirs:
        raise NameTaken("you have already added this address")
    if len(theirs) >= MAX_ADDRESSES:
        raise LimitReached(f"too many addresses; at most {MAX_ADDRESSES} are allowed")
    if verified:
        _check_unverified_elsewhere(connection, key, user_id)
    values = {
        "user_id": user_id,
        "address": address.strip(),
        "address_key": key,
        "verified_ms": now_ms if verified else None,
        "is_primary": primary,
        "created_ms": now_ms,
    }
    connection.execute(insert(email).values(values))
    mine = _EMAILS.where(email.c.user_id == user_id, email.c.address_key == key)
    return EmailRow(**connection.execute(mine).one()._asdict())


def _check_unverified_elsewhere(connection: Connection, key: str, user_id: int) -> None:
    verified = select(func.count()).where(
        email.c.address_key == key, email.c.user_id != user_id, email.c.verified_ms.is_not(None)
    )
    if connection.execute(verified).scalar_one():
        raise NameTaken("another user has verified this address")


def _email(connection: Connection, email_id: int) -> EmailRow:
    row = connection.execute(_EMAILS.where(email.c.id == email_id)).first()
    if row is None:
        raise NotFound("there is no such e-mail address")
    return EmailRow(**row._asdict())
