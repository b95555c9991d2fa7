"""Marks of ingest about usage: the days to compute, and how much was received."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal

from sqlalchemy import Connection, and_, case, delete, func, or_, select

from runvitals.server.database.database import StoredTable, insert
from runvitals.server.database.tables.runs import run, writer
from runvitals.server.database.tables.usage import usage_dirty, usage_ingest_day, usage_request_day

RequestOwner = tuple[Literal["user", "service_account"], int]
"""Whose keys and sessions requests came with: kind and id."""


@dataclass(frozen=True, slots=True)
class DirtyDay:
    """A day of a lane that must be computed: samples came, from `from_ms` on.

    Args:
        day: such as `2026-11-23`.
        marked_ms: when, so that what comes meanwhile is not forgotten.
    """

    lane_id: int
    day: str
    run_id: int
    from_ms: int
    marked_ms: int


@dataclass(frozen=True, slots=True)
class ReceivedAmount:
    """How much of a run was received: bytes of envelopes, and values."""

    bytes: int = 0
    points: int = 0


@dataclass(frozen=True, slots=True)
class UsageMarks:
    """Marks to add. `received` is by run id, `requests` by owner, both on the day `received_on`."""

    dirty: Sequence[DirtyDay] = ()
    received: Mapping[int, ReceivedAmount] = field(default_factory=dict)
    received_on: str = ""
    requests: Mapping[RequestOwner, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.dirty or self.received or self.requests)


def add_marks(connection: Connection, marks: UsageMarks) -> None:
    """Note usage, in the transaction of the heartbeats that came with it."""
    if marks.dirty:
        statement = insert(connection, usage_dirty)
        new, old = statement.excluded, usage_dirty.c
        earliest = case((new.from_ms < old.from_ms, new.from_ms), else_=old.from_ms)
        statement = statement.on_conflict_do_update(
            index_elements=["lane_id", "day"], set_={"from_ms": earliest, "marked_ms": new.marked_ms}
        )
        rows = sorted(marks.dirty, key=lambda mark: (mark.lane_id, mark.day))
        connection.execute(statement, [asdict(row) for row in rows])
    if marks.received:
        add = insert(connection, usage_ingest_day)
        summed = {name: usage_ingest_day.c[name] + add.excluded[name] for name in ("bytes", "points")}
        connection.execute(
            add.on_conflict_do_update(index_elements=["run_id", "day"], set_=summed),
            [
                {"run_id": run_id, "day": marks.received_on, **asdict(received)}
                for run_id, received in sorted(marks.received.items())
            ],
        )
    if marks.requests:
        count = insert(connection, usage_request_day)
        more = usage_request_day.c.requests + count.excluded.requests
        connection.execute(
            count.on_conflict_do_update(
                index_elements=["owner_kind", "owner_id", "day"], set_={"requests": more}
            ),
            [
                {"owner_kind": kind, "owner_id": number, "day": marks.received_on, "requests": requests}
                for (kind, number), requests in sorted(marks.requests.items())
            ],
        )


class UsageMarkTable(StoredTable):
    """The days that must be computed."""

    def add(self, marks: UsageMarks) -> None:
        """Mark the days of samples that were stored."""
        self._database.write(lambda connection: add_marks(connection, marks), durable=False)

    def dirty(self, limit: int = 100_000) -> list[DirtyDay]:
        """Return what must be computed, the oldest days first."""
        statement = select(usage_dirty).order_by(usage_dirty.c.day, usage_dirty.c.lane_id).limit(limit)
        with self._database.read() as connection:
            return [DirtyDay(**row._asdict()) for row in connection.execute(statement)]

    def remove(self, computed: Collection[DirtyDay]) -> None:
        """Remove what was computed, unless more samples came meanwhile."""
        if not computed:
            return
        listed = list(computed)

        def work(connection: Connection) -> None:
            for first in range(0, len(listed), 200):
                conditions = [
                    and_(
                        usage_dirty.c.lane_id == mark.lane_id,
                        usage_dirty.c.day == mark.day,
                        usage_dirty.c.marked_ms == mark.marked_ms,
                    )
                    for mark in listed[first : first + 200]
                ]
                connection.execute(delete(usage_dirty).where(or_(*conditions)))

        self._database.write(work, durable=False)

    def lanes_heard_last(self, within_ms: int) -> list[tuple[int, int, int]]:
        """Return lane, run and time of the newest record of the writers that were heard last.

        These are heard in the last time before the newest heartbeat: a server that was killed may have noted
        nothing of it.
        """
        newest = select(func.max(writer.c.heard_ms)).scalar_subquery()
        statement = (
            select(writer.c.lane_id, writer.c.run_id, func.max(writer.c.last_ms))
            .where(writer.c.heard_ms >= newest - within_ms)
            .group_by(writer.c.lane_id, writer.c.run_id)
        )
        with self._database.read() as connection:
            return [(lane, run_id, last) for lane, run_id, last in connection.execute(statement)]

    def lanes_between(self, from_ms: int, until_ms: int) -> list[tuple[int, int, int, int]]:
        """Lane, run, first and last time of all writers with records between two times."""
        statement = (
            select(
                writer.c.lane_id, writer.c.run_id, func.min(writer.c.started_ms), func.max(writer.c.last_ms)
            )
            .join(run, run.c.id == writer.c.run_id)
            .where(writer.c.last_ms >= from_ms, writer.c.started_ms <= until_ms)
            .group_by(writer.c.lane_id, writer.c.run_id)
        )
        with self._database.read() as connection:
            return [tuple(row) for row in connection.execute(statement)]
