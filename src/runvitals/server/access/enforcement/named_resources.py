"""Finds the resource that the path of a request names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException

from runvitals.model.errors import AmbiguousName, UnknownProject, UnknownRun
from runvitals.model.registry_names import project_of_registry
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.decisions.matrix import ORGANISATION_MATRIX
from runvitals.server.access.decisions.registry_actions import registry_of
from runvitals.server.access.principals import Principal, User
from runvitals.server.access.resources import Account, Organisation, Project, ProjectItem, Registry, Resource
from runvitals.server.http.errors import DetailedError
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.reports.report_ids import report_number
from runvitals.server.reports.shares import actions_of_share
from runvitals.server.reports.storage.rows import ReportRow, ShareRole
from runvitals.store.errors import NotFound

MAX_NAME: Final = 256
_ACCOUNT_KINDS: Final = ("account", "user")


class Named(NamedTuple):
    """The resource that a request names.

    `resource` None: there is none. `what`: as the request named it. `run_id`: of the run that the path
    names, where the resource is its project.
    """

    resource: Resource | None
    what: str
    run_id: int | None = None


class Address(NamedTuple):
    """Where a project is: the name of its team or user, and its own."""

    entity: str
    project: str


class NamedResources:
    """Resources by the parameters of a path: `run`, `report`, `project`, `entity`, `team`, `user`."""

    def __init__(self, metadata_store: MetadataStore, directory: Directory) -> None:
        self._metadata_store = metadata_store
        self._directory = directory

    def find(
        self, principal: Principal, action: Action, path: Mapping[str, str], query: Mapping[str, str]
    ) -> Named:
        """Return the resource of a request for an action.

        Raises:
            DetailedError: 409 if several runs that the principal may read have the id.
            LookupError: the path names nothing that this action is on: an error in the route.
        """
        if action in ORGANISATION_MATRIX:
            return Named(Organisation(), "the organisation")
        if action.kind in _ACCOUNT_KINDS:
            return self._account(principal, action, path)
        if "run" in path:
            run = self._run(principal, path["run"], query.get("entity"), action is Action.RUN_CREATE)
            if action.kind != "project" or not isinstance(run.resource, ProjectItem):
                return run
            if not self._directory.may(principal, Action.RUN_READ, run.resource):
                return Named(None, run.what)
            return Named(run.resource.project, run.what, run.resource.id)
        if "report" in path:
            return self._report(principal, path["report"])
        if action.kind == "registry" and "registry" in path:
            return self._registry(path["team"], path["registry"])
        if "project" in path:
            return self._project(principal, action, path["project"], path.get("entity"))
        if action.kind == "registry" and "team" in path:  # a new one
            team = self._directory.owner_named(path["team"])
            new = None if team is None else Registry(0, team, shared=team.organisation)
            return Named(new, f"team {_quote(path['team'])}")
        for name, what in (("team", "team"), ("entity", "team or user")):
            if name in path:
                return Named(self._directory.owner_named(path[name]), f"{what} {_quote(path[name])}")
        raise LookupError(f"the path names no resource for {action.value}")

    def moved_project(self, principal: Principal, entity: str, name: str, now_ms: int) -> Address | None:
        """Return where the project of this old address is now; None unless the principal may read it."""
        owner = self._directory.entity_named(entity)
        accounts = self._metadata_store.accounts
        if owner is None:
            return None
        number = accounts.project_redirects.target(owner.id, name[:MAX_NAME], now_ms)
        if number is None or not self._reads(principal, number):
            return None
        row = accounts.owned_projects.get(number)
        return Address(row.entity, row.name)

    def moved_run(self, principal: Principal, uid: str, entity: str, now_ms: int) -> Address | None:
        """Return where the run is now whose project was in this team or space, as `moved_project`."""
        owner = self._directory.entity_named(entity)
        accounts = self._metadata_store.accounts
        if owner is None:
            return None
        project_ids = accounts.project_redirects.projects_of_run(owner.id, uid[:MAX_NAME], now_ms)
        readable = [number for number in project_ids if self._reads(principal, number)]
        if len(readable) != 1:
            return None
        row = accounts.owned_projects.get(readable[0])
        return Address(row.entity, row.name)

    def _reads(self, principal: Principal, project_id: int) -> bool:
        try:
            project = self._directory.project(project_id)
        except (NotFound, UnknownProject):  # removed a moment ago
            return False
        return not project.deleted and self._directory.may(principal, Action.PROJECT_READ, project)

    def _account(self, principal: Principal, action: Action, path: Mapping[str, str]) -> Named:
        if action is Action.USER_READ and "user" in path:
            entity = self._directory.entity_named(path["user"])
            owner = None if entity is None or entity.deleted else entity.owner_id
            return Named(None if owner is None else Account(owner), f"user {_quote(path['user'])}")
        own = Account(principal.id) if isinstance(principal, User) else None
        return Named(own, "account: only users have one")

    def _run(self, principal: Principal, uid: str, entity: str | None, sends: bool) -> Named:
        """Return a run that the principal may read; with `sends`, one that it may add to.

        A key that may only send cannot read it.
        """
        what = f"run {_quote(uid)}"
        find = self._sent_run if sends else self._directory.find_run
        try:
            return Named(find(principal, uid[:MAX_NAME], entity), what)
        except UnknownRun:
            return Named(None, what)
        except AmbiguousName as error:
            raise DetailedError(409, str(error), {"entities": error.entities}) from None

    def _sent_run(self, principal: Principal, uid: str, entity: str | None) -> ProjectItem:
        """Return the run that a principal may add to, otherwise one that it may only read.

        Raises:
            HTTPException: 403 for a run of somebody else in a project that is open to all.
            UnknownRun: it may not know of any.
        """
        try:
            return self._directory.find_sent_run(principal, uid, entity)
        except UnknownRun:
            run = self._directory.find_run(principal, uid, entity)
        if self._directory.may(principal, Action.RUN_CREATE, run):
            raise HTTPException(403, f"you may not write to the run {_quote(uid)}: it is somebody else's")
        return run

    def _report(self, principal: Principal, text: str) -> Named:
        what = f"report {_quote(text)}"
        number = report_number(text)
        reports = self._metadata_store.accounts.reports
        try:
            return Named(self.report_resource(principal, reports.get(number or 0)), what)
        except (NotFound, UnknownProject):
            return Named(None, what)

    def report_resource(
        self, principal: Principal, row: ReportRow, roles: Mapping[int, ShareRole] | None = None
    ) -> ProjectItem:
        """Return a report as decisions about a principal need it.

        Args:
            roles: all that the principal has by shares, by report; None: they are looked up.

        Raises:
            UnknownProject: its project was removed a moment ago.
        """
        role = None if roles is None else roles.get(row.id)
        if roles is None and isinstance(principal, User):
            role = self._metadata_store.accounts.reports.share_role(row.id, principal.id)
        return ProjectItem(
            "report",
            row.id,
            self._directory.project(row.project_id),
            row.author_id,
            row.service_account_id,
            row.deleted_ms is not None,
            row.is_draft,
            actions_of_share(role, row.is_draft),
        )

    def _registry(self, team: str, name: str) -> Named:
        what = f"registry {_quote(f'{team}/{name}')}"
        owner = self._directory.entity_named(team)
        if owner is None:
            return Named(None, what)
        project = self._directory.project_named(owner.id, project_of_registry(name[:MAX_NAME]))
        return Named(None if project is None or project.deleted else registry_of(project), what)

    def _project(self, principal: Principal, action: Action, name: str, entity: str | None) -> Named:
        what = f"project {_quote(name)}" if entity is None else f"project {_quote(f'{entity}/{name}')}"
        entity_id = None
        if entity is not None:
            owner = self._directory.entity_named(entity)
            if owner is None:
                return Named(None, what)
            entity_id = owner.id
        projects: list[Project] = []
        for owner_id, project_id in self._metadata_store.projects.named(name[:MAX_NAME]):
            if entity is not None and owner_id != entity_id:
                continue
            try:
                projects.append(self._directory.project(project_id))
            except (NotFound, UnknownProject):  # of no team yet, or removed a moment ago
                continue
        readable = [
            candidate
            for candidate in projects
            if self._directory.may(principal, Action.PROJECT_READ, candidate)
        ]
        if len(readable) > 1:
            names = self._metadata_store.accounts.entity_names(
                {candidate.entity.id for candidate in readable}
            )
            text = f"there are several of {what}; name one as entity/project"
            raise DetailedError(409, text, {"entities": sorted(names.values())})
        project = next(iter(readable or projects), None)
        if project is not None and action is Action.PROJECT_DELETE and project.owner_id is not None:
            project = replace(
                project, sole_author=self._metadata_store.accounts.project_members.sole_author(project.id)
            )
        return Named(project, what)


def _quote(name: str) -> str:
    return repr(name[:MAX_NAME])
