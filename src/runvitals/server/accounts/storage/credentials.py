"""Credentials of users: password hashes, second factors and recovery codes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, or_, select, update

from runvitals.server.accounts.storage.entities import whose
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction, put_rows
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import password, recovery_code, second_factor, session
from runvitals.server.database.tables.sign_in import passkey_owner


@dataclass(frozen=True, slots=True)
class StoredPassword:
    """A password's argon2id hash. `must_change`: it was set by an administrator."""

    hash: str
    set_ms: int
    must_change: bool


@dataclass(frozen=True, slots=True)
class StoredSecondFactor:
    """A user's TOTP secret, encrypted. `confirmed_ms` null: not in use yet."""

    sealed_secret: bytes
    confirmed_ms: int | None
    last_step: int | None


class CredentialTable(StoredTable):
    """The tables of passwords, second factors and recovery codes."""

    def password(self, user_id: int) -> StoredPassword | None:
        """Return the hash of a user's password; None if none is set."""
        columns = (password.c.hash, password.c.set_ms, password.c.must_change)
        with self._database.read() as connection:
            row = connection.execute(select(*columns).where(password.c.user_id == user_id)).first()
        return None if row is None else StoredPassword(**row._asdict())

    @in_transaction
    def set_password(
        self,
        connection: Connection,
        user_id: int,
        hashed: str,
        by: Actor,
        now_ms: int,
        *,
        must_change: bool = False,
        keep_session: int | None = None,
    ) -> None:
        """Set the hash of a user's password, and end all sessions but the one to keep."""
        row = {"user_id": user_id, "hash": hashed, "set_ms": now_ms, "must_change": must_change}
        ended = [session.c.user_id == user_id, session.c.revoked_ms.is_(None)]
        if keep_session is not None:
            ended.append(session.c.id != keep_session)
        put_rows(connection, password, [row])
        connection.execute(update(session).where(*ended).values(revoked_ms=now_ms))
        record(connection, now_ms, by, "user.password_set", **whose(connection, user_id))
        rights_changed(connection)

    def rehash(self, user_id: int, old: str, new: str) -> None:
        """Replace the hash of the same password by one with today's parameters."""
        mine = update(password).where(password.c.user_id == user_id, password.c.hash == old)
        self._database.write(lambda connection: connection.execute(mine.values(hash=new)), durable=False)

    def second_factor(self, user_id: int) -> StoredSecondFactor | None:
        """Return a user's second factor; None if none is set up."""
        columns = [second_factor.c[name] for name in StoredSecondFactor.__dataclass_fields__]
        with self._database.read() as connection:
            row = connection.execute(select(*columns).where(second_factor.c.user_id == user_id)).first()
        return None if row is None else StoredSecondFactor(**row._asdict())

    def begin_second_factor(self, user_id: int, sealed_secret: bytes, now_ms: int) -> None:
        """Store a new secret, in use once it is confirmed by a code."""
        row = {
            "user_id": user_id,
            "sealed_secret": sealed_secret,
            "created_ms": now_ms,
            "confirmed_ms": None,
            "last_step": None,
        }
        self._database.write(lambda connection: put_rows(connection, second_factor, [row]))

    @in_transaction
    def confirm_second_factor(
        self,
        connection: Connection,
        user_id: int,
        step: int,
        recovery_digests: Collection[bytes],
        by: Actor,
        now_ms: int,
    ) -> None:
        """Use the second factor from now on, with these recovery codes in place of older ones."""
        rows = [{"user_id": user_id, "digest": digest} for digest in recovery_digests]
        mine = update(second_factor).where(second_factor.c.user_id == user_id)
        connection.execute(mine.values(confirmed_ms=now_ms, last_step=step))
        connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
        connection.execute(insert(recovery_code), rows)
        record(connection, now_ms, by, "user.second_factor_set", **whose(connection, user_id))

    @in_transaction
    def replace_recovery_codes(
        self, connection: Connection, user_id: int, digests: Collection[bytes], by: Actor, now_ms: int
    ) -> None:
        """New recovery codes in place of all older ones."""
        rows = [{"user_id": user_id, "digest": digest} for digest in digests]
        connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
        connection.execute(insert(recovery_code), rows)
        record(connection, now_ms, by, "user.recovery_codes_set", **whose(connection, user_id))

    def use_step(self, user_id: int, step: int) -> bool:
        """Use a time step; returns whether it is later than that of the last code used.

        Two requests with the same code do not both succeed.
        """
        later = update(second_factor).where(
            second_factor.c.user_id == user_id,
            or_(second_factor.c.last_step.is_(None), second_factor.c.last_step < step),
        )
        used = self._database.write(
            lambda connection: connection.execute(later.values(last_step=step)).rowcount
        )
        return used == 1

    @in_transaction
    def use_recovery_code(
        self, connection: Connection, user_id: int, digest: bytes, by: Actor, now_ms: int
    ) -> bool:
        """Use a recovery code up; False if there is no such code."""
        mine = (recovery_code.c.user_id == user_id, recovery_code.c.digest == digest)
        if not connection.execute(delete(recovery_code).where(*mine)).rowcount:
            return False
        record(connection, now_ms, by, "user.recovery_code_used", **whose(connection, user_id))
        return True

    def recovery_codes_left(self, user_id: int) -> int:
        """Return how many recovery codes a user has left."""
        with self._database.read() as connection:
            mine = select(recovery_code.c.digest).where(recovery_code.c.user_id == user_id)
            return len(connection.execute(mine).all())

    @in_transaction
    def remove_second_factor(self, connection: Connection, user_id: int, by: Actor, now_ms: int) -> None:
        """Remove a user's authenticator app; the recovery codes too, unless passkeys are a second factor."""
        passkeys = select(passkey_owner.c.user_id).where(
            passkey_owner.c.user_id == user_id, passkey_owner.c.after_password
        )
        if connection.execute(passkeys).first() is None:
            connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
        connection.execute(delete(second_factor).where(second_factor.c.user_id == user_id))
        record(connection, now_ms, by, "user.second_factor_remove", **whose(connection, user_id))
