"""Writes that a rule fired, or is over, and who is notified."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Final
from urllib.parse import quote

from runvitals.accounts.directory import Directory
from runvitals.accounts.secret_box import SecretBox
from runvitals.alerts.evaluation import Transition
from runvitals.alerts.mute_links import PURPOSE, MuteLink
from runvitals.alerts.receivers import is_muted
from runvitals.alerts.rules import AlertRule
from runvitals.alerts.run_readers import may_read_run, team_may_read
from runvitals.alerts.texts import duration_text, one_line
from runvitals.model.durations import MINUTE_MS
from runvitals.store.metadata import MetadataStore, StoredEvent
from runvitals.store.metadata.alerts.alert_settings import Scope
from runvitals.store.metadata.alerts.outbox import Notification
from runvitals.store.metadata.alerts.rules import Firing, StoredRule, WatchedLane
from runvitals.store.metadata.alerts.run_events import RunEvent
from runvitals.store.metadata.run_places import RunPlace

MOST_A_MINUTE: Final = 20
"""Of one rule and run: a rule about GPUs may fire for thousands at once."""
EVENT: Final = "rule"
"""The name of the event of a run at which a rule fired; charts show it."""
_COMPARED: Final = {">": "above", ">=": "at or above", "<": "below", "<=": "at or below"}


class RuleNotices:
    """What happens when a rule begins to fire for a series, or is over.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        box: SecretBox,
        clock: Callable[[], int],
    ) -> None:
        self._store = metadata_store
        self._directory = directory
        self._key = box.derived_key(PURPOSE)
        self._clock = clock
        self._minute = 0
        self._counts: Counter[tuple[int, int, bool]] = Counter()

    def heard(self, stored: StoredRule, rule: AlertRule, transition: Transition, lane: WatchedLane) -> None:
        """Write a transition, with its notifications, in one transaction."""
        now_ms = self._clock()
        silenced = _silenced(stored, rule, now_ms)
        text = transition_text(rule, transition)
        if silenced is None and (transition.firing or rule.resolve):
            count = self._counted(rule.id, lane.run_id, transition.firing, now_ms)
            if count > MOST_A_MINUTE:
                silenced = "too many in a minute"
            elif count == MOST_A_MINUTE:
                text += ". What follows within this minute is only in the history of the rule"
        if not transition.firing:
            over = silenced is None and rule.resolve
            notifications = (
                self._notifications(stored, rule, transition, lane, f"{text} – over") if over else []
            )
            series = transition.series
            self._store.alerts.rules.ended(rule.id, series.lane_id, series.key, now_ms, notifications)
            return
        notifications = [] if silenced else self._notifications(stored, rule, transition, lane, text)
        reached = {one.target for one in notifications}
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
        self._store.alerts.rules.fired(
            firing,
            event,
            self._finding(rule, transition, lane, text, silenced),
            notifications,
            found="" if silenced else rule.name,
        )

    def _counted(self, rule_id: int, run_id: int, firing: bool, now_ms: int) -> int:
        """How many transitions of a rule for a run there were in this minute, with this one."""
        minute = now_ms // MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            self._counts.clear()
        self._counts[rule_id, run_id, firing] += 1
        return self._counts[rule_id, run_id, firing]

    def test(self, stored: StoredRule, rule: AlertRule, user_id: int) -> Notification:
        """Put a notification that a rule would send into the outbox, for one user."""
        now_ms = self._clock()
        text = f"Test of the rule {one_line(rule.name)}\n\nThis is how it reaches you. Nothing has happened."
        key = f"rule-test:{stored.id}:{user_id}:{now_ms}"
        notification = Notification(
            key, "rule.test", f"user:{user_id}", f"rule:{stored.id}", text, {}, now_ms
        )
        self._store.write(lambda connection: self._store.alerts.outbox.add(connection, notification))
        return notification

    def _finding(
        self, rule: AlertRule, transition: Transition, lane: WatchedLane, text: str, silenced: str | None
    ) -> RunEvent | None:
        """The event for those who want to know of findings; None if the rule names its receivers."""
        if silenced is not None or "author" in rule.tell or "members" in rule.tell:
            return None
        series = transition.series
        key = f"rule:{rule.id}:{series.lane_id}:{series.key}:{transition.time_ms}"
        data = {"title": rule.name, "text": text}
        return RunEvent(lane.run_id, 0, "finding", transition.time_ms, key, rule.severity, data)

    def _notifications(
        self, stored: StoredRule, rule: AlertRule, transition: Transition, lane: WatchedLane, text: str
    ) -> list[Notification]:
        place = self._store.runs.place(lane.run_id)
        if place is None or place.entity_id is None or place.deleted:
            return []
        now_ms, series = self._clock(), transition.series
        title = f"[{_place_text(place)}] {one_line(place.uid)}: {one_line(rule.name)}"
        path = f"/{place.entity}/{quote(place.project, safe='')}/runs/{quote(place.uid, safe='')}"
        payload = {"path": path, "link": "The run", "level": rule.severity, "run_number": place.run_id}
        kind = "rule.fired" if transition.firing else "rule.over"
        key = f"{kind}:{rule.id}:{series.lane_id}:{series.key}:{transition.time_ms}"
        return [
            Notification(
                f"{key}:{target}",
                kind,
                target,
                f"rule:{rule.id}:{place.run_id}",
                f"{title}\n\n{text}",
                {**payload, **more},
                now_ms,
                None if target.startswith("user") else place.entity_id,
            )
            for target, more in self._targets(stored, rule, place).items()
        ]

    def _targets(self, stored: StoredRule, rule: AlertRule, place: RunPlace) -> dict[str, dict[str, str]]:
        """The targets of a rule, each once, with what only its receiver gets. Left out are users who may not
        read the run or muted it, and channels of a team of which not all members may read it, unless the
        rule's creator may."""
        found: dict[str, dict[str, str]] = {}
        channels = team_may_read(self._directory, place) or may_read_run(
            self._directory, stored.creator_id, place
        )
        users: dict[int, None] = {}
        for target in rule.tell:
            if target == "author" and place.author_id is not None:
                users[place.author_id] = None
            elif target == "members":
                users |= dict.fromkeys(self._members(place))
            elif target != "author" and channels:
                found[target] = {}
        modes = self._modes(users, place) if users else {}
        for user_id in users:
            if may_read_run(self._directory, user_id, place) and not is_muted(modes.get(user_id, {})):
                found[f"user:{user_id}"] = {"mute": MuteLink(user_id, place.run_id).text(self._key)}
        return found

    def _modes(self, users: Collection[int], place: RunPlace) -> dict[int, dict[Scope, str]]:
        assert place.entity_id is not None
        targets: dict[Scope, int] = {
            "run": place.run_id,
            "project": place.project_id,
            "team": place.entity_id,
        }
        return self._store.alerts.settings.modes(users, targets)

    def _members(self, place: RunPlace) -> list[int]:
        assert place.entity_id is not None
        of_team = self._store.accounts.members.of_teams([place.entity_id])
        return [member.user_id for member in of_team.get(place.entity_id, [])]


def _place_text(place: RunPlace) -> str:
    return f"{one_line(place.entity or '')}/{one_line(place.project)}"


def transition_text(rule: AlertRule, transition: Transition) -> str:
    """What a rule found, in a sentence without a full stop."""
    condition, key = rule.condition, one_line(transition.series.key)
    where = f" on {one_line(transition.series.host)}" if transition.series.host else ""
    held = f" for {duration_text(rule.for_ms)}" if rule.for_ms else ""
    if condition.kind == "silence":
        what = {"host": "nothing was heard", "steps": "no step was logged"}.get(condition.of)
        return f"{what or f'no value of {key} arrived'}{where}{held}"
    if condition.kind == "not_finite":
        return f"{key} is not a number{where}"
    number = f"{transition.value:.4g}"
    if condition.kind == "spread":
        return f"{key}{where} is {number} % from the median of the run{held}"
    if condition.kind == "change":
        assert condition.feature is not None
        unit = " %" if condition.feature.relative else ""
        return f"{key}{where} changed by {number}{unit}{held}"
    assert condition.feature is not None
    statistic = "" if condition.feature.statistic == "last" else f"{condition.feature.statistic} of "
    compared = f"{_COMPARED[condition.operator]} {condition.fire:g}"
    return f"{statistic}{key}{where} is {number}, {compared}{held}"


def _silenced(stored: StoredRule, rule: AlertRule, now_ms: int) -> str | None:
    """Why nobody is notified now; None: they are."""
    if stored.muted_until_ms is not None and now_ms < stored.muted_until_ms:
        return "muted"
    if any(window.has(now_ms) for window in rule.maintenance):
        return "maintenance"
    return None
