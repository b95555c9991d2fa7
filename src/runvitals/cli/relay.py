"""`runvitals relay`: how far runs are delivered."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from runvitals.cli.folder import add_dir, directory
from runvitals.cli.terminal import inert, moment, table
from runvitals.journal import paths
from runvitals.query.runs import RunList

if TYPE_CHECKING:
    from runvitals.relay.cursor import Cursor

_ANSWER_S = 2.0


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("relay", help="how far runs are delivered to servers and elsewhere")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    status = actions.add_parser("status", help="the relay of the data folder, and every run it knows of")
    status.add_argument("--json", action="store_true", help="as JSON")
    add_dir(status)


def run(arguments: argparse.Namespace) -> int:
    from runvitals.monitor import relay
    from runvitals.relay.cursor import cursors_of

    folder = directory(arguments)
    answer = relay.ask(folder, {"op": "hello"}, _ANSWER_S)
    cursors = [
        cursor for run_id in RunList(folder).ids() for cursor in cursors_of(paths.run_dir(run_id, folder))
    ]
    if arguments.json:
        pid = None if answer is None else answer["pid"]
        print(json.dumps({"relay": pid, "deliveries": [_as_json(one) for one in cursors]}, indent=1))
        return 0
    print("no relay is running" if answer is None else f"a relay is running, process {answer['pid']}")
    if cursors:
        heading = ["RUN", "HOST", "DESTINATION", "STATE", "SAMPLES", "LOGS", "REJECTED", "LAST (UTC)"]
        print(table([heading, *(_row(one) for one in cursors)], right=frozenset({4, 5, 6})))
    for one in cursors:
        for text in filter(None, (one.error, one.rejection, one.damaged)):
            print(f"{inert(_run_id(one))} to {inert(one.spec.text)}: {inert(text)}")
    return 0


def _run_id(cursor: Cursor) -> str:
    return cursor.folder.rstrip("/").rpartition("/")[2]


def _row(cursor: Cursor) -> list[str]:
    counts = cursor.counts
    return [
        inert(_run_id(cursor)),
        inert(cursor.host),
        inert(cursor.spec.text),
        inert(_state(cursor)),
        *(str(counts[name]) for name in ("samples", "logs", "rejected")),
        moment(cursor.delivered_ms) if cursor.delivered_ms else "-",
    ]


def _state(cursor: Cursor) -> str:
    return cursor.closed or ("failing" if cursor.error else "open")


def _as_json(cursor: Cursor) -> dict[str, Any]:
    return {
        "run": _run_id(cursor),
        "host": cursor.host,
        "destination": cursor.spec.text,
        "state": _state(cursor),
        "counts": cursor.counts,
        "delivered_ms": cursor.delivered_ms or None,
        "error": cursor.error or None,
        "rejection": cursor.rejection or None,
    }
