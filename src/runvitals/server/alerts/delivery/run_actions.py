"""Automations that change runs, with the present rights of their creators."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from runvitals.model.errors import UnknownProject
from runvitals.model.state import LOST, RUNNING
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.resources import ProjectItem
from runvitals.server.alerts.delivery.channel import DeliveryFailed, number_of
from runvitals.server.alerts.storage.automations import AutomationRow
from runvitals.server.audit.storage.audit import Actor
from runvitals.server.events.outbox import ChannelResponse, StoredNotification
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.events import change_event
from runvitals.server.runs.storage.run_places import RunPlace
from runvitals.store.errors import NotFound

_VIA: Final = "automation"


def may_read(directory: Directory, user_id: int, project_id: int) -> bool:
    """Return whether a user may read a project at present."""
    user = directory.user(user_id)
    try:
        return user is not None and directory.may(user, Action.PROJECT_READ, directory.project(project_id))
    except (UnknownProject, NotFound):
        return False  # deleted meanwhile


class RunActions:
    """Stops and tags runs.

    Args:
        directory: knows what users may do.
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, directory: Directory, clock: Callable[[], int]) -> None:
        self._store = metadata_store
        self._directory = directory
        self._clock = clock

    def stop(self, due: StoredNotification) -> ChannelResponse:
        """Ask a run to stop. Raises `DeliveryFailed`."""
        run, by = self._check_allowed(due, Action.RUN_STOP)
        row = self._store.runs.get([run.run_id], self._clock())[run.run_id]
        if row.state != RUNNING:
            return ChannelResponse(text=f"the run is {row.state} already")
        self._store.runs.request_stop(run.run_id, self._clock())
        self._record(run, by, "run.stop", {})
        return ChannelResponse(text="the run was asked to stop")

    def tag(self, due: StoredNotification) -> ChannelResponse:
        """Add a tag to a run. Raises `DeliveryFailed`."""
        run, by = self._check_allowed(due, Action.RUN_UPDATE)
        tag = str(due.payload.get("tag"))
        self._store.runs.tag([run.run_id], self._clock(), add=[tag])
        self._record(run, by, "run.update", {"fields": ["tags"]})
        return ChannelResponse(text=f"the run has the tag {tag}")

    def command(self, due: StoredNotification) -> ChannelResponse:
        """Have the hosts of a run run a command that their users registered, and wait for a report.

        Raises:
            DeliveryFailed: it failed, or no host has reported yet.
        """
        run, by = self._check_allowed(due, Action.RUN_STOP)
        begun = f"command {due.id} "
        for event in self._store.events.of_run(run.run_id, name="command"):
            if event.text.startswith(begun):
                return ChannelResponse(text=event.text)
        row = self._store.runs.get([run.run_id], self._clock())[run.run_id]
        if row.state not in (RUNNING, LOST):
            raise DeliveryFailed(f"the run is {row.state} already", "failed")
        if not due.payload.get("allowed"):
            self._store.alerts.outbox.set_payload(due, {**due.payload, "allowed": True})
            self._record(run, by, "run.command", {"command": due.payload.get("command")})
        raise DeliveryFailed("the host has not answered yet")

    def _check_allowed(self, due: StoredNotification, action: Action) -> tuple[RunPlace, Actor]:
        """Return the run of a change, and who makes it.

        Raises:
            DeliveryFailed: the creator of the automation may not do it, or one of them is gone.
        """
        automation = self._automation(due)
        run = self._store.runs.place(number_of(due))
        if run is None or run.deleted or run.entity_id != due.team_id:
            raise DeliveryFailed("the run was deleted or moved", "failed")
        creator = None if automation.creator_id is None else self._directory.user(automation.creator_id)
        item = ProjectItem(
            "run",
            run.run_id,
            self._directory.project(run.project_id),
            run.author_id,
            run.service_account_id,
            run.deleted,
        )
        if creator is None or not self._directory.may(creator, action, item):
            name = automation.created_by or "a deleted user"
            problem = f"It was created by {name}, who may not do this ({action.value}) any more."
            self._store.alerts.automations.switch_off(automation.id, problem, self._clock())
            raise DeliveryFailed(problem, "failed")
        return run, Actor("user", automation.created_by or "", automation.creator_id, _VIA)

    def _automation(self, due: StoredNotification) -> AutomationRow:
        if due.automation_id is None or due.team_id is None:
            raise DeliveryFailed("the automation was deleted", "failed")
        try:
            return self._store.alerts.automations.get(due.team_id, due.automation_id)
        except NotFound as error:
            raise DeliveryFailed(str(error), "failed") from None

    def _record(self, run: RunPlace, by: Actor, action: str, after: Mapping[str, Any]) -> None:
        owner = (run.entity_id or 0, run.entity or "")
        now_ms = self._clock()
        self._store.accounts.audit.record(
            now_ms, by, action, entity=owner, project=run.project, run=run.uid, after=after or None
        )
        event = change_event(run.run_id, by, action, after, now_ms)
        if event is not None:
            self._store.events.add([event])
