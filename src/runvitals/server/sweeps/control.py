"""Pauses, resumes and ends sweeps, with the rights that this needs and its place in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from runvitals.server.access.actions import Action
from runvitals.server.access.control import AccessControl
from runvitals.server.access.principals import Operator
from runvitals.server.access.requester import Requester
from runvitals.server.access.resources import ProjectItem
from runvitals.server.sweeps.storage.rows import State, Sweep

Order = Literal["resume", "pause", "stop", "cancel"]
_LIVE: Final[tuple[State, ...]] = ("pending", "running", "paused")
_ORDERS: Final[Mapping[Order, tuple[State, tuple[State, ...]]]] = {
    "resume": ("running", _LIVE),
    "pause": ("paused", _LIVE),
    "stop": ("finished", _LIVE),
    "cancel": ("canceled", (*_LIVE, "finished")),
}
"""The state that a sweep gets, and from which ones."""


def sweep_resource(access: AccessControl, row: Sweep) -> ProjectItem:
    """A sweep for decisions, on a server with accounts."""
    project = access.directory.project(row.project_id)
    return ProjectItem("sweep", row.id, project, row.author_id, row.service_account_id)


def order(access: AccessControl, row: Sweep, order_name: Order) -> Sweep:
    """Bring a sweep to the state that a user wants, or raise SweepConflict if it cannot get there."""
    state, allowed = _ORDERS[order_name]
    return access.metadata_store.sweeps.sweeps.set_state(row.id, state, access.clock(), allowed)


def require(
    access: AccessControl, requester: Requester, action: Action, row: Sweep, what: str | None = None
) -> None:
    """Raise 401, 403 or 404 unless the requester may do this with a sweep.

    Args:
        what: the sweep as the request named it; None: by its name.
    """
    if not isinstance(requester.principal, Operator):
        access.require(requester, action, sweep_resource(access, row), what or f"sweep {row.name!r}")


def may(access: AccessControl, requester: Requester, row: Sweep) -> list[str]:
    """Return the names of the actions that a requester may do with a sweep."""
    actions = (Action.SWEEP_CONTROL, Action.SWEEP_DELETE)
    if isinstance(requester.principal, Operator):
        return [action.value for action in actions]
    return access.may_list(requester, sweep_resource(access, row), frozenset(actions))


def record(
    access: AccessControl, requester: Requester, row: Sweep, action: str, after: Mapping[str, Any] | None
) -> None:
    """Add what was done with a sweep to the audit log; without accounts there is none."""
    if isinstance(requester.principal, Operator):
        return
    owner = access.directory.project(row.project_id).entity
    names = access.accounts.entity_names([owner.id])
    access.accounts.audit.record(
        access.clock(),
        requester.actor,
        action,
        entity=(owner.id, names[owner.id]),
        project=access.metadata_store.projects.name_of(row.project_id),
        target=row.name,
        after=after,
    )
