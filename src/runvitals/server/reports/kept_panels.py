"""What is kept between requests for panels: those of revisions, and the runs of run sets for a moment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cachetools import LRUCache

from runvitals.server.reports.document import Document, panels_of
from runvitals.server.reports.kept_lines import KeptLines
from runvitals.server.reports.panels import ShownPanel, panels_in
from runvitals.server.reports.run_sets import KeptRunSets

_KEPT_BYTES: Final = 8 * 1024 * 1024
"""Of the JSON of panels; as objects they take a few times as much."""


@dataclass(frozen=True, slots=True)
class _RevisionPanels:
    size: int
    by_id: Mapping[str, ShownPanel]


class KeptPanels:
    """Keeps the panels of revisions, which never change, so that a page reads its document once.

    Attributes:
        run_sets: the runs of run sets, for a moment.
        lines: the lines of panels, as long.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.run_sets = KeptRunSets(now_ms)
        self.lines = KeptLines()
        self._kept: LRUCache[tuple[int, int], _RevisionPanels] = LRUCache(_KEPT_BYTES, lambda kept: kept.size)

    def panels(
        self, report_id: int, revision: int, read: Callable[[int, int], Document]
    ) -> Mapping[str, ShownPanel]:
        """Return the panels of a revision by their ids, in their order.

        Args:
            read: returns the document of a report's revision.
        """
        key = report_id, revision
        kept = self._kept.get(key)
        if kept is None:
            document = read(report_id, revision)
            size = len(json.dumps([panel for _, panel in panels_of(document)]))
            kept = _RevisionPanels(1000 + size, {panel.id: panel for panel in panels_in(document)})
            if kept.size <= _KEPT_BYTES:
                self._kept[key] = kept
        return kept.by_id
