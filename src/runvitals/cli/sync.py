"""`runvitals sync`: deliver what has not been delivered yet. A failure does not stop other deliveries."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from runvitals.base.progress import TransferProgress
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert
from runvitals.journal import paths
from runvitals.monitoring.environment import redaction
from runvitals.monitoring.settings.settings import SETTINGS
from runvitals.readers.journals.run_handle import find_run, now_ms
from runvitals.readers.journals.runs import RunList
from runvitals.sdk.delivery import configured_destinations

if TYPE_CHECKING:
    from runvitals.relay.engine.cursor import Cursor

# A destination is considered unreachable after this many failures in a row, with different runs.
_UNREACHABLE_AFTER = 3
_RELAY_S = 10.0
_SHOWN = 20
_WITH_PROGRESS = 2


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals sync`."""
    parser.description = (
        "Deliver runs that were recorded offline, or that a relay could not deliver. Data that "
        "was already delivered is not sent again. Failed runs are listed at the end, and the exit code is 1."
    )
    which = parser.add_mutually_exclusive_group(required=True)
    words = "run ids, unique prefixes of them, names, or `latest`"
    which.add_argument("ids", metavar="RUN", nargs="*", default=[], help=words)
    which.add_argument("--all", action="store_true", help="all runs in the data folder")
    parser.add_argument(
        "--to",
        metavar="URL",
        help="a server or other destination; default: the settings `server` and `destinations`",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors only")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Deliver the runs; return 1 if some were not fully delivered."""
    folder = directory(arguments)
    addresses, environ = _destinations(arguments.to)
    ids, failed = (RunList(folder).ids(), []) if arguments.all else _find_ids(arguments.ids, folder)
    if not ids and not failed:
        print(f"no runs in {inert(folder)}")
    for destination in addresses:
        failed += DestinationSync(destination, environ, arguments.quiet).deliver(ids, folder)
    _print_end(failed, len(ids) * len(addresses))
    return 1 if failed else 0


def _print_end(failed: Sequence[str], total: int) -> None:
    """Say at the end which deliveries failed, and that they can be repeated."""
    if failed:
        delivered = f"{total - len(failed)} of {total} delivered; " if total > len(failed) else ""
        _print_error(f"{delivered}nothing is lost: what is missing is sent when you repeat it")
        more = f" and {len(failed) - _SHOWN} more" if len(failed) > _SHOWN else ""
        _print_error(f"not delivered: {', '.join(failed[:_SHOWN])}{more}")


def deliver(ids: Sequence[str], to: str, folder: str, quiet: bool = False) -> list[str]:
    """Deliver runs of a data folder to a destination; return those not fully delivered, as text.

    Raises:
        ValueError: invalid destination.
    """
    addresses, environ = _destinations(to)
    return [
        text
        for destination in addresses
        for text in DestinationSync(destination, environ, quiet).deliver(ids, folder)
    ]


def _find_ids(references: Sequence[str], folder: str) -> tuple[list[str], list[str]]:
    """Return the ids of the runs that are named, without duplicates, and the names that match no run."""
    ids: dict[str, None] = {}
    unknown: list[str] = []
    for name in references:
        try:
            ids[find_run(name, folder)] = None
        except (LookupError, ValueError) as error:
            _print_error(str(error.args[0]))
            unknown.append(inert(name))
    return list(ids), unknown


def _print_error(text: str) -> None:
    print(f"runvitals: {inert(redaction.text(text))}", file=sys.stderr)


def _destinations(to: str | None) -> tuple[list[str], dict[str, str]]:
    """Return the destinations, and their environment.

    Raises:
        ValueError: no destination is configured, or an invalid one.
    """
    addresses, environ = configured_destinations(
        [] if to is None else SETTINGS["destinations"].parse([to], "--to")
    )
    if not addresses:
        raise ValueError("no destination: use --to URL, or the setting `server` (RUNVITALS_SERVER)")
    return addresses, environ


class DestinationSync:
    """Delivers runs to one destination until it becomes unreachable."""

    def __init__(self, destination: str, environ: Mapping[str, str], quiet: bool = False) -> None:
        self._environ = environ
        self._quiet = quiet
        self._progress: TransferProgress | None = None
        self._destination = destination
        self._failures = 0

    def deliver(self, ids: Sequence[str], folder: str) -> list[str]:
        """Deliver runs; return those not fully delivered, as text."""
        if self._quiet or len(ids) < _WITH_PROGRESS:
            return self._deliver_each(ids, folder)
        sizes = {run_id: _journal_bytes(paths.run_dir(run_id, folder)) for run_id in ids}
        with TransferProgress("delivering", sum(sizes.values()), len(ids), "runs") as self._progress:
            return self._deliver_each(ids, folder, sizes)

    def _deliver_each(
        self, ids: Sequence[str], folder: str, sizes: Mapping[str, int] = MappingProxyType({})
    ) -> list[str]:
        failed = []
        for number, run_id in enumerate(ids):
            if number and self._progress is not None:
                self._progress.add(sizes[ids[number - 1]], files=1)
            try:
                if not self._deliver(run_id, paths.run_dir(run_id, folder)):
                    failed.append(self._label(run_id))
            except (ValueError, ImportError) as error:  # the destination could not be created
                _print_error(inert(error))
                return failed + [self._label(run_id) for run_id in ids[number:]]
            if self._failures == _UNREACHABLE_AFTER and number + 1 < len(ids):
                _print_error(f"{inert(self._destination)} is unreachable: skipping the remaining runs")
                return failed + [self._label(run_id) for run_id in ids[number + 1 :]]
        return failed

    def _label(self, run_id: str) -> str:
        return f"{inert(run_id)} to {inert(self._destination)}"

    def _deliver(self, run_id: str, folder: str) -> bool:
        """Deliver a run; return whether it is fully delivered.

        Raises:
            ValueError, ImportError: the destination could not be created.
        """
        from runvitals.relay.engine.backlog import cursor_for, hosts_of_run

        try:
            parts = hosts_of_run(folder)
        except FileNotFoundError:
            _print_error(f"{inert(run_id)} was deleted")
            return False
        cursors = [cursor_for(folder, self._destination, host, os.getcwd()) for host in parts]
        if not any(cursor.has_begun for cursor in cursors) and _is_in_trash(run_id, folder):
            self._print(f"{run_id} is in the trash of this machine: it is not delivered")
            return True
        is_delivered = True
        for cursor in cursors:
            is_delivered = self._deliver_part(run_id, cursor) and is_delivered
        return is_delivered

    def _deliver_part(self, run_id: str, cursor: Cursor) -> bool:
        from runvitals.relay.destination import Gone, Retry
        from runvitals.relay.engine.backlog import TRIES, deliver_remaining

        before = dict(cursor.counts)
        # Retry with backoff only until the first failure; do not wait again for every run.
        tries = 1 if self._failures else TRIES
        try:
            deliver_remaining(cursor, time.sleep, tries, self._environ, _print_wait)
        except BlockingIOError as error:
            return self._delivered_by_relay(run_id, cursor, error)
        except Gone as error:
            _print_error(f"{inert(run_id)} ({inert(cursor.host)}): {inert(error)}")
            return False
        except (Retry, OSError) as error:
            self._failures += 1
            _print_error(f"{inert(run_id)} ({inert(cursor.host)}) was not delivered: {inert(error)}")
            return False
        self._failures = 0
        where = f"{inert(run_id)} ({inert(cursor.host)}) to {inert(self._destination)}"
        self._print(f"{where}: {_summary(cursor, before)}")
        return not cursor.held and not cursor.counts["rejected"]

    def _delivered_by_relay(self, run_id: str, cursor: Cursor, error: BlockingIOError) -> bool:
        """Ask the relay that delivers a run to finish; return whether it is fully delivered."""
        from runvitals.monitoring.monitor.relay_connection import ask

        folder = os.path.dirname(os.path.dirname(cursor.folder))
        response = ask(folder, {"op": "flush", "run": run_id, "timeout_s": _RELAY_S}, 2 * _RELAY_S)
        reports = [] if response is None else response["destinations"]
        report = next((entry for entry in reports if entry["destination"] == cursor.spec.text), None)
        where = f"{inert(run_id)} ({inert(cursor.host)})"
        if report is None:
            _print_error(f"{where}: {inert(error)}")
            return False
        if not report["delivered"] or report["rejected"]:
            left = f"{report['left']} records left, {report['rejected']} batches rejected"
            _print_error(f"{where} was not delivered by the relay: {left}: {inert(report['error'])}")
            return False
        self._print(f"{where} to {self._destination}: delivered by the relay")
        return True

    def _print(self, text: str) -> None:
        if self._quiet:
            return
        line = inert(redaction.text(text))
        print(line) if self._progress is None else self._progress.print(line)


def _journal_bytes(folder: str) -> int:
    """Return the size of a run's journal; 0 of one that was deleted meanwhile."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat().st_size for entry in entries if entry.name.endswith(paths.SUFFIX))
    except OSError:
        return 0


def _is_in_trash(run_id: str, folder: str) -> bool:
    run = RunList(os.path.dirname(os.path.dirname(folder))).run(run_id, now_ms())
    return run is not None and run.deleted_ms is not None


def _print_wait(error: Exception, wait_s: float) -> None:
    _print_error(f"{inert(error)}; trying again in {wait_s:.0f} s")


def _summary(cursor: Cursor, before: dict[str, int]) -> str:
    new = {name: count - before[name] for name, count in cursor.counts.items()}
    text = f"{new['samples']} samples, {new['logs']} log() rows, {new['notes']} other records"
    if cursor.counts["rejected"]:
        when = "" if new["rejected"] else " before"
        text += f"; {cursor.counts['rejected']} batches were rejected{when}: {inert(cursor.rejection)}"
    if cursor.held:
        text += f"; {cursor.held_records} records left: {inert(cursor.held_why)}"
    return text
