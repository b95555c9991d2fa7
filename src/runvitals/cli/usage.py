"""`runvitals usage`: what runs used in a month and what it cost; computing a month again."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from runvitals.cli import WrongUsage
from runvitals.cli.account_api import AccountApi, api_in_process, now_ms, opened_metadata
from runvitals.cli.formatting import inert, table
from runvitals.cli.store_options import add_store, open_sample_store

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore

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
_SMALL = 0.005
_WITH_NAME = 2  # words


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals usage`."""
    parser.description = (
        "Reads the server's metadata store, also while the server is running. "
        "`runvitals usage rebuild` computes a month again from the samples; stop the server first. "
        "`runvitals usage statements list`, `… show NUMBER` and `… issue ID` are about statements."
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
    parser.add_argument("--json", action="store_true", help="the same as --format json; also of statements")
    add_store(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the usage or statements, or compute a month again; return 0."""
    if arguments.words and arguments.action != "statements":
        raise WrongUsage(f"unexpected {arguments.words[0]!r}")
    with opened_metadata(arguments) as metadata_store:
        if arguments.action == "rebuild":
            return _rebuild(arguments, metadata_store)
        with api_in_process(metadata_store) as api:
            if arguments.action == "statements":
                print(_statements(api, arguments))
            else:
                _show(api, arguments)
    return 0


def _rebuild(arguments: argparse.Namespace, metadata_store: MetadataStore) -> int:
    """Compute a month again from the samples. The sample store allows one process at a time."""
    from runvitals.server.usage.days import Month
    from runvitals.server.usage.reports import UsageReports
    from runvitals.server.usage.rollup import UsageRollup

    name = arguments.month
    month = UsageReports(metadata_store, now_ms).this_month() if name is None else Month.named(name)
    with open_sample_store(arguments) as store:
        count = UsageRollup(store, metadata_store, now_ms).rebuild(month)
    print(f"computed {count} days of runs of {month.name}")
    return 0


def _statements(api: AccountApi, arguments: argparse.Namespace) -> str:
    words, as_json = arguments.words, arguments.json
    action, number = (*words, "", "")[:2] if words else ("list", "")
    if action == "list" and len(words) <= 1:
        page = api.get("/billing/statements", [("period", arguments.month), ("limit", _STATEMENTS)])
        rows = page["statements"]
        if as_json:
            return json.dumps(rows, indent=1)
        left_out = f"\n{page['total'] - len(rows)} older ones: see --month" if page["next"] else ""
        return f"{table([_STATEMENT, *map(_statement_row, rows)])}{left_out}"
    if action == "show" and len(words) == _WITH_NAME:
        path = "/billing/statements/{number}"
        statement = api.get(path, number=number)
        if as_json:
            every = list(api.every(path, "lines", (), number=number))
            return json.dumps({**statement, "lines": every}, indent=1)
        lines = [
            [
                inert(line["project"] or ""),
                inert(" ".join(filter(None, (line["category"], line["model"], line["text"])))),
                f"{_figure(line['quantity'])} {line['unit']}",
                _money(line["amount"], statement["currency"]),
            ]
            for line in api.every(path, "lines", (), number=number)
        ]
        return table([_STATEMENT, _statement_row(statement)]) + "\n\n" + table([_LINE, *lines])
    if action == "issue" and len(words) == _WITH_NAME:
        issued = api.send("POST", "/billing/statements/{draft}/issue", draft=number)
        return json.dumps(issued, indent=1) if as_json else table([_STATEMENT, _statement_row(issued)])
    raise WrongUsage("expected `statements list`, `statements show NUMBER` or `statements issue ID`")


def _statement_row(statement: dict[str, Any]) -> list[str]:
    currency = statement["currency"]
    return [
        str(statement["id"]),
        statement["number"] or "-",
        statement["period"],
        inert(statement["scope"]),
        statement["state"],
        f"{_money(statement['total'], currency)} {currency}",
    ]


def _money(amount: float, currency: str) -> str:
    from runvitals.server.usage.statement_lines import digits

    return f"{amount:.{digits(currency)}f}"


def _show(api: AccountApi, arguments: argparse.Namespace) -> None:
    selection = [
        ("month", arguments.month),
        ("from", arguments.first),
        ("to", arguments.last),
        ("entity", arguments.team),
    ]
    if arguments.format == "focus":
        sys.stdout.write(api.get("/usage/focus.csv", selection).replace("\r\n", "\n"))
        return
    selection.append(("by", arguments.by))
    if arguments.format == "csv":
        sys.stdout.write(api.get("/usage.csv", selection).replace("\r\n", "\n"))
        return
    report = api.get("/usage", selection)
    as_json = arguments.json or arguments.format == "json"
    print(json.dumps(report, indent=1) if as_json else _as_table(report))


def _as_table(report: dict[str, Any]) -> str:
    if not report["rows"]:
        return f"nothing was used from {report['from']} to {report['to']}"
    by = [name for name in report["rows"][0] if name not in report["sums"]]
    titles = [*by, *(name.replace("_", " ") for name in _SHOWN[:-1]), f"cost ({report['currency']})"]
    lines = [
        [*(inert(str(row[name] or "-")) for name in by), *(_cell(row[name], name) for name in _SHOWN)]
        for row in (*report["rows"], {**dict.fromkeys(by), by[0]: "all", **report["sums"]})
    ]
    return table([titles, *lines])


def _cell(value: float | None, name: str) -> str:
    if value is None:
        return "-"
    return str(value) if name in ("runs", "requests") else _figure(value)


def _figure(value: float) -> str:
    """Return a number with two decimals; a small one is not shown as none."""
    return "<0.01" if 0 < value < _SMALL else f"{value:.2f}"
