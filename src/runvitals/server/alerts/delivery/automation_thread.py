"""`AutomationThread`: lets automations react to what happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from runvitals.model.durations import MINUTE_MS
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.alerts.delivery.run_actions import may_read
from runvitals.server.alerts.reactions import reaction_to
from runvitals.server.alerts.run_failure import failure_of_run
from runvitals.server.alerts.storage.automations import AutomationRow, RaisedEvent, Reaction
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.organisation.settings import with_defaults
from runvitals.store.supervised_thread import SupervisedThread

_EVERY_S: Final = 1.0
_LOST_LOOKBACK_MS: Final = 10 * MINUTE_MS
_HEARTBEAT_MS: Final = 5_000
"""Servers write once a second whom they heard: before that, no run is called lost."""


class AutomationThread:
    """Reacts to events once a second. Servers that share a metadata store share the events.

    Args:
        directory: knows what users may do.
        clock: the time now, ms UTC.

    Attributes:
        thread: start and close it.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        clock: Callable[[], int],
    ) -> None:
        self._store = metadata_store
        self._automations = metadata_store.alerts.automations
        self._directory = directory
        self._clock = clock
        self._lost_until_ms = clock() - _LOST_LOOKBACK_MS
        self.thread = SupervisedThread("automations", self._turn, every_s=_EVERY_S)

    def react(self) -> int:
        """React to everything that happened; returns how many events there were."""
        now_ms = self._clock()
        until_ms = now_ms - _HEARTBEAT_MS
        if until_ms > self._lost_until_ms:
            self._automations.note_lost(self._lost_until_ms, until_ms)
        if not 0 < self._lost_until_ms - until_ms < MINUTE_MS:  # more, if the clock was set back
            self._lost_until_ms = until_ms
        reacted = 0
        problems: dict[int, str] = {}

        def react(row: AutomationRow, event: RaisedEvent) -> Reaction | None:
            problem = self._problem(row)
            if problem is not None:
                problems[row.id] = problem
                return None
            if not self._may_know(row, event):
                return None
            return reaction_to(row, self._with_reason(self._without_foreign_run(row, event)))

        while not self.thread.closing.is_set() and (count := self._automations.react(react, now_ms)):
            reacted += count
        for automation_id, problem in problems.items():
            self._automations.switch_off(automation_id, problem, now_ms)
        return reacted

    def _with_reason(self, event: RaisedEvent) -> RaisedEvent:
        """Return the event; that of a run's failure with why it failed and what it printed last."""
        number, state = event.run_number, event.data.get("state")
        if event.kind != "run.state" or state not in ("failed", "crashed", "lost") or number is None:
            return event
        row = self._store.runs.get([number], self._clock()).get(number)
        settings = with_defaults(self._store.accounts.settings.all())
        if row is None:
            return event
        failure = failure_of_run(
            self._store, number, row.ending, row.ended_ms, bool(settings["alert_console"])
        )
        if failure is None:
            return event
        output = "\n".join(line.text for line in failure.lines)
        return replace(event, data={**event.data, "failure": failure.title, "output": output})

    def _problem(self, row: AutomationRow) -> str | None:
        """Return why an automation can do nothing: it acts with the rights of its creator."""
        creator = None if row.creator_id is None else self._directory.user(row.creator_id)
        owner = self._directory.entity(row.team_id)
        if row.registry_id is not None:
            registry = registry_of(self._directory.project(row.registry_id))
            allowed = creator and self._directory.may(creator, Action.REGISTRY_MANAGE_ADMINS, registry)
            lost = "does not administer the registry any more"
        else:
            allowed = creator and self._directory.may(creator, Action.AUTOMATION_READ, owner)
            lost = "does not administer it any more" if owner.organisation else "is not in the team any more"
        return None if allowed else f"It was created by {row.created_by or 'a deleted user'}, who {lost}."

    def _without_foreign_run(self, row: AutomationRow, event: RaisedEvent) -> RaisedEvent:
        """Return the event; without its run if the creator may not read it: a registry has other readers."""
        project_id = event.run_project_id
        if (
            row.creator_id is None
            or project_id is None
            or may_read(self._directory, row.creator_id, project_id)
        ):
            return event
        return replace(event, run_number=None, run="", name="", author="", tags=())

    def _may_know(self, row: AutomationRow, event: RaisedEvent) -> bool:
        """Return whether the creator of an automation may read the project of an event."""
        if event.project_id is None or row.creator_id is None:
            return event.project_id is None
        return may_read(self._directory, row.creator_id, event.project_id)

    def _turn(self) -> bool:
        if not self.thread.closing.is_set():
            self.react()
        return not self.thread.closing.is_set()
