"""Runs in W&B's `.wandb` files.

A run that is opened is written as a journal into a temporary folder and followed there; the folder is removed
when the run is closed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any

from runvitals.model.logged_media import LoggedMedia, MediaKey
from runvitals.readers.wandb_files.following import WandbFollower
from runvitals.terminal.leet.record_log import RecordReader, WandbRecords
from runvitals.terminal.leet.shared_use import SharedUse
from runvitals.terminal.leet.sources.journals import MAX_CONTENT_BYTES, JournalSource

_FIRST_PORTION_BYTES = 256 * 1024


class WandbSource(JournalSource):
    """A run in a `.wandb` file.

    Raises:
        ValueError: not a `.wandb` file, or it contains no run.
        OSError: it cannot be read, or there is no space for the temporary folder.
    """

    def __init__(self, path: str) -> None:
        self._portion_bytes = _FIRST_PORTION_BYTES
        self._folder = tempfile.TemporaryDirectory(prefix="runvitals-leet-")
        try:
            self._follower = WandbFollower(path, self._folder.name)
        except BaseException:
            self._folder.cleanup()
            raise
        self._use = SharedUse(self._close)
        super().__init__(self._follower.run_id, self._folder.name)

    def poll(self) -> bool:
        """Read what was added to the file: of a long one a part, so that it is drawn while it is read."""
        with self._use():
            self._follower.poll(self._portion_bytes)
            self._portion_bytes *= 2
            return super().poll()

    def progress(self) -> float:
        """Return the share of the file that was read, up to 1.0."""
        return self._follower.progress

    def wants_more(self) -> bool:
        """Return whether a part of the file was not read yet."""
        return self.progress() < 1.0

    def media_keys(self) -> list[MediaKey]:
        """Return the names of logged images."""
        return self._follower.images.keys()

    def media(self, key: str) -> list[LoggedMedia]:
        """Return the images logged under a name, by step."""
        with self._use():
            return self._follower.images.of(key)

    def content(self, item: Mapping[str, Any]) -> bytes:
        """Return the content of an image's file, at most 64 MiB."""
        with self._use():
            return self._follower.images.content(item, MAX_CONTENT_BYTES)

    def records(self) -> RecordReader:
        """Return a reader of the file's records."""
        return WandbRecords(self._follower.path)

    def close(self) -> None:
        """Close the file, and remove the temporary folder, after the last use."""
        self._use.close()

    def _close(self) -> None:
        self._follower.close()
        self._folder.cleanup()
