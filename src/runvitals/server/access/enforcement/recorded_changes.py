"""Changes that users make to runs and projects: in the audit log, and in the events of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.datastructures import State
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.runs.storage.events import change_event
from runvitals.store.errors import NotFound


class RecordedChanges:
    """Makes changes, and records them. Without accounts there is no audit log, and nothing is recorded.

    Args:
        access: decides whether a change is allowed.
    """

    def __init__(self, access: AccessControl) -> None:
        self._access = access
        self._metadata_store = access.metadata_store
        self._clock = access.clock

    def author_change(self, request: Request, name: str | None) -> Callable[[], None]:
        """Return what makes a user the author of the run of the path; None: nobody.

        It raises HTTPException 422 if the user is no member of the run's team.

        Raises:
            HTTPException: 401, 403, 404 or 409; 422 if there are no accounts.
        """
        requester = requester_of(request)
        if isinstance(requester.principal, Operator):
            raise HTTPException(422, "author: this server has no accounts")
        run = self._access.run_of_path(request, Action.RUN_SET_AUTHOR)

        def change() -> None:
            try:
                self._metadata_store.accounts.set_run_author(run.id, name, requester.actor, self._clock())
            except NotFound as error:
                raise HTTPException(422, f"author: {error}") from None
            self._add_event(run.id, requester, "run.set_author", {})

        return change

    def trash_project(self, request: Request) -> int | None:
        """Move the project that `check_route` found to the trash; returns how many runs it has.

        None: there are no accounts, and so projects have no trash.

        Raises:
            LinkedVersions: another project has a version that is linked to it.
        """
        requester = requester_of(request)
        if isinstance(requester.principal, Operator):
            return None
        project_id: int = request.state.project_number
        projects, now_ms = self._metadata_store.accounts.owned_projects, self._clock()
        runs = self._metadata_store.artifacts.dependents.delete_project(
            project_id, lambda: projects.trash(project_id, requester.actor, now_ms)
        )
        self._access.rights_changed()
        return runs

    def record(self, request: Request, action: str, after: Mapping[str, Any]) -> None:
        """Record what was done to the run or project that `check_route` found."""
        requester = requester_of(request)
        if isinstance(requester.principal, Operator):
            return
        audit, location = self._metadata_store.accounts.audit, self._place_of(request.state)
        audit.record(self._clock(), requester.actor, action, after=dict(after) or None, **location)
        if (run_id := getattr(request.state, "run_number", None)) is not None:
            self._add_event(run_id, requester, action, after)

    def record_of_run(
        self, requester: Requester, run_id: int, action: str, after: Mapping[str, Any] | None = None
    ) -> None:
        """Record what was done to a run that the request names otherwise than by its path."""
        if isinstance(requester.principal, Operator):
            return
        if location := self._place_of_run(run_id):
            audit = self._metadata_store.accounts.audit
            audit.record(self._clock(), requester.actor, action, after=dict(after or {}) or None, **location)
            self._add_event(run_id, requester, action, after or {})

    def _add_event(self, run_id: int, by: Requester, action: str, after: Mapping[str, Any]) -> None:
        event = change_event(run_id, by.actor, action, after, self._clock())
        if event is not None:
            self._metadata_store.events.add([event])

    def _place_of(self, state: State) -> dict[str, Any]:
        """Return the entity, project and run of a request, as the audit log has them."""
        run_id, project_id = getattr(state, "run_number", None), getattr(state, "project_number", None)
        if run_id is not None:
            return self._place_of_run(run_id)
        if project_id is None:
            return {}
        project = self._metadata_store.accounts.owned_projects.get(project_id)
        return {"entity": (project.entity_id, project.entity), "project": project.name}

    def _place_of_run(self, run_id: int) -> dict[str, Any]:
        run = self._metadata_store.runs.place(run_id)
        if run is None or run.entity_id is None:
            return {}
        return {"entity": (run.entity_id, run.entity or ""), "project": run.project, "run": run.uid}
