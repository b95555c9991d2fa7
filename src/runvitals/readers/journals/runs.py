"""Lists the runs of a data folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from runvitals.journal import paths
from runvitals.model.run import Run
from runvitals.model.state import is_ended
from runvitals.readers.journals.file_ends import EMPTY, WriterFileEnds, naming_records
from runvitals.readers.journals.run_builder import RunBuilder


class RunList:
    """The runs of a data folder. Reuse an instance: it reads only files that changed.

    Args:
        directory: the data folder; by default `$RUNVITALS_DIR` or the user's data home.

    Example:
        >>> [run.id for run in RunList("/data").runs(now_ms=1_700_000_000_000)]
        ['brave-otter-2', 'brave-otter-1']
    """

    def __init__(self, directory: str | None = None) -> None:
        self.directory = directory or paths.data_dir()
        self._folders: dict[str, _RunFolder] = {}
        self._without_journal: list[str] = []

    def stamp(self) -> tuple[object, ...]:
        """Return what differs from before the runs were last read if one was added or removed since.

        It reads the times of folders only.
        """
        folders = [paths.runs_dir(self.directory), *map(self._path, self._without_journal)]
        return tuple(map(_changed_at, folders))

    def _path(self, run_id: str) -> str:
        return os.path.join(paths.runs_dir(self.directory), run_id)

    def ids(self) -> list[str]:
        """Return the ids of all folders that may be runs, unordered. Empty if the data folder does not exist.

        Raises:
            OSError: the data folder exists but cannot be read.
        """
        try:
            with os.scandir(paths.runs_dir(self.directory)) as entries:
                return [entry.name for entry in entries if _may_be_run(entry.name) and _is_folder(entry)]
        except FileNotFoundError:
            return []

    def runs(self, now_ms: int) -> list[Run]:
        """Return all runs but those in the trash. Arguments and errors are those of `with_trash`."""
        return self.with_trash(now_ms)[0]

    def with_trash(self, now_ms: int) -> tuple[list[Run], list[Run]]:
        """Return all runs as of `now_ms`, newest first, and those in the trash.

        A folder without a journal is not a run.

        Raises:
            OSError: the data folder exists but cannot be read.
        """
        ids = self.ids()
        for gone in self._folders.keys() - set(ids):
            del self._folders[gone]
        runs = {run_id: self.run(run_id, now_ms) for run_id in ids}
        self._without_journal = [run_id for run_id, run in runs.items() if run is None][:_MAX_STARTING]
        every = [run for run in runs.values() if run is not None]
        every.sort(key=lambda run: (-run.started_ms, run.id))
        return (
            [run for run in every if run.deleted_ms is None],
            [run for run in every if run.deleted_ms is not None],
        )

    def name(self, run_id: str) -> str | None:
        """Return the name of a run, or None if there is no journal for this id. Takes a fraction of `run`."""
        folder = self._path(run_id)
        builder = RunBuilder(run_id)
        try:
            segments = paths.segments(folder)
        except OSError:
            return None
        for writer, numbers in segments.items():
            with suppress(OSError):
                for record in naming_records(folder, writer, numbers):
                    builder.add(record)
        return builder.run(0).name if segments else None

    def about_time(self, run_id: str, keys: Iterable[str]) -> int:
        """Return when one of these facts of a run was last set, of what was last read; 0: never."""
        folder = self._folders.get(run_id)
        return 0 if folder is None else folder.about_time(keys)

    def run(self, run_id: str, now_ms: int) -> Run | None:
        """One run, or None if there is no journal for this id."""
        folder = self._folders.get(run_id)
        if folder is None:
            folder = self._folders[run_id] = _RunFolder(run_id, self._path(run_id))
        return folder.run(now_ms)


_MAX_STARTING = 100
"""Folders whose journal may be created at any moment; others with such a name are leftovers."""
_CLOCK_STEP_NS = 20_000_000
"""A folder that changes twice within this time may have the same time both times."""


def _changed_at(path: str) -> object:
    """Return when a folder was changed; a moment ago, it may be changed again without a later time."""
    try:
        changed_ns = os.stat(path).st_mtime_ns
    except OSError:
        return None
    return changed_ns if abs(time.time_ns() - changed_ns) > _CLOCK_STEP_NS else object()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a symbolic link that leads to itself


def _may_be_run(name: str) -> bool:
    try:
        paths.check_run_id(name)
    except ValueError:
        return False
    return True


# Files of a run that ended this long ago are not checked again. Resuming it creates a new file, which changes
# the folder.
_SETTLED_MS = 60_000


class _RunFolder:
    """A run's folder, with the run as last read from the ends of its files."""

    def __init__(self, run_id: str, path: str) -> None:
        self._run_id = run_id
        self._path = path
        self._writers: dict[str, WriterFileEnds] = {}
        self._builder: RunBuilder | None = None
        self._read_ms = 0
        self._run: Run | None = None
        self._mtime_ns = 0  # of the folder

    def run(self, now_ms: int) -> Run | None:
        try:
            mtime_ns = os.stat(self._path).st_mtime_ns
            if self._run is not None and mtime_ns == self._mtime_ns and self._is_settled(self._run, now_ms):
                return self._run
            segments = paths.segments(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return self._unreadable(f"{self._path}: cannot be read: {error.strerror}", now_ms)
        if not segments:
            return None
        self._mtime_ns = mtime_ns
        self._run = self._read_if_changed(segments, now_ms)
        return self._run

    def about_time(self, keys: Iterable[str]) -> int:
        return 0 if self._builder is None else self._builder.about_time(keys)

    def _is_settled(self, run: Run, now_ms: int) -> bool:
        ended = all(is_ended(host.ending.state) for host in run.hosts)
        return ended and now_ms - self._read_ms > _SETTLED_MS

    def _read_if_changed(self, segments: dict[str, list[int]], now_ms: int) -> Run:
        for writer in segments.keys() - self._writers.keys():
            self._writers[writer] = WriterFileEnds(self._path, writer)
        if self._builder is None or any(
            self._writers[writer].has_changed(numbers) for writer, numbers in segments.items()
        ):
            self._builder = self._read(segments)
            self._read_ms = now_ms
        return self._builder.run(now_ms)

    def _read(self, segments: dict[str, list[int]]) -> RunBuilder:
        builder = RunBuilder(self._run_id)
        for writer, numbers in segments.items():
            try:
                records = self._writers[writer].records(numbers)
            except OSError as error:
                builder.problems.append(f"{writer}: cannot be read: {error.strerror}")
                continue
            for record in records:
                builder.add(record)
            if self._writers[writer].is_empty:
                builder.problems.append(f"{writer}: {EMPTY}")
            if self._writers[writer].damaged:
                builder.problems.append(f"{writer}: {self._writers[writer].damaged} damaged records")
        return builder

    def _unreadable(self, problem: str, now_ms: int) -> Run:
        return replace(RunBuilder(self._run_id).run(now_ms), problems=[problem])
