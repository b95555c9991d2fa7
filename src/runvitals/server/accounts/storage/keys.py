"""API keys of users and service accounts."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, insert, or_, select, update

from runvitals.model.durations import DAY_MS, HOUR_MS
from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.accounts.storage.random_secrets import digest_of, new_key, public_id
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import api_key, api_key_entity, service_account, user_account
from runvitals.server.database.text import checked_new_name
from runvitals.store.errors import NotFound

MAX_NAME = 64
MAX_KEYS = 50
"""Of one user."""
MAX_SERVICE_KEYS = 20
"""Of one service account."""
SCOPES = ("ingest", "read", "write", "full")
MAX_OVERLAP_MS = 7 * DAY_MS
_NOTED_MS = 60_000


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key without its secret. Exactly one of `user_id` and `service_account_id` is set.

    `last_used_ms` has a resolution of a minute. `entities`: ids of those it works in; empty: all.
    """

    id: int
    public_id: str
    name: str
    user_id: int | None
    service_account_id: int | None
    scope: str
    created_ms: int
    expires_ms: int | None
    last_used_ms: int | None
    revoked_ms: int | None
    entities: frozenset[int] = frozenset()


_KEYS = select(*[api_key.c[name] for name in KeyRow.__dataclass_fields__ if name != "entities"])


class KeyTable(StoredTable):
    """The table of API keys, including revoked ones.

    Example:
        >>> secret, key = metadata_store.accounts.keys.create("laptop", CLI, now_ms, user_id=1)
        >>> metadata_store.accounts.keys.check(secret, now_ms).user_id
        1
    """

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        by: Actor,
        now_ms: int,
        *,
        user_id: int | None = None,
        service_account_id: int | None = None,
        scope: str = "write",
        entities: Collection[int] = (),
        expires_ms: int | None = None,
    ) -> tuple[str, KeyRow]:
        """Create a key; returns its secret and its record. The secret cannot be retrieved again.

        Raises:
            ValueError: an invalid name, scope or time of expiry.
            LimitReached: the owner has too many keys.
        """
        name = checked_new_name("key", name.strip(), MAX_NAME)
        if scope not in SCOPES:
            raise ValueError(f"invalid scope {scope!r}; expected one of {', '.join(SCOPES)}")
        if expires_ms is not None and expires_ms <= now_ms:
            raise ValueError("the key would have expired already")
        limits = frozenset(entities)
        values: dict[str, object] = {
            "name": name,
            "user_id": user_id,
            "service_account_id": service_account_id,
            "scope": scope,
            "created_ms": now_ms,
            "expires_ms": expires_ms,
        }
        _check_count(connection, values, now_ms)
        created = _insert(connection, values, limits)
        about = {"key": created[1].public_id, "scope": scope}
        owner = _owner(connection, created[1])
        record(connection, now_ms, by, "key.create", entity=owner, target=name, after=about)
        return created

    def check(self, secret: str, now_ms: int) -> KeyRow | None:
        """Return the valid key with this secret; None if there is none, or it was revoked or has expired."""
        public_part = public_id(secret)
        if public_part is None:
            return None
        statement = select(api_key.c.id, api_key.c.digest).where(
            api_key.c.public_id == public_part, *_valid(now_ms)
        )
        with self._database.read() as connection:
            row = connection.execute(statement).first()
            if row is None or not hmac.compare_digest(row.digest, digest_of(secret)):
                return None
            key = _key(connection, row.id)
        if key.last_used_ms is None or now_ms - key.last_used_ms >= _NOTED_MS:
            used = update(api_key).where(api_key.c.id == key.id).values(last_used_ms=now_ms)
            self._database.write(lambda connection: connection.execute(used), durable=False)
        return key

    def all(
        self, *, user_id: int | None = None, service_account_id: int | None = None, revoked: bool = False
    ) -> list[KeyRow]:
        """Keys in the order of their creation, of one owner or of all; revoked ones where wanted."""
        conditions: list[ColumnElement[bool]] = [] if revoked else [api_key.c.revoked_ms.is_(None)]
        if user_id is not None:
            conditions.append(api_key.c.user_id == user_id)
        if service_account_id is not None:
            conditions.append(api_key.c.service_account_id == service_account_id)
        limits: dict[int, set[int]] = {}
        with self._database.read() as connection:
            rows = connection.execute(_KEYS.where(*conditions).order_by(api_key.c.id)).all()
            limited = select(api_key_entity).join(api_key, api_key.c.id == api_key_entity.c.key_id)
            for limit in connection.execute(limited.where(*conditions)):
                limits.setdefault(limit.key_id, set()).add(limit.entity_id)
        return [KeyRow(**row._asdict(), entities=frozenset(limits.get(row.id, ()))) for row in rows]

    def get(self, key_id: int) -> KeyRow:
        """Return a key by its id, or raise NotFound."""
        with self._database.read() as connection:
            return _key(connection, key_id)

    def valid(self, key_id: int, now_ms: int) -> KeyRow | None:
        """Return a key by its id; None if there is none, or it was revoked or has expired."""
        statement = select(api_key.c.id).where(api_key.c.id == key_id, *_valid(now_ms))
        with self._database.read() as connection:
            valid_id = connection.execute(statement).scalar()
            return None if valid_id is None else _key(connection, valid_id)

    def by_public_id(self, public_part: str) -> KeyRow:
        """Return a key by its public part.

        Raises:
            NotFound: there is no such key.
        """
        with self._database.read() as connection:
            number = connection.execute(
                select(api_key.c.id).where(api_key.c.public_id == plain_text(public_part))
            ).scalar()
            if number is None:
                raise NotFound(f"there is no key {public_part!r}")
            return _key(connection, number)

    @in_transaction
    def rotate(
        self, connection: Connection, key_id: int, by: Actor, now_ms: int, overlap_ms: int = DAY_MS
    ) -> tuple[str, KeyRow]:
        """Replace a key by one with the same rights; the old one ends after the overlap, at most a week.

        Raises:
            ValueError: an invalid overlap.
            LimitReached: the owner has twice as many keys as may be created, because of their overlaps.
            NotFound: there is no such valid key.
        """
        if not 0 <= overlap_ms <= MAX_OVERLAP_MS:
            raise ValueError(f"invalid overlap; expected 0 to {MAX_OVERLAP_MS // HOUR_MS} hours")
        valid = select(api_key.c.id).where(api_key.c.id == key_id, *_valid(now_ms)).with_for_update()
        if connection.execute(valid).first() is None:
            raise NotFound("there is no such valid key")
        old = _key(connection, key_id)
        values: dict[str, object] = {
            "name": old.name,
            "user_id": old.user_id,
            "service_account_id": old.service_account_id,
            "scope": old.scope,
            "created_ms": now_ms,
            "expires_ms": old.expires_ms,
            "rotated_from_id": old.id,
        }
        if overlap_ms > 0:  # a stolen key must not make keys without end
            _check_count(connection, values, now_ms, factor=2)
        created = _insert(connection, values, old.entities)
        end = now_ms + overlap_ms if old.expires_ms is None else min(old.expires_ms, now_ms + overlap_ms)
        connection.execute(update(api_key).where(api_key.c.id == old.id).values(expires_ms=end))
        keys = {"old": old.public_id, "new": created[1].public_id}
        owner = _owner(connection, old)
        record(connection, now_ms, by, "key.rotate", entity=owner, target=old.name, after=keys)
        rights_changed(connection)
        return created

    @in_transaction
    def rename(self, connection: Connection, key_id: int, name: str, by: Actor, now_ms: int) -> KeyRow:
        """Give a key another name.

        Raises:
            ValueError: an invalid name.
            NotFound: there is no such key.
        """
        name = checked_new_name("key", name.strip(), MAX_NAME)
        before = _key(connection, key_id)
        if before.name != name:
            connection.execute(update(api_key).where(api_key.c.id == key_id).values(name=name))
            old, new = {"name": before.name}, {"name": name}
            record(connection, now_ms, by, "key.rename", target=before.public_id, before=old, after=new)
        return _key(connection, key_id)

    @in_transaction
    def revoke(self, connection: Connection, key_id: int, by: Actor, now_ms: int) -> None:
        """Revoke a key. Revoking it twice has no effect.

        Raises:
            NotFound: there is no such key.
        """
        key = _key(connection, key_id)
        if key.revoked_ms is None:
            mine = update(api_key).where(api_key.c.id == key_id)
            connection.execute(mine.values(revoked_ms=now_ms))
            about, owner = {"key": key.public_id}, _owner(connection, key)
            record(connection, now_ms, by, "key.revoke", entity=owner, target=key.name, after=about)
            rights_changed(connection)


def _valid(now_ms: int) -> tuple[Any, ...]:
    return (
        api_key.c.revoked_ms.is_(None),
        or_(api_key.c.expires_ms.is_(None), api_key.c.expires_ms > now_ms),
    )


def _check_count(connection: Connection, owner: dict[str, Any], now_ms: int, factor: int = 1) -> None:
    field = "user_id" if owner["user_id"] is not None else "service_account_id"
    owner_id = owner[field]
    most = factor * (MAX_KEYS if field == "user_id" else MAX_SERVICE_KEYS)
    refusal = f"too many keys; at most {most} are allowed: revoke one first"
    theirs = (api_key.c[field] == owner_id, *_valid(now_ms))
    check_room(connection, api_key, most, refusal, *theirs, owner_id=owner_id)


def _insert(
    connection: Connection, values: dict[str, object], entities: frozenset[int]
) -> tuple[str, KeyRow]:
    secret, public_part = new_key()
    connection.execute(insert(api_key).values(**values, public_id=public_part, digest=digest_of(secret)))
    number = connection.execute(select(api_key.c.id).where(api_key.c.public_id == public_part)).scalar_one()
    if entities:
        rows = [{"key_id": number, "entity_id": entity_id} for entity_id in sorted(entities)]
        connection.execute(insert(api_key_entity), rows)
    return secret, _key(connection, number)


def _owner(connection: Connection, key: KeyRow) -> tuple[int, str] | None:
    """Return the user, or the team of the service account, for the audit log; None: of the organisation."""
    if key.user_id is not None:
        mine = select(user_account.c.entity_id).where(user_account.c.id == key.user_id)
    else:
        mine = select(service_account.c.team_id).where(service_account.c.id == key.service_account_id)
    entity_id = connection.execute(mine).scalar()
    return None if entity_id is None else name_of(connection, entity_id)


def _key(connection: Connection, key_id: int) -> KeyRow:
    row = connection.execute(_KEYS.where(api_key.c.id == key_id)).first()
    if row is None:
        raise NotFound(f"there is no key with id {key_id}")
    limits = select(api_key_entity.c.entity_id).where(api_key_entity.c.key_id == key_id)
    return KeyRow(**row._asdict(), entities=frozenset(connection.execute(limits).scalars()))
