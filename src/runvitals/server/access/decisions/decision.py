"""May this principal do this action on this resource? The one place that answers.

A decision reads dictionaries and sets only, and costs a few microseconds. The order:

1. What limits the principal as a whole: an account that is not active, a password that must be changed first,
   the scope of a key, what a service account or a link may do at most.
2. The organisation and accounts: by role in the organisation, or by being the user.
3. Everything else: the role in the entity, replaced by the role in the project, lowered by the organisation's
   `Access`; then what administrators of the organisation and of a registry may do beside it; then what the
   project's visibility gives to all.

What nothing grants is denied. Where the principal may not even read the resource it is hidden: the server
then answers as if it did not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, cast

from runvitals.server.access.actions import (
    DATA_READS,
    OPERATOR_ACTIONS,
    PROJECT_ACTIONS,
    SERVICE_ACCOUNT_ACTIONS,
    Action,
)
from runvitals.server.access.decisions.matrix import (
    ACCOUNT_ACTIONS,
    MATRIX,
    OPEN_TO_ALL,
    OPEN_TO_AUTHORS,
    ORGANISATION_MATRIX,
    REGISTRY_ADMIN,
    UNVERIFIED_ACTIONS,
    Grant,
    OrgRole,
    Role,
    Rule,
)
from runvitals.server.access.decisions.policies import DEFAULT_POLICIES, OrganisationPolicies, own_space_has
from runvitals.server.access.decisions.registry_actions import (
    may_integrate,
    of_registry,
    organisation_membership,
    registry_of,
)
from runvitals.server.access.principals import (
    SCOPE_ACTIONS,
    Access,
    Anonymous,
    CommandLine,
    GuestLink,
    KeyLimits,
    Membership,
    Operator,
    Principal,
    ServiceAccount,
    User,
)
from runvitals.server.access.resources import (
    Account,
    Entity,
    Member,
    Organisation,
    Project,
    ProjectItem,
    Registry,
    Resource,
    Visibility,
)


class Decision(Enum):
    """The answer: allowed, denied (403), or hidden (404: also its existence is a secret)."""

    ALLOWED = "allowed"
    DENIED = "denied"
    HIDDEN = "hidden"


_ITEM_READS: Final = {
    "run": Action.RUN_READ,
    "report": Action.REPORT_READ,
    "artifact": Action.ARTIFACT_READ,
    "sweep": Action.SWEEP_READ,
    "workspace": Action.WORKSPACE_READ,
}
_DELETES: Final = {
    "run": Action.RUN_DELETE,
    "report": Action.REPORT_DELETE,
    "artifact": Action.ARTIFACT_DELETE,
    "sweep": Action.SWEEP_DELETE,
    "workspace": Action.WORKSPACE_UPDATE,
}
_LINK_ACTIONS: Final = {
    "project": DATA_READS,
    "run": frozenset((Action.RUN_READ,)),
    "report": frozenset((Action.REPORT_READ,)),
}
_INVITES: Final = frozenset((Action.MEMBER_INVITE, Action.MEMBER_REMOVE, Action.MEMBER_UPDATE_ROLE))
_WORLD_READABLE: Final = frozenset((Visibility.ORGANISATION, Visibility.PUBLIC, Visibility.OPEN))
_ADDED_ONLY: Final = frozenset((Visibility.PRIVATE, Visibility.RESTRICTED))
_SHARED_READS: Final = frozenset((Action.REGISTRY_READ, Action.REGISTRY_DOWNLOAD))
_VIEWER: Final = Membership(Role.VIEWER)
_OF_UNREAD: Final = {
    Action.PROJECT_JOIN: frozenset((Visibility.RESTRICTED,)),
    Action.PROJECT_UPDATE_VISIBILITY: _ADDED_ONLY,
}
"""What team administrators may do with projects that they may not read."""


def decide(
    principal: Principal,
    action: Action,
    resource: Resource,
    policies: OrganisationPolicies = DEFAULT_POLICIES,
) -> Decision:
    """Decide whether a principal may do an action on a resource.

    Example:
        >>> team = Entity(7)
        >>> alice = User(1, teams={7: Membership(Role.MEMBER)})
        >>> decide(alice, Action.RUN_DELETE, ProjectItem("run", 5, Project(3, team), author_id=2))
        <Decision.DENIED: 'denied'>
        >>> decide(alice, Action.RUN_DELETE, ProjectItem("run", 5, Project(3, team), author_id=1))
        <Decision.ALLOWED: 'allowed'>
    """
    translated = of_registry(action, resource)
    if translated is None:
        registry = registry_of(cast(Project, _project_of(resource)))
        return Decision.DENIED if _readable(principal, registry, policies) else Decision.HIDDEN
    action, resource = translated
    if _allows(principal, action, resource, policies):
        return Decision.ALLOWED
    return Decision.DENIED if _readable(principal, resource, policies) else Decision.HIDDEN


def _readable(principal: Principal, resource: Resource, policies: OrganisationPolicies) -> bool:
    if isinstance(resource, Organisation):
        return isinstance(principal, User) and principal.state == "active"
    return _allows(principal, _read_of(resource), resource, policies)


def _read_of(resource: Resource) -> Action:
    if isinstance(resource, ProjectItem):
        return _ITEM_READS[resource.kind]
    if isinstance(resource, Project):
        return Action.PROJECT_READ
    if isinstance(resource, Registry):
        return Action.REGISTRY_READ
    return Action.ACCOUNT_READ if isinstance(resource, Account) else Action.TEAM_READ


def _allows(principal: Principal, action: Action, resource: Resource, policies: OrganisationPolicies) -> bool:
    if isinstance(principal, Operator):
        return action in OPERATOR_ACTIONS
    if isinstance(principal, CommandLine):  # it has the database; an account of its own it has not
        return not isinstance(resource, Account)
    if isinstance(principal, GuestLink):
        return policies.public_links and _link_allows(principal, action, resource)
    if isinstance(principal, User):
        if principal.state != "active":
            unverified = principal.state == "unverified" and principal.key is None
            return unverified and action in UNVERIFIED_ACTIONS and resource == Account(principal.id)
        if principal.must_change_password:
            return False
        if principal.key is not None and not _key_allows(principal.key, action, resource):
            return False
    elif isinstance(principal, ServiceAccount):
        if action not in SERVICE_ACCOUNT_ACTIONS:
            return False
        if principal.key is not None and not _key_allows(principal.key, action, resource):
            return False
    if isinstance(resource, Organisation):
        return isinstance(principal, User) and _organisation_allows(principal, action, policies)
    if isinstance(resource, Account):
        return _account_allows(principal, action, resource, policies)
    return _entity_allows(principal, action, resource, policies)


def _link_allows(link: GuestLink, action: Action, resource: Resource) -> bool:
    if action not in _LINK_ACTIONS[link.kind] or not isinstance(resource, (Project, ProjectItem)):
        return False
    project = resource if isinstance(resource, Project) else resource.project
    if project.deleted or project.entity.deleted or resource.deleted or not project.entity.public_links:
        return False
    if not _action_fits(action, resource) or (isinstance(resource, ProjectItem) and resource.draft):
        return False
    if link.kind == "project":
        return project.id == link.id
    return isinstance(resource, ProjectItem) and (resource.kind, resource.id) == (link.kind, link.id)


def _key_allows(key: KeyLimits, action: Action, resource: Resource) -> bool:
    if action not in SCOPE_ACTIONS[key.scope]:
        return False
    if key.entities is None or action is Action.ACCOUNT_READ:
        return True
    entity = _entity_of(resource)
    return entity is not None and entity.id in key.entities


def _entity_of(resource: Resource) -> Entity | None:
    if isinstance(resource, ProjectItem):
        return resource.project.entity
    if isinstance(resource, Project):
        return resource.entity
    if isinstance(resource, Entity):
        return resource
    return resource.team if isinstance(resource, (Member, Registry)) else None


def _project_of(resource: Resource) -> Project | None:
    if isinstance(resource, ProjectItem):
        return resource.project
    return resource if isinstance(resource, Project) else None


def _organisation_allows(user: User, action: Action, policies: OrganisationPolicies) -> bool:
    granted = ORGANISATION_MATRIX.get(action)
    if granted is None:
        return False
    if OrgRole.USER in granted or (user.org_admin and OrgRole.ORG_ADMIN in granted):
        return True
    if user.billing == "admin" and user.org_admin and OrgRole.BILLING_ADMIN in granted:
        return True
    if user.billing != "none" and OrgRole.BILLING_VIEWER in granted:
        return True
    if action is Action.TEAM_CREATE:
        return policies.members_create_teams and user.access is Access.FULL
    if action is Action.ORG_INVITE:
        return policies.team_admins_invite_new and any(
            membership.role is Role.ADMIN for membership in user.teams.values()
        )
    return False


def _account_allows(
    principal: Principal, action: Action, account: Account, policies: OrganisationPolicies
) -> bool:
    if action is Action.USER_READ:
        return isinstance(principal, User) or (isinstance(principal, Anonymous) and policies.anonymous_read)
    return isinstance(principal, User) and principal.id == account.user_id and action in ACCOUNT_ACTIONS


def _entity_allows(
    principal: Principal,
    action: Action,
    resource: Entity | Member | Project | ProjectItem | Registry,
    policies: OrganisationPolicies,
) -> bool:
    rule = MATRIX.get(action)
    if rule is None or not _action_fits(action, resource):
        return False
    entity = cast(Entity, _entity_of(resource))
    if entity.organisation and not isinstance(resource, Registry):
        return may_integrate(principal, action)
    if entity.owner_id is not None and not own_space_has(action, resource, policies):
        return False
    if _in_trash(resource, entity) and not _trash_allows(principal, action, resource, policies):
        return False
    project = _project_of(resource)
    if isinstance(resource, ProjectItem):
        if action in resource.shared and isinstance(principal, User):
            return _may_use_share(principal, rule)
        if resource.draft and not _own(principal, resource):
            return False
    if isinstance(resource, Registry) and entity.organisation:
        membership = organisation_membership(principal, resource)
    else:
        membership = _membership(principal, action, entity, project)
    if membership is not None and _role_allows(membership, rule, principal, action, resource, policies):
        return True
    if isinstance(principal, User):
        if (
            principal.org_admin
            and entity.owner_id is None
            and _grants(rule.org_admin, principal, resource, entity, project, policies)
        ):
            return True
        if action is Action.TEAM_PROFILE and not entity.hidden:
            return True
    if isinstance(resource, Registry):
        return _registry_allows(principal, action, resource, membership is not None)
    if action is Action.TEAM_PROFILE:
        return isinstance(principal, Anonymous) and policies.anonymous_read and not entity.hidden
    return project is not None and _visible_to_all(principal, action, resource, project, policies)


def _role_allows(
    membership: Membership,
    rule: Rule,
    principal: Principal,
    action: Action,
    resource: Entity | Member | Project | ProjectItem | Registry,
    policies: OrganisationPolicies,
) -> bool:
    entity, project = cast(Entity, _entity_of(resource)), _project_of(resource)
    # As for administrators, the actions that a custom role adds hold for what others made too.
    added = action in membership.added and rule.custom
    grants = (rule.of(membership.role), rule.admin) if added else (rule.of(membership.role),)
    granted = any(_grants(grant, principal, resource, entity, project, policies) for grant in grants)
    return granted and not (isinstance(resource, Member) and _out_of_reach(membership, action, resource))


def _registry_allows(principal: Principal, action: Action, registry: Registry, is_member: bool) -> bool:
    """Return what administrators of a registry, and who may read it outside its team, may do besides."""
    if registry.shared and action in _SHARED_READS:
        return isinstance(principal, ServiceAccount) or (
            isinstance(principal, User) and principal.access is not Access.NONE
        )
    return (
        isinstance(principal, User)
        and principal.access is Access.FULL
        and is_member
        and registry.id in principal.registries
        and action in REGISTRY_ADMIN
    )


def _may_use_share(user: User, rule: Rule) -> bool:
    """Return whether the organisation lets a user do what was shared with them by name."""
    return user.access is Access.FULL or (user.access is Access.VIEWER and rule.viewer is Grant.YES)


def _action_fits(action: Action, resource: Resource) -> bool:
    """Return whether an action makes sense for this kind of resource; what does not fit is denied."""
    if isinstance(resource, ProjectItem):
        return action.kind == resource.kind
    if isinstance(resource, Project):
        return action in PROJECT_ACTIONS
    if isinstance(resource, Registry):
        return action.kind == "registry"
    return action in _INVITES or action is Action.TEAM_READ if isinstance(resource, Member) else True


def _in_trash(resource: Resource, entity: Entity) -> bool:
    if entity.deleted:
        return True
    if isinstance(resource, ProjectItem):
        return resource.deleted or resource.project.deleted
    return isinstance(resource, (Project, Registry)) and resource.deleted


def _trash_allows(
    principal: Principal,
    action: Action,
    resource: Entity | Member | Project | ProjectItem | Registry,
    policies: OrganisationPolicies,
) -> bool:
    """Return whether a thing in the trash is shown: only to who may delete it, to see and restore it."""
    if isinstance(resource, Entity):
        return action is Action.TEAM_DELETE or (
            action is Action.TEAM_READ and isinstance(principal, User) and principal.org_admin
        )
    entity = cast(Entity, _entity_of(resource))
    if entity.deleted or not isinstance(resource, (Project, ProjectItem)):
        return False
    if isinstance(resource, ProjectItem):
        if resource.project.deleted:
            return False
        delete, read = _DELETES[resource.kind], _ITEM_READS[resource.kind]
    else:
        delete, read = Action.PROJECT_DELETE, Action.PROJECT_READ
    if action is delete:
        return True
    return action is read and _allows(principal, delete, resource, policies)


def _membership(
    principal: Principal, action: Action, entity: Entity, project: Project | None
) -> Membership | None:
    """Return the role in the entity or project, lowered to what the organisation allows; None: no role."""
    if isinstance(principal, ServiceAccount):
        return _service_membership(principal, entity, project)
    if not isinstance(principal, User) or principal.access is Access.NONE:
        return None
    if entity.owner_id is not None:
        membership = Membership(Role.ADMIN) if entity.owner_id == principal.id else None
    else:
        membership = principal.teams.get(entity.id)
        if membership is not None and project is not None:
            membership = _project_membership(principal, action, membership, project)
    if membership is not None and principal.access is Access.VIEWER:
        return _VIEWER
    return membership


def _project_membership(user: User, action: Action, team: Membership, project: Project) -> Membership | None:
    # Where the owner of a private project has left, administrators act as its owner: nobody else reads it.
    ownerless = project.visibility is Visibility.PRIVATE and project.owner_id is None
    if team.role is Role.ADMIN and (ownerless or project.visibility in _OF_UNREAD.get(action, ())):
        return team
    owner = project.owner_id == user.id
    added = project.visibility is Visibility.RESTRICTED and project.id in user.projects
    if project.visibility in _ADDED_ONLY and not (owner or added):
        return None
    membership = user.projects.get(project.id)
    if membership is None:
        return team
    if team.role is Role.VIEWER:
        return Membership(Role.VIEWER, membership.added if membership.role is Role.VIEWER else frozenset())
    return membership


def _service_membership(
    account: ServiceAccount, entity: Entity, project: Project | None
) -> Membership | None:
    if entity.owner_id is not None or account.team not in (None, entity.id):
        return None
    closed = project is not None and project.visibility in _ADDED_ONLY and project.id not in account.projects
    if closed and not account.legacy:
        return None
    if account.reads_only:
        return _VIEWER
    return Membership(Role.ADMIN if account.legacy else Role.MEMBER)


def _grants(
    grant: Grant,
    principal: Principal,
    resource: Resource,
    entity: Entity,
    project: Project | None,
    policies: OrganisationPolicies,
) -> bool:
    return grant is Grant.YES or (
        grant is not Grant.NO and _CONDITIONS[grant](principal, resource, entity, project, policies)
    )


_Condition = Callable[[Principal, Resource, Entity, "Project | None", OrganisationPolicies], bool]

_CONDITIONS: Final[dict[Grant, _Condition]] = {
    Grant.OWN: lambda principal, resource, *_: _own(principal, resource),
    Grant.PROJECT_OWNER: lambda principal, _resource, _entity, project, _policies: _owner(principal, project),
    Grant.SOLE_AUTHOR: lambda principal, _resource, _entity, project, _policies: (
        project is not None and project.sole_author and _owner(principal, project)
    ),
    Grant.IF_MEMBERS_INVITE: lambda principal, _resource, entity, _project, _policies: entity.members_invite,
    Grant.IF_ADMINS_EDIT_PRIVACY: lambda *facts: facts[-1].team_admins_edit_privacy,
    Grant.IF_ADMINS_JOIN: lambda *facts: facts[-1].admins_join_teams,
    Grant.IF_LINKS: lambda _principal, _resource, entity, _project, policies: _links(entity, policies),
    Grant.OWN_IF_LINKS: lambda principal, resource, entity, _project, policies: (
        _links(entity, policies) and _own(principal, resource)
    ),
}


def _links(entity: Entity, policies: OrganisationPolicies) -> bool:
    return entity.public_links and policies.public_links


def _own(principal: Principal, resource: Resource) -> bool:
    if not isinstance(resource, ProjectItem):
        return False
    if isinstance(principal, User):
        return resource.author_id == principal.id
    return (
        isinstance(principal, ServiceAccount)
        and resource.author_id is None
        and resource.service_account_id == principal.id
    )


def _owner(principal: Principal, project: Project | None) -> bool:
    return isinstance(principal, User) and project is not None and project.owner_id == principal.id


def _out_of_reach(membership: Membership, action: Action, member: Member) -> bool:
    """Only administrators make, change or remove administrators, and give custom roles."""
    if membership.role is Role.ADMIN or action is Action.TEAM_READ:
        return False
    return member.role is Role.ADMIN or (member.custom and action is not Action.MEMBER_REMOVE)


def _visible_to_all(
    principal: Principal,
    action: Action,
    resource: Resource,
    project: Project,
    policies: OrganisationPolicies,
) -> bool:
    """Return what the project's visibility allows to those without a role in it."""
    if project.visibility not in _WORLD_READABLE:
        return False
    signed_in = not isinstance(principal, Anonymous)
    if isinstance(principal, User) and principal.access is Access.NONE:
        signed_in = False
    if action in DATA_READS:
        return signed_in or (project.visibility is not Visibility.ORGANISATION and policies.anonymous_read)
    if project.visibility is not Visibility.OPEN or not signed_in:
        return False
    if isinstance(principal, User) and principal.access is not Access.FULL:
        return False
    if isinstance(principal, ServiceAccount) and principal.reads_only:
        return False
    return action in OPEN_TO_ALL or (action in OPEN_TO_AUTHORS and _own(principal, resource))
