"""Names of users and teams: one namespace, never renamed, never given twice."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from runvitals.model.account_names import ORGANISATION, entity_name
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import add_rows
from runvitals.server.database.tables.accounts import entity, user_account
from runvitals.store.errors import NameTaken, NotFound


def claim_name(connection: Connection, kind: str, text: str, now_ms: int) -> tuple[int, str]:
    """Create the entity with this name; returns its id and name.

    Raises:
        ValueError: an invalid or reserved name.
        NameTaken: it is in use, or was.
    """
    name = entity_name(text)
    if connection.execute(select(entity.c.id).where(entity.c.name == name)).first() is not None:
        raise NameTaken(f"the name {name!r} is taken")
    try:
        with connection.begin_nested():
            connection.execute(insert(entity).values(kind=kind, name=name, created_ms=now_ms))
    except IntegrityError:  # another server has claimed it meanwhile
        raise NameTaken(f"the name {name!r} is taken") from None
    number = connection.execute(select(entity.c.id).where(entity.c.name == name)).scalar_one()
    return int(number), name


def ensure_organisation(connection: Connection, now_ms: int) -> int:
    """Return the id of the organisation as an owner of registries, which it becomes with the first one."""
    row = {"kind": ORGANISATION, "name": ORGANISATION, "created_ms": now_ms}
    add_rows(connection, entity, [row])
    return int(connection.execute(select(entity.c.id).where(entity.c.name == ORGANISATION)).scalar_one())


def release_name(connection: Connection, text: str, by: Actor, now_ms: int) -> None:
    """Let a name that was deleted for good be given again.

    Raises:
        NotFound: nobody has, or had, this name.
        NameTaken: a user or team has it, or something of theirs is still in the trash.
    """
    row = connection.execute(select(entity).where(entity.c.name == text.lower()).with_for_update()).first()
    if row is None:
        raise NotFound(f"nobody has, or had, the name {text!r}")
    if row.purged_ms is None:
        where = "is in the trash" if row.deleted_ms is not None else "is in use"
        raise NameTaken(f"the name {row.name!r} {where}")
    freed = update(entity).where(entity.c.id == row.id)
    connection.execute(freed.values(name=f"~{row.id}"))
    record(connection, now_ms, by, "name.release", entity=(row.id, row.name), target=row.name)


def deleted_spaces(connection: Connection) -> list[int]:
    """Return the ids of the spaces of deleted users that are not purged."""
    spaces = select(entity.c.id).where(
        entity.c.kind == "user", entity.c.deleted_ms.is_not(None), entity.c.purged_ms.is_(None)
    )
    return list(connection.execute(spaces.order_by(entity.c.id)).scalars())


def purge_space(connection: Connection, entity_id: int, by: Actor, now_ms: int) -> None:
    """Leave only the name of a deleted user's space, which stays taken."""
    mine = update(entity).where(entity.c.id == entity_id, entity.c.deleted_ms.is_not(None))
    connection.execute(mine.values(purged_ms=now_ms))
    record(connection, now_ms, by, "user.purge", entity=name_of(connection, entity_id))


def lock_user(connection: Connection, user_id: int) -> None:
    """Let changes of what one user has come one after the other, so that limits of their number hold."""
    mine = select(user_account.c.id).where(user_account.c.id == user_id)
    connection.execute(mine.with_for_update(key_share=True))


def name_of(connection: Connection, entity_id: int) -> tuple[int, str]:
    """Return id and name of an entity, or raise NotFound."""
    name = connection.execute(select(entity.c.name).where(entity.c.id == entity_id)).scalar()
    if name is None:
        raise NotFound(f"there is no user or team with id {entity_id}")
    return entity_id, str(name)


def whose(connection: Connection, user_id: int) -> dict[str, Any]:
    """Return the arguments of `record` for an event about the account of a user."""
    mine = select(entity.c.id, entity.c.name).join(user_account, user_account.c.entity_id == entity.c.id)
    row = connection.execute(mine.where(user_account.c.id == user_id)).one()
    return {"entity": (row.id, row.name), "target": row.name}


def names_of(connection: Connection, entity_ids: Iterable[int]) -> dict[int, str]:
    """Return the names of entities by their ids; ids without an entity are left out."""
    statement = select(entity.c.id, entity.c.name).where(entity.c.id.in_(sorted(entity_ids)))
    return {row.id: row.name for row in connection.execute(statement)}
