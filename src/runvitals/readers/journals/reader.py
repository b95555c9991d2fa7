"""A run in memory that can be updated: samples, logged rows, console output and facts."""

from __future__ import annotations

import os
from collections.abc import Iterable

from runvitals.journal import frames, paths
from runvitals.journal.reader import Tail
from runvitals.journal.records import Record
from runvitals.model.failure import Failure, failure_of
from runvitals.model.logged_media import LoggedMedia
from runvitals.model.run import Run
from runvitals.model.state import MONITOR
from runvitals.monitoring.environment import redaction
from runvitals.readers.journals import console
from runvitals.readers.journals.console import Console
from runvitals.readers.journals.file_ends import EMPTY
from runvitals.readers.journals.history import History
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.readers.journals.media import MediaLog, logged_media
from runvitals.readers.journals.run_builder import RunBuilder
from runvitals.readers.journals.series import Columns, RunSamples


class RunReader:
    """Reads a run's journal once, then only what was appended.

    Uses 16 bytes per sample plus 8 per value: 40 MB for a day of 55 values a second.

    Args:
        run_id: the run.
        directory: the data folder; by default `$RUNVITALS_DIR` or the user's data home.

    Raises:
        ValueError: invalid run id.

    Example:
        >>> reader = RunReader("abc")
        >>> reader.poll()
        3605
        >>> reader.columns(["gpu.*"])["gpu.0.temp"].values[-1]
        63.0
    """

    def __init__(self, run_id: str, directory: str | None = None) -> None:
        self.run_id = run_id
        self.folder = paths.run_dir(run_id, directory)
        self.facts = RunBuilder(run_id)
        self.samples = RunSamples()
        self.histories: dict[str, History] = {}
        self.console = Console()
        self.media = MediaLog()
        self.last_seq: dict[str, int] = {}
        self._tail = Tail(self.folder)

    def poll(self) -> int:
        """Read the records written since the last call, and return their number.

        Raises:
            FileNotFoundError: no such run.
        """
        count = 0
        for record in self._tail.poll():
            self._add(record)
            count += 1
        return count

    def _add(self, record: Record) -> None:
        self.last_seq[record.writer] = record.seq
        self.facts.add(record)
        if record.type == frames.SAMPLE:
            self.samples.add(record)
        elif record.type == frames.HISTORY:
            self._history(record.writer).add(record)
        elif record.type == frames.CONSOLE:
            writer = self.facts.writer(record.writer)
            self.console.add(console.parse(record.value, record.writer, writer.host, writer.rank))
        elif record.type == frames.MEDIA:
            self.media.add(record)

    def _history(self, writer: str) -> History:
        history = self.histories.get(writer)
        if history is None:
            history = self.histories[writer] = History(writer)
        return history

    @property
    def nbytes(self) -> int:
        """Memory used by samples, logged rows and media records."""
        logged = sum(history.nbytes for history in self.histories.values())
        return self.samples.nbytes + logged + self.media.nbytes

    def problems(self) -> list[str]:
        """Files and records that could not be read."""
        damage = [f"{os.path.basename(problem.path)}: {problem.text}" for problem in self._tail.problems]
        damaged = self._tail.damaged
        skipped = [f"skipped {damaged} damaged records"] if damaged else []
        empty = [f"{tail.writer}: {EMPTY}" for tail in self._tail.writers.values() if tail.is_empty]
        left = self.media.left_out
        cut = [f"the oldest {left:,} media records are left out: see the journal"] if left else []
        if others := sum(history.left_out for history in self.histories.values()):
            cut.append(f"the oldest {others:,} logged texts and lists are left out: see the journal")
        return [*skipped, *damage, *empty, *cut, *self.facts.problems]

    def run(self, now_ms: int) -> Run:
        """Return the run as of `now_ms` (ms UTC)."""
        run = self.facts.run(now_ms)
        run.problems[:] = self.problems()
        return run

    def failure(self, now_ms: int) -> Failure | None:
        """Return why the run failed; None if it has not."""
        return failure_of(self.run(now_ms), self.console.pieces(), redaction.text)

    def groups(self) -> dict[tuple[str, str], list[str]]:
        """Return the writers of each (host, role), oldest first."""
        groups: dict[tuple[str, str], list[str]] = {}
        for writer in sorted(
            self.facts.writers.values(),
            key=lambda writer: (writer.role != MONITOR, writer.started_ms, writer.name),
        ):
            groups.setdefault((writer.host, writer.role), []).append(writer.name)
        return groups

    def logged_media(self, key: str) -> list[LoggedMedia]:
        """Return the media logged under a name, by step."""
        logged = []
        for record in self.media.of(key):
            writer = self.facts.writer(record.writer)
            logged.append(logged_media(record, writer.rank, writer.host))
        return sorted(logged, key=lambda media: media.order)

    def columns(self, patterns: Iterable[str] = (), host: str | None = None) -> Columns:
        """The series of all keys that match a pattern, on all hosts or one, including derived rates."""
        groups = {group: names for group, names in self.groups().items() if host is None or group[0] == host}
        return self.samples.columns(groups, KeyFilter(patterns))
