"""Access tokens of writers.

A token is 256 random bits. Only its SHA-256 is stored, so reading the database reveals no token. With
256 random bits, neither a salt nor a slow hash would make guessing harder.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from runvitals.server.database.database import StoredTable
from runvitals.server.database.tables.runs import token
from runvitals.server.database.text import checked_new_name

PREFIX = "rvt_"
"""The prefix of all tokens, by which secret scanners recognise them."""
_LAST_USED_RESOLUTION_MS = 60_000


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token without its secret. Times are ms UTC; `last_used_ms` has a resolution of a minute."""

    id: int
    name: str
    created_ms: int
    last_used_ms: int | None
    revoked_ms: int | None


_COLUMNS = [column for column in token.c if column.name != "digest"]


class TokenTable(StoredTable):
    """The table of tokens, including revoked ones.

    Example:
        >>> secret, token = metadata_store.tokens.create("cluster A", now_ms)
        >>> metadata_store.tokens.check(secret, now_ms).name
        'cluster A'
    """

    def create(self, name: str, now_ms: int) -> tuple[str, AccessToken]:
        """Create a token; returns its secret and its record. The secret cannot be retrieved again.

        Raises:
            ValueError: a name that is empty or longer than 256 characters.
        """
        secret = PREFIX + secrets.token_urlsafe(32)
        checked, digest = checked_new_name("token", name), _digest(secret)

        def work(connection: Connection) -> AccessToken:
            connection.execute(insert(token).values(name=checked, digest=digest, created_ms=now_ms))
            number = connection.execute(select(token.c.id).where(token.c.digest == digest)).scalar_one()
            return AccessToken(number, checked, now_ms, None, None)

        return secret, self._database.write(work)

    def check(self, secret: str, now_ms: int) -> AccessToken | None:
        """Return the token with this secret; None if there is none, or it was revoked."""
        statement = select(*_COLUMNS).where(token.c.digest == _digest(secret), token.c.revoked_ms.is_(None))
        with self._database.read() as connection:
            row = connection.execute(statement).first()
        if row is None:
            return None
        access_token = AccessToken(**row._asdict())
        if (
            access_token.last_used_ms is None
            or now_ms - access_token.last_used_ms >= _LAST_USED_RESOLUTION_MS
        ):
            used = update(token).where(token.c.id == access_token.id).values(last_used_ms=now_ms)
            self._database.write(lambda connection: connection.execute(used), durable=False)
        return access_token

    def all(self) -> list[AccessToken]:
        """Return all tokens, in the order of their creation."""
        with self._database.read() as connection:
            rows = connection.execute(select(*_COLUMNS).order_by(token.c.id))
            return [AccessToken(**row._asdict()) for row in rows]

    def revoke(self, token_id: int, now_ms: int) -> None:
        """Revoke a token. Revoking it twice has no effect.

        Raises:
            LookupError: there is no token with this id.
        """

        def work(connection: Connection) -> bool:
            statement = update(token).where(token.c.id == token_id)
            connection.execute(statement.where(token.c.revoked_ms.is_(None)).values(revoked_ms=now_ms))
            return connection.execute(select(token.c.id).where(token.c.id == token_id)).first() is not None

        if not self._database.write(work):
            raise LookupError(f"there is no token with id {token_id}")


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
