"""Which runs a principal may read, for lists: decided once for all projects, not for each run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from runvitals.model.filter import ReadableRuns
from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.policies import DEFAULT_POLICIES, OrganisationPolicies
from runvitals.server.access.principals import GuestLink, Principal, ServiceAccount, User
from runvitals.server.access.resources import Project, ProjectItem


def readable_runs(
    principal: Principal,
    projects: Iterable[Project],
    policies: OrganisationPolicies = DEFAULT_POLICIES,
) -> ReadableRuns:
    """Return the runs of these projects that a principal may read, as `decide` decides about each of them.

    The run of a guest link to a run is left out.
    """
    author_id = principal.id if isinstance(principal, User) else None
    service_account_id = principal.id if isinstance(principal, ServiceAccount) else None
    readable: set[int] = set()
    trash: set[int] = set()
    own_trash: set[int] = set()
    rights: dict[Hashable, tuple[bool, bool, bool]] = {}
    for project in projects:
        kind = _kind(principal, project)
        if kind not in rights:
            runs = (
                ProjectItem("run", 0, project),
                ProjectItem("run", 0, project, deleted=True),
                ProjectItem("run", 0, project, author_id, service_account_id, deleted=True),
            )
            living, others, own = (
                decide(principal, Action.RUN_READ, run, policies) is Decision.ALLOWED for run in runs
            )
            rights[kind] = living, others, own and not others
        for may_read, ids in zip(rights[kind], (readable, trash, own_trash), strict=True):
            if may_read:
                ids.add(project.id)
    return ReadableRuns(
        frozenset(readable), frozenset(trash), frozenset(own_trash), author_id, service_account_id
    )


def _kind(principal: Principal, project: Project) -> Hashable:
    """Projects with the same result get the same decisions, so that thousands of them need few."""
    added = False
    if isinstance(principal, (User, ServiceAccount)):
        administers = isinstance(principal, User) and project.id in principal.registries
        added = project.id in principal.projects or administers
    elif isinstance(principal, GuestLink):
        added = (principal.kind, principal.id) == ("project", project.id)
    owned = isinstance(principal, User) and project.owner_id == principal.id
    nobodys = project.owner_id is None
    special = project.deleted, project.is_registry
    return project.id if added else None, project.entity, project.visibility, owned, nobodys, special
