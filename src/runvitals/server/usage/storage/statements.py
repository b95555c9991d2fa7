"""Statements: drafts, those that were issued under a number, and those that cancel others."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update
from sqlalchemy import insert as insert_into

from runvitals.server.audit.storage.audit import Actor, record
from runvitals.server.database.database import StoredTable, add_rows, in_transaction, insert
from runvitals.server.database.tables.usage import statement, statement_counter, statement_line
from runvitals.server.events.outbox import Notification, add
from runvitals.server.usage.statement_lines import StatementLine
from runvitals.store.errors import NotFound

State = Literal["draft", "issued", "cancelled", "corrected", "cancellation"]
Scope = tuple[str, int]
"""`entity` or `cost_centre`, and its id."""
Announce = Callable[["Statement"], Sequence[Notification]]
"""The notifications about a statement that gets its number."""
Negated = Callable[[Sequence[StatementLine], str], list[StatementLine]]
"""Makes the lines that cancel those of a statement, with its number."""


class StatementConflict(Exception):
    """The statement is not in a state in which this can be done."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement without its lines.

    Attributes:
        number: None: a draft.
        state: `cancelled`: by a `cancellation`, another statement; `corrected`: and replaced by a third.
        settlement: what is printed beside the lines, and what they were computed with, as it was then.
        replaces_id: the statement that this one cancels or corrects.
        digest: SHA-256 of the PDF, once it was made.
    """

    id: int
    number: str | None
    period: str
    scope_kind: str
    scope_id: int
    scope_name: str
    state: State
    created_ms: int
    issued_ms: int | None
    issued_by: str | None
    currency: str
    total_micro: int
    settlement: Mapping[str, Any]
    reason: str
    replaces_id: int | None
    digest: str | None

    @property
    def scope(self) -> Scope:
        """Who pays."""
        return self.scope_kind, self.scope_id


@dataclass(frozen=True, slots=True)
class Draft:
    """A statement before it is issued. `settlement` as of `Statement`."""

    scope: Scope
    scope_name: str
    currency: str
    lines: Sequence[StatementLine]
    settlement: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total_micro(self) -> int:
        """The sum of the lines, in micro-units of the currency."""
        return sum(line.amount_micro for line in self.lines)


@dataclass(frozen=True, slots=True)
class Issuing:
    """Who issues a statement, and how.

    Args:
        year: in which it is now: numbers are taken one after the other in each year.
        number_of: the text of the nth number of the year.
        announce: the notifications about the statement that is issued.
    """

    by: Actor
    now_ms: int
    year: int
    number_of: Callable[[int], str]
    announce: Announce


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which statements are listed.

    Attributes:
        entity_ids: only issued ones of these teams and users; None: all.
    """

    period: str | None = None
    entity_ids: Collection[int] | None = None


class StatementTable(StoredTable):
    """The statements."""

    def page(self, selection: Wanted, limit: int, before_id: int = 0) -> tuple[list[Statement], int]:
        """Statements, the newest first, older than `before_id` unless it is 0; and how many there are."""
        fits = _fits(selection)
        older = fits if not before_id else and_(fits, statement.c.id < before_id)
        rows = _SELECT.where(older).order_by(statement.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            count = select(func.count()).select_from(statement).where(fits)
            return [_statement(row) for row in connection.execute(rows)], connection.execute(
                count
            ).scalar_one()

    def find(self, name: str) -> Statement:
        """Return a statement by its number or its id, or raise NotFound."""
        with self._database.read() as connection:
            return _find(connection, name)

    def lines(self, statement_id: int) -> list[StatementLine]:
        """The lines of a statement, in their order."""
        with self._database.read() as connection:
            return _lines(connection, statement_id)

    def numbers(self, statement_ids: Collection[int]) -> dict[int, str]:
        """The numbers of statements, by id."""
        rows = select(statement.c.id, statement.c.number).where(statement.c.id.in_(sorted(statement_ids)))
        with self._database.read() as connection:
            return dict(connection.execute(rows).all())

    def issued_since(self, first: str) -> list[tuple[Statement, list[StatementLine]]]:
        """Those of a month and all later ones that were issued and not cancelled, with their lines."""
        rows = _SELECT.where(statement.c.state == "issued", statement.c.period >= first)
        with self._database.read() as connection:
            statements = [_statement(row) for row in connection.execute(rows)]
            return [(issued, _lines(connection, issued.id)) for issued in statements]

    def any_issued(self) -> bool:
        """Return whether a statement was ever issued, which fixes the currency and the time zone."""
        with self._database.read() as connection:
            return connection.execute(select(func.max(statement_counter.c.taken))).scalar() not in (None, 0)

    def draft_periods(self) -> set[str]:
        """The months that have drafts."""
        periods = select(statement.c.period).where(statement.c.state == "draft").distinct()
        with self._database.read() as connection:
            return set(connection.execute(periods).scalars())

    @in_transaction
    def put_drafts(
        self, connection: Connection, period: str, drafts: Sequence[Draft], year: int, now_ms: int
    ) -> None:
        """Replace the drafts of a month. What has an issued statement gets no draft, nor does what costs 0.

        Args:
            year: in which it is now; the numbers of its statements are taken one after the other.
        """
        _lock(connection, year)
        ids = {
            (row.scope_kind, row.scope_id, row.state): row.id
            for row in connection.execute(_SELECT.where(statement.c.period == period))
        }
        kept_ids = set()
        for draft in drafts:
            if draft.total_micro and (*draft.scope, "issued") not in ids:
                number = ids.get((*draft.scope, "draft"))
                cancelled = ids.get((*draft.scope, "cancelled"))
                kept_ids.add(_put_draft(connection, number, period, draft, cancelled, now_ms))
        gone = and_(statement.c.period == period, statement.c.state == "draft")
        connection.execute(delete(statement).where(gone, statement.c.id.not_in(kept_ids)))

    @in_transaction
    def issue(
        self, connection: Connection, draft_id: int, settlement: Mapping[str, Any], how: Issuing
    ) -> Statement:
        """Give a draft the next number of the year. It never changes again.

        Args:
            settlement: as of `Statement`, besides what the draft has.

        Raises:
            NotFound: there is no such statement.
            StatementConflict: it is no draft any more.
        """
        last_number = _lock(connection, how.year)
        draft = _find(connection, str(draft_id))
        if draft.state != "draft":
            raise StatementConflict(f"the statement is no draft: it has the number {draft.number}")
        number = _take(connection, how, last_number)
        values = {
            "number": number,
            "state": "issued",
            "issued_ms": how.now_ms,
            "issued_by": how.by.name,
            "settlement": json.dumps({**draft.settlement, **settlement}),
        }
        connection.execute(update(statement).where(statement.c.id == draft.id).values(values))
        if draft.replaces_id is not None:
            replaced = update(statement).where(statement.c.id == draft.replaces_id)
            connection.execute(replaced.values(state="corrected"))
        issued = _find(connection, number)
        _announce(connection, issued, how, "billing.statement_issue")
        return issued

    @in_transaction
    def cancel(
        self, connection: Connection, number: str, negated: Negated, reason: str, how: Issuing
    ) -> Statement:
        """Issue a statement with the lines of another one, negated; returns the new one.

        Raises:
            NotFound: there is no such statement.
            StatementConflict: it was not issued, or is cancelled already.
        """
        last_number = _lock(connection, how.year)
        before = _find(connection, number)
        if before.state != "issued":
            raise StatementConflict(f"{number} cannot be cancelled: its state is {before.state}")
        new_number = _take(connection, how, last_number)
        values = {
            **_columns_of(before),
            "number": new_number,
            "state": "cancellation",
            "created_ms": how.now_ms,
            "issued_ms": how.now_ms,
            "issued_by": how.by.name,
            "total_micro": -before.total_micro,
            "reason": reason,
            "replaces_id": before.id,
        }
        added = connection.execute(insert_into(statement).values(values)).inserted_primary_key
        assert added is not None
        _put_lines(connection, added[0], negated(_lines(connection, before.id), number))
        changed = update(statement).where(statement.c.id == before.id)
        connection.execute(changed.values(state="cancelled"))
        cancelling = _find(connection, new_number)
        _announce(connection, cancelling, how, "billing.statement_cancel", number)
        return cancelling

    def pdf(self, statement_id: int) -> bytes | None:
        """The PDF of a statement; None: it was not made yet."""
        with self._database.read() as connection:
            return connection.execute(select(statement.c.pdf).where(statement.c.id == statement_id)).scalar()

    def put_pdf(self, statement_id: int, pdf: bytes, digest: str) -> None:
        """Store the PDF of a statement that was issued, unless it has one."""
        mine = and_(
            statement.c.id == statement_id, statement.c.pdf.is_(None), statement.c.number.is_not(None)
        )
        values = update(statement).where(mine).values(pdf=pdf, digest=digest)
        self._database.write(lambda connection: connection.execute(values))


_FIELDS = tuple(Statement.__dataclass_fields__)
_SELECT = select(*(statement.c[name] for name in _FIELDS))
_LINE = tuple(StatementLine.__dataclass_fields__)


def _statement(row: Any) -> Statement:
    return Statement(**{**row._asdict(), "settlement": json.loads(row.settlement)})


def _fits(selection: Wanted) -> ColumnElement[bool]:
    column = statement.c
    conditions = [column.id > 0]
    if selection.period is not None:
        conditions.append(column.period == selection.period)
    if selection.entity_ids is not None:
        mine = column.scope_id.in_(sorted(selection.entity_ids))
        conditions += [column.scope_kind == "entity", mine, column.number.is_not(None)]
    return and_(*conditions)


def _find(connection: Connection, name: str) -> Statement:
    by_id = statement.c.id == int(name) if name.isascii() and name.isdigit() and len(name) < 10 else None
    by_number = statement.c.number == name
    row = connection.execute(_SELECT.where(by_number if by_id is None else or_(by_number, by_id))).first()
    if row is None:
        raise NotFound(f"there is no statement {name!r}")
    return _statement(row)


def _lines(connection: Connection, statement_id: int) -> list[StatementLine]:
    columns = [statement_line.c[name] for name in _LINE]
    rows = select(*columns).where(statement_line.c.statement_id == statement_id)
    return [StatementLine(*row) for row in connection.execute(rows.order_by(statement_line.c.position))]


def _lock(connection: Connection, year: int) -> int:
    """Wait for other changes of statements; returns how many numbers of the year were taken."""
    first = insert(connection, statement_counter).values(year=year, taken=0).on_conflict_do_nothing()
    connection.execute(first)
    last_number = select(statement_counter.c.taken).where(statement_counter.c.year == year).with_for_update()
    return int(connection.execute(last_number).scalar_one())


def _take(connection: Connection, how: Issuing, last_number: int) -> str:
    """The next number of a year, whose row is locked: if the transaction fails, the number was not taken."""
    counter = update(statement_counter).where(statement_counter.c.year == how.year)
    connection.execute(counter.values(taken=last_number + 1))
    return how.number_of(last_number + 1)


def _put_draft(
    connection: Connection,
    number: int | None,
    period: str,
    draft: Draft,
    replaces_id: int | None,
    now_ms: int,
) -> int:
    values = {
        "period": period,
        "scope_kind": draft.scope[0],
        "scope_id": draft.scope[1],
        "scope_name": draft.scope_name,
        "state": "draft",
        "created_ms": now_ms,
        "currency": draft.currency,
        "total_micro": draft.total_micro,
        "settlement": json.dumps(dict(draft.settlement)),
        "reason": "",
        "replaces_id": replaces_id,
    }
    if number is None:
        added = connection.execute(insert_into(statement).values(values)).inserted_primary_key
        assert added is not None
        number = int(added[0])
    else:
        connection.execute(update(statement).where(statement.c.id == number).values(values))
        connection.execute(delete(statement_line).where(statement_line.c.statement_id == number))
    _put_lines(connection, number, draft.lines)
    return number


def _put_lines(connection: Connection, number: int, lines: Sequence[StatementLine]) -> None:
    rows = [
        {"statement_id": number, "position": position, **{name: getattr(line, name) for name in _LINE}}
        for position, line in enumerate(lines, 1)
    ]
    add_rows(connection, statement_line, rows)


def _columns_of(of: Statement) -> dict[str, Any]:
    left_out = ("id", "digest", "settlement")
    values = {name: getattr(of, name) for name in _FIELDS if name not in left_out}
    return {**values, "settlement": json.dumps(dict(of.settlement))}


def _announce(
    connection: Connection, issued: Statement, how: Issuing, action: str, cancels: str | None = None
) -> None:
    for notification in how.announce(issued):
        add(connection, notification)
    about = {
        "period": issued.period,
        issued.scope_kind: issued.scope_name,
        "total_micro": issued.total_micro,
        "currency": issued.currency,
        **({} if cancels is None else {"cancels": cancels}),
    }
    record(connection, how.now_ms, how.by, action, target=issued.number, after=about)
