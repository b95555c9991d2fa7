"""The journal file of a training process: reports when it cannot be written, and follows forks."""

from __future__ import annotations

import os

from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.settings.messages import notify
from runvitals.sdk.attachment import Attachment


class TrainingJournal:
    """Writes records of the calling process; a forked child gets a file of its own.

    Args:
        run_id: the run, for messages.
        attachment: creates the files.
        opened_by: the process that opened the run.
        role: `train`, or `media`.
        writer: writes the file; None: the file is created with the first record.
    """

    def __init__(
        self,
        run_id: str,
        attachment: Attachment,
        opened_by: int,
        role: str = "train",
        writer: JournalWriter | None = None,
    ) -> None:
        self._run_id = run_id
        self._attachment = attachment
        self._opened_by = opened_by
        self._role = role
        self._pid = opened_by
        self._unwritable = False
        self._writer = writer
        if self._writer is not None and self._writer.error is not None:
            self._notify_unwritable(self._writer.error)

    def of_media(self) -> TrainingJournal:
        """Return the journal of the same process for records that name files.

        Delivering files takes longer, which must not delay the rows of `log`.
        """
        return TrainingJournal(self._run_id, self._attachment, self._opened_by, "media")

    def successor(self) -> TrainingJournal:
        """Return a journal of the same kind for records that come after this one was closed."""
        return TrainingJournal(self._run_id, self._attachment, self._opened_by, self._role)

    @property
    def segment(self) -> int:
        """The number of the current file."""
        return 0 if self._writer is None else self._writer.segment

    @property
    def writer(self) -> JournalWriter | None:
        """The writer of the calling process's file; None before its first record."""
        return self._writer if self._pid == os.getpid() else None

    def record(self, type: int, payload: bytes) -> None:
        """Write a record. One that cannot be written is counted."""
        writer = self._writer
        if writer is None or self._pid != os.getpid():
            try:
                writer = self._open()
            except OSError as error:
                self._notify_unwritable(error)
                return
        writer.record(type, payload)
        if not writer.lost:
            self._unwritable = False
        else:
            self._notify_unwritable(writer.error)

    def close(self) -> None:
        """Report lost records, and close the file."""
        if self._writer is not None:
            if self._writer.lost:
                notify(
                    f"{self._writer.lost} records of run {self._run_id} could not be written: "
                    f"{self._writer.error}"
                )
            self._writer.close()

    def forget(self) -> None:
        """Close the descriptor that a forked child shares with its parent."""
        if self._writer is not None:
            self._writer.forget()

    def _open(self) -> JournalWriter:
        self._pid = os.getpid()
        extra = {} if self._pid == self._opened_by else {"forked_from": self._opened_by}
        self._writer = self._attachment.new_journal(extra, self._role)
        return self._writer

    def _notify_unwritable(self, error: OSError | None) -> None:
        if not self._unwritable:
            self._unwritable = True
            notify(
                f"run {self._run_id} cannot be written ({error}); "
                "the training continues and lost records are counted"
            )
