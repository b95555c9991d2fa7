"""Profiles: texts of users about themselves, and their preferences."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select, update

from runvitals.server.accounts.storage.entities import name_of
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.rights_generation import rights_changed
from runvitals.server.database.tables.accounts import user_account
from runvitals.store.errors import NotFound

_COLUMNS = ("display_name", "default_entity_id")


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A user's profile.

    `fields`: texts and preferences as they were set. `default_entity_id` null: the user's own space.
    """

    user_id: int
    entity_id: int
    display_name: str
    default_entity_id: int | None
    fields: Mapping[str, Any]


class ProfileTable(StoredTable):
    """The profiles of users. Names and values are checked by the caller."""

    def get(self, user_id: int) -> ProfileRow:
        """Return a user's profile, or raise NotFound."""
        with self._database.read() as connection:
            return _profile(connection, user_id)

    @in_transaction
    def put(
        self, connection: Connection, user_id: int, changes: Mapping[str, Any], by: Actor, now_ms: int
    ) -> ProfileRow:
        """Change `display_name`, `default_entity_id` or other fields. The audit log gets their names only."""
        columns = {name: value for name, value in changes.items() if name in _COLUMNS}
        profile_fields = {name: value for name, value in changes.items() if name not in _COLUMNS}
        mine = user_account.c.id == user_id
        connection.execute(select(user_account.c.id).where(mine).with_for_update())
        before = _profile(connection, user_id)
        fields = json.dumps({**before.fields, **profile_fields})
        connection.execute(update(user_account).where(mine).values(**columns, profile=fields))
        if "default_entity_id" in columns:
            rights_changed(connection)
        about = {"fields": sorted(changes)}
        owner = name_of(connection, before.entity_id)
        record(connection, now_ms, by, "user.update", entity=owner, after=about)
        return _profile(connection, user_id)


def _profile(connection: Connection, user_id: int) -> ProfileRow:
    columns = [user_account.c[name] for name in ("entity_id", *_COLUMNS, "profile")]
    row = connection.execute(
        select(*columns).where(user_account.c.id == user_id, user_account.c.deleted_ms.is_(None))
    ).first()
    if row is None:
        raise NotFound("there is no such user")
    return ProfileRow(
        user_id, row.entity_id, row.display_name, row.default_entity_id, json.loads(row.profile)
    )
