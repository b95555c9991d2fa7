"""Media and saved files of a run, from its journal."""

from __future__ import annotations

import contextlib
import os

from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.journal.records import Record
from runvitals.model import media
from runvitals.model.logged_media import LoggedMedia, MediaKey, SavedFile

KEPT_BYTES = 64 * 1024 * 1024
"""Bytes of a run's records in memory. Of a run with more, the oldest are left out."""


class MediaLog:
    """The MEDIA records of a run, by key."""

    def __init__(self) -> None:
        self._records: dict[str, list[Record]] = {}
        self.nbytes = 0
        self.left_out = 0

    def add(self, record: Record) -> None:
        """Add a MEDIA record."""
        self._records.setdefault(record.value["key"], []).append(record)
        self.nbytes += record.size
        while self.nbytes > KEPT_BYTES:
            longest = max(self._records.values(), key=len)
            if len(longest) == 1:
                return
            self.nbytes -= longest.pop(0).size
            self.left_out += 1

    def keys(self) -> list[MediaKey]:
        """The names of everything logged, in order of first use; not those of saved files and artifacts."""
        keys = []
        for key, records in self._records.items():
            logged = [record for record in records if record.value["kind"] not in media.NOT_LOGGED]
            steps = [record.value["step"] for record in logged if record.value["step"] is not None]
            if logged:
                last_ms = max(record.time_ms for record in logged)
                extent = (min(steps, default=None), max(steps, default=None))
                keys.append(MediaKey(key, logged[-1].value["kind"], len(logged), *extent, last_ms))
        return keys

    def of(self, key: str) -> list[Record]:
        """Return the records of a key, in the order of their journal."""
        return [record for record in self._records.get(key, []) if record.value["kind"] != media.ARTIFACT]

    def files(self, folder: str) -> list[SavedFile]:
        """Return the saved files, by name, each as it was last saved."""
        newest: dict[str, Record] = {}
        for key, records in self._records.items():
            saved = [record for record in records if record.value["kind"] == media.FILE]
            if saved:
                # Of those of one millisecond the last: `max` returns the first.
                newest[key] = max(reversed(saved), key=lambda record: record.time_ms)
        files = (_saved_file(folder, record) for _, record in sorted(newest.items()))
        return [file for file in files if file is not None]

    def artifacts(self) -> list[Record]:
        """Return the records about artifacts, in the order of their times."""
        artifacts = [
            record
            for records in self._records.values()
            for record in records
            if record.value["kind"] == media.ARTIFACT
        ]
        return sorted(artifacts, key=lambda record: record.time_ms)

    def names(self, sha256: str) -> bool:
        """Return whether a record names a file."""
        return any(
            file["sha256"] == sha256
            for records in self._records.values()
            for record in records
            for file in media.files_of(record.value["items"])
        )


def logged_media(record: Record, rank: int | None, host: str) -> LoggedMedia:
    """Read a MEDIA record of a process."""
    value = record.value
    return LoggedMedia(value["key"], value["kind"], value["step"], record.time_ms, rank, host, value["items"])


def _saved_file(folder: str, record: Record) -> SavedFile | None:
    item = next(iter(media.files_of(record.value["items"])), None)
    if item is None:
        return None
    path = paths.content_path(folder, item["sha256"])
    return SavedFile(
        record.value["key"],
        item["bytes"],
        item["type"],
        item["sha256"],
        record.time_ms,
        path if os.path.isfile(path) else None,
    )


def saved_files(folder: str) -> list[SavedFile]:
    """Return the files that a run has saved so far, by name; none if its folder was deleted or replaced."""
    log = MediaLog()
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for record in read_run(folder):
            if record.type == frames.MEDIA:
                log.add(record)
    return log.files(folder)
