"""The text of a statement, and the same as HTML; `printed_statements` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from html import escape
from typing import Any, Final
from zoneinfo import ZoneInfo

from runvitals.server.usage.charges import MICRO
from runvitals.server.usage.days import Month
from runvitals.server.usage.statement_lines import StatementLine, money
from runvitals.server.usage.storage.statements import Statement

HEADING: Final = "Usage statement – not a tax invoice"
_COLUMNS: Final = ("Project", "What", "Quantity", "Included")
FIGURES: Final = (
    "Tracked hours: the time in which a run sent samples, each time counted once. Device-hours: that time "
    "for each device that the run used; runs that used it at once share it. Energy: counters, otherwise "
    "power × time. Storage: a GB is 10⁹ bytes, a GB-month is a GB for all days of the month. Ingestion: what "
    "was received, after decompression. How each figure is computed: docs/operations/usage.md of runvitals."
)
_STYLE: Final = (
    "body{font:14px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{padding:.3rem .5rem;border-bottom:1px solid}"
    "td,th{text-align:left}"
    "td:nth-child(n+3),th:nth-child(n+3){text-align:right}dt{font-weight:600}dd{margin:0;white-space:pre-line}"
    ":root{color-scheme:light dark}"
)


@dataclass(frozen=True, slots=True)
class StatementDocument:
    """A statement as it is printed.

    Attributes:
        facts: such as the number, from, to and the period, each with its name.
        rows: one for each line, by `columns`.
    """

    title: str
    heading: str
    facts: Sequence[tuple[str, str]]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    total: str
    figures: str = FIGURES


def statement_document(
    statement: Statement, lines: Sequence[StatementLine], replaces: str | None
) -> StatementDocument:
    """Return the document of a statement; `replaces` is the number of the one that it cancels or corrects."""
    about, currency = statement.settlement, statement.currency
    month = Month.named(statement.period)
    centre: Mapping[str, Any] = about.get("paid_by") or {}
    payer = [centre.get("name") or statement.scope_name, centre.get("address") or about.get("address", "")]
    cancels = "Cancels" if statement.state == "cancellation" else "Replaces"
    facts = (
        ("Number", statement.number or "draft"),
        ("Date", _date(statement)),
        ("From", "\n".join(filter(None, (about.get("organisation", ""), about.get("issuer", ""))))),
        ("To", "\n".join(filter(None, payer))),
        ("Cost centre", centre.get("code") or about.get("cost_centre", "")),
        ("Purchase order", centre.get("purchase_order") or about.get("purchase_order", "")),
        ("Contact", about.get("contact", "")),
        ("Period", f"{month.first.isoformat()} to {month.last.isoformat()}"),
        (cancels, replaces or ""),
        ("Reason", statement.reason),
    )
    return StatementDocument(
        f"Statement {statement.number or statement.period}",
        about.get("heading") or HEADING,
        [(name, value) for name, value in facts if value],
        (*_COLUMNS, f"Price ({currency})", f"Amount ({currency})"),
        [_row(line, currency) for line in lines],
        f"{money(statement.total_micro, currency)} {currency}",
    )


def as_html(document: StatementDocument) -> str:
    """A page that needs nothing else."""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in document.facts)
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in document.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in document.rows
    )
    total = f'<th scope="row" colspan="5">Total</th><td>{escape(document.total)}</td>'
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(document.title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{escape(document.title)}</h1><p>{escape(document.heading)}</p><dl>{facts}</dl>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody><tfoot><tr>{total}</tr></tfoot></table>"
        f"<p><small>{escape(document.figures)}</small></p></main></body></html>"
    )


def _date(statement: Statement) -> str:
    if statement.issued_ms is None:
        return ""
    time = datetime.fromtimestamp(statement.issued_ms / 1000, timezone.utc)
    return time.astimezone(ZoneInfo(statement.settlement.get("time_zone", "UTC"))).date().isoformat()


def _row(line: StatementLine, currency: str) -> tuple[str, ...]:
    used = " ".join(filter(None, (line.category.replace("_", " "), line.model)))
    price = f"{line.price_micro / MICRO:.6f}".rstrip("0").rstrip(".")
    return (
        line.project,
        f"{used} ({line.text})" if line.text else used,
        f"{line.quantity:,.3f} {line.unit}",
        f"{line.included:,.3f} {line.unit}" if line.included else "",
        price,
        money(line.amount_micro, currency),
    )
