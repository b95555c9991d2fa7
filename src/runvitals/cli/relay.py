"""`runvitals relay`: deliver runs in the foreground; `runvitals relay status`: show delivery progress."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

from runvitals.cli import WrongUsage
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert, moment, table
from runvitals.journal import paths
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.readers.journals.run_handle import find_run, now_ms
from runvitals.readers.journals.runs import RunList
from runvitals.sdk.delivery import configured_destinations

if TYPE_CHECKING:
    from runvitals.relay.engine.cursor import Cursor
    from runvitals.relay.engine.delivery_lag import DeliveryLag

STATUS = "status"
_RELAY_TIMEOUT_S = 2.0
_HEADING = [
    "RUN", "HOST", "DESTINATION", "STATE", "LAG", "LEFT", "SAMPLES", "LOGS", "DROPPED", "LAST (UTC)",
]  # fmt: skip


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals relay`."""
    parser.usage = (
        "runvitals relay [RUN ...] [--to DESTINATION ...] [--metrics ADDRESS] [--dir DIR]\n"
        "       runvitals relay status [--json] [--dir DIR]"
    )
    parser.description = (
        "Delivers all running runs, or the named runs, until interrupted or until the named runs "
        "have ended. Skips runs that another relay delivers to the same destination. `runvitals relay "
        "status` shows the delivery progress of all runs."
    )
    parser.add_argument(
        "words",
        metavar="RUN",
        nargs="*",
        help="run ids, unique prefixes of them, names, or `latest`; default: all running runs",
    )
    parser.add_argument(
        "--to",
        metavar="DESTINATION",
        action="append",
        default=[],
        help="may be repeated; default: the settings `server` and `destinations`",
    )
    parser.add_argument(
        "--metrics",
        metavar="ADDRESS",
        help="serve the runs at http://ADDRESS/metrics for Prometheus: 127.0.0.1:9401, or a port",
    )
    parser.add_argument("--json", action="store_true", help="with `status`: print JSON")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Deliver runs until interrupted, or print the status; return the exit code."""
    if arguments.words == [STATUS]:
        return _status(arguments)
    if arguments.json:
        raise WrongUsage("--json requires `runvitals relay status`")
    return _deliver(arguments)


# -- in the foreground


def _deliver(arguments: argparse.Namespace) -> int:
    from runvitals.relay.foreground import Foreground
    from runvitals.relay.main import lower_priority

    folder = directory(arguments)
    runs = [find_run(word, folder) for word in arguments.words]
    addresses, environ = _destinations(arguments)
    if arguments.metrics:
        from runvitals.relay.destinations.prometheus import destination

        address = destination.read_address(arguments.metrics)
        page = destination.acquire(address)
        page.add_names(destination.read_names(arguments.metrics))
        _say(f"metrics at http://{address[0]}:{page.port}{destination.PATH}")
        addresses.append(f"prometheus:{arguments.metrics}")
    relay = Foreground(folder, addresses, runs, _say, os.getcwd(), environ)

    def end(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a second Ctrl-C exits at once
        relay.stop()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    lower_priority()
    what = ", ".join(runs) if runs else "all running runs"
    _say(f"delivering {what}; press Ctrl-C to stop")
    return 0 if relay.run() or not runs else 1


def _destinations(arguments: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """Return the destinations, and their environment.

    Raises:
        ValueError: no destination is configured, or an invalid one.
    """
    to = list(SETTINGS["destinations"].parse(arguments.to, "--to"))
    addresses, environ = configured_destinations(to)
    if arguments.metrics and not to:
        return [], environ  # serve the metrics page only
    if not addresses:
        raise ValueError(
            "no destination: use --to DESTINATION, --metrics ADDRESS, or the setting `destinations`"
        )
    return addresses, environ


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {inert(redaction.text(text))}", flush=True)


# -- the status


def _status(arguments: argparse.Namespace) -> int:
    from runvitals.base.progress import size_text
    from runvitals.monitoring.monitor import relay_connection
    from runvitals.relay.engine.cursor import find_cursors

    folder = directory(arguments)
    response = relay_connection.ask(folder, {"op": "hello"}, _RELAY_TIMEOUT_S)
    cursors = [
        cursor for run_id in RunList(folder).ids() for cursor in find_cursors(paths.run_dir(run_id, folder))
    ]
    if arguments.json:
        pid = None if response is None else response["pid"]
        print(json.dumps({"relay": pid, "deliveries": [_as_json(cursor) for cursor in cursors]}, indent=1))
        return 0
    print("no relay is running" if response is None else f"a relay is running, process {response['pid']}")
    if cursors:
        print(table([_HEADING, *(_row(cursor) for cursor in cursors)], right=frozenset({4, 5, 6, 7, 8})))
    for cursor in cursors:
        if uploads := cursor.state.get("uploads"):
            arrived = f"{uploads['files']:,} of {uploads['total_files']:,} files"
            sizes = f"{size_text(uploads['bytes'])} of {size_text(uploads['total_bytes'])}"
            print(f"{inert(_run_id(cursor))} to {inert(cursor.spec.shown)}: {arrived} uploaded, {sizes}")
        waiting = f"{cursor.held_records} records left: {cursor.held_why}" if cursor.held else ""
        for text in filter(None, (cursor.error, waiting, cursor.rejection, cursor.damaged)):
            problem = inert(redaction.text(text))
            print(f"{inert(_run_id(cursor))} to {inert(cursor.spec.shown)}: {problem}")
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
    """Return the lag of a delivery; None for a completed one."""
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
