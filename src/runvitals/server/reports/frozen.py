"""Frozen panels: the answer of a day is stored, and shown from then on."""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from runvitals.server.files.received_files import ReceivedFiles
from runvitals.server.files.storage.stored_files import StoredFile
from runvitals.server.reports.document import Document
from runvitals.server.reports.panel_data import unreadable
from runvitals.server.reports.panels import ShownPanel
from runvitals.server.reports.report_files import keep_file
from runvitals.server.reports.storage.files import ReportFileTable
from runvitals.server.reports.storage.frozen_panels import FrozenPanelTable

MAX_BYTES: Final = 64 * 1024 * 1024
"""Of the JSON of an answer."""
FROZEN_POINTS: Final = 1000
"""Of each line that is stored."""
_GZIP: Final = "application/gzip"
NOT_FROZEN: Final = "This panel was not frozen on that day."


@dataclass(frozen=True, slots=True)
class FrozenPanels:
    """Stores and reads the answers of panels.

    Args:
        received: None: this server keeps no files.
    """

    table: FrozenPanelTable
    files: ReportFileTable
    received: ReceivedFiles | None

    def freeze(self, report_id: int, panel_id: str, values: bytes, by: int | None, now_ms: int) -> None:
        """Store the values of a panel at a time.

        Args:
            values: JSON with `answer`, and `projects`: the ids of those that it is from. Only who may read
                all of them sees it.

        Raises:
            ValueError: it is too large, or this server keeps no files.
            LimitReached: the report has too many files.
        """
        if self.received is None:
            raise ValueError("this server keeps no files")
        if len(values) > MAX_BYTES:
            raise ValueError(f"the panel shows {len(values):,} bytes; at most {MAX_BYTES:,} can be frozen")
        packed = gzip.compress(values, 6, mtime=0)
        digest = keep_file(self.received, self.files, report_id, packed, "frozen", _GZIP, by, now_ms)
        self.table.add(report_id, panel_id, now_ms, digest)

    def answer(
        self, report_id: int, panel: ShownPanel, frozen_ms: int, readable: Collection[int] | None
    ) -> dict[str, Any]:
        """Return the stored answer of a panel.

        Args:
            readable: the ids of the projects that the reader may see panels of; None: all.
        """
        stored = self._read(report_id, panel.id, frozen_ms)
        if stored is None:
            return {**unreadable(panel, frozen_ms), "frozen": True, "problem": NOT_FROZEN}
        if readable is not None and not set(stored["projects"]) <= set(readable):
            return {**unreadable(panel, frozen_ms), "frozen": True}
        return {**stored["answer"], "panel": panel.id, "as_of_ms": frozen_ms, "frozen": True}

    def _read(self, report_id: int, panel_id: str, frozen_ms: int) -> dict[str, Any] | None:
        digest = self.table.digest(report_id, panel_id, frozen_ms)
        file: StoredFile | None = None
        if digest is not None and self.received is not None:
            file = self.files.get(report_id, digest, "frozen")
        content = None if file is None or self.received is None else self.received.open_file(file)
        if content is None:
            return None
        with content.file, gzip.open(content.file) as unpacked:
            stored: dict[str, Any] = json.loads(unpacked.read(2 * MAX_BYTES))
        return stored


def with_frozen(document: Document, panel_id: str, frozen_ms: int | None) -> Document:
    """Return a document with a panel frozen at a time; None: thawed."""

    def panel_of(panel: dict[str, Any]) -> dict[str, Any]:
        return {**panel, "frozen_ms": frozen_ms} if panel["id"] == panel_id else panel

    blocks = [
        {**block, "panels": [panel_of(panel) for panel in block["panels"]]}
        if block["kind"] == "panels"
        else block
        for block in document["blocks"]
    ]
    return {**document, "blocks": blocks}
