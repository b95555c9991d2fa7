"""Events of automations about findings, from what the judge of runs reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runvitals.server.alerts.finding_watch import LATE_MS
from runvitals.server.events.automation_events import raise_findings
from runvitals.server.events.finding_changes import FindingChange
from runvitals.server.metadata_store import MetadataStore


class FindingEvents:
    """Raises the events that findings opened or closed, in the transaction that keeps them.

    Nobody is notified of what arrives late, such as when runs are imported.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, clock: Callable[[], int]) -> None:
        self._store = metadata_store
        self._clock = clock

    def note(self, changes: Sequence[FindingChange]) -> None:
        """Raise the events of changes; those that automations are not about cost one query."""
        since_ms = self._clock() - LATE_MS
        recent = [change for change in changes if change.up_to_ms >= since_ms]
        if recent:
            self._store.write(lambda connection: raise_findings(connection, recent))
