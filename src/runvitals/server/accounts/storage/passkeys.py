"""Passkeys: what users sign in with instead of a password, or after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.server.accounts.storage.entities import whose
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.tables.accounts import password, recovery_code, second_factor
from runvitals.server.database.tables.sign_in import passkey, passkey_owner, used_challenge
from runvitals.server.database.tables.sign_on import login
from runvitals.server.database.text import checked_new_name
from runvitals.store.errors import NameTaken, NoLongerValid, NotFound

MAX_PASSKEYS = 20
MAX_NAME = 64


@dataclass(frozen=True, slots=True)
class PasskeyRow:
    """A passkey of a user. `backed_up`: the user's devices share it."""

    id: int
    user_id: int
    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: str
    backed_up: bool
    name: str
    created_ms: int
    last_used_ms: int | None


@dataclass(frozen=True, slots=True)
class MadePasskey:
    """A passkey that a browser has made and that is not stored yet."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    transports: tuple[str, ...]
    backed_up: bool


@dataclass(frozen=True, slots=True)
class PasskeyUse:
    """The use of a passkey for a challenge: the challenge's digest and end, and the passkey's counter."""

    challenge_digest: bytes
    challenge_expires_ms: int
    sign_count: int


class CounterWentBack(ValueError):
    """The counter of a passkey did not go up: there may be a copy of it."""


_PASSKEYS = select(*[passkey.c[name] for name in PasskeyRow.__dataclass_fields__])


class PasskeyTable(StoredTable):
    """The tables of passkeys."""

    def of_user(self, user_id: int) -> list[PasskeyRow]:
        """Return the passkeys of a user, the oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(_PASSKEYS.where(passkey.c.user_id == user_id).order_by(passkey.c.id))
            return [PasskeyRow(**row._asdict()) for row in rows]

    def by_credential(self, credential_id: bytes) -> PasskeyRow | None:
        """Return the passkey that calls itself by this id; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(_PASSKEYS.where(passkey.c.credential_id == credential_id)).first()
        return None if row is None else PasskeyRow(**row._asdict())

    def handle(self, user_id: int, new: bytes | None = None) -> bytes | None:
        """Return what authenticators know a user by; None if the user never had a passkey.

        Args:
            new: the handle of a user who has none yet.
        """
        mine = select(passkey_owner.c.handle).where(passkey_owner.c.user_id == user_id)

        def work(connection: Connection) -> bytes | None:
            if new is not None:
                row = {"user_id": user_id, "handle": new, "after_password": False}
                add_rows(connection, passkey_owner, [row])
            handle_bytes = connection.execute(mine).scalar()
            return None if handle_bytes is None else bytes(handle_bytes)

        if new is None:
            with self._database.read() as connection:
                return work(connection)
        return self._database.write(work)

    @in_transaction
    def add(
        self,
        connection: Connection,
        user_id: int,
        new: MadePasskey,
        name: str,
        use: PasskeyUse,
        by: Actor,
        now_ms: int,
    ) -> PasskeyRow:
        """Add a passkey to a user who has a handle.

        Raises:
            ValueError: an invalid name.
            NameTaken: it is registered already.
            LimitReached: the user has as many as are allowed.
            NoLongerValid: the challenge was answered before.
        """
        name = checked_new_name("passkey", name.strip(), MAX_NAME)
        values = {
            "user_id": user_id,
            "credential_id": new.credential_id,
            "public_key": new.public_key,
            "sign_count": new.sign_count,
            "transports": ",".join(new.transports),
            "backed_up": new.backed_up,
            "name": name,
            "created_ms": now_ms,
        }
        mine = passkey.c.credential_id == new.credential_id
        _use_challenge(connection, use)
        _lock(connection, user_id)
        refusal = f"you have {MAX_PASSKEYS} passkeys, which is the most that are allowed"
        theirs = passkey.c.user_id == user_id
        check_room(connection, passkey, MAX_PASSKEYS, refusal, theirs, owner_id=user_id)
        try:
            connection.execute(insert(passkey).values(values))
        except IntegrityError:
            raise NameTaken("this passkey is registered already") from None
        record(connection, now_ms, by, "user.passkey_add", **whose(connection, user_id), after={"name": name})
        return PasskeyRow(**connection.execute(_PASSKEYS.where(mine)).one()._asdict())

    @in_transaction
    def use(self, connection: Connection, passkey_id: int, use: PasskeyUse, now_ms: int) -> None:
        """Note that a passkey was used for a challenge. Of two equal responses, one counts.

        Raises:
            NoLongerValid: the challenge was used before, or the passkey was removed.
            CounterWentBack: see there.
        """
        count = passkey.c.sign_count
        counted = count < use.sign_count if use.sign_count else count == 0
        mine = update(passkey).where(passkey.c.id == passkey_id)
        values = {"sign_count": use.sign_count, "last_used_ms": now_ms}
        _use_challenge(connection, use)
        if connection.execute(mine.where(counted).values(values)).rowcount:
            return
        if connection.execute(select(passkey.c.id).where(passkey.c.id == passkey_id)).first() is None:
            raise NoLongerValid("this passkey was removed")
        raise CounterWentBack("the counter of this passkey went back: there may be a copy of it")

    @in_transaction
    def rename(
        self, connection: Connection, user_id: int, passkey_id: int, name: str, by: Actor, now_ms: int
    ) -> PasskeyRow:
        """Rename a passkey.

        Raises:
            ValueError: an invalid name.
            NotFound: the user has no such passkey.
        """
        name = checked_new_name("passkey", name.strip(), MAX_NAME)
        mine = (passkey.c.id == passkey_id, passkey.c.user_id == user_id)
        before = _own_passkey(connection, user_id, passkey_id)
        connection.execute(update(passkey).where(*mine).values(name=name))
        record(
            connection,
            now_ms,
            by,
            "user.passkey_rename",
            **whose(connection, user_id),
            before={"name": before.name},
            after={"name": name},
        )
        return _own_passkey(connection, user_id, passkey_id)

    @in_transaction
    def remove(
        self, connection: Connection, user_id: int, passkey_id: int, by: Actor, now_ms: int
    ) -> PasskeyRow:
        """Remove a passkey; returns it. With the last one, none is asked for after the password any more.

        Raises:
            NotFound: the user has no such passkey.
            ValueError: it is the last way to sign in.
        """
        _lock(connection, user_id)
        row = _own_passkey(connection, user_id, passkey_id)
        other_passkeys = select(passkey.c.id).where(passkey.c.user_id == user_id, passkey.c.id != passkey_id)
        is_last = connection.execute(other_passkeys).first() is None
        ways = (select(table.c.user_id).where(table.c.user_id == user_id) for table in (password, login))
        if is_last and not any(connection.execute(way).first() for way in ways):
            raise ValueError("this is the last way to sign in; set a password or link a login first")
        connection.execute(delete(passkey).where(passkey.c.id == passkey_id))
        if is_last:
            _set_after_password(connection, user_id, False)
        record(
            connection,
            now_ms,
            by,
            "user.passkey_remove",
            **whose(connection, user_id),
            before={"name": row.name},
        )
        return row

    def asked_after_password(self, user_id: int) -> bool:
        """Return whether a passkey is asked for after the password."""
        mine = select(passkey_owner.c.after_password).where(passkey_owner.c.user_id == user_id)
        with self._database.read() as connection:
            return bool(connection.execute(mine).scalar())

    @in_transaction
    def ask_after_password(
        self,
        connection: Connection,
        user_id: int,
        enabled: bool,
        recovery_digests: Sequence[bytes],
        by: Actor,
        now_ms: int,
    ) -> None:
        """Ask for a passkey after the password from now on, or no more.

        Args:
            recovery_digests: of new recovery codes; empty: the present ones stay.

        Raises:
            ValueError: the user has no passkey.
        """
        codes = [{"user_id": user_id, "digest": digest} for digest in recovery_digests]
        _lock(connection, user_id)
        mine = select(passkey.c.id).where(passkey.c.user_id == user_id)
        if enabled and connection.execute(mine).first() is None:
            raise ValueError("there is no passkey; add one first")
        _set_after_password(connection, user_id, enabled)
        if codes:
            connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
            connection.execute(insert(recovery_code), codes)
        action = "user.passkey_ask" if enabled else "user.passkey_ask_no_more"
        record(connection, now_ms, by, action, **whose(connection, user_id))

    def purge(self, now_ms: int) -> int:
        """Remove challenges that have expired; returns how many."""
        past = delete(used_challenge).where(used_challenge.c.expires_ms <= now_ms)
        return self._database.write(lambda connection: connection.execute(past).rowcount)


def _use_challenge(connection: Connection, use: PasskeyUse) -> None:
    """Use up the challenge of a passkey: two sign-ins at the same time do not both succeed.

    Raises:
        NoLongerValid: the challenge was answered before.
    """
    row = {"digest": use.challenge_digest, "expires_ms": use.challenge_expires_ms}
    try:
        connection.execute(insert(used_challenge).values(row))
    except IntegrityError:
        raise NoLongerValid("this answer was used already") from None


def _lock(connection: Connection, user_id: int) -> None:
    """Let changes of the passkeys of one user come one after the other."""
    mine = select(passkey_owner.c.user_id).where(passkey_owner.c.user_id == user_id)
    connection.execute(mine.with_for_update()).first()


def _own_passkey(connection: Connection, user_id: int, passkey_id: int) -> PasskeyRow:
    mine = _PASSKEYS.where(passkey.c.id == passkey_id, passkey.c.user_id == user_id)
    row = connection.execute(mine).first()
    if row is None:
        raise NotFound("there is no such passkey")
    return PasskeyRow(**row._asdict())


def _set_after_password(connection: Connection, user_id: int, enabled: bool) -> None:
    """Without it and without an authenticator app, recovery codes would stand for nothing: they go."""
    mine = update(passkey_owner).where(passkey_owner.c.user_id == user_id)
    connection.execute(mine.values(after_password=enabled))
    app = select(second_factor.c.user_id).where(
        second_factor.c.user_id == user_id, second_factor.c.confirmed_ms.is_not(None)
    )
    if not enabled and connection.execute(app).first() is None:
        connection.execute(delete(recovery_code).where(recovery_code.c.user_id == user_id))
