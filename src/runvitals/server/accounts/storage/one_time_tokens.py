"""Links that work once: to verify an address, reset a password, or create the first administrator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.accounts import one_time_token
from runvitals.store.errors import NoLongerValid

Purpose = Literal["verify_email", "reset_password", "setup"]
LIFE_MS: dict[Purpose, int] = {
    "verify_email": 48 * HOUR_MS,
    "reset_password": HOUR_MS,
    "setup": 24 * HOUR_MS,
}


@dataclass(frozen=True, slots=True)
class OneTimeToken:
    """A one-time link without its secret."""

    id: int
    purpose: str
    user_id: int | None
    email_id: int | None


_ENDED = "this link was used, or has expired"
_TOKENS = select(*[one_time_token.c[name] for name in OneTimeToken.__dataclass_fields__])


class OneTimeTokenTable(StoredTable):
    """The table of one-time links. Only digests are stored."""

    def create(
        self, purpose: Purpose, now_ms: int, *, user_id: int | None = None, email_id: int | None = None
    ) -> str:
        """Return the secret of a new link. Older links of the same purpose and user stop working."""
        secret, digest = new_secret()
        mine = one_time_token.c.user_id.is_(None) if user_id is None else one_time_token.c.user_id == user_id
        older = [one_time_token.c.purpose == purpose, mine]
        if email_id is not None:
            older.append(one_time_token.c.email_id == email_id)
        values = {
            "purpose": purpose,
            "digest": digest,
            "user_id": user_id,
            "email_id": email_id,
            "created_ms": now_ms,
            "expires_ms": now_ms + LIFE_MS[purpose],
        }

        def work(connection: Connection) -> None:
            connection.execute(delete(one_time_token).where(*older))
            connection.execute(insert(one_time_token).values(values))

        self._database.write(work)
        return secret

    def peek(self, secret: str, purpose: Purpose, now_ms: int) -> OneTimeToken:
        """Return what a link is for, without using it: the request may have other faults.

        Raises:
            NoLongerValid: it was used, has expired or never existed.
        """
        with self._database.read() as connection:
            row = connection.execute(_TOKENS.where(*_valid(secret, purpose, now_ms))).first()
        if row is None:
            raise NoLongerValid(_ENDED)
        return OneTimeToken(**row._asdict())

    @in_transaction
    def use(self, connection: Connection, secret: str, purpose: Purpose, now_ms: int) -> OneTimeToken:
        """Use a link. Two requests at the same time do not both succeed.

        Raises:
            NoLongerValid: it was used, has expired or never existed.
        """
        used = update(one_time_token).where(*_valid(secret, purpose, now_ms)).values(used_ms=now_ms)
        if not connection.execute(used).rowcount:
            raise NoLongerValid(_ENDED)
        row = connection.execute(_TOKENS.where(one_time_token.c.digest == digest_of(secret))).one()
        return OneTimeToken(**row._asdict())

    def purge(self, before_ms: int) -> int:
        """Remove links that expired before this time; returns how many."""
        old = delete(one_time_token).where(one_time_token.c.expires_ms < before_ms)
        return self._database.write(lambda connection: connection.execute(old).rowcount)


def _valid(secret: str, purpose: Purpose, now_ms: int) -> tuple[ColumnElement[bool], ...]:
    return (
        one_time_token.c.digest == digest_of(secret),
        one_time_token.c.purpose == purpose,
        one_time_token.c.used_ms.is_(None),
        one_time_token.c.expires_ms > now_ms,
        one_time_token.c.created_ms
        < now_ms + DAY_MS,  # not by a clock that was years ahead, so that it lasted for years
    )
