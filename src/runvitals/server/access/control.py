"""Enforcement: turns decisions into responses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, Literal, NoReturn

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request

from runvitals.model.errors import UnknownProject
from runvitals.model.filter import ReadableRuns
from runvitals.model.names import PROJECT_NAME_ALLOWED, can_be_created, project_name
from runvitals.model.registry_names import is_registry
from runvitals.model.run import Run
from runvitals.server.access.actions import (
    ACCOUNT,
    AUTHENTICATED,
    FILTERED,
    NEEDS_SUDO,
    NO_ADMINISTRATOR,
    OPERATOR_ACTIONS,
    OWN_PASSWORD,
    PUBLIC,
    Action,
)
from runvitals.server.access.decisions.decision import Decision
from runvitals.server.access.decisions.directory import Directory
from runvitals.server.access.enforcement.moved_resources import check_moved
from runvitals.server.access.enforcement.named_resources import NamedResources
from runvitals.server.access.enforcement.refusals import Refusals, beyond_key
from runvitals.server.access.identification.authentication import CHECKS_KEY, NOTHING_FOR_GUESTS
from runvitals.server.access.identification.authenticator import is_loopback_client
from runvitals.server.access.principals import (
    Anonymous,
    KeyScope,
    Operator,
    Principal,
    ServiceAccount,
    User,
    is_report_guest,
)
from runvitals.server.access.requester import Requester, requester_of
from runvitals.server.access.resources import Project, ProjectItem, Registry, Resource
from runvitals.server.account_store import AccountStore
from runvitals.server.http.errors import DetailedError
from runvitals.server.http.same_origin import is_for_loopback
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.reports.storage.rows import ReportRow, ShareRole
from runvitals.store.errors import NotFound

_MAX_CHECKS: Final = 8
_MAX_WAITING: Final = 500
_SAFE_METHODS: Final = ("GET", "HEAD")
_RUN_ACTIONS: Final = frozenset(
    (Action.RUN_UPDATE, Action.RUN_STOP, Action.RUN_DELETE, Action.RUN_MOVE, Action.RUN_SET_AUTHOR)
)
"""The actions on a run that a response lists in `may`."""
_OF_OPERATOR: Final = ("run:delete", "run:move", "run:stop", "run:update")
"""Those of everyone on a server without accounts, where runs have no authors."""

_BEFORE_ACCOUNTS: Final = frozenset((AUTHENTICATED, *(action.value for action in OPERATOR_ACTIONS)))
"""What a server allows before its first administrator exists: only what is about runs."""

Mode = Literal["open", "tokens", "accounts"]
"""What requests need: nothing, a token, or an account or key."""


class AccessControl:
    """Decides for requests, and answers with the status that a decision means.

    A decision reads the database where its facts are not cached: call it in a thread, from a route that is
    no `async def`.

    Args:
        clock: the time now, ms UTC.
        token_required: whether requests need a token before there are accounts.

    Attributes:
        refusals: records what was not allowed.
    """

    def __init__(
        self,
        metadata_store: MetadataStore,
        directory: Directory,
        clock: Callable[[], int],
        token_required: bool = False,
    ) -> None:
        self._token_required = token_required
        self.metadata_store = metadata_store
        self.directory = directory
        self.clock = clock
        self.refusals = Refusals(metadata_store, clock)
        self._resources = NamedResources(metadata_store, directory)
        self._threads = anyio.CapacityLimiter(_MAX_CHECKS)

    @property
    def accounts(self) -> AccountStore:
        """The tables of accounts."""
        return self.metadata_store.accounts

    def requester(self, request: Request) -> Requester:
        """Return the requester of a request, for routes that a server without accounts has too."""
        return requester_of(request)

    def may(self, requester: Requester, action: Action, resource: Resource) -> bool:
        """Return whether the requester may do an action on a resource."""
        return self.directory.may(requester.principal, action, resource)

    def may_of_sender(self, sender: Principal | None, action: Action, project_id: int) -> bool:
        """Return whether the sender of a record may do something with a project's artifacts, with their key.

        Without accounts all is allowed.

        A key that only sends runs logs and uses artifacts like one that writes: a record returns no content.
        """
        if not self.directory.accounts_exist:
            return True
        if sender is None:
            return False
        try:
            project = self.directory.project(project_id)
        except (NotFound, UnknownProject):  # deleted a moment ago
            return False
        return self.directory.may(_with_artifacts(sender), action, ProjectItem("artifact", 0, project))

    def may_list(self, requester: Requester, resource: Resource, actions: frozenset[Action]) -> list[str]:
        """Return those of some actions that the requester may do on a resource: the `may` of a response."""
        return sorted(action.value for action in actions if self.may(requester, action, resource))

    def require(
        self, requester: Requester, action: Action, resource: Resource, what: str, *, changes: bool = True
    ) -> None:
        """Raise unless the requester may do an action on a resource.

        Args:
            what: the resource as the request named it: `run 'abc'`.
            changes: whether the request changes something, for which some actions need the password.

        Raises:
            HTTPException: 401 if signing in may help; 404 if the requester may not know of the resource; 403
                if the requester may read it but not do this; 428 if the password must be confirmed first.
        """
        decision = self.directory.decide(requester.principal, action, resource)
        if decision is not Decision.ALLOWED:
            self._record_refusal(requester, action, resource, changes and decision is Decision.DENIED)
        if decision is Decision.HIDDEN:
            self.hide(requester, what)
        if decision is Decision.DENIED:
            if is_report_guest(requester.principal):
                raise _nothing_for_guests()
            if isinstance(requester.principal, Anonymous):
                raise unauthenticated()
            about_key = beyond_key(requester.principal, action)
            needed = f"it needs the permission {action.value} for {what}{about_key}"
            raise HTTPException(403, f"you may not do this: {needed}")
        if changes and action in NEEDS_SUDO and isinstance(requester.principal, User):
            self._require_sudo(requester)

    def named_project(self, requester: Requester, action: Action, name: str, entity: str | None) -> Project:
        """Return the project of this name, for something in it that the requester may do.

        Raises:
            HTTPException: 401, 403 or 404; 409 if several readable projects have the name.
        """
        path = {"project": name} if entity is None else {"project": name, "entity": entity}
        project, what, _ = self._resources.find(requester.principal, action, path, {})
        if not isinstance(project, Project) or project.deleted:
            self.hide(requester, what)
        self.require(requester, action, ProjectItem("workspace", 0, project), what, changes=False)
        return project

    def report_resource(
        self, principal: Principal, row: ReportRow, roles: Mapping[int, ShareRole] | None = None
    ) -> ProjectItem:
        """As `NamedResources.report_resource`."""
        return self._resources.report_resource(principal, row, roles)

    def hide(self, requester: Requester, what: str) -> NoReturn:
        """Answer as if there were no such resource."""
        if isinstance(requester.principal, Anonymous):
            raise unauthenticated()
        raise HTTPException(404, f"there is no {what}")

    def readable_runs(self, request: Request) -> ReadableRuns | None:
        """Return the runs that the requester may read, for lists; None: all."""
        return self.directory.readable_runs(requester_of(request).principal)

    def follow_readable_runs(self, request: Request, tell: Callable[[ReadableRuns | None], None]) -> None:
        """Tell, while a request lasts, which runs its requester may read, whenever rights have changed."""

        async def check(requester: Requester) -> None:
            tell(await anyio.to_thread.run_sync(self.directory.readable_runs, requester.principal))

        request.scope.get(CHECKS_KEY, []).append(check)

    def projects_with_artifacts(self, request: Request, ids: Collection[int], to: str = "read") -> set[int]:
        """Return those of some projects whose artifacts the requester may see or download; with accounts."""
        principal, action, find = requester_of(request).principal, Action(f"artifact:{to}"), self.directory
        return {project_id for project_id in ids if find.may(principal, action, find.project(project_id))}

    def rights_changed(self) -> None:
        """Forget cached rights in this process, after a change of rights."""
        self.directory.rights_changed()

    def check_move(self, request: Request, project: str | None) -> None:
        """Raise unless the requester may move the run of the path to this project of the same entity.

        Raises:
            HTTPException: 401, 403, 404 or 409.
        """
        requester = requester_of(request)
        if isinstance(requester.principal, Operator):
            return
        run, what = self._find_run(request, Action.RUN_MOVE)
        name, entity = project_name(project), run.project.entity
        target = self.directory.project_named(entity.id, name)
        if target == run.project:
            return
        self.require(requester, Action.RUN_MOVE, run, what)
        if target is None:
            self.require(requester, Action.PROJECT_CREATE, entity, f"project {name!r}")
            if not can_be_created(name) or is_registry(name):
                raise HTTPException(422, f"invalid project name {name!a}; expected {PROJECT_NAME_ALLOWED}")
        else:
            self.require(requester, Action.RUN_CREATE, target, f"project {name!r}")

    def run_of_path(self, request: Request, action: Action) -> ProjectItem:
        """Return the run of the path if the requester may do the action, or raise 401, 403, 404 or 409."""
        run, what = self._find_run(request, action)
        self.require(requester_of(request), action, run, what)
        return run

    def _find_run(self, request: Request, action: Action) -> tuple[ProjectItem, str]:
        """Return the run of the path, and how the request names it."""
        requester = requester_of(request)
        run, what, _ = self._resources.find(
            requester.principal, action, request.path_params, request.query_params
        )
        if not isinstance(run, ProjectItem):
            self.hide(requester, what)
        return run, what

    def may_of_runs(self, request: Request, runs: Sequence[Run], deleted: bool = False) -> list[list[str]]:
        """Return what the requester may do with each of some runs, all in the trash or all not."""
        requester = requester_of(request)
        if isinstance(requester.principal, Operator):
            return [list(_OF_OPERATOR)] * len(runs)
        actions: dict[Hashable, list[str]] = {}
        listed = []
        for run in runs:
            author_id = None if run.author is None else run.author.id
            account_id = None if run.service_account is None else run.service_account.id
            key = run.entity, run.project, author_id, account_id
            if key not in actions:
                owner = self.directory.entity_named(run.entity or "")
                project = None if owner is None else self.directory.project_named(owner.id, run.project)
                if project is None:  # renamed or moved a moment ago
                    actions[key] = []
                else:
                    item = ProjectItem("run", 0, project, author_id, account_id, deleted)
                    actions[key] = self.may_list(requester, item, _RUN_ACTIONS)
            listed.append(actions[key])
        return listed

    def mode(self) -> Mode:
        """Return what requests need at the moment."""
        if self.directory.accounts_exist:
            return "accounts"
        return "tokens" if self._token_required else "open"

    async def check_route(self, request: Request, permission: str, or_else: str | None = None) -> None:
        """Check that the requester may do an action on the resource that the path names, or the other one.

        The check is made again while the request lasts.

        Raises:
            HTTPException: 401, 403, 404, 409 or 428; 307 if the resource has moved.
        """

        async def check(requester: Requester) -> None:
            if permission == PUBLIC:
                return
            if is_report_guest(requester.principal):
                may_be_read = permission == Action.REPORT_READ.value and request.method in _SAFE_METHODS
                if not may_be_read:
                    raise _nothing_for_guests()
            if isinstance(requester.principal, Operator):
                _check_before_accounts(permission, or_else)
                return
            may_read = permission == AUTHENTICATED or self.directory.visitors_may_read() is not False
            if isinstance(requester.principal, Anonymous) and not may_read:
                raise unauthenticated()  # without a look-up: strangers must not keep the database busy
            if permission == AUTHENTICATED:  # reads nothing, and must not wait for those that do
                self._check(request, requester, permission, or_else)
                return
            if self._threads.statistics().tasks_waiting >= _MAX_WAITING:
                raise HTTPException(503, "too many requests are waiting: try again", {"retry-after": "1"})
            work = partial(self._check, request, requester, permission, or_else)
            await anyio.to_thread.run_sync(work, limiter=self._threads)

        # First, because a redirect is a response too: one of a route that declares what it needs.
        request.scope.get(CHECKS_KEY, []).append(check)
        await check(requester_of(request))

    def _check(self, request: Request, requester: Requester, permission: str, or_else: str | None) -> None:
        if isinstance(requester.principal, User) and requester.principal.must_change_password:
            if permission != OWN_PASSWORD:
                raise PasswordChangeRequired()
            return
        if permission == AUTHENTICATED:
            is_local = is_loopback_client(request.scope) and is_for_loopback(request.scope["headers"])
            if isinstance(requester.principal, Anonymous) and not is_local:
                raise unauthenticated()
            return
        if permission.startswith(FILTERED):
            self._check_list(requester)
            return
        if permission == OWN_PASSWORD:
            action = Action.ACCOUNT_READ
        elif permission == ACCOUNT:
            action = Action.ACCOUNT_READ if request.method == "GET" else Action.ACCOUNT_UPDATE
        else:
            action = Action(permission)
        principal = requester.principal
        resource, what, run_id = self._resources.find(
            principal, action, request.path_params, request.query_params
        )
        if resource is None or not self._may_know(requester, action, or_else, resource):
            # Of what is hidden too: otherwise it would show that something new is at the old address.
            check_moved(request, self._resources, principal, self.clock())
        if resource is None:
            self._record_hidden(request, requester, action)
            self.hide(requester, what)
        changes = request.method not in _SAFE_METHODS
        if or_else is None or not self.may(requester, Action(or_else), resource):
            self.require(requester, action, resource, what, changes=changes)
        if changes and _only_reads(principal):
            self.refusals.key_out_of_scope(requester.actor, action.value, resource)
            raise HTTPException(403, f"this key may only read: {request.method} needs one that may write")
        _note_resource(request, resource, run_id)
        if action is Action.RUN_READ and "run" in request.path_params:
            self.metadata_store.read_days.note_run(request.state.run_number, self.clock())

    def _may_know(
        self, requester: Requester, action: Action, or_else: str | None, resource: Resource
    ) -> bool:
        """Return whether the requester may know that the resource exists."""
        if self.directory.decide(requester.principal, action, resource) is not Decision.HIDDEN:
            return True
        return or_else is not None and self.may(requester, Action(or_else), resource)

    def _record_refusal(
        self, requester: Requester, action: Action, resource: Resource, denied_change: bool
    ) -> None:
        principal = requester.principal
        if not isinstance(principal, (User, ServiceAccount)):
            return
        if principal.key is not None and self.directory.may(replace(principal, key=None), action, resource):
            self.refusals.key_out_of_scope(requester.actor, action.value, resource)
        if denied_change:
            self.refusals.change_denied(requester.actor, action.value, resource)

    def _record_hidden(self, request: Request, requester: Requester, action: Action) -> None:
        """Record that only the limits of a key hide the resource of a request."""
        principal = requester.principal
        if not isinstance(principal, (User, ServiceAccount)) or principal.key is None:
            return
        # Anything else is found though it is hidden. To search for it again would show by the time it takes
        # that it does not exist.
        if "run" not in request.path_params:
            return
        unlimited = replace(principal, key=None)
        try:
            resource = self._resources.find(
                unlimited, action, request.path_params, request.query_params
            ).resource
        except DetailedError:  # several runs have the id, none of which the key may read
            return
        if resource is not None and self.directory.may(unlimited, action, resource):
            self.refusals.key_out_of_scope(requester.actor, action.value, resource)

    def _check_list(self, requester: Requester) -> None:
        if isinstance(requester.principal, Anonymous) and not self.directory.policies().anonymous_read:
            raise unauthenticated()

    def _require_sudo(self, requester: Requester) -> None:
        until_ms = requester.session.sudo_until_ms if requester.session else None
        if until_ms is None or until_ms <= self.clock():
            raise SudoRequired()


def _note_resource(request: Request, resource: Resource, run_id: int | None) -> None:
    """Note what was decided on, so that the route works on that: names are unique in an entity only."""
    if run_id is not None:
        request.state.run_number = run_id
    elif isinstance(resource, ProjectItem) and resource.kind == "report":
        request.state.report = resource
    elif isinstance(resource, ProjectItem):
        request.state.run_number = resource.id
    elif isinstance(resource, Project):
        request.state.project_number = resource.id
    elif isinstance(resource, Registry):
        request.state.registry = resource


class SudoRequired(DetailedError):
    """The password must be confirmed first: 428, which the page answers by asking for it."""

    def __init__(self) -> None:
        super().__init__(428, "confirm your password first", {"sudo": True})


class PasswordChangeRequired(DetailedError):
    """An administrator has set the password, and the session may only change it: 403."""

    def __init__(self) -> None:
        text = "an administrator set your password: change it first, by PUT /api/v1/account/password"
        super().__init__(403, text, {"must_change_password": True})


def unauthenticated() -> HTTPException:
    """401: neither a session nor a valid key."""
    return HTTPException(401, "sign in, or send `Authorization: Bearer KEY`", {"www-authenticate": "Bearer"})


def _nothing_for_guests() -> HTTPException:
    return HTTPException(404, NOTHING_FOR_GUESTS)


def _check_before_accounts(permission: str, or_else: str | None) -> None:
    for needed in (permission, or_else):
        if needed is not None and needed.removeprefix(FILTERED) not in _BEFORE_ACCOUNTS:
            raise HTTPException(403, NO_ADMINISTRATOR)


def _with_artifacts(sender: Principal) -> Principal:
    """Return the sender; one with a key that only sends runs, as if it were a key that writes."""
    if not isinstance(sender, (User, ServiceAccount)) or sender.key is None:
        return sender
    if sender.key.scope is not KeyScope.INGEST:
        return sender
    return replace(sender, key=replace(sender.key, scope=KeyScope.WRITE))


def _only_reads(principal: Principal) -> bool:
    key = principal.key if isinstance(principal, (User, ServiceAccount)) else None
    return key is not None and key.scope is KeyScope.READ
