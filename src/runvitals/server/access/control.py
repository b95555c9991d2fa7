"""Enforcement: turns decisions into responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NoReturn

from fastapi import Depends, HTTPException, Request

from runvitals.accounts.actions import NEEDS_SUDO, Action
from runvitals.accounts.decision import Decision
from runvitals.accounts.directory import Directory
from runvitals.accounts.principals import Anonymous, User
from runvitals.accounts.resources import Resource
from runvitals.model.filter import ReadableRuns
from runvitals.server.access.requester import Requester, requester_of
from runvitals.store.metadata import MetadataStore
from runvitals.store.metadata.accounts.account_store import AccountStore


class AccessControl:
    """Decides for requests, and answers with the status that a decision means: `app.state.access`.

    Args:
        clock: the time now, ms UTC.
    """

    def __init__(self, metadata_store: MetadataStore, directory: Directory, clock: Callable[[], int]) -> None:
        self.metadata_store = metadata_store
        self.directory = directory
        self.clock = clock

    @property
    def accounts(self) -> AccountStore:
        """The tables of accounts."""
        return self.metadata_store.accounts

    def may(self, requester: Requester, action: Action, resource: Resource) -> bool:
        """Whether the requester may do an action on a resource."""
        return self.directory.decide(requester.principal, action, resource) is Decision.ALLOWED

    def may_list(self, requester: Requester, resource: Resource, actions: frozenset[Action]) -> list[str]:
        """Those of some actions that the requester may do on a resource: the `may` of a response."""
        return sorted(action.value for action in actions if self.may(requester, action, resource))

    def require(self, requester: Requester, action: Action, resource: Resource, what: str) -> None:
        """Raise unless the requester may do an action on a resource.

        Args:
            what: the resource as the request named it: `run 'abc'`.

        Raises:
            HTTPException: 401 if signing in may help; 404 if the requester may not know of the resource; 403
                if the requester may read it but not do this; 428 if the password must be confirmed first.
        """
        decision = self.directory.decide(requester.principal, action, resource)
        if decision is Decision.HIDDEN:
            self.hide(requester, what)
        if decision is Decision.DENIED:
            if isinstance(requester.principal, Anonymous):
                raise unauthenticated()
            raise HTTPException(403, f"you may not {action.value} on {what}")
        if action in NEEDS_SUDO and isinstance(requester.principal, User):
            self._require_sudo(requester)

    def hide(self, requester: Requester, what: str) -> NoReturn:
        """Answer as if there were no such resource."""
        if isinstance(requester.principal, Anonymous):
            raise unauthenticated()
        raise HTTPException(404, f"there is no {what}")

    def readable_runs(self, request: Request) -> ReadableRuns | None:
        """The runs that the requester may read, for lists; None: all."""
        return self.directory.readable_runs(requester_of(request).principal)

    def rights_changed(self) -> None:
        """Forget cached rights in this process, after a change of rights."""
        self.directory.rights_changed()

    def _require_sudo(self, requester: Requester) -> None:
        until_ms = requester.session.sudo_until_ms if requester.session else None
        if until_ms is None or until_ms <= self.clock():
            raise SudoRequired()


class SudoRequired(HTTPException):
    """The password must be confirmed first: 428, which the page answers by asking for it."""

    def __init__(self) -> None:
        super().__init__(428, "confirm your password first")


def unauthenticated() -> HTTPException:
    """401: neither a session nor a valid key."""
    return HTTPException(401, "sign in, or send `Authorization: Bearer KEY`", {"www-authenticate": "Bearer"})


def access_of(request: Request) -> AccessControl:
    """The access control of the application."""
    control: AccessControl = request.app.state.access
    return control


TheAccess = Annotated[AccessControl, Depends(access_of)]
