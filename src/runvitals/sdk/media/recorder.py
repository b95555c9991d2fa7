"""Records media and saved files of a run: the files first, then the record that names them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial

from runvitals.base.json_codec import dumps
from runvitals.journal import frames
from runvitals.model import media
from runvitals.model.limits import DEPTH, MEDIA_ITEMS, RECORD_BYTES
from runvitals.model.values import Sanitizer
from runvitals.sdk.data_folder import working_folder
from runvitals.sdk.media.base import Item
from runvitals.sdk.media.run_files import RunFiles
from runvitals.sdk.media.saved_files import check_base, matching_files
from runvitals.sdk.media.values import to_media
from runvitals.sdk.training_journal import TrainingJournal

_MAX_FILES = 15_000
"""Files that a record names; so it stays below the limits of a record."""


_WITH_ARTICLE = {
    media.IMAGE: "an image",
    media.AUDIO: "audio",
    media.VIDEO: "a video",
    media.HTML: "an HTML page",
    media.TEXT: "a text",
    media.TABLE: "a table",
    media.FIGURE: "a figure",
    media.HISTOGRAM: "a histogram",
    media.OBJECT: "a 3D model",
    media.FILE: "a file",
    media.ARTIFACT: "an artifact",
}


class MediaRecorder:
    """Writes MEDIA records to a journal file of their own.

    So the delivery of large files does not delay the rows of `log`.

    Args:
        folder: the run's folder.
        journal: the journal of this process's records; its file is created with the first one.
        fault: called with what could not be recorded, and counts it.
        write: called with a function that writes to the journal file; it may be called later.
    """

    def __init__(
        self,
        folder: str,
        journal: TrainingJournal,
        fault: Callable[[str], None],
        write: Callable[[Callable[[], object]], None],
    ) -> None:
        self._files = RunFiles(folder)
        self._journal = journal
        self._fault = fault
        self._write = write
        self._saved_later: dict[tuple[str, str | None], None] = {}

    def log(self, name: str, value: object, step: int, now_ms: int) -> None:
        """Record a value of `log` that `is_media` has accepted. It never raises."""
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        if len(values) > MEDIA_ITEMS:
            self._fault(f"more than {MEDIA_ITEMS} items under one name")
            values = values[:MEDIA_ITEMS]
        media_values = [to_media(single) for single in values]
        kinds = [single.kind for single in media_values]
        items = [self._item(single.kind, partial(single.item, self._files)) for single in media_values]
        for single in media_values:
            for fault in single.faults:
                self._fault(fault)
        self._record(name, kinds[0], items, step, now_ms)

    def save(self, pattern: str, base: str | None, step: int, now_ms: Callable[[], int]) -> list[str]:
        """Record the files that match a pattern; return the names under which they were saved.

        Raises:
            ValueError: see `matching_files`.
        """
        saved = []
        for name, path in matching_files(pattern, base, self._fault):
            item = self._item(media.FILE, partial(self._files.add_file, path))
            if "sha256" in item:
                self._record(name, media.FILE, [item], step, now_ms())
                saved.append(name)
        return saved

    def save_later(self, pattern: str, base: str | None) -> None:
        """Remember files that `save_rest` saves, from the folder that is the working directory now.

        Raises:
            ValueError: see `matching_files`.
        """
        check_base(pattern, base)
        folder = working_folder()
        absolute = os.path.join(folder, os.path.expanduser(pattern))
        self._saved_later[absolute, None if base is None else os.path.join(folder, base)] = None

    def save_rest(self, step: int, now_ms: Callable[[], int]) -> None:
        """Record the files of `save_later`, as they are now."""
        for pattern, base in self._saved_later:
            self.save(pattern, base, step, now_ms)
        self._saved_later = {}

    def artifact(
        self, name: str, parts: Callable[[RunFiles], Iterable[Item]], step: int, now_ms: Callable[[], int]
    ) -> bool:
        """Record an artifact, each item in a record of its own; return whether it was recorded.

        Args:
            parts: stores the files, and returns the items.
        """
        try:
            items = list(parts(self._files))
        except Exception as error:  # noqa: BLE001 - encoders call code of the user's types; files may be gone
            self._fault(f"{_WITH_ARTICLE[media.ARTIFACT]} that cannot be recorded ({error})"[:300])
            return False
        for item in items:
            self._record(name, media.ARTIFACT, [{"kind": media.ARTIFACT, **item}], step, now_ms())
        return True

    def _item(self, kind: str, store: Callable[[], Item]) -> Item:
        """Return the item that `store` returns; if it fails, one that says why. It never raises."""
        try:
            return {"kind": kind, **store()}
        except Exception as error:  # noqa: BLE001 - encoders call code of the user's types, and the disk may be full
            reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            self._fault(f"{_WITH_ARTICLE.get(kind, 'a value')} that cannot be recorded ({reason[:200]})")
            return {"kind": kind, "error": reason[:1000]}

    def _record(self, name: str, kind: str, items: list[Item], step: int, now_ms: int) -> None:
        sanitizer = Sanitizer()
        (key,) = sanitizer.row({name: None})
        if sum(1 for _ in media.files_of(items)) > _MAX_FILES:
            self._fault(f"more than {_MAX_FILES:,} files in one record")
            items = [{"kind": kind, "error": f"more than {_MAX_FILES:,} files in one record"}]
        value = {"t": now_ms, "step": step, "key": key, "kind": kind, "items": items}
        payload = dumps(sanitizer.value(value, DEPTH + 1))
        for fault in sanitizer.faults:
            self._fault(fault)
        if len(payload) <= RECORD_BYTES:
            self._write(lambda: self._journal.record(frames.MEDIA, payload))
        else:
            self._fault(f"more than {RECORD_BYTES} bytes in a record")

    def close(self) -> None:
        """Report what was lost, and close the journal file."""
        self._journal.close()

    def forget(self) -> None:
        """Close the file that a forked child shares with its parent."""
        self._journal.forget()
