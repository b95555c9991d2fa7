"""Users and groups that an identity provider provisions: what it calls them, and its secret."""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select

from runvitals.model.names import plain_text
from runvitals.server.accounts.storage.random_secrets import digest_of, new_secret
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, among, in_transaction, put_rows
from runvitals.server.database.limits import take_turns
from runvitals.server.database.tables.accounts import organisation_setting
from runvitals.server.database.tables.sign_on import scim_resource
from runvitals.server.organisation.storage.settings import SCIM_SECRET, SCIM_SETTINGS, SCIM_USED
from runvitals.store.errors import NameTaken

_USED_EVERY_MS = 60_000
"""How precisely the last request is noted: each note is a write."""


@dataclass(frozen=True, slots=True)
class ScimSecret:
    """The present secret, without the secret itself. `used_ms`: the last request with it, to the minute."""

    created_ms: int
    used_ms: int | None


@dataclass(frozen=True, slots=True)
class ScimNames:
    """The names that the identity provider gives a user or group. `user_name`: of users only."""

    entity_id: int
    user_name: str | None
    external_id: str | None


_COLUMNS = [scim_resource.c[name] for name in ScimNames.__dataclass_fields__]


class ScimTable(StoredTable):
    """The table of provisioned users and groups."""

    def new_secret(self, by: Actor, now_ms: int) -> str:
        """Return a new secret for the identity provider; the one before stops working. It is shown once."""
        secret, digest = new_secret()
        value = json.dumps(digest.hex())

        def work(connection: Connection) -> None:
            connection.execute(delete(organisation_setting).where(organisation_setting.c.name == SCIM_USED))
            put_rows(
                connection, organisation_setting, [{"name": SCIM_SECRET, "value": value, "set_ms": now_ms}]
            )
            record(connection, now_ms, by, "scim.secret_create")

        self._database.write(work)
        return secret

    @in_transaction
    def remove_secret(self, connection: Connection, by: Actor, now_ms: int) -> None:
        """End provisioning: the secret stops working."""
        mine = delete(organisation_setting).where(organisation_setting.c.name == SCIM_SECRET)
        if connection.execute(mine).rowcount:
            connection.execute(delete(organisation_setting).where(organisation_setting.c.name == SCIM_USED))
            record(connection, now_ms, by, "scim.secret_delete")

    def secret(self) -> ScimSecret | None:
        """Return the present secret; None if there is none."""
        columns = (organisation_setting.c.name, organisation_setting.c.set_ms)
        mine = select(*columns).where(organisation_setting.c.name.in_(SCIM_SETTINGS))
        with self._database.read() as connection:
            times = {row.name: row.set_ms for row in connection.execute(mine)}
        return ScimSecret(times[SCIM_SECRET], times.get(SCIM_USED)) if SCIM_SECRET in times else None

    def note_use(self, now_ms: int) -> None:
        """Note a request with the secret."""
        present = self.secret()
        if present is None or (present.used_ms is not None and now_ms < present.used_ms + _USED_EVERY_MS):
            return
        row = {"name": SCIM_USED, "value": "null", "set_ms": now_ms}
        self._database.write(
            lambda connection: put_rows(connection, organisation_setting, [row]), durable=False
        )

    def check(self, secret: str) -> bool:
        """Return whether this is the secret."""
        digest = self._digest()
        return digest is not None and hmac.compare_digest(digest, digest_of(secret).hex())

    def names_of(self, entity_ids: Collection[int]) -> dict[int, ScimNames]:
        """Return the provider's names of users and groups by their entity ids, for those that it knows."""
        with self._database.read() as connection:
            mine = among(connection, scim_resource.c.entity_id, entity_ids)
            rows = connection.execute(select(*_COLUMNS).where(mine))
            return {row.entity_id: ScimNames(**row._asdict()) for row in rows}

    def by_user_name(self, user_name: str) -> int | None:
        """Return the entity id of the user with this name of the provider; None if there is none."""
        mine = select(scim_resource.c.entity_id).where(scim_resource.c.user_name_key == user_name.casefold())
        with self._database.read() as connection:
            return connection.execute(mine).scalar()

    def by_external_id(self, external_id: str) -> set[int]:
        """Return the entity ids of the users and groups with this id of the provider."""
        mine = select(scim_resource.c.entity_id).where(scim_resource.c.external_id == external_id)
        with self._database.read() as connection:
            return set(connection.execute(mine).scalars())

    @in_transaction
    def put(
        self, connection: Connection, entity_id: int, user_name: str | None, external_id: str | None
    ) -> None:
        """Note what the provider calls a user or group.

        Raises:
            NameTaken: it calls another user so.
        """
        user_name = None if user_name is None else plain_text(user_name)
        external_id = None if external_id is None else plain_text(external_id)
        key = None if user_name is None else user_name.casefold()
        if key is not None:
            other = select(scim_resource.c.entity_id).where(
                scim_resource.c.user_name_key == key, scim_resource.c.entity_id != entity_id
            )
            if connection.execute(other).first() is not None:
                raise NameTaken(f"another user has the userName {user_name!r}")
        take_turns(connection, "scim_resource", entity_id)
        connection.execute(delete(scim_resource).where(scim_resource.c.entity_id == entity_id))
        values = {"entity_id": entity_id, "user_name": user_name, "user_name_key": key}
        connection.execute(insert(scim_resource).values(**values, external_id=external_id))

    def forget(self, entity_id: int) -> None:
        """Forget what the provider called a user or group that is deleted."""
        mine = delete(scim_resource).where(scim_resource.c.entity_id == entity_id)
        self._database.write(lambda connection: connection.execute(mine))

    def _digest(self) -> str | None:
        mine = select(organisation_setting.c.value).where(organisation_setting.c.name == SCIM_SECRET)
        with self._database.read() as connection:
            value = connection.execute(mine).scalar()
        return None if value is None else str(json.loads(value))
