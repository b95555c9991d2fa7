"""Numbers of statements: without gaps, whoever issues at the same time, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from runvitals.server.audit.storage.audit import CLI
from runvitals.server.events.outbox import Notification
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.usage.statement_lines import StatementLine, negate, number_text
from runvitals.server.usage.storage.statements import (
    Draft,
    Issuing,
    Statement,
    StatementConflict,
    StatementTable,
    Wanted,
)

LINE = StatementLine("", "vision/digits", "device_hours", "H100", 3.0, "h", 1.0, 2_000_000, 4_000_000)
COUNT = 8


def how(announce: bool = True) -> Issuing:
    def fail(_: Statement) -> Sequence[Notification]:
        raise OSError("the disk is full")

    return Issuing(CLI, 7, 2026, lambda n: number_text(2026, n), (lambda _: ()) if announce else fail)


def drafts(table: StatementTable) -> list[Statement]:
    table.put_drafts(
        "2026-11",
        [Draft(("entity", number), f"team{number}", "EUR", [LINE]) for number in range(COUNT)],
        2026,
        7,
    )
    return [draft for draft in table.page(Wanted("2026-11"), 100)[0] if draft.state == "draft"]


def test_numbers_have_no_gaps_when_statements_are_issued_at_once(
    metadata_store: MetadataStore, address: str
) -> None:
    table = metadata_store.usage.statements
    waiting = drafts(table)
    with closing(open_metadata_store(address)) as other, ThreadPoolExecutor(4) as pool:
        tables = (table, other.usage.statements)
        with pytest.raises(OSError, match="disk is full"):
            table.issue(waiting[0].id, {}, how(announce=False))

        def issue(number: int) -> str | None:
            try:
                return tables[number % 2].issue(waiting[number // 2].id, {}, how()).number
            except StatementConflict:
                return None

        numbers = list(pool.map(issue, range(2 * COUNT)))  # each draft twice
    assert sorted(filter(None, numbers)) == [number_text(2026, n) for n in range(1, COUNT + 1)]
    assert drafts(table) == []  # what was issued has no draft again


def test_a_statement_that_was_issued_is_cancelled_once_and_replaced(metadata_store: MetadataStore) -> None:
    table = metadata_store.usage.statements
    first = table.issue(drafts(table)[0].id, {"organisation": "Lab"}, how())
    assert first.number is not None
    cancelling = table.cancel(first.number, negate, "wrong", how())
    assert (cancelling.total_micro, cancelling.replaces_id) == (-4_000_000, first.id)
    assert cancelling.settlement == first.settlement
    (line,) = table.lines(cancelling.id)
    assert (line.quantity, line.included, line.text) == (-3.0, -1.0, f"cancels {first.number}")
    with pytest.raises(StatementConflict, match="its state is cancelled"):
        table.cancel(first.number, negate, "again", how())
    (draft,) = [one for one in drafts(table) if one.replaces_id is not None]
    assert draft.scope == first.scope
    table.issue(draft.id, {}, how())
    assert table.find(first.number).state == "corrected"
    assert table.lines(first.id) == [LINE]


def test_the_first_pdf_of_a_statement_stays(metadata_store: MetadataStore) -> None:
    table = metadata_store.usage.statements
    draft = drafts(table)[0]
    table.put_pdf(draft.id, b"draft", "x")
    assert table.pdf(draft.id) is None
    table.issue(draft.id, {}, how())
    table.put_pdf(draft.id, b"one", "1")
    table.put_pdf(draft.id, b"two", "2")
    assert (table.pdf(draft.id), table.find(str(draft.id)).digest) == (b"one", "1")


def test_what_costs_nothing_has_no_statement(metadata_store: MetadataStore) -> None:
    table = metadata_store.usage.statements
    kept, gone = drafts(table)[:2]
    credit = StatementLine("", "vision/digits", "energy", "", 1.0, "kWh", 0.0, 1, -4_000_000)
    table.put_drafts(
        "2026-11",
        [
            Draft(kept.scope, kept.scope_name, "EUR", [LINE, LINE]),
            Draft(gone.scope, gone.scope_name, "EUR", [LINE, credit]),
        ],
        2026,
        8,
    )
    (left,) = table.page(Wanted(), 10)[0]
    assert (left.id, left.total_micro) == (kept.id, 8_000_000)
