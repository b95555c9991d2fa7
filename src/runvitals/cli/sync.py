"""`runvitals sync`: deliver what is not delivered yet, now. What fails holds up nothing else."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert
from runvitals.environment import redaction
from runvitals.journal import paths
from runvitals.query.run_handle import find_run
from runvitals.query.runs import RunList
from runvitals.sdk.delivery import configured
from runvitals.sdk.settings import SETTINGS

if TYPE_CHECKING:
    from runvitals.relay.engine.cursor import Cursor

# A destination that fails so often in a row, with different runs, is not there.
_AWAY_AFTER = 3


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "sync",
        help="deliver runs, or what is left of them, to a server",
        description="Deliver what was recorded offline, or what a relay could not. What was delivered before "
        "is not sent again. What fails is named at the end, and the exit code is 1.",
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
    wanted, environ = _wanted(arguments.to)
    ids, failed = (RunList(folder).ids(), []) if arguments.all else _found(arguments.ids, folder)
    if not ids and not failed:
        print(f"no runs in {inert(folder)}")
    for destination in wanted:
        failed += Errand(destination, environ).deliver(ids, folder)
    if failed:
        _complain(f"not delivered: {', '.join(failed)}")
    return 1 if failed else 0


def _found(named: Sequence[str], folder: str) -> tuple[list[str], list[str]]:
    """The runs that are meant, each once, and the words that mean none."""
    ids: dict[str, None] = {}
    unknown: list[str] = []
    for one in named:
        try:
            ids[find_run(one, folder)] = None
        except (LookupError, ValueError) as error:
            _complain(str(error.args[0]))
            unknown.append(inert(one))
    return list(ids), unknown


def _complain(text: str) -> None:
    print(f"runvitals: {redaction.text(text)}", file=sys.stderr)


def _wanted(to: str | None) -> tuple[list[str], dict[str, str]]:
    """The destinations, and the environment that they see.

    Raises:
        ValueError: none is named anywhere, or a wrong one.
    """
    found, environ = configured([] if to is None else SETTINGS["destinations"].parse([to], "--to"))
    if not found:
        raise ValueError("where to? --to URL, or the setting `server` (RUNVITALS_SERVER)")
    return found, environ


class Errand:
    """Takes runs to one destination, as long as it is there."""

    def __init__(self, destination: str, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._destination = destination
        self._failures = 0

    def deliver(self, ids: Sequence[str], folder: str) -> list[str]:
        """The runs that are not delivered to the end, as a person reads it."""
        failed = []
        for number, run_id in enumerate(ids):
            try:
                if not self._deliver(run_id, paths.run_dir(run_id, folder)):
                    failed.append(self._named(run_id))
            except (ValueError, ImportError) as error:  # there can be no such destination
                _complain(inert(error))
                return failed + [self._named(one) for one in ids[number:]]
            if self._failures == _AWAY_AFTER and number + 1 < len(ids):
                _complain(f"{inert(self._destination)} is not there: no more runs are tried")
                return failed + [self._named(one) for one in ids[number + 1 :]]
        return failed

    def _named(self, run_id: str) -> str:
        return f"{inert(run_id)} to {inert(self._destination)}"

    def _deliver(self, run_id: str, folder: str) -> bool:
        """Whether all of a run is delivered.

        Raises:
            ValueError, ImportError: no destination can be made.
        """
        from runvitals.relay.engine.backlog import cursor_for, hosts

        try:
            parts = hosts(folder)
        except FileNotFoundError:
            _complain(f"{inert(run_id)} was deleted")
            return False
        whole = True
        for host in parts:
            cursor = cursor_for(folder, self._destination, host, os.getcwd())
            whole = self._deliver_part(run_id, cursor) and whole
        return whole

    def _deliver_part(self, run_id: str, cursor: Cursor) -> bool:
        from runvitals.relay.destination import Gone, Retry
        from runvitals.relay.engine.backlog import TRIES, deliver_rest

        before = dict(cursor.counts)
        # The first failure is waited out; a server that stays away is not waited for with every run.
        tries = 1 if self._failures else TRIES
        try:
            deliver_rest(cursor, time.sleep, tries, self._environ)
        except (Gone, BlockingIOError) as error:
            _complain(f"{inert(run_id)} ({inert(cursor.host)}): {inert(error)}")
            return False
        except (Retry, OSError) as error:
            self._failures += 1
            _complain(f"{inert(run_id)} ({inert(cursor.host)}) is not delivered: {inert(error)}")
            return False
        self._failures = 0
        where = f"{inert(run_id)} ({inert(cursor.host)}) to {inert(self._destination)}"
        print(redaction.text(f"{where}: {_said(cursor, before)}"))
        return not cursor.held and cursor.counts["rejected"] == before["rejected"]


def _said(cursor: Cursor, before: dict[str, int]) -> str:
    new = {name: count - before[name] for name, count in cursor.counts.items()}
    text = f"{new['samples']} samples, {new['logs']} log() rows, {new['notes']} other records"
    if new["rejected"]:
        text += f"; {new['rejected']} batches were not accepted: {inert(cursor.rejection)}"
    if cursor.held:
        text += f"; {cursor.held_records} records are left: {inert(cursor.held_why)}"
    return text
