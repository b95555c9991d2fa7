"""Sessions of users who signed in at the page."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, or_, select, update

from runvitals.model.durations import DAY_MS
from runvitals.server.accounts.storage.entities import whose
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import password, session
from runvitals.store.errors import NotFound

_SEEN_MS = 60_000
_MAX_AGENT = 200


@dataclass(frozen=True, slots=True)
class SessionLife:
    """How long sessions last, in ms: unused, in all, and after the password was confirmed."""

    idle_ms: int = 7 * DAY_MS
    total_ms: int = 30 * DAY_MS
    sudo_ms: int = 15 * 60_000


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session without its secret.

    Attributes:
        sudo_until_ms: until when the password counts as confirmed.
        must_change_password: it began with a password that an administrator has set, and that the user has to
            replace before anything else.
    """

    id: int
    user_id: int
    created_ms: int
    seen_ms: int
    idle_until_ms: int
    expires_ms: int
    sudo_until_ms: int | None
    method: str
    ip: str
    agent: str
    must_change_password: bool


BY_PASSWORD = "password"
"""The method of sessions that began with a password."""
_must_change = and_(
    session.c.method == BY_PASSWORD,
    exists().where(password.c.user_id == session.c.user_id, password.c.must_change),
)
_SESSIONS = select(
    *[
        _must_change.label(name) if name == "must_change_password" else session.c[name]
        for name in SessionRow.__dataclass_fields__
    ]
)


class SessionTable(StoredTable):
    """The table of sessions."""

    def create(
        self,
        user_id: int,
        now_ms: int,
        life: SessionLife,
        *,
        method: str,
        ip: str = "",
        agent: str = "",
        by: Actor | None = None,
    ) -> str:
        """Start a session; returns its secret, for the cookie: always a new one.

        Args:
            by: who signed in, for the audit log.
        """
        secret, digest = new_secret()
        values = {
            "user_id": user_id,
            "digest": digest,
            "created_ms": now_ms,
            "seen_ms": now_ms,
            "idle_until_ms": now_ms + life.idle_ms,
            "expires_ms": now_ms + life.total_ms,
            "sudo_until_ms": now_ms + life.sudo_ms,
            "method": method,
            "ip": ip,
            "agent": agent[:_MAX_AGENT],
        }

        def work(connection: Connection) -> None:
            connection.execute(insert(session).values(values))
            if by is not None:
                record(connection, now_ms, by, "user.login", target=by.name, after={"method": method})

        self._database.write(work)
        return secret

    def check(self, secret: str, now_ms: int, life: SessionLife) -> SessionRow | None:
        """Return the living session with this secret; None if there is none. Notes that it was used."""
        with self._database.read() as connection:
            statement = _SESSIONS.where(session.c.digest == digest_of(secret), *_living(now_ms))
            row = connection.execute(statement).first()
        if row is None:
            return None
        checked = SessionRow(**row._asdict())
        if now_ms - checked.seen_ms >= _SEEN_MS:
            seen = update(session).where(session.c.id == checked.id)
            values = {"seen_ms": now_ms, "idle_until_ms": now_ms + life.idle_ms}
            self._database.write(lambda connection: connection.execute(seen.values(values)), durable=False)
        return checked

    def renew(self, session_id: int, now_ms: int, life: SessionLife) -> str:
        """Give a session a new secret and confirm the password, after a change of rights or of the password.

        Raises:
            NotFound: the session has ended.
        """
        secret, digest = new_secret()
        living = update(session).where(session.c.id == session_id, *_living(now_ms))
        values = {"digest": digest, "sudo_until_ms": now_ms + life.sudo_ms}

        def work(connection: Connection) -> None:
            if not connection.execute(living.values(values)).rowcount:
                raise NotFound("there is no such session")
            rights_changed(connection)

        self._database.write(work)
        return secret

    def of_user(self, user_id: int, now_ms: int) -> list[SessionRow]:
        """Return a user's living sessions, the newest first."""
        statement = _SESSIONS.where(session.c.user_id == user_id, *_living(now_ms))
        with self._database.read() as connection:
            rows = connection.execute(statement.order_by(session.c.id.desc()))
            return [SessionRow(**row._asdict()) for row in rows]

    @in_transaction
    def end(
        self,
        connection: Connection,
        user_id: int,
        by: Actor,
        now_ms: int,
        *,
        only: int | None = None,
        keep: int | None = None,
        action: str = "user.session_revoke",
    ) -> int:
        """End the sessions of a user: all, `only` one, or all but the one to `keep`; returns how many."""
        conditions = [session.c.user_id == user_id, *_living(now_ms)]
        if only is not None:
            conditions.append(session.c.id == only)
        if keep is not None:
            conditions.append(session.c.id != keep)
        ended = connection.execute(update(session).where(*conditions).values(revoked_ms=now_ms)).rowcount
        if ended:
            record(connection, now_ms, by, action, **whose(connection, user_id), after={"ended": ended})
            rights_changed(connection)
        return ended

    def purge(self, before_ms: int) -> int:
        """Remove sessions that ended before this time; returns how many."""
        ended = or_(session.c.revoked_ms < before_ms, session.c.expires_ms < before_ms)
        return self._database.write(
            lambda connection: connection.execute(delete(session).where(ended)).rowcount
        )


def _living(now_ms: int) -> tuple[ColumnElement[bool], ...]:
    return (
        session.c.revoked_ms.is_(None),
        session.c.idle_until_ms > now_ms,
        session.c.expires_ms > now_ms,
        session.c.created_ms
        < now_ms + DAY_MS,  # not by a clock that was years ahead, so that it lasted for years
    )
