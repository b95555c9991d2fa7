"""Automations about metrics, as rules that `RuleWatch` evaluates.

Such an automation waits for a condition over the last points that a run logs. It is found as what rules find;
what follows is an event, to which the automation reacts.
"""

from __future__ import annotations

from typing import Final

from runvitals.server.alerts.automations import (
    InvalidAutomation,
    MetricChange,
    MetricEvent,
    MetricThreshold,
    MetricZScore,
    automation_of,
    kind_of,
)
from runvitals.server.alerts.evaluation import Transition
from runvitals.server.alerts.rules import AlertRule, Feature, RuleCondition
from runvitals.server.alerts.storage.automations import AutomationRow
from runvitals.server.alerts.storage.rules import StoredRule
from runvitals.server.events.automation_events import raise_metric
from runvitals.server.metadata_store import MetadataStore

_KINDS: Final = ("metric.threshold", "metric.change", "metric.z_score")


class MetricAutomations:
    """The automations of all teams that are about metrics."""

    def __init__(self, metadata_store: MetadataStore) -> None:
        self._store = metadata_store
        self._rows: dict[int, AutomationRow] = {}

    def has_changed(self) -> bool:
        """Read them anew; whether one has changed, is new or is gone since the last time."""
        rows = {row.id: row for row in self._store.alerts.automations.of_kinds(_KINDS)}
        before, self._rows = self._rows, rows
        return rows != before

    def rules(self) -> list[tuple[StoredRule, AlertRule]]:
        """Return their conditions, each as a rule of its team.

        Ids are negative, so that they are no other rule's.
        """
        rules = []
        for row in self._rows.values():
            event = metric_event(row)
            if event is not None:
                rule = AlertRule(row.name, condition_of(event), id=-row.id)
                times = (row.created_ms, row.changed_ms)
                stored_rule = StoredRule(
                    -row.id, row.team_id, row.name, row.definition, True, None, *times, row.creator_id
                )
                rules.append((stored_rule, rule))
        return rules

    def note(self, transition: Transition) -> None:
        """Raise the event that a condition begins to be met, for its automation."""
        row = self._rows.get(-transition.rule.id)
        event = None if row is None or not transition.firing else metric_event(row)
        if row is None or event is None:
            return
        run_id, kind = transition.series.run_id, kind_of(event)
        data = {"metric_name": transition.series.key, "metric_value": transition.value}
        self._store.write(
            lambda connection: raise_metric(connection, row.id, row.team_id, run_id, kind, data)
        )


def metric_event(row: AutomationRow) -> MetricEvent | None:
    """Return what an automation watches of a metric; None if it is about something else."""
    try:
        event = automation_of(row.definition).event
    except InvalidAutomation:
        return None  # a later version of the server wrote it
    return event if isinstance(event, MetricEvent) else None


def condition_of(event: MetricEvent) -> RuleCondition:
    """Return the condition of a rule that holds while that of an automation is met.

    >>> condition_of(MetricThreshold("loss", 10.0)).feature
    Feature(metric='loss', statistic='last', window_ms=0, baseline_ms=0, relative=False, spread=False, \
points=1, points_before=0)
    """
    if isinstance(event, MetricThreshold):
        points = 1 if event.statistic == "last" else event.window
        feature = Feature(event.metric, event.statistic, points=points)
        return RuleCondition("points", feature, event.comparison, event.value, event.value)
    if isinstance(event, MetricChange):
        feature = Feature(
            event.metric, "mean", relative=event.relative, points=event.window, points_before=event.before
        )
        amount = event.amount
    else:
        assert isinstance(event, MetricZScore)
        feature = Feature(event.metric, "deviations", points=1, points_before=event.window)
        amount = event.value
    if event.direction == "down":
        return RuleCondition("points", feature, "<=", -amount, -amount)
    return RuleCondition("points", feature, ">=", amount, amount, absolute=event.direction == "either")
