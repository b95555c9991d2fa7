"""Records what users change about runs afterwards, in files of their own beside those of the run's processes.

An edit is an INFO record with the section `run`: name, notes, tags, group, job_type, project, `starred` and
`deleted`. For each key the latest time wins, as for all facts. Each process that edits has its own files, so
that several may edit a run at the same time.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from runvitals.journal import frames, paths
from runvitals.journal.writer import JournalWriter
from runvitals.model.errors import CannotWrite, UnknownRun
from runvitals.model.state import EDIT

_MAX_OPEN: Final = 8
"""A run that was not among the last ones edited gets a new file."""


class RunEdits:
    """Edits runs of a data folder. Thread-safe.

    Args:
        directory: the data folder.
        recorded: called with the id of a run after each edit.

    Example:
        >>> RunEdits("/data").record("brave-otter-1", {"name": "baseline", "tags": ["good"]}, now_ms)
    """

    def __init__(self, directory: str, recorded: Callable[[str], None] = lambda run_id: None) -> None:
        self._directory = directory
        self._recorded = recorded
        self._lock = threading.Lock()
        self._open: OrderedDict[str, JournalWriter] = OrderedDict()

    def record(self, run_id: str, values: Mapping[str, Any], time_ms: int) -> None:
        """Append an edit. It is on the disk when this returns.

        Raises:
            UnknownRun: there is no such run.
            CannotWrite: the folder of the run cannot be written to.
        """
        folder = paths.run_dir(run_id, self._directory)
        with self._lock:
            try:
                self._append(run_id, folder, {"t": time_ms, "run": dict(values)})
            except (FileNotFoundError, NotADirectoryError):
                self._drop(run_id)
                raise UnknownRun(f"no run {run_id!r} in {self._directory}") from None
            except OSError as error:
                self._drop(run_id)
                raise CannotWrite(
                    f"{folder}: {error.strerror or error}: the run was not changed; a user who may write to "
                    "this folder can change it"
                ) from error

        self._recorded(run_id)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for run_id in list(self._open):
                self._drop(run_id)

    def _append(self, run_id: str, folder: str, value: dict[str, Any]) -> None:
        writer = self._open.pop(run_id, None) or _new_writer(run_id, folder)
        self._open[run_id] = writer
        while len(self._open) > _MAX_OPEN:
            self._drop(next(iter(self._open)))
        if not writer.json(frames.INFO, value):
            raise writer.error or OSError(f"{writer.path} was not written")
        fd = os.open(writer.path, os.O_RDONLY | paths.OPEN_FLAGS)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
        with suppress(PermissionError):  # readers check runs that have ended only when their folder changes
            os.utime(folder)
        paths.sync_folder(folder)

    def _drop(self, run_id: str) -> None:
        writer = self._open.pop(run_id, None)
        if writer is not None:
            writer.forget()


def _new_writer(run_id: str, folder: str) -> JournalWriter:
    """Return a writer with the host of the run, whose relay delivers it.

    Raises:
        FileNotFoundError: the folder has no journal.
    """
    hosts = [paths.role_and_host(writer)[1] for writer in sorted(paths.segments(folder), key=_last_if_edit)]
    if not hosts:
        raise FileNotFoundError(folder)
    name = f"{EDIT}.{hosts[0]}.{os.urandom(4).hex()}.{time.time_ns() // 1_000_000:x}"
    return JournalWriter(folder, name, {"run": run_id, "role": EDIT, "host": hosts[0]})


def _last_if_edit(writer: str) -> tuple[bool, bool, str]:
    return paths.is_edit(writer), not writer.startswith("monitor."), writer
