"""Writes that a rule fired, or is over, and who is notified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from runvitals.model.durations import MINUTE_MS
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.audience import may_read_run, team_may_read
from runvitals.server.alerts.evaluation import Transition
from runvitals.server.alerts.rules import AlertRule
from runvitals.server.alerts.settings import team_alerts
from runvitals.server.alerts.storage.firings import Firing
from runvitals.server.alerts.storage.rules import StoredRule, WatchedLane
from runvitals.server.alerts.texts import duration_text, one_line
from runvitals.server.events.outbox import Notification
from runvitals.server.events.run_events import RunEvent
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.run_places import RunPlace

MAX_PER_MINUTE: Final = 20
"""Of one rule and run: a rule about GPUs may fire for thousands at once."""
MAX_FINDING_TEXT: Final = 2000
USERS: Final = ("author", "members")
"""Who of a rule's `tell` is a user; the rest are channels."""
EVENT: Final = "rule"
"""The name of the event of a run at which a rule fired; charts show it."""
_COMPARED: Final = {">": "above", ">=": "at or above", "<": "below", "<=": "at or below"}


class RuleNotices:
    """Writes that a rule fires for a series, or no longer does, and who is notified.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        clock: Callable[[], int],
    ) -> None:
        self._store = metadata_store
        self._directory = directory
        self._clock = clock
        self._minute = 0
        self._counts: Counter[tuple[int, int, bool]] = Counter()

    def note(
        self, stored_rule: StoredRule, rule: AlertRule, transition: Transition, lane: WatchedLane
    ) -> None:
        """Write a transition, with its notifications, in one transaction."""
        now_ms = self._clock()
        rule = self._with_route(stored_rule, rule)
        silenced = _reason_for_silence(stored_rule, rule, now_ms)
        text = transition_text(rule, transition)
        if silenced is None and (transition.firing or rule.resolve):
            count = self._count_transition(rule.id, lane.run_id, transition.firing, now_ms)
            if count > MAX_PER_MINUTE:
                silenced = "too many in a minute"
            elif count == MAX_PER_MINUTE:
                text += ". What follows within this minute is only in the history of the rule"
        if not transition.firing:
            self._end_firing(
                stored_rule, rule, transition, lane, f"{text} – over", silenced is None and rule.resolve
            )
            return
        notifications = [] if silenced else self._notifications(stored_rule, rule, transition, lane, text)
        reached = {notification.target for notification in notifications} | {
            target for target in rule.tell if target in USERS
        }
        firing = Firing(
            rule.id,
            lane.run_id,
            lane.lane_id,
            transition.series.key,
            lane.host,
            rule.severity,
            transition.value if transition.value == transition.value else None,
            transition.time_ms,
            told=silenced or ", ".join(sorted(reached)),
        )
        data = {"title": rule.name, "rule": rule.name, "key": transition.series.key, "host": lane.host}
        event = StoredEvent(lane.run_id, transition.time_ms, EVENT, rule.severity, text, data)
        self._store.alerts.firings.add(
            firing,
            event,
            None if silenced else self._run_event(rule, transition, lane, text),
            notifications,
            rule_name="" if silenced else rule.name,
            is_silence=rule.condition.kind == "silence",
        )

    def _end_firing(
        self,
        stored_rule: StoredRule,
        rule: AlertRule,
        transition: Transition,
        lane: WatchedLane,
        text: str,
        notifies: bool,
    ) -> None:
        """Write that a rule no longer fires for a series."""
        series = transition.series
        self._store.alerts.firings.end(
            rule.id,
            series.lane_id,
            series.key,
            self._clock(),
            self._notifications(stored_rule, rule, transition, lane, text) if notifies else [],
            self._run_event(rule, transition, lane, text) if notifies else None,
        )

    def _with_route(self, stored_rule: StoredRule, rule: AlertRule) -> AlertRule:
        """Return a rule that names nobody, with whom its team chose for its severity."""
        if rule.tell:
            return rule
        chosen = team_alerts(self._store.alerts.settings.of_team(stored_rule.entity_id))
        return replace(rule, tell=chosen.routes.get(rule.severity, ()))

    def _count_transition(self, rule_id: int, run_id: int, firing: bool, now_ms: int) -> int:
        """Return how many transitions of a rule for a run there were in this minute, with this one."""
        minute = now_ms // MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            self._counts.clear()
        self._counts[rule_id, run_id, firing] += 1
        return self._counts[rule_id, run_id, firing]

    def watches_all(self, stored_rule: StoredRule) -> bool:
        """Return whether the creator of a rule administers the organisation: it may look at all teams."""
        creator = None if stored_rule.creator_id is None else self._directory.user(stored_rule.creator_id)
        return creator is not None and creator.state == "active" and creator.org_admin

    def test(self, stored_rule: StoredRule, rule: AlertRule, user_id: int) -> Notification:
        """Put a notification that a rule would send into the outbox, for one user."""
        now_ms = self._clock()
        text = f"Test of the rule {one_line(rule.name)}\n\nThis is how it reaches you. Nothing has happened."
        key = f"rule-test:{stored_rule.id}:{user_id}:{now_ms}"
        notification = Notification(
            key, "rule.test", f"user:{user_id}", f"rule:{stored_rule.id}", text, {}, now_ms
        )
        self._store.write(lambda connection: self._store.alerts.outbox.add(connection, notification))
        return notification

    def _run_event(
        self, rule: AlertRule, transition: Transition, lane: WatchedLane, text: str
    ) -> RunEvent | None:
        """Return the event by which users are notified; None if nobody is notified that the rule is over.

        Notified are those that the rule names, otherwise those who want to know of findings. `RunAlerts`
        decides when, and by which channel.
        """
        to = [target for target in rule.tell if target in USERS]
        if not transition.firing and not to:
            return None
        series = transition.series
        kind, title = ("rule", rule.name) if transition.firing else ("rule-over", f"{rule.name} is over")
        key = f"{kind}:{rule.id}:{series.lane_id}:{series.key}:{transition.time_ms}"
        data = {"title": title, "text": text, **({"to": to} if to else {})}
        return RunEvent(lane.run_id, 0, "finding", transition.time_ms, key, rule.severity, data)

    def _notifications(
        self, stored_rule: StoredRule, rule: AlertRule, transition: Transition, lane: WatchedLane, text: str
    ) -> list[Notification]:
        run = self._store.runs.place(lane.run_id)
        if run is None or run.entity_id is None or run.deleted:
            return []
        now_ms, series = self._clock(), transition.series
        title = f"[{_project_path(run)}] {one_line(run.uid)}: {one_line(rule.name)}"
        path = f"/{run.entity}/{quote(run.project, safe='')}/runs/{quote(run.uid, safe='')}"
        payload = {"path": path, "link": "The run", "level": rule.severity, "run_number": run.run_id}
        kind = "rule.fired" if transition.firing else "rule.over"
        key = f"{kind}:{rule.id}:{series.lane_id}:{series.key}:{transition.time_ms}"
        return [
            Notification(
                f"{key}:{target}",
                kind,
                target,
                f"rule:{rule.id}:{run.run_id}",
                f"{title}\n\n{text}",
                payload,
                now_ms,
                stored_rule.entity_id,
            )
            for target in self._channels(stored_rule, rule, run)
        ]

    def _channels(self, stored_rule: StoredRule, rule: AlertRule, run: RunPlace) -> list[str]:
        """Return the channels of a rule.

        There are none if not all members of its team may read the run, unless the rule's creator may.
        """
        may_know = (
            rule.everywhere  # about hardware, by an administrator of the organisation
            or team_may_read(self._directory, run)
            or may_read_run(self._directory, stored_rule.creator_id, run)
        )
        return list(dict.fromkeys(target for target in rule.tell if target not in USERS)) if may_know else []


def _project_path(run: RunPlace) -> str:
    return f"{one_line(run.entity or '')}/{one_line(run.project)}"


def transition_text(rule: AlertRule, transition: Transition) -> str:
    """Return what a rule found, in a sentence without a full stop."""
    condition, key = rule.condition, one_line(transition.series.key)
    if condition.kind == "finding":
        return one_line(transition.text, MAX_FINDING_TEXT).removesuffix(".")
    where = f" on {one_line(transition.series.host)}" if transition.series.host else ""
    duration = f" for {duration_text(rule.for_ms)}" if rule.for_ms else ""
    if condition.kind == "silence":
        problem = {
            "host": "nothing was heard",
            "steps": "no step was logged",
            "rank": f"{key} logged nothing, unlike others",
        }.get(condition.of)
        return f"{problem or f'no value of {key} arrived'}{where}{duration}"
    if condition.kind == "not_finite":
        return f"{key} is not a number{where}"
    number = f"{transition.value:.4g}"
    if condition.kind == "spread":
        return f"{key}{where} is {number} % from the median of the run{duration}"
    if condition.kind == "change":
        assert condition.feature is not None
        unit = " %" if condition.feature.relative else ""
        return f"{key}{where} changed by {number}{unit}{duration}"
    assert condition.feature is not None
    statistic = "" if condition.feature.statistic == "last" else f"{condition.feature.statistic} of "
    compared = f"{_COMPARED[condition.operator]} {condition.fire:g}"
    return f"{statistic}{key}{where} is {number}, {compared}{duration}"


def _reason_for_silence(stored_rule: StoredRule, rule: AlertRule, now_ms: int) -> str | None:
    """Return why nobody is notified now; None: they are."""
    if stored_rule.muted_until_ms is not None and now_ms < stored_rule.muted_until_ms:
        return "muted"
    if any(window.has(now_ms) for window in rule.maintenance):
        return "maintenance"
    return None
