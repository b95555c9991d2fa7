"""Reads an offline session of ClearML: a folder, or the zip file of one."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from runvitals.model.limits import TIME_MS
from runvitals.readers.importers.sources import checked_file, text_lines

TASK: Final = "task.json"
_METRICS: Final = "metrics.jsonl"
_LOG: Final = "log.jsonl"
_DATA: Final = "data"
_KEPT: Final = (TASK, _METRICS, _LOG, f"{_DATA}/")
_MOST_FILES: Final = 100_000
_UNPACKED: Final = 1 << 30
_TIMES: Final = 200
_LINE_CHARACTERS: Final = 1 << 24
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)
"""What reading a damaged or encrypted zip file raises."""


class ClearmlSession:
    """A session that was recorded with `Task.set_offline(True)`.

    Args:
        folder: with the files `task.json`, `metrics.jsonl` and `log.jsonl`, and the folder `data`.

    Attributes:
        task: what `task.json` says about the task.
        damaged: number of lines that could not be read.

    Raises:
        OSError: a file cannot be read.
        ValueError: it is no session of ClearML.
    """

    def __init__(self, folder: str) -> None:
        self._folder = os.path.realpath(folder)
        path = os.path.join(folder, TASK)
        with open(checked_file(path), encoding="utf-8", errors="replace") as file:
            try:
                task = json.loads(file.read(_LINE_CHARACTERS))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path} is not the JSON of a task: {error}") from None
        if not isinstance(task, dict) or not isinstance(task.get("id"), str):
            raise ValueError(f"{path} is no task of ClearML: it has no id")
        self.task: Mapping[str, Any] = task
        self.damaged = 0

    def metrics(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events of scalars, plots and images, as they were reported."""
        return self._events(_METRICS)

    def printed(self) -> Iterator[Mapping[str, Any]]:
        """Yield the events of console output."""
        return self._events(_LOG)

    def _events(self, name: str) -> Iterator[Mapping[str, Any]]:
        path = os.path.join(self._folder, name)
        if not os.path.isfile(path):
            return
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in text_lines(file, _LINE_CHARACTERS):
                if not line.strip():
                    continue
                try:
                    events = json.loads(line)
                except (ValueError, RecursionError):  # the last one of a session that was killed
                    self.damaged += 1
                    continue
                for event in events if isinstance(events, list) else [events]:
                    moment = event.get("timestamp") if isinstance(event, dict) else None
                    if isinstance(moment, (int, float)) and -TIME_MS < moment < TIME_MS:
                        yield event
                    else:
                        self.damaged += 1

    def changed_s(self) -> float:
        """Return when something was written last, in seconds since 1970."""
        with os.scandir(self._folder) as entries:
            return max(entry.stat().st_mtime for entry in entries)

    def file(self, address: object) -> str | None:
        """Return the path of a file of the session; None if it is not there.

        Args:
            address: as events name it: below `data`, or with the path that the folder had where it was made.
        """
        if not isinstance(address, str):
            return None
        recorded = str(self.task.get("offline_folder") or "")
        name = address.removeprefix(recorded).lstrip("/") if recorded else address
        for candidate in (name, os.path.join(_DATA, name)):
            path = os.path.realpath(os.path.join(self._folder, candidate))
            if path.startswith(os.path.join(self._folder, _DATA) + os.sep) and os.path.isfile(path):
                return path
        return None


def unpack(path: str, into: str) -> None:
    """Unpack the zip file of a session.

    Raises:
        ValueError: it is damaged, or has no task.
        OSError: a file cannot be read or written.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.startswith(_KEPT)]
            names = [entry.filename for entry in entries]
            if TASK not in names:
                raise ValueError(f"{path} is no session of ClearML: it has no {TASK}")
            if len(entries) > _MOST_FILES:
                raise ValueError(f"{path} has {len(entries):,} files; at most {_MOST_FILES:,} are allowed")
            if sum(entry.file_size for entry in entries) > max(_UNPACKED, _TIMES * os.stat(path).st_size):
                raise ValueError(f"{path} unpacks to more than {_TIMES} times its size")
            archive.extractall(into, names)
    except _DAMAGED as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from None


def sessions_at(path: str) -> list[str]:
    """Return the zip files and folders of sessions at a path, sorted; a zip file also stands for its folder.

    Raises:
        FileNotFoundError: there are none.
    """
    if os.path.isfile(path) or os.path.isfile(os.path.join(path, TASK)):
        return [path]
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    zips = [name for name in names if name.endswith(".zip") and os.path.isfile(os.path.join(path, name))]
    folders = [
        name for name in names if f"{name}.zip" not in zips and os.path.isfile(os.path.join(path, name, TASK))
    ]
    if not zips and not folders:
        raise FileNotFoundError(f"there is no offline session of ClearML in {path}: no zip file, no {TASK}")
    return [os.path.join(path, name) for name in sorted([*zips, *folders])]
