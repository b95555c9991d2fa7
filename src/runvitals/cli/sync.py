"""`runvitals sync`: deliver what is not delivered yet, now."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING, Any

from runvitals.cli.folder import add_dir, directory
from runvitals.cli.terminal import inert
from runvitals.journal import paths
from runvitals.query.opened import find_run
from runvitals.query.runs import RunList
from runvitals.sdk.delivery import destinations
from runvitals.sdk.settings import SETTINGS, resolve

if TYPE_CHECKING:
    from runvitals.relay.cursor import Cursor


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "sync",
        help="deliver runs, or what is left of them, to a server",
        description="Deliver what was recorded offline, or what a relay could not. What was delivered before "
        "is not sent again. Exit code 1 if anything is left.",
    )
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("ids", metavar="RUN", nargs="*", default=[], help="run ids, or their beginnings")
    which.add_argument("--all", action="store_true", help="every run of the data folder")
    parser.add_argument(
        "--to",
        metavar="URL",
        help="a server, or any destination; default: the settings `server` and `destinations`",
    )
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    folder = directory(arguments)
    wanted = _wanted(arguments.to)
    ids = RunList(folder).ids() if arguments.all else [find_run(one, folder) for one in arguments.ids]
    done = [_deliver(run_id, paths.run_dir(run_id, folder), one) for one in wanted for run_id in ids]
    if not ids:
        print(f"no runs in {inert(folder)}")
    return 0 if all(done) else 1


def _wanted(to: str | None) -> list[str]:
    """The destinations.

    Raises:
        ValueError: none is named anywhere, or a wrong one.
    """
    if to is not None:
        return list(SETTINGS["destinations"].parse([to], "--to"))
    found = destinations({**resolve({}, os.environ, os.getcwd()), "mode": "online"})
    if not found:
        raise ValueError("where to? --to URL, or the setting `server` (RUNVITALS_SERVER)")
    return found


def _deliver(run_id: str, folder: str, destination: str) -> bool:
    """Whether all of a run is delivered.

    Raises:
        OSError: the far side is not there, so that there is no use in going on.
    """
    from runvitals.relay.backlog import cursor_for, deliver_rest, hosts
    from runvitals.relay.destination import Gone, Retry

    whole = True
    for host in hosts(folder):
        cursor = cursor_for(folder, destination, host, os.getcwd())
        before = dict(cursor.counts)
        try:
            deliver_rest(cursor, time.sleep)
        except (Gone, BlockingIOError) as error:
            print(f"runvitals: {inert(run_id)} ({inert(host)}): {inert(error)}", file=sys.stderr)
            whole = False
        except Retry as error:
            raise OSError(f"{run_id} is not delivered: {error}") from error
        else:
            print(f"{inert(run_id)} ({inert(host)}) to {inert(destination)}: {_said(cursor, before)}")
            whole = whole and cursor.counts["rejected"] == before["rejected"]
    return whole


def _said(cursor: Cursor, before: dict[str, int]) -> str:
    new = {name: count - before[name] for name, count in cursor.counts.items()}
    text = f"{new['samples']} samples, {new['logs']} log() rows, {new['notes']} other records"
    if new["rejected"]:
        text += f"; {new['rejected']} batches were not accepted: {inert(cursor.rejection)}"
    return text
