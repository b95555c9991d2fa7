"""Prices."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection, delete, insert, select, update

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, in_transaction
from runvitals.server.database.tables.usage import rate
from runvitals.server.usage.storage.issued_periods import check_open
from runvitals.store.errors import NotFound


@dataclass(frozen=True, slots=True)
class StoredRate:
    """A price in micro-units of the currency; see `usage.charges.Rate`. Days are texts."""

    category: str
    device_glob: str
    price_micro: int
    valid_from: str
    valid_to: str | None = None
    note: str = ""
    created_by: str = ""
    id: int = 0


class RateTable(StoredTable):
    """The prices."""

    def all(self) -> list[StoredRate]:
        """All prices, the newest first."""
        columns = [rate.c[name] for name in StoredRate.__dataclass_fields__]
        with self._database.read() as connection:
            rows = connection.execute(select(*columns).order_by(rate.c.valid_from.desc(), rate.c.id.desc()))
            return [StoredRate(**row._asdict()) for row in rows]

    @in_transaction
    def add(self, connection: Connection, new: StoredRate, by: Actor, now_ms: int) -> StoredRate:
        """Add a price; raise PeriodIssued if it would change a month of which a statement was issued."""
        check_open(connection, new.valid_from)
        values = asdict(new)
        del values["id"]
        added = connection.execute(insert(rate).values(values)).inserted_primary_key
        assert added is not None
        record(connection, now_ms, by, "billing.rate", target=new.category, after=_about(new))
        return replace(new, id=added[0])

    @in_transaction
    def end(self, connection: Connection, rate_id: int, valid_to: str, by: Actor, now_ms: int) -> StoredRate:
        """Let a price end with a day.

        Raises:
            NotFound: there is no such price.
            ValueError: it begins later.
            PeriodIssued: it would change a month of which a statement was issued.
        """
        before = _find(connection, rate_id)
        if valid_to < before.valid_from:
            raise ValueError(f"expected a day not before {before.valid_from}, when the price begins")
        check_open(connection, valid_to, inclusive=False)
        if before.valid_to is not None:
            check_open(connection, before.valid_to, inclusive=False)
        connection.execute(update(rate).where(rate.c.id == rate_id).values(valid_to=valid_to))
        after = replace(before, valid_to=valid_to)
        record(
            connection,
            now_ms,
            by,
            "billing.rate",
            target=before.category,
            before=_about(before),
            after=_about(after),
        )
        return after

    @in_transaction
    def remove(self, connection: Connection, rate_id: int, by: Actor, now_ms: int) -> None:
        """Remove a price; raise NotFound, or PeriodIssued if it priced a month with a statement."""
        before = _find(connection, rate_id)
        check_open(connection, before.valid_from)
        connection.execute(delete(rate).where(rate.c.id == rate_id))
        record(connection, now_ms, by, "billing.rate", target=before.category, before=_about(before))


def _find(connection: Connection, rate_id: int) -> StoredRate:
    columns = [rate.c[name] for name in StoredRate.__dataclass_fields__]
    row = connection.execute(select(*columns).where(rate.c.id == rate_id)).first()
    if row is None:
        raise NotFound(f"there is no price {rate_id}")
    return StoredRate(**row._asdict())


def _about(of: StoredRate) -> dict[str, object]:
    return {name: value for name, value in asdict(of).items() if name not in ("id", "created_by")}
