"""Follows a `.wandb` file: writes a journal with what it has, and with what a running program adds to it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from runvitals.base.protobuf import Malformed
from runvitals.journal import paths
from runvitals.readers.wandb_files.images import WandbImages
from runvitals.readers.wandb_files.importer import (
    CRASHED_AFTER_S,
    ImportResult,
    RunImporter,
    by_machine,
    first_pass,
)
from runvitals.readers.wandb_files.records import (
    END_READERS,
    EntriesChange,
    HistoryRow,
    Record,
    RunExit,
    RunStart,
    StatsSample,
    decode,
)
from runvitals.readers.wandb_files.transaction_log import BLOCK_BYTES, TransactionLog

_END_BYTES = 8 * BLOCK_BYTES


class WandbFollower:
    """A `.wandb` file as a journal that grows with it.

    Args:
        path: the file. It is not changed.
        directory: the data folder in which the journal is written.

    Attributes:
        progress: the share of the file that was read, 1.0 once its end was reached.
        images: those that its rows name.

    Raises:
        ValueError: not a `.wandb` file, or it contains no run.
        OSError: the file cannot be read, or the journal cannot be written.
    """

    def __init__(self, path: str, directory: str) -> None:
        run, interval_s = first_pass(path)
        self.path = path
        self.run_id = paths.safe_name(run.run)
        self.progress = 0.0
        self.images = WandbImages(path, run.host)
        self._has_ended = False
        self._exit: RunExit | None = None
        result = ImportResult(self.run_id, run.project or "default")
        self._writer = RunImporter(paths.run_dir(self.run_id, directory), run, interval_s, result, "")
        self._file = open(path, "rb")  # noqa: SIM115 - until `close`
        self._log = TransactionLog(self._file, path)

    def poll(self, most_bytes: int | None = None) -> None:
        """Write what was added to the file.

        Args:
            most_bytes: go on with the next call after about as much; None: read to the end.

        Raises:
            OSError: the file cannot be read, or the journal cannot be written.
        """
        if self._has_ended:
            return
        start = self._log.position
        for payload in self._log.records():
            try:
                record = decode(payload)
            except Malformed:
                continue
            if isinstance(record, RunExit):
                self._exit = record
            elif isinstance(record, HistoryRow):
                self._writer.keep(self.images.take(record))
            elif record is not None:
                self._writer.keep(record)
            if most_bytes is not None and self._log.position - start >= most_bytes:
                size = os.fstat(self._file.fileno()).st_size
                self.progress = max(self.progress, min(self._log.position / size, 0.99))
                return
        self.progress = 1.0
        written_s = os.fstat(self._file.fileno()).st_mtime
        self._has_ended = self._exit is not None or time.time() - written_s >= CRASHED_AFTER_S
        self._writer.end(self._exit, written_s)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class WandbFile:
    """A `.wandb` file as a list shows it.

    `exit_code` is None without a recorded end. `last` has the newest value of each system metric near the end
    of the file, by the label of the machine; `summary` has what was set there of the summary.
    """

    path: str
    run: RunStart
    exit_code: int | None
    ended_ms: int | None
    written_ms: int
    last: dict[str, dict[str, float]] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)

    def is_running(self, now_ms: int) -> bool:
        """Return whether the run may be running: it has no end, and its file changed a short time ago."""
        return self.ended_ms is None and now_ms - self.written_ms < 1000 * CRASHED_AFTER_S


def summary(path: str) -> WandbFile:
    """Read the run of a file from its start and its end.

    Raises:
        ValueError: not a `.wandb` file, or it contains no run.
        OSError: the file cannot be read.
    """
    run, _ = first_pass(path)
    with open(path, "rb") as file:
        log = TransactionLog(file, path)
        status = os.fstat(file.fileno())
        log.skip_to_block(max(status.st_size - _END_BYTES, 0))
        ended: RunExit | None = None
        last: dict[str, dict[str, float]] = {}
        values: dict[str, Any] = {}
        for record in _end_records(log):
            if isinstance(record, RunExit):
                ended = record
            elif isinstance(record, EntriesChange):
                values.update(record.update)
            elif isinstance(record, StatsSample):
                for label, sampled in by_machine(record).items():
                    last.setdefault(label, {}).update(
                        sampled
                    )  # older versions write a record for each source
    written_ms = round(status.st_mtime * 1000)
    if ended is None:
        return WandbFile(path, run, None, None, written_ms, last, values)
    ended_ms = run.started_ms + 1000 * ended.runtime_s
    return WandbFile(path, run, ended.exit_code, ended_ms, written_ms, last, values)


def _end_records(log: TransactionLog) -> Iterator[Record]:
    for payload in log.records():
        try:
            record = decode(payload, END_READERS)
        except Malformed:
            continue
        if record is not None:
            yield record
