"""Logins of users at providers, and sign-ins that are under way there."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.accounts.storage.entities import whose
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, add_rows, in_transaction
from runvitals.server.database.tables.accounts import password
from runvitals.server.database.tables.sign_in import passkey
from runvitals.server.database.tables.sign_on import login, login_offer, sign_in_attempt
from runvitals.store.errors import NameTaken, NoLongerValid, NotFound

ATTEMPT_MS = 10 * 60_000
OFFER_MS = 15 * 60_000
_ENDED = "this sign-in was used, has expired or was begun in another browser"


@dataclass(frozen=True, slots=True)
class ProviderIdentity:
    """An identity at a provider. `address`: one that the provider has verified; None without.

    Attributes:
        provider: its id in the settings.
        label: what to show, such as the name there.
    """

    provider: str
    issuer: str
    subject: str
    label: str
    address: str | None


@dataclass(frozen=True, slots=True)
class LoginRow:
    """A way to sign in of a user, other than the password."""

    id: int
    user_id: int
    provider: str
    issuer: str
    subject: str
    label: str
    address_seen: str | None
    created_ms: int
    last_used_ms: int | None


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """A sign-in under way. `user_id`: of the user who links a login; None for signing in."""

    id: int
    provider: str
    user_id: int | None
    sealed: bytes


_LOGINS = select(*[login.c[name] for name in LoginRow.__dataclass_fields__])


class LoginTable(StoredTable):
    """The tables of logins at providers."""

    def of_user(self, user_id: int) -> list[LoginRow]:
        """Return the logins of a user, the oldest first."""
        with self._database.read() as connection:
            rows = connection.execute(_LOGINS.where(login.c.user_id == user_id).order_by(login.c.id))
            return [LoginRow(**row._asdict()) for row in rows]

    @in_transaction
    def note_use(self, connection: Connection, identity: ProviderIdentity, now_ms: int) -> LoginRow | None:
        """Return the login of someone who just signed in at a provider; None if it is linked to nobody."""
        mine = (login.c.issuer == identity.issuer, login.c.subject == identity.subject)
        values = {"last_used_ms": now_ms, "label": identity.label, "address_seen": identity.address}
        if not connection.execute(update(login).where(*mine).values(values)).rowcount:
            return None
        return LoginRow(**connection.execute(_LOGINS.where(*mine)).one()._asdict())

    def link(self, user_id: int, identity: ProviderIdentity, by: Actor, now_ms: int) -> LoginRow:
        """Let a user sign in as a person at the provider; raise NameTaken if another user does."""
        return self._database.write(lambda connection: _link(connection, user_id, identity, by, now_ms))

    @in_transaction
    def unlink(self, connection: Connection, user_id: int, login_id: int, by: Actor, now_ms: int) -> None:
        """Remove a login of a user.

        Raises:
            NotFound: the user has no such login.
            ValueError: it is the last way in.
        """
        mine = (login.c.id == login_id, login.c.user_id == user_id)
        row = connection.execute(_LOGINS.where(*mine).with_for_update()).first()
        if row is None:
            raise NotFound("there is no such login")
        others = select(login.c.id).where(login.c.user_id == user_id, login.c.id != login_id)
        own = (select(table.c.user_id).where(table.c.user_id == user_id) for table in (password, passkey))
        if not any(connection.execute(ways).first() for ways in (others, *own)):
            raise ValueError("this is the last way to sign in; set a password or link another first")
        connection.execute(delete(login).where(*mine))
        about = {"provider": row.provider}
        record(connection, now_ms, by, "user.login_unlink", **whose(connection, user_id), before=about)

    def begin(
        self, provider: str, user_id: int | None, sealed: bytes, browser: str, state: str, now_ms: int
    ) -> None:
        """Remember a sign-in that begins. `browser`: the secret of its cookie; `state`: that of the URL."""
        values = {
            "digest": digest_of(state),
            "browser_digest": digest_of(browser),
            "provider": provider,
            "user_id": user_id,
            "sealed": sealed,
            "created_ms": now_ms,
            "expires_ms": now_ms + ATTEMPT_MS,
        }
        self._database.write(lambda connection: connection.execute(insert(sign_in_attempt).values(values)))

    @in_transaction
    def end(self, connection: Connection, state: str, browser: str, now_ms: int) -> AttemptRow:
        """Return the sign-in that ends, once.

        Raises:
            NoLongerValid: it has ended or expired, or another browser began it.
        """
        mine = (
            sign_in_attempt.c.digest == digest_of(state),
            sign_in_attempt.c.browser_digest == digest_of(browser),
            sign_in_attempt.c.expires_ms > now_ms,
        )
        columns = [sign_in_attempt.c[name] for name in AttemptRow.__dataclass_fields__]
        row = connection.execute(select(*columns).where(*mine)).first()
        if row is None:
            raise NoLongerValid(_ENDED)
        ended = delete(sign_in_attempt).where(sign_in_attempt.c.id == row.id)
        if not connection.execute(ended).rowcount:  # another request ended it at the same time
            raise NoLongerValid(_ENDED)
        return AttemptRow(**row._asdict())

    def offer(self, user_id: int, identity: ProviderIdentity, now_ms: int) -> str:
        """Return the secret with which this user may link the login after confirming the password."""
        secret, digest = new_secret()
        values = {
            "digest": digest,
            "user_id": user_id,
            "provider": identity.provider,
            "issuer": identity.issuer,
            "subject": identity.subject,
            "label": identity.label,
            "address_seen": identity.address,
            "expires_ms": now_ms + OFFER_MS,
        }
        self._database.write(lambda connection: connection.execute(insert(login_offer).values(values)))
        return secret

    def offered_user(self, secret: str, now_ms: int) -> int:
        """Return the id of the user whose password confirms an offer.

        Raises:
            NoLongerValid: the offer was used or has expired.
        """
        valid = (login_offer.c.digest == digest_of(secret), login_offer.c.expires_ms > now_ms)
        with self._database.read() as connection:
            user_id = connection.execute(select(login_offer.c.user_id).where(*valid)).scalar()
        if user_id is None:
            raise NoLongerValid(_ENDED)
        return int(user_id)

    @in_transaction
    def accept(self, connection: Connection, secret: str, by: Actor, now_ms: int) -> LoginRow:
        """Link the login of an offer: call it once the password was confirmed.

        Raises:
            NoLongerValid: the offer was used or has expired.
            NameTaken: that person is linked to another user.
        """
        valid = (login_offer.c.digest == digest_of(secret), login_offer.c.expires_ms > now_ms)
        row = connection.execute(select(login_offer).where(*valid)).first()
        if row is None or not connection.execute(delete(login_offer).where(*valid)).rowcount:
            raise NoLongerValid(_ENDED)
        identity = ProviderIdentity(row.provider, row.issuer, row.subject, row.label, row.address_seen)
        return _link(connection, row.user_id, identity, by, now_ms)

    @in_transaction
    def purge(self, connection: Connection, now_ms: int) -> int:
        """Remove sign-ins and offers that have expired; returns how many."""
        attempts = delete(sign_in_attempt).where(sign_in_attempt.c.expires_ms <= now_ms)
        offers = delete(login_offer).where(login_offer.c.expires_ms <= now_ms)
        return connection.execute(attempts).rowcount + connection.execute(offers).rowcount


def _link(
    connection: Connection, user_id: int, identity: ProviderIdentity, by: Actor, now_ms: int
) -> LoginRow:
    values = {
        "user_id": user_id,
        "provider": identity.provider,
        "issuer": identity.issuer,
        "subject": identity.subject,
        "label": identity.label,
        "address_seen": identity.address,
        "created_ms": now_ms,
    }
    mine = (login.c.issuer == identity.issuer, login.c.subject == identity.subject)
    is_new = connection.execute(_LOGINS.where(*mine)).first() is None
    add_rows(connection, login, [values])
    row = LoginRow(**connection.execute(_LOGINS.where(*mine)).one()._asdict())
    if row.user_id != user_id:
        raise NameTaken(f"this {identity.provider} login belongs to another user")
    if is_new:
        about = {"provider": identity.provider}
        record(connection, now_ms, by, "user.login_link", **whose(connection, user_id), after=about)
    return row
