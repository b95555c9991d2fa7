"""`runvitals export RUN`: all samples, or all `log()` calls, as CSV or JSON lines.

Streams the journal: memory use does not depend on the run's length.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from heapq import merge
from typing import Any, TextIO, get_args

from runvitals.base.progress import WorkProgress
from runvitals.base.terminal_text import inert, raw
from runvitals.cli import WrongUsage
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import iso
from runvitals.cli.show import RUN_HELP
from runvitals.journal import frames, paths
from runvitals.journal.reader import WriterTail
from runvitals.journal.records import Record
from runvitals.model.metrics import mlflow
from runvitals.model.run_json import finite
from runvitals.model.spreadsheets import inert_cell
from runvitals.readers.journals.history import leaves
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.readers.journals.run_builder import RunBuilder
from runvitals.readers.journals.run_handle import Names, find_run

_SHOWN_KEYS = 20


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One row of the export: time, origin (host, rank, step), and values by key."""

    time_ms: int
    origin: dict[str, Any]
    values: dict[str, Any]


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals export`."""
    parser.description = (
        "Export all samples of a run at full resolution, ordered by time. CSV has one column per "
        "key, empty where there is no value. JSON lines contain null for a gap and omit keys that were not "
        "sampled. Rates are not stored: derive them from the counters, or use "
        "runvitals.open_run(…).metrics()."
    )
    parser.add_argument("id", metavar="RUN", help=RUN_HELP)
    parser.add_argument("--format", choices=("csv", "jsonl"), default="csv", help="default: csv")
    parser.add_argument(
        "--keys",
        nargs="+",
        action="extend",
        default=[],
        metavar="GLOB",
        help="only matching keys, e.g. cpu 'gpu.*'",
    )
    parser.add_argument(
        "--names",
        choices=get_args(Names),
        default="runvitals",
        help="mlflow: use MLflow's names and units where MLflow has one; default: runvitals",
    )
    parser.add_argument("--history", action="store_true", help="export log() rows instead of samples")
    parser.add_argument("-o", "--output", metavar="FILE", help="output file; default: standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="do not show how far it is")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the samples or rows of a run; return 0."""
    folder = directory(arguments)
    if arguments.history and arguments.names != "runvitals":
        raise WrongUsage(
            f"--names {arguments.names} applies to samples only and cannot be combined with --history"
        )
    run_folder = paths.run_dir(find_run(arguments.id, folder), folder)
    journal = JournalExport(run_folder, KeyFilter(arguments.keys), arguments.names)
    rows = journal.history if arguments.history else journal.samples
    if arguments.keys and next(iter(rows()), None) is None:
        raise ValueError(_no_match(arguments.keys, journal.keys))
    origins = ("host", "rank", "step") if arguments.history else ("host",)
    with _naming_output(arguments.output), ExitStack() as files:
        out = sys.stdout if sys.stdout.isatty() else _data_output()
        if arguments.output:
            out = files.enter_context(
                open(arguments.output, "w", encoding="utf-8", newline="", opener=_private)
            )
        progress = WorkProgress("exporting", 0, "rows", io.StringIO() if _is_silent(arguments) else None)
        files.enter_context(progress)
        if arguments.format == "csv":
            write_csv(rows, origins, out, progress)
        else:
            write_jsonl(rows(), "data" if arguments.history else "metrics", out, progress)
        out.flush()
    for problem in journal.problems:
        print(f"runvitals: {inert(problem)}", file=sys.stderr)
    return 0


def _data_output() -> TextIO:
    """Return standard output for data, which is UTF-8 in every locale."""
    stream = raw(sys.stdout)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8")
    return stream


def _is_silent(arguments: argparse.Namespace) -> bool:
    """Return whether nothing says how far it is: the rows on the screen do."""
    return arguments.quiet or (arguments.output is None and sys.stdout.isatty())


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read, as the journals are, unless it exists."""
    return os.open(path, flags, 0o600)


@contextmanager
def _naming_output(path: str | None) -> Iterator[None]:
    """Add the name of the output to errors of writing to it, which name no file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is None:
            error.filename = path or "standard output"
        raise


def _no_match(globs: Sequence[str], keys: Sequence[str]) -> str:
    """Return the error for globs that match no key, with the keys that there are."""
    key_list = ", ".join(keys[:_SHOWN_KEYS]) + (
        f" and {len(keys) - _SHOWN_KEYS} more" * (len(keys) > _SHOWN_KEYS)
    )
    return f"--keys {' '.join(globs)}: no key matches; the run has {key_list or 'no keys'}"


class JournalExport:
    """A run's rows, ordered by time. Iterating again yields the same rows, even while the run is running.

    Attributes:
        keys: all keys found so far, matching or not.
    """

    def __init__(self, folder: str, key_filter: KeyFilter, names: str = "runvitals") -> None:
        self._folder = folder
        self._key_filter = key_filter
        self._in_mlflow = names == "mlflow"
        self._plans: dict[tuple[str, ...], list[tuple[int, str, float]]] = {}
        self._keys: dict[str, None] = {}
        self._segments = paths.segments(folder)
        self._facts = RunBuilder("")
        self._until: dict[str, int] = {}  # writer → its last record in the first iteration
        self.problems: list[str] = []

    def samples(self) -> Iterator[ExportRow]:
        """Yield the samples with matching keys."""
        for record in self._records(frames.SAMPLE):
            row = record.values
            values = {name: row[column] * factor for column, name, factor in self._plan(record.keys)}
            if values:
                yield ExportRow(record.time_ms, {"host": self._facts.writer(record.writer).host}, values)

    def history(self) -> Iterator[ExportRow]:
        """Yield the rows of `log()`. Of media, the names and SHA-256 of their files in the run's folder."""
        for record in self._records(frames.HISTORY, frames.MEDIA):
            logged = _values_by_name(record)
            self._keys.update(dict.fromkeys(logged))
            values = {k: v for k, v in logged.items() if self._key_filter(k)}
            if values:
                writer = self._facts.writer(record.writer)
                origin = {"host": writer.host, "rank": writer.rank, "step": record.value.get("step")}
                yield ExportRow(record.time_ms, origin, values)

    @property
    def keys(self) -> list[str]:
        """All keys found so far, sorted, matching or not."""
        return sorted(self._keys)

    def _plan(self, keys: Sequence[str]) -> list[tuple[int, str, float]]:
        """Return (column, name, factor) of each matching value of a sample."""
        key_tuple = tuple(keys)
        plan = self._plans.get(key_tuple)
        if plan is None:
            self._keys.update(dict.fromkeys(key_tuple))
            names = mlflow.rename_all(key_tuple) if self._in_mlflow else {}
            plan = self._plans[key_tuple] = [
                (column, *names.get(key, (key, 1.0)))
                for column, key in enumerate(key_tuple)
                if self._key_filter(key)
            ]
        return plan

    def _records(self, *types: int) -> Iterator[Record]:
        return merge(
            *(self._of_writer(writer, types) for writer in self._segments), key=lambda record: record.time_ms
        )

    def _of_writer(self, writer: str, types: tuple[int, ...]) -> Iterator[Record]:
        tail = WriterTail(self._folder, writer)
        until = self._until.get(writer)
        last = -1
        for record in tail.poll(self._segments[writer]):
            if until is not None and record.seq > until:
                break
            last = record.seq
            if record.type == frames.START:
                self._facts.add(record)
            elif record.type in types:
                yield record
        if until is None:
            self._until[writer] = last
            self.problems += [str(problem) for problem in tail.problems]


def _values_by_name(record: Record) -> dict[str, Any]:
    """Return the values that a record of a row, or of media, logged."""
    if record.type == frames.MEDIA:
        return {record.value["key"]: record.value["items"]}
    return dict(leaves(record.value.get("data") or {}))


def write_csv(
    rows: Callable[[], Iterable[ExportRow]], origins: Sequence[str], out: TextIO, progress: WorkProgress
) -> None:
    """Write one line per row and one column per key, with text that no spreadsheet runs as a formula.

    Iterates twice: first to collect the keys.
    """
    key_order: dict[str, None] = {}
    total = 0
    for row in rows():
        total += 1
        key_order.update(dict.fromkeys(row.values))
    keys = list(key_order)
    progress.expect(total)
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(["time_ms", "time", *origins, *map(inert_cell, keys)])
    for row in rows():
        cells = [*(row.origin[name] for name in origins), *(row.values.get(key) for key in keys)]
        lines.writerow([row.time_ms, iso(row.time_ms), *map(_cell, cells)])
        progress.add()


def _cell(value: object) -> object:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return inert_cell(value)
    return value if isinstance(value, int) else json.dumps(finite(value))


def write_jsonl(rows: Iterable[ExportRow], name: str, out: TextIO, progress: WorkProgress) -> None:
    """Write one JSON object per row, with its values under `name`."""
    for row in rows:
        values = {key: finite(value) for key, value in row.values.items()}
        line = {"time_ms": row.time_ms, "time": iso(row.time_ms), **row.origin, name: values}
        out.write(json.dumps(line, allow_nan=False) + "\n")
        progress.add()
