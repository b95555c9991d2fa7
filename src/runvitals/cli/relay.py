"""`runvitals relay`: deliver runs in the foreground; `runvitals relay status`: how far they are delivered."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert, moment, table
from runvitals.environment import redaction
from runvitals.journal import paths
from runvitals.query.run_handle import find_run, now_ms
from runvitals.query.runs import RunList
from runvitals.sdk.delivery import configured
from runvitals.sdk.settings import SETTINGS

if TYPE_CHECKING:
    from runvitals.relay.engine.cursor import Cursor
    from runvitals.relay.engine.delivery_lag import DeliveryLag

STATUS = "status"
_ANSWER_S = 2.0
_HEADING = [
    "RUN", "HOST", "DESTINATION", "STATE", "LAG", "LEFT", "SAMPLES", "LOGS", "DROPPED", "LAST (UTC)",
]  # fmt: skip


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "relay",
        help="deliver runs while they go on; `relay status`: how far they are",
        usage="runvitals relay [RUN ...] [--to DESTINATION ...] [--metrics ADDRESS] [--dir DIR]\n"
        "       runvitals relay status [--json] [--dir DIR]",
        description="Delivers every run that goes on here, or the runs that are named, until it is "
        "interrupted or the named runs are over. A run that another relay delivers to the same place is left "
        "to it. `runvitals relay status` tells how far every run is delivered.",
    )
    parser.add_argument(
        "words", metavar="RUN", nargs="*", help="ids or their beginnings; default: every run that goes on"
    )
    parser.add_argument(
        "--to",
        metavar="DESTINATION",
        action="append",
        default=[],
        help="where to, may come several times; default: the settings `server` and `destinations`",
    )
    parser.add_argument(
        "--metrics",
        metavar="ADDRESS",
        help="show the runs at http://ADDRESS/metrics for Prometheus: 127.0.0.1:9401, or a port of this host",
    )
    parser.add_argument("--json", action="store_true", help="of `status`")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    if arguments.words == [STATUS]:
        return _status(arguments)
    if arguments.json:
        raise ValueError("--json is for `runvitals relay status`")
    return _deliver(arguments)


# -- in the foreground


def _deliver(arguments: argparse.Namespace) -> int:
    from runvitals.relay.foreground import Foreground
    from runvitals.relay.main import lower_priority

    folder = directory(arguments)
    runs = [find_run(one, folder) for one in arguments.words]
    wanted, environ = _wanted(arguments)
    if arguments.metrics:
        from runvitals.relay.destinations.prometheus import destination

        address = destination.read_address(arguments.metrics)
        page = destination.acquire(address)
        page.answer_to(destination.read_names(arguments.metrics))
        _say(f"metrics at http://{address[0]}:{page.port}{destination.PATH}")
        wanted.append(f"prometheus:{arguments.metrics}")
    relay = Foreground(folder, wanted, runs, _say, os.getcwd(), environ)

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever is in a hurry says so twice
        relay.end()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    lower_priority()
    what = ", ".join(runs) if runs else "every run that goes on"
    _say(f"delivering {what}; Ctrl-C ends it")
    return 0 if relay.run() or not runs else 1


def _wanted(arguments: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """The destinations, and the environment that they see.

    Raises:
        ValueError: none is named anywhere, or a wrong one.
    """
    to = list(SETTINGS["destinations"].parse(arguments.to, "--to"))
    found, environ = configured(to)
    if arguments.metrics and not to:
        return [], environ  # a page to be read, and nothing else
    if not found:
        raise ValueError("where to? --to DESTINATION, --metrics ADDRESS, or the settings `destinations`")
    return found, environ


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {inert(redaction.text(text))}", flush=True)


# -- the status


def _status(arguments: argparse.Namespace) -> int:
    from runvitals.monitor import relay_connection
    from runvitals.relay.engine.cursor import cursors_of

    folder = directory(arguments)
    answer = relay_connection.ask(folder, {"op": "hello"}, _ANSWER_S)
    cursors = [
        cursor for run_id in RunList(folder).ids() for cursor in cursors_of(paths.run_dir(run_id, folder))
    ]
    if arguments.json:
        pid = None if answer is None else answer["pid"]
        print(json.dumps({"relay": pid, "deliveries": [_as_json(one) for one in cursors]}, indent=1))
        return 0
    print("no relay is running" if answer is None else f"a relay is running, process {answer['pid']}")
    if cursors:
        print(table([_HEADING, *(_row(one) for one in cursors)], right=frozenset({4, 5, 6, 7, 8})))
    for one in cursors:
        held = f"{one.held_records} records are left: {one.held_why}" if one.held else ""
        for text in filter(None, (one.error, held, one.rejection, one.damaged)):
            said = inert(redaction.text(text))
            print(f"{inert(_run_id(one))} to {inert(one.spec.shown)}: {said}")
    return 0


def _run_id(cursor: Cursor) -> str:
    return cursor.folder.rstrip("/").rpartition("/")[2]


def _row(cursor: Cursor) -> list[str]:
    counts, behind = cursor.counts, _lag(cursor)
    return [
        inert(_run_id(cursor)),
        inert(cursor.host),
        inert(cursor.spec.shown),
        inert(_state(cursor)),
        "-" if behind is None else f"{behind.seconds(now_ms()):.0f} s",
        "-" if behind is None else str(behind.records),
        *(str(counts[name]) for name in ("samples", "logs", "dropped")),
        moment(cursor.delivered_ms) if cursor.delivered_ms else "-",
    ]


def _lag(cursor: Cursor) -> DeliveryLag | None:
    """None of a delivery that is over."""
    from runvitals.relay.engine.delivery_lag import delivery_lag
    from runvitals.relay.foreground import STOPPED

    return delivery_lag(cursor) if cursor.closed in ("", STOPPED) else None


def _state(cursor: Cursor) -> str:
    return cursor.closed or ("failing" if cursor.error else "held" if cursor.held else "open")


def _as_json(cursor: Cursor) -> dict[str, Any]:
    behind = _lag(cursor)
    return {
        "run": _run_id(cursor),
        "host": cursor.host,
        "destination": cursor.spec.shown,
        "state": _state(cursor),
        "lag": None if behind is None else {"seconds": behind.seconds(now_ms()), "records": behind.records},
        "counts": cursor.counts,
        "delivered_ms": cursor.delivered_ms or None,
        "error": redaction.text(cursor.error) or None,
        "rejection": redaction.text(cursor.rejection) or None,
        "held": {"records": cursor.held_records, "why": redaction.text(cursor.held_why)}
        if cursor.held
        else None,
    }
