"""`MetricWatch`: finds values of metrics that automations are about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from typing import Final

from runvitals.server.alerts.automations import (
    InvalidAutomation,
    MetricEvent,
    MetricZScore,
    automation_of,
    kind_of,
)
from runvitals.server.alerts.metric_windows import MetricWindows
from runvitals.server.alerts.storage.automations import AutomationRow
from runvitals.server.events.automation_events import raise_metric
from runvitals.server.ingest.metric_feed import MetricFeed, MetricPoints
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.run_places import RunPlace

_KINDS: Final = ("metric.threshold", "metric.change", "metric.z_score")
_MOST_RUNS: Final = 10_000


class MetricWatch:
    """Compares what ingest receives with the conditions of automations.

    Args:
        feed: the values, of the metrics that `evaluate` asks for.
    """

    def __init__(self, metadata_store: MetadataStore, feed: MetricFeed) -> None:
        self._store = metadata_store
        self._feed = feed
        self._windows = MetricWindows()
        self._places: OrderedDict[int, RunPlace | None] = OrderedDict()

    def evaluate(self) -> None:
        """Raise the events of all values that have arrived."""
        watching: dict[str, list[tuple[AutomationRow, MetricEvent]]] = {}

        def read() -> Collection[str]:
            for row in self._store.alerts.automations.of_kinds(_KINDS):
                event = metric_event(row)
                if event is not None:
                    watching.setdefault(event.metric, []).append((row, event))
            return watching

        self._feed.watch_all(read)
        for points in self._feed.drain():
            place = self._place(points.run_id)
            if place is not None:
                self._compare(points, place, watching.get(points.metric, ()))

    def _compare(
        self, points: MetricPoints, place: RunPlace, watching: Sequence[tuple[AutomationRow, MetricEvent]]
    ) -> None:
        for row, event in watching:
            if row.team_id != place.entity_id:
                continue
            of_project = isinstance(event, MetricZScore)
            subject = f"project:{place.project_id}" if of_project else f"run:{points.run_id}"
            value = self._windows.add(row.id, subject, event, points.values)
            if value is not None:
                self._raise(row, points, kind_of(event), value)

    def _raise(self, row: AutomationRow, points: MetricPoints, kind: str, value: float) -> None:
        data = {"metric_name": points.metric, "metric_value": value}
        self._store.write(
            lambda connection: raise_metric(connection, row.id, row.team_id, points.run_id, kind, data)
        )

    def _place(self, run_id: int) -> RunPlace | None:
        """Where a run is. It is looked up once: runs rarely move to another team."""
        if run_id not in self._places:
            self._places[run_id] = self._store.runs.place(run_id)
            if len(self._places) > _MOST_RUNS:
                self._places.popitem(last=False)
        return self._places[run_id]


def metric_event(row: AutomationRow) -> MetricEvent | None:
    """What an automation watches of a metric; None if it is about something else."""
    try:
        event = automation_of(row.definition).event
    except InvalidAutomation:
        return None  # a later version of the server wrote it
    return event if isinstance(event, MetricEvent) else None
