"""`runvitals usage`: what runs used in a month and what it cost; computing a month again."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from runvitals.cli.command_list import COMMANDS
from runvitals.cli.formatting import inert, table
from runvitals.cli.store_options import add_store, existing_metadata_address, open_sample_store

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore
    from runvitals.server.usage.report import UsageSelection
    from runvitals.server.usage.reports import UsageReports
    from runvitals.server.usage.storage.statements import Statement

_SHOWN = (
    "runs",
    "tracked_hours",
    "device_hours",
    "device_idle_hours",
    "device_lost_hours",
    "energy_kwh",
    "storage_gb_month",
    "requests",
    "cost",
)
_STATEMENT = ["id", "number", "month", "of", "state", "total"]
_LINE = ["project", "what", "quantity", "amount"]
_STATEMENTS = 200
_WITH_NAME = 2  # words


def add(subparsers: Any) -> None:
    """Add `runvitals usage` to the parser."""
    parser = subparsers.add_parser(
        "usage",
        help=COMMANDS["usage"],
        description="Reads the server's metadata store, also while the server is running. "
        "`runvitals usage rebuild` computes a month again from the samples; stop the server first. "
        "`runvitals usage statements list`, `… show NUMBER` and `… issue ID` are about statements.",
    )
    parser.add_argument("action", nargs="?", choices=("show", "rebuild", "statements"), default="show")
    parser.add_argument("words", nargs="*", metavar="…", help="of `statements`: list, show NUMBER, issue ID")
    parser.add_argument("--month", help="such as 2026-11; default: this month")
    parser.add_argument("--from", dest="first", metavar="DAY", help="instead of a month: the first day")
    parser.add_argument("--to", dest="last", metavar="DAY", help="the last day, included")
    parser.add_argument("--by", default="team", help="such as team,project,author,model,day; default: team")
    parser.add_argument("--team", help="only this team or user")
    parser.add_argument(
        "--format",
        choices=("table", "csv", "json", "focus"),
        default="table",
        help="csv: all columns; focus: the FinOps Open Cost and Usage Specification",
    )
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the usage or statements, or compute a month again; return 0."""
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.server.usage.reports import UsageReports
    from runvitals.store.errors import MetadataStoreError

    try:
        with open_metadata_store(existing_metadata_address(arguments)) as metadata_store:
            reports = UsageReports(metadata_store, _now_ms)
            if arguments.action == "statements":
                print(_statements(metadata_store, arguments.words, arguments.month))
                return 0
            if arguments.words:
                raise ValueError(f"unexpected {arguments.words[0]!r}")
            if arguments.action == "rebuild":
                return _rebuild(arguments, metadata_store, reports)
            _show(arguments, metadata_store, reports)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _rebuild(arguments: argparse.Namespace, metadata_store: MetadataStore, reports: UsageReports) -> int:
    """Compute a month again from the samples. The sample store allows one process at a time."""
    from runvitals.server.usage.days import Month
    from runvitals.server.usage.rollup import UsageRollup

    month = reports.this_month() if arguments.month is None else Month.named(arguments.month)
    with open_sample_store(arguments) as store:
        count = UsageRollup(store, metadata_store, _now_ms).rebuild(month)
    print(f"computed {count} days of runs of {month.name}")
    return 0


def _statements(metadata_store: MetadataStore, words: list[str], month: str | None) -> str:
    from runvitals.server.audit.storage.audit import CLI
    from runvitals.server.usage.statement_lines import money
    from runvitals.server.usage.statements import Statements
    from runvitals.server.usage.storage.statements import StatementConflict, Wanted

    stored = metadata_store.usage.statements
    action, name = (*words, "", "")[:2] if words else ("list", "")
    if action == "list" and len(words) <= 1:
        statements, count = stored.page(Wanted(month), _STATEMENTS)
        left_out = f"\n{count - len(statements)} older ones: see --month" if count > len(statements) else ""
        return f"{table([_STATEMENT, *map(_statement_row, statements)])}{left_out}"
    if action == "show" and len(words) == _WITH_NAME:
        statement = stored.find(name)
        lines = [
            [
                inert(line.project),
                inert(" ".join(filter(None, (line.category, line.model, line.text)))),
                f"{line.quantity:.2f} {line.unit}",
                money(line.amount_micro, statement.currency),
            ]
            for line in stored.lines(statement.id)
        ]
        return table([_STATEMENT, _statement_row(statement)]) + "\n\n" + table([_LINE, *lines])
    if action == "issue" and len(words) == _WITH_NAME:
        try:
            issued = Statements(metadata_store, _now_ms).issue(stored.find(name), CLI)
        except StatementConflict as error:
            raise ValueError(str(error)) from None
        return table([_STATEMENT, _statement_row(issued)])
    raise ValueError("expected `statements list`, `statements show NUMBER` or `statements issue ID`")


def _statement_row(statement: Statement) -> list[str]:
    from runvitals.server.usage.statement_lines import money

    total = f"{money(statement.total_micro, statement.currency)} {statement.currency}"
    return [
        str(statement.id),
        statement.number or "-",
        statement.period,
        inert(statement.scope_name),
        statement.state,
        total,
    ]


def _show(arguments: argparse.Namespace, metadata_store: MetadataStore, reports: UsageReports) -> None:
    from runvitals.server.http.csv_response import csv_text
    from runvitals.server.usage.focus import COLUMNS, focus_rows
    from runvitals.server.usage.reports import dimensions

    selection = _selection(arguments, metadata_store, reports)
    by = dimensions(arguments.by, ("team",))
    if arguments.format == "csv":
        columns, lines = reports.table(selection, by)
        sys.stdout.write(csv_text(columns, lines))
    elif arguments.format == "focus":
        name = str(metadata_store.accounts.settings.all().get("name") or "")
        sys.stdout.write(csv_text(COLUMNS, focus_rows(reports, selection, name)))
    elif arguments.format == "json":
        import json

        print(json.dumps(reports.report(selection, by), indent=1))
    else:
        print(_as_table(reports, selection, by))


def _selection(
    arguments: argparse.Namespace, metadata_store: MetadataStore, reports: UsageReports
) -> UsageSelection:
    from runvitals.server.usage.report import UsageSelection
    from runvitals.server.usage.reports import range_of

    first, last = range_of(arguments.month, arguments.first, arguments.last, reports.this_month())
    entity_id = None
    if arguments.team is not None:
        names = metadata_store.usage.reading.names()
        numbers = (
            number for (kind, number), name in names.items() if (kind, name) == ("entity", arguments.team)
        )
        entity_id = next(numbers, None)
        if entity_id is None:
            raise LookupError(f"no team or user {arguments.team!r} has used anything")
    return UsageSelection(first, last, entity_id)


def _as_table(reports: UsageReports, selection: UsageSelection, by: tuple[str, ...]) -> str:
    report = reports.report(selection, by)
    if not report["rows"]:
        return f"nothing was used from {report['from']} to {report['to']}"
    titles = [*by, *(name.replace("_", " ") for name in _SHOWN[:-1]), f"cost ({report['currency']})"]
    lines = [
        [*(inert(str(row[name] or "-")) for name in by), *(_cell(row[name], name) for name in _SHOWN)]
        for row in (*report["rows"], {**dict.fromkeys(by), by[0]: "all", **report["sums"]})
    ]
    return table([titles, *lines])


def _cell(value: float | None, name: str) -> str:
    if value is None:
        return "-"
    return str(value) if name in ("runs", "requests") else f"{value:.2f}"
