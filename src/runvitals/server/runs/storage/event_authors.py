"""The users and service accounts that events of runs name."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import Connection, select

from runvitals.model.run import RunAuthor, RunServiceAccount
from runvitals.server.database.database import among
from runvitals.server.database.tables.accounts import entity, service_account, user_account
from runvitals.server.database.tables.content import entity_picture, picture


class EventAuthors(NamedTuple):
    """Those of some events, by id."""

    users: dict[int, RunAuthor]
    service_accounts: dict[int, RunServiceAccount]


def read_authors(
    connection: Connection, user_ids: Collection[int], service_account_ids: Collection[int]
) -> EventAuthors:
    """These users and service accounts. Takes no query for those of which there are none."""
    users = _users(connection, user_ids) if user_ids else {}
    return EventAuthors(
        users, _service_accounts(connection, service_account_ids) if service_account_ids else {}
    )


def _users(connection: Connection, ids: Collection[int]) -> dict[int, RunAuthor]:
    columns = (user_account.c.id, entity.c.name, user_account.c.display_name, picture.c.digest)
    statement = (
        select(*columns, user_account.c.deleted_ms)
        .join(entity, entity.c.id == user_account.c.entity_id)
        .outerjoin(entity_picture, entity_picture.c.entity_id == user_account.c.entity_id)
        .outerjoin(picture, picture.c.id == entity_picture.c.picture_id)
    )
    rows = connection.execute(statement.where(among(connection, user_account.c.id, ids)))
    return {
        number: RunAuthor(number, name if deleted_ms is None else None, display_name or "", digest)
        for number, name, display_name, digest, deleted_ms in rows
    }


def _service_accounts(connection: Connection, ids: Collection[int]) -> dict[int, RunServiceAccount]:
    statement = select(service_account.c.id, service_account.c.name, service_account.c.deleted_ms)
    rows = connection.execute(statement.where(among(connection, service_account.c.id, ids)))
    return {
        number: RunServiceAccount(number, name, deleted_ms is not None) for number, name, deleted_ms in rows
    }
