"""Pictures of users, teams and the organisation.

Equal ones are stored once, and removed with the last who has them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Final, Literal

from sqlalchemy import Connection, delete, exists, select

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, add_rows, among, in_transaction, put_rows
from runvitals.server.database.tables.accounts import entity, organisation_setting, user_account
from runvitals.server.database.tables.content import entity_picture, picture

ORGANISATION_PICTURE: Final = "picture"
"""The setting with the digest of the organisation's picture."""


class PictureTable(StoredTable):
    """The tables of pictures. Users and teams are named by their entity ids."""

    def put(self, entity_id: int, large: bytes, small: bytes, by: Actor, now_ms: int) -> str:
        """Give a user or team a picture, as WebP of 512 and of 64 pixels; returns its digest."""
        digest = hashlib.sha256(large + small).hexdigest()

        def work(connection: Connection) -> None:
            before = _ids(connection, entity_id)
            picture_id = _add(connection, digest, large, small)
            put_rows(connection, entity_picture, [{"entity_id": entity_id, "picture_id": picture_id}])
            _collect(connection, before)
            _record(connection, entity_id, by, now_ms, digest)

        self._database.write(work)
        return digest

    @in_transaction
    def remove(self, connection: Connection, entity_id: int, by: Actor, now_ms: int) -> bool:
        """Remove the picture of a user or team; False if there was none."""
        removed = remove_picture(connection, entity_id)
        if removed:
            _record(connection, entity_id, by, now_ms, None)
        return removed

    def put_of_organisation(self, large: bytes, small: bytes, by: Actor, now_ms: int) -> str:
        """Give the organisation a picture, as WebP of 512 and of 64 pixels; returns its digest."""
        digest = hashlib.sha256(large + small).hexdigest()

        def work(connection: Connection) -> None:
            _add(connection, digest, large, small)
            _change_of_organisation(connection, digest, by, now_ms)

        self._database.write(work)
        return digest

    @in_transaction
    def remove_of_organisation(self, connection: Connection, by: Actor, now_ms: int) -> None:
        """Remove the picture of the organisation. It has no effect if there is none."""
        if _of_organisation(connection) is not None:
            _change_of_organisation(connection, None, by, now_ms)

    def of_organisation(self) -> str | None:
        """Return the digest of the organisation's picture; None if it has none."""
        with self._database.read() as connection:
            return _of_organisation(connection)

    def digests(self, entity_ids: Iterable[int]) -> dict[int, str]:
        """Return the digests of the pictures of those users and teams that have one."""
        with self._database.read() as connection:
            mine = among(connection, entity_picture.c.entity_id, entity_ids)
            statement = select(entity_picture.c.entity_id, picture.c.digest).join_from(
                entity_picture, picture
            )
            return {row.entity_id: row.digest for row in connection.execute(statement.where(mine))}

    def digests_of_users(self, user_ids: Iterable[int]) -> dict[int, str]:
        """Return the digests of the pictures of those users that have one, by their ids."""
        with self._database.read() as connection:
            statement = (
                select(user_account.c.id, picture.c.digest)
                .join(entity_picture, entity_picture.c.entity_id == user_account.c.entity_id)
                .join(picture, picture.c.id == entity_picture.c.picture_id)
            )
            rows = connection.execute(statement.where(among(connection, user_account.c.id, user_ids)))
            return {row.id: row.digest for row in rows}

    def body(self, digest: str, size: Literal[64, 512]) -> bytes | None:
        """Return a picture as WebP; None if there is none with this digest."""
        column = picture.c.large if size == 512 else picture.c.small
        with self._database.read() as connection:
            content: bytes | None = connection.execute(
                select(column).where(picture.c.digest == digest)
            ).scalar()
        return content


def remove_picture(connection: Connection, entity_id: int) -> bool:
    """Remove the picture of a user or team, in the transaction of what ends them; False if there was none."""
    before = _ids(connection, entity_id)
    connection.execute(delete(entity_picture).where(entity_picture.c.entity_id == entity_id))
    _collect(connection, before)
    return bool(before)


def _add(connection: Connection, digest: str, large: bytes, small: bytes) -> int:
    """Store a picture that nobody has yet, and lock it; returns its id."""
    add_rows(connection, picture, [{"digest": digest, "large": large, "small": small}])
    picked = select(picture.c.id).where(picture.c.digest == digest).with_for_update()
    return int(connection.execute(picked).scalar_one())


def _of_organisation(connection: Connection) -> str | None:
    mine = select(organisation_setting.c.value).where(organisation_setting.c.name == ORGANISATION_PICTURE)
    value = connection.execute(mine).scalar()
    digest: str | None = None if value is None else json.loads(value)
    return digest


def _change_of_organisation(connection: Connection, digest: str | None, by: Actor, now_ms: int) -> None:
    before = _of_organisation(connection)
    row = {"name": ORGANISATION_PICTURE, "value": json.dumps(digest), "set_ms": now_ms}
    put_rows(connection, organisation_setting, [row])
    _collect(
        connection, list(connection.execute(select(picture.c.id).where(picture.c.digest == before)).scalars())
    )
    old, new = {ORGANISATION_PICTURE: before}, {ORGANISATION_PICTURE: digest}
    record(connection, now_ms, by, "org.settings", before=old, after=new)


def _ids(connection: Connection, entity_id: int) -> list[int]:
    mine = select(entity_picture.c.picture_id).where(entity_picture.c.entity_id == entity_id)
    return list(connection.execute(mine).scalars())


def _collect(connection: Connection, picture_ids: list[int]) -> None:
    """Remove those of the pictures that nobody has any more."""
    # Locked, so that nobody takes a picture that is being removed.
    mine = picture.c.id.in_(picture_ids)
    connection.execute(select(picture.c.id).where(mine).order_by(picture.c.id).with_for_update()).all()
    used = exists().where(entity_picture.c.picture_id == picture.c.id)
    of_organisation = picture.c.digest == (_of_organisation(connection) or "")
    connection.execute(delete(picture).where(mine, ~used, ~of_organisation))


def _record(connection: Connection, entity_id: int, by: Actor, now_ms: int, digest: str | None) -> None:
    owner = connection.execute(select(entity.c.kind, entity.c.name).where(entity.c.id == entity_id)).one()
    action = "team.update" if owner.kind == "team" else "user.update"
    record(connection, now_ms, by, action, entity=(entity_id, owner.name), after={"picture": digest})
