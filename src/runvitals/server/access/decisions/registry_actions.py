"""What actions on a project mean where it is a registry, and the roles in those of the organisation."""

from __future__ import annotations

from typing import Final

from runvitals.server.access.actions import DATA_READS, Action
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.principals import Access, Membership, Principal, ServiceAccount, User
from runvitals.server.access.resources import Project, ProjectItem, Registry, Resource, Visibility

_VIEWER: Final = Membership(Role.VIEWER)
_SHARED: Final = frozenset((Visibility.ORGANISATION, Visibility.PUBLIC, Visibility.OPEN))
_IN_REGISTRY: Final = {
    **dict.fromkeys(DATA_READS, Action.REGISTRY_READ),
    Action.ARTIFACT_DOWNLOAD: Action.REGISTRY_DOWNLOAD,
    Action.ARTIFACT_CREATE: Action.REGISTRY_LINK,
    Action.ARTIFACT_UPDATE: Action.REGISTRY_LINK,
    Action.ARTIFACT_DELETE: Action.REGISTRY_LINK,
    Action.ARTIFACT_ALIAS: Action.REGISTRY_ALIAS,
}
"""What actions on a project mean, where it is a registry. Others do not exist there."""
_INTEGRATIONS: Final = frozenset(
    (
        Action.AUTOMATION_READ,
        Action.AUTOMATION_MANAGE,
        Action.WEBHOOK_MANAGE,
        Action.SLACK_MANAGE,
        Action.SECRET_MANAGE,
    )
)
"""What the organisation has besides registries: automations about them, and receivers of their messages."""


def registry_of(project: Project) -> Registry:
    """Return the registry that a project is."""
    shared = project.visibility in _SHARED
    return Registry(project.id, project.entity, shared, project.deleted)


def of_registry(action: Action, resource: Resource) -> tuple[Action, Resource] | None:
    """Return what an action on a project means where that is a registry; None: it has no such action."""
    project = resource.project if isinstance(resource, ProjectItem) else resource
    if not isinstance(project, Project) or not project.is_registry:
        return action, resource
    meant = _IN_REGISTRY.get(action)
    return None if meant is None else (meant, registry_of(project))


def may_integrate(principal: Principal, action: Action) -> bool:
    """Return whether somebody may do an action on the organisation, which owns registries and automations."""
    return (
        action in _INTEGRATIONS
        and isinstance(principal, User)
        and principal.org_admin
        and principal.access is Access.FULL
    )


def organisation_membership(principal: Principal, registry: Registry) -> Membership | None:
    """Return the role in a registry of the organisation, whose administrators are as those of a team."""
    if isinstance(principal, ServiceAccount):
        if registry.id not in principal.projects:
            return None
        return _VIEWER if principal.reads_only else Membership(Role.MEMBER)
    if not isinstance(principal, User) or principal.access is Access.NONE:
        return None
    membership = Membership(Role.ADMIN) if principal.org_admin else principal.projects.get(registry.id)
    if membership is None and registry.id in principal.registries:
        membership = _VIEWER
    return _VIEWER if membership is not None and principal.access is Access.VIEWER else membership
