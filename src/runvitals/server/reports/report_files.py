"""Keeps files of reports in the file store."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace

from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.reports.storage.files import FileKind, ReportFileTable


def keep_file(
    received: ReceivedFiles,
    table: ReportFileTable,
    report_id: int,
    content: bytes,
    kind: FileKind,
    content_type: str,
    author_id: int | None,
    now_ms: int,
) -> str:
    """Keep a file of a report; returns its SHA-256.

    Raises:
        LimitReached: the report has too many, or too large ones.
        FileRejected: it exceeds a limit of the server.
        FileNotStored: such as on a full disk.
    """
    table.check_space(report_id, len(content))
    sha256 = hashlib.sha256(content).hexdigest()

    def note(file: StoredFile) -> None:
        table.add(report_id, replace(file, media_type=content_type), kind, author_id, now_ms)

    path = received.begin(len(content))
    try:
        with open(path, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        received.keep(path, sha256, len(content), note, received.place_of_report(report_id))
    finally:
        received.end(path)
    return sha256
