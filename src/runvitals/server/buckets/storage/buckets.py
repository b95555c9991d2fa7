"""The buckets of the organisation, and which team has which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from sqlalchemy import Connection, delete, func, insert, select, update

from runvitals.model.durations import DAY_MS
from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.limits import check_room
from runvitals.server.database.stored_json import stored_object
from runvitals.server.database.tables.accounts import entity, membership
from runvitals.server.database.tables.buckets import bucket, team_bucket
from runvitals.server.database.tables.runs import stored_file
from runvitals.server.events.outbox import Notification, add
from runvitals.store.errors import NameTaken, NotFound
from runvitals.store.files.bucket_location import BucketLocation

MAX_BUCKETS: Final = 1000


@dataclass(frozen=True, slots=True)
class BucketRow:
    """A bucket, without its credentials.

    Attributes:
        location: where it is; its `secret` is empty.
        has_secret: whether it has credentials of its own, not those of the environment.
        steps: of the last check, in JSON.
        away_ms: since when it cannot be used; None: it can, as far as anybody has tried.
        teams: the names of those that have it.
    """

    id: int
    name: str
    location: BucketLocation
    has_secret: bool
    created_ms: int
    steps: list[dict[str, Any]]
    checked_ms: int | None
    away_ms: int | None
    away_reason: str | None
    teams: tuple[str, ...] = ()

    @property
    def signs(self) -> bool:
        """Whether clients get signed addresses: they reach the bucket, and the last check could use one."""
        worked = {step["step"]: step["state"] == "ok" for step in self.steps}
        return self.location.direct and worked.get("presign", False)


class BucketInUse(ValueError):
    """Teams have a bucket."""

    def __init__(self, name: str, teams: Sequence[str]) -> None:
        team_names = ", ".join(teams[:10]) + (f" and {len(teams) - 10} more" if len(teams) > 10 else "")
        super().__init__(f"the bucket {name!r} keeps the files of {team_names}: it cannot be deleted")


class BucketTable(StoredTable):
    """The tables of buckets."""

    def all(self) -> list[BucketRow]:
        """Return all buckets, by name."""
        with self._database.read() as connection:
            return _rows(connection)

    def get(self, bucket_id: int) -> BucketRow:
        """Return a bucket, or raise NotFound."""
        with self._database.read() as connection:
            return _row(connection, bucket_id)

    def of_team(self, team_id: int) -> BucketRow | None:
        """Return the bucket of a team; None: its files are in the store of the server."""
        own = select(team_bucket.c.bucket_id).where(team_bucket.c.team_id == team_id)
        with self._database.read() as connection:
            bucket_id = connection.execute(own).scalar()
            return None if bucket_id is None else _row(connection, bucket_id)

    def sealed_secret(self, bucket_id: int) -> bytes | None:
        """Return the encrypted credentials; None: it has none of its own."""
        with self._database.read() as connection:
            secret: bytes | None = connection.execute(
                select(bucket.c.sealed).where(bucket.c.id == bucket_id)
            ).scalar()
        return secret

    @in_transaction
    def create(
        self,
        connection: Connection,
        name: str,
        location: BucketLocation,
        sealed: bytes | None,
        by: Actor,
        now_ms: int,
    ) -> BucketRow:
        """Add a bucket.

        Raises:
            NameTaken: there is one with this name.
            LimitReached: there are too many.
        """
        about = _stored(location)
        if connection.execute(select(bucket.c.id).where(bucket.c.name == name)).first() is not None:
            raise NameTaken(f"there is already a bucket {name!r}")
        check_room(connection, bucket, MAX_BUCKETS, f"there are {MAX_BUCKETS:,} buckets already")
        values = {
            "name": name,
            "location": json.dumps(about),
            "sealed": sealed,
            "created_ms": now_ms,
            "created_by": by.user_id,
        }
        (bucket_id,) = connection.execute(insert(bucket).values(values)).inserted_primary_key or (0,)
        record(connection, now_ms, by, "bucket.create", target=name, after=about)
        return _row(connection, bucket_id)

    @in_transaction
    def change(
        self,
        connection: Connection,
        bucket_id: int,
        by: Actor,
        now_ms: int,
        *,
        sealed: bytes | None,
        direct: bool,
    ) -> BucketRow:
        """Change the credentials of a bucket, and whether clients reach it. Its place never changes.

        Args:
            sealed: encrypted credentials; None: those of the environment.
        """
        before = _row(connection, bucket_id)
        same = bucket.c.id == bucket_id
        had = connection.execute(select(bucket.c.sealed).where(same)).scalar()
        location = json.dumps(_stored(replace(before.location, direct=direct)))
        connection.execute(update(bucket).where(same).values(sealed=sealed, location=location))
        if had != sealed:
            after = {"credentials": "environment" if sealed is None else "secret"}
            record(connection, now_ms, by, "bucket.credentials", target=before.name, after=after)
        if before.location.direct != direct:
            old, new = ({"direct": value} for value in (before.location.direct, direct))
            record(connection, now_ms, by, "bucket.direct", target=before.name, before=old, after=new)
        return _row(connection, bucket_id)

    @in_transaction
    def note_check(
        self,
        connection: Connection,
        bucket_id: int,
        steps: Sequence[Mapping[str, Any]],
        by: Actor,
        now_ms: int,
    ) -> BucketRow:
        """Note what a check has found. One that succeeds ends that the bucket cannot be used."""
        failed = next((step for step in steps if step["state"] == "failed"), None)
        before = _row(connection, bucket_id)
        values: dict[str, Any] = {"checked": json.dumps(list(steps)), "checked_ms": now_ms}
        if failed is None:
            values |= {"away_ms": None, "away_reason": None}
        connection.execute(update(bucket).where(bucket.c.id == bucket_id).values(values))
        about = {"failed": None if failed is None else failed["step"]}
        record(connection, now_ms, by, "bucket.check", target=before.name, after=about)
        return _row(connection, bucket_id)

    @in_transaction
    def delete(self, connection: Connection, bucket_id: int, by: Actor, now_ms: int) -> None:
        """Delete a bucket here. What is in it stays.

        Raises:
            BucketInUse: teams have it, or files of removed teams are still there.
        """
        row = _row(connection, bucket_id)
        if row.teams:
            raise BucketInUse(row.name, row.teams)
        connection.execute(delete(bucket).where(bucket.c.id == bucket_id))
        record(connection, now_ms, by, "bucket.delete", target=row.name, before=_stored(row.location))

    def use(self, team_id: int) -> tuple[int, int]:
        """Return how many files a team has in its bucket, and their bytes."""
        size = func.coalesce(func.sum(stored_file.c.bytes), 0)
        statement = select(func.count(), size).where(stored_file.c.place == team_id)
        with self._database.read() as connection:
            objects, total = connection.execute(statement).one()
        return objects, int(total)

    def note_away(self, bucket_id: int, reason: str | None, now_ms: int) -> None:
        """Note that a bucket cannot be used, and why; None: it can again."""
        row = update(bucket).where(bucket.c.id == bucket_id)
        if reason is None:
            noted = row.values(away_ms=None, away_reason=None)
        else:
            noted = row.values(away_ms=func.coalesce(bucket.c.away_ms, now_ms), away_reason=reason[:500])
        self._database.write(lambda connection: connection.execute(noted))

    @in_transaction
    def report_away(self, connection: Connection, now_ms: int) -> int:
        """Notify the administrators of teams whose bucket cannot be used, once a day; returns how many."""
        statement = (
            select(team_bucket.c.team_id, entity.c.name, membership.c.user_id, bucket)
            .join(bucket, bucket.c.id == team_bucket.c.bucket_id)
            .join(entity, entity.c.id == team_bucket.c.team_id)
            .join(membership, membership.c.team_id == team_bucket.c.team_id)
            .where(bucket.c.away_ms.is_not(None), membership.c.role == "admin", entity.c.deleted_ms.is_(None))
        )
        rows = connection.execute(statement).all()
        return sum(add(connection, _notification(row, now_ms)) for row in rows)


def _notification(row: Any, now_ms: int) -> Notification:
    text = (
        f"The bucket of {row.name} cannot be used: {row.away_reason}\n\n"
        "New files are refused until it can, and sent again later; files in it cannot be read. Runs, charts "
        "and output are not affected."
    )
    return Notification(
        f"bucket:{row.team_id}:{now_ms // DAY_MS}:user:{row.user_id}",
        "bucket.away",
        f"user:{row.user_id}",
        f"bucket:{row.team_id}",
        text,
        {"path": f"/{row.name}/-/settings/storage", "link": "Storage", "level": "error"},
        now_ms,
        team_id=row.team_id,
    )


def _stored(location: BucketLocation) -> dict[str, Any]:
    fields = asdict(location)
    del fields["secret"]
    return fields


def _row(connection: Connection, bucket_id: int) -> BucketRow:
    row = next(iter(_rows(connection, bucket_id)), None)
    if row is None:
        raise NotFound(f"there is no bucket {bucket_id}")
    return row


def _rows(connection: Connection, bucket_id: int | None = None) -> list[BucketRow]:
    statement = select(bucket).order_by(bucket.c.name)
    users = select(team_bucket.c.bucket_id, entity.c.name).join(entity, entity.c.id == team_bucket.c.team_id)
    if bucket_id is not None:
        statement = statement.where(bucket.c.id == bucket_id)
        users = users.where(team_bucket.c.bucket_id == bucket_id)
    teams: dict[int, list[str]] = {}
    for number, team in connection.execute(users.order_by(entity.c.name)):
        teams.setdefault(number, []).append(team)
    return [
        BucketRow(
            row.id,
            row.name,
            BucketLocation(**stored_object(row.location, f"the bucket {row.name!r}")),
            row.sealed is not None,
            row.created_ms,
            [] if row.checked is None else json.loads(row.checked),
            row.checked_ms,
            row.away_ms,
            row.away_reason,
            tuple(teams.get(row.id, ())),
        )
        for row in connection.execute(statement)
    ]
