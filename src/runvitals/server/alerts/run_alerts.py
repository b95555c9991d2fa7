"""`RunAlerts`: the thread that decides who is notified about what happened to runs.

What happened is in the metadata store already (`server/events/run_events.py`), so nothing is lost if
the server dies, and no sender of samples waits for it. Who is notified, the outbox delivers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import tzinfo
from typing import Final
from urllib.parse import quote

from runvitals.model.durations import DAY_MS, MINUTE_MS
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.alerts.audience import is_of_interest, may_read_run, team_may_read
from runvitals.server.alerts.mute_links import PURPOSE, MuteLink
from runvitals.server.alerts.receivers import (
    AlertReceiver,
    Choices,
    named_receivers,
    receivers,
    team_is_notified,
)
from runvitals.server.alerts.run_facts import run_facts
from runvitals.server.alerts.settings import due_ms, personal_alerts, team_alerts, zone_named
from runvitals.server.alerts.storage.alert_settings import Scope
from runvitals.server.alerts.texts import AlertText, event_text
from runvitals.server.database.secret_box import SecretBox
from runvitals.server.events.outbox import Notification
from runvitals.server.events.run_events import DONE, HELD, NEW, RunEvent, WaitingAlert
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.store.errors import NotFound
from runvitals.store.supervised_thread import SupervisedThread

LOST_MS: Final = 10 * MINUTE_MS
"""How long a run is silent before somebody is notified."""
OLD_MS: Final = DAY_MS
"""Nobody is notified what happened earlier, such as when a journal arrives late or runs are imported."""
WAIT_MS: Final = MINUTE_MS
"""How long an alert with the same title is not told again, if the alert says nothing about it."""
ALERTS_A_MINUTE: Final = 20
"""Of one run. Further ones are counted in one message."""
_EVERY_S: Final = 2.0
_CHECK_S: Final = 15.0
_MAX_IN_DIGEST: Final = 50
_MAX_BODY: Final = 12_000


class RunAlerts:
    """Tells users about the ends, losses and alerts of runs.

    Args:
        clock: the time now, ms UTC.
        monotonic: seconds that only grow.

    Attributes:
        thread: start and close it.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        box: SecretBox,
        clock: Callable[[], int],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = metadata_store
        self._directory = directory
        self._clock = clock
        self._monotonic = monotonic
        self._key = box.derived_key(PURPOSE)
        self._since_s = monotonic()
        self._checked_s: float | None = None
        self.thread = SupervisedThread("run-alerts", self._turn, every_s=_EVERY_S)

    def decide(self) -> int:
        """Decide about everything that is new or due; returns how many events there were."""
        self._look_for_silence()
        new = self._store.alerts.events.in_state(NEW)
        for event in new:
            self._decide(event)
        self._tell_held()
        self._tell_waiting()
        return len(new)

    def _turn(self) -> bool:
        if self.thread.closing.is_set():
            return False
        while self.decide() and not self.thread.closing.is_set():
            pass
        return True

    def _look_for_silence(self) -> None:
        """Note which runs are lost, and which are back.

        A server that just started has heard of no run yet, so it waits as long as a run may be silent.
        """
        now_s = self._monotonic()
        if self._checked_s is not None and now_s - self._checked_s < _CHECK_S:
            return
        self._checked_s = now_s
        now_ms = self._clock()
        self._store.alerts.events.note_back(now_ms)
        if (now_s - self._since_s) * 1000 >= LOST_MS:
            self._store.alerts.events.note_lost(now_ms - LOST_MS, now_ms - OLD_MS, now_ms)

    def _decide(self, event: RunEvent) -> None:
        now_ms, events = self._clock(), self._store.alerts.events
        if now_ms - event.time_ms > OLD_MS or not is_of_interest(self._store, event):
            events.settle([event.id], DONE)
        elif event.event == "custom" and (state := self._state_if_suppressed(event)) is not None:
            events.settle([event.id], state)
        else:
            self._tell(event, [event.id])

    def _state_if_suppressed(self, event: RunEvent) -> str | None:
        """Return the state of an alert that is not sent now; None: it is sent.

        It is not if its title was sent lately, or there are too many.
        """
        wait_ms = int(event.data.get("wait_s", WAIT_MS / 1000) * 1000)
        since_ms = event.time_ms - max(wait_ms, MINUTE_MS)
        earlier_told = [
            earlier
            for earlier in self._store.alerts.events.told_since(event.run_id, since_ms)
            if earlier.data.get("told")
        ]
        title = event.data.get("title")
        for earlier in earlier_told:
            if earlier.data.get("title") == title and event.time_ms - earlier.time_ms < wait_ms:
                return DONE
        # By our clock: what a machine without network recorded in a day arrives within a second.
        newest = self._store.alerts.events.newest_told(event.run_id, ALERTS_A_MINUTE)
        lately = [
            earlier for earlier in newest if abs(self._clock() - earlier.data.get("told_ms", 0)) < MINUTE_MS
        ]
        return HELD if len(lately) >= ALERTS_A_MINUTE else None

    def _tell_held(self) -> None:
        """Tell of the alerts of a run that were too many, as one, once the minute is over."""
        by_run: dict[int, list[RunEvent]] = {}
        for event in self._store.alerts.events.in_state(HELD):
            by_run.setdefault(event.run_id, []).append(event)
        for alerts in by_run.values():
            if abs(self._clock() - alerts[0].time_ms) >= MINUTE_MS:  # the sender's clock may be ahead
                self._tell(alerts[-1], [event.id for event in alerts], further=len(alerts) - 1)

    def _tell(self, event: RunEvent, ids: Collection[int], further: int = 0) -> None:
        """Put what is notified about an event into the outbox, or let it wait."""
        now_ms, run = self._clock(), self._store.runs.place(event.run_id)
        notifications: list[Notification] = []
        waiting: list[WaitingAlert] = []
        if run is not None and not run.deleted and run.entity_id is not None:
            with suppress(NotFound):  # the team was deleted meanwhile
                telling = _Telling(self._store, self._directory, self._key, now_ms, run, event, further)
                notifications, waiting = telling.all()
        self._store.alerts.events.settle(
            ids, DONE, notifications, waiting, note={"told": True, "told_ms": now_ms}
        )

    def _tell_waiting(self) -> None:
        """Send what waited for the end of quiet hours or for a digest, as one message to each receiver."""
        now_ms, events = self._clock(), self._store.alerts.events
        by_receiver: dict[tuple[int, str], list[WaitingAlert]] = {}
        for alert in events.due(now_ms):
            by_receiver.setdefault((alert.user_id, alert.channel), []).append(alert)
        for (user_id, channel), waited in by_receiver.items():
            alerts = [alert for alert in waited if self._is_readable(alert)]
            if not alerts:
                events.send_waiting([alert.id for alert in waited], None)
                continue
            text = _digest(alerts)
            key = f"digest:{_target(user_id, channel)}:{alerts[-1].id}"
            payload = {"path": "/-/settings/notifications", "link": "Your alerts"}
            run_id, *other_ids = {alert.run_id for alert in alerts}
            if channel == "email" and run_id is not None and not other_ids:
                payload["mute"] = MuteLink(user_id, run_id).text(self._key)
            notification = Notification(
                key, "run.digest", _target(user_id, channel), "digest", text, payload, now_ms
            )
            events.send_waiting([alert.id for alert in waited], notification)

    def _is_readable(self, alert: WaitingAlert) -> bool:
        """Return whether the receiver may still read the run that an alert is about."""
        run = None if alert.run_id is None else self._store.runs.place(alert.run_id)
        return run is not None and may_read_run(self._directory, alert.user_id, run)


class _Telling:
    """Who is notified about one event, with which text."""

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        key: bytes,
        now_ms: int,
        run: RunPlace,
        event: RunEvent,
        further: int,
    ) -> None:
        assert run.entity_id is not None
        self._store = metadata_store
        self._directory = directory
        self._key = key
        self._now_ms = now_ms
        self._run = run
        self._event = event
        self._further = further
        self._entity = directory.entity(run.entity_id)
        self._settings = with_defaults(metadata_store.accounts.settings.all())
        self._path = f"/{run.entity}/{quote(run.project, safe='')}/runs/{quote(run.uid, safe='')}"

    def all(self) -> tuple[list[Notification], list[WaitingAlert]]:
        """Return what goes into the outbox now, and what waits."""
        is_team = self._entity.owner_id is None
        team = team_alerts(self._store.alerts.settings.of_team(self._entity.id)) if is_team else None
        members = self._readers() if is_team else []
        author_id = self._run.author_id
        if not may_read_run(self._directory, author_id, self._run):
            author_id = None
        users = {*members, *([] if author_id is None else [author_id])}
        settings = self._store.alerts.settings.of_users(users)
        personal = {user_id: personal_alerts(settings.get(user_id, {})) for user_id in users}
        choices = Choices(
            author_id,
            personal,
            team,
            members,
            self._store.alerts.settings.modes(users, self._targets(is_team)),
        )
        to = self._event.data.get("to")
        receivers_told = (
            receivers(self._event.event, self._event.level, choices)
            if to is None
            else named_receivers(to, choices)
        )
        to_team = (
            to is None
            and team is not None
            and team_is_notified(self._event.event, self._event.level, team)
            and team_may_read(self._directory, self._run)
        )
        if not receivers_told and not to_team:
            return [], []
        text = self._text()
        notifications: list[Notification] = []
        waiting: list[WaitingAlert] = []
        for receiver in receivers_told:
            due = due_ms(personal[receiver.user_id], self._event.level, self._now_ms, self._zone(receiver))
            if due > self._now_ms:
                waiting.append(self._waiting(receiver, text, due))
            else:
                notifications.append(self._to_user(receiver, text))
        if to_team and team is not None:
            notifications.append(self._to_team(f"slack:{team.slack_destination}", text))
        return notifications, waiting

    def _readers(self) -> list[int]:
        """Return the members of the team who may read the run."""
        of_team = self._store.accounts.members.of_teams([self._entity.id])
        members = [member.user_id for member in of_team.get(self._entity.id, [])]
        return [user_id for user_id in members if may_read_run(self._directory, user_id, self._run)]

    def _targets(self, is_team: bool) -> Mapping[Scope, int]:
        targets: dict[Scope, int] = {"run": self._run.run_id, "project": self._run.project_id}
        return {**targets, "team": self._entity.id} if is_team else targets

    def _text(self) -> AlertText:
        facts = run_facts(
            self._store, self._run, self._now_ms, with_console=bool(self._settings["alert_console"])
        )
        return event_text(self._event, facts, self._further)

    def _zone(self, receiver: AlertReceiver) -> tzinfo:
        try:
            wishes = self._store.accounts.profiles.get(receiver.user_id).fields
        except NotFound:
            wishes = {}
        return zone_named(wishes.get("time_zone") or self._settings["time_zone"])

    def _waiting(self, receiver: AlertReceiver, text: AlertText, due: int) -> WaitingAlert:
        return WaitingAlert(
            receiver.user_id, receiver.channel, self._event.id, due, text.title, text.body[:_MAX_BODY]
        )

    def _to_user(self, receiver: AlertReceiver, text: AlertText) -> Notification:
        target = _target(receiver.user_id, receiver.channel)
        if receiver.reason == "author":
            why = "You get this because you are the author of the run."
        elif receiver.reason == "rule":
            why = "You get this because the rule names you as a receiver."
        else:
            why = f"You get this because the team {self._run.entity} tells its members about its runs."
        link = MuteLink(receiver.user_id, self._run.run_id).text(self._key)
        user_text = replace(text, body="\n\n".join(part for part in (text.body, why) if part))
        return self._notification(target, user_text, {"mute": link})

    def _to_team(self, target: str, text: AlertText) -> Notification:
        return replace(self._notification(target, text, {}), team_id=self._entity.id)

    def _notification(self, target: str, text: AlertText, more: Mapping[str, str]) -> Notification:
        payload = {
            "path": self._path,
            "link": "The run",
            "level": self._event.level,
            "run_number": self._run.run_id,
            **more,
        }
        return Notification(
            f"run-event:{self._event.id}:{target}",
            f"run.{self._event.event}",
            target,
            f"run:{self._run.run_id}",
            text.full_text,
            payload,
            self._now_ms,
        )


def _target(user_id: int, channel: str) -> str:
    return f"user:{user_id}" if channel == "email" else f"user-slack:{user_id}"


def _digest(alerts: list[WaitingAlert]) -> str:
    """Return the text of several alerts, or of the only one."""
    if len(alerts) == 1:
        return AlertText(alerts[0].subject, alerts[0].body).full_text
    listed = [f"{alert.subject}" for alert in alerts[:_MAX_IN_DIGEST]]
    if len(alerts) > _MAX_IN_DIGEST:
        listed.append(f"… and {len(alerts) - _MAX_IN_DIGEST} more")
    return AlertText(f"{len(alerts)} alerts of your runs", "\n\n".join(listed)).full_text
