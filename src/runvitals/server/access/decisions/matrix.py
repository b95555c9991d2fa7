"""The permission matrix: what each role may do. The only place that grants rights to roles.

Two tables: actions within an entity (a team, or a user's own space) by the role there, and actions on the
organisation by the role in it. What is in neither table is granted to no role.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from runvitals.server.access.actions import Action


class Role(str, Enum):
    """A role in a team or project, in ascending order of rights."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"

    __hash__ = str.__hash__


class Grant(Enum):
    """The grant of an action to a role, and its condition."""

    NO = "no"
    YES = "yes"
    OWN = "only on what the principal made"
    PROJECT_OWNER = "only the project's owner"
    SOLE_AUTHOR = "only the project's owner, while every run in it is theirs"
    IF_MEMBERS_INVITE = "while the team lets members invite"
    IF_ADMINS_EDIT_PRIVACY = "while the organisation lets team administrators change privacy settings"
    IF_ADMINS_JOIN = "while the organisation lets its administrators join teams"
    IF_LINKS = "while team and organisation allow public links"
    OWN_IF_LINKS = "on what the principal made, while team and organisation allow public links"


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the matrix.

    Attributes:
        viewer, member, admin: roles in the entity.
        org_admin: an administrator of the organisation, also without a role in the team.
        custom: whether a custom role may add the action.
    """

    viewer: Grant
    member: Grant
    admin: Grant
    org_admin: Grant = Grant.NO
    custom: bool = False

    def of(self, role: Role) -> Grant:
        """Return the grant of a role in the entity."""
        return self.admin if role is Role.ADMIN else self.member if role is Role.MEMBER else self.viewer


_NO, _YES, _OWN = Grant.NO, Grant.YES, Grant.OWN
_OWNER = Grant.PROJECT_OWNER
_EVERYONE = Rule(_YES, _YES, _YES)
_MEMBERS = Rule(_NO, _YES, _YES, custom=True)
_AUTHORS = Rule(_NO, _OWN, _YES, custom=True)
_ADMINS = Rule(_NO, _NO, _YES, _YES)
_ADMINS_OR_CUSTOM = Rule(_NO, _NO, _YES, _YES, custom=True)

MATRIX: Final[dict[Action, Rule]] = {
    Action.TEAM_PROFILE: Rule(_YES, _YES, _YES, _YES),
    Action.TEAM_READ: Rule(_YES, _YES, _YES, _YES),
    Action.TEAM_READ_SETTINGS: _ADMINS_OR_CUSTOM,
    Action.TEAM_UPDATE: _ADMINS_OR_CUSTOM,
    Action.TEAM_UPDATE_PRIVACY: Rule(_NO, _NO, Grant.IF_ADMINS_EDIT_PRIVACY, _YES),
    Action.TEAM_READ_AUDIT: _ADMINS,
    Action.TEAM_DELETE: Rule(_NO, _NO, _NO, _YES),
    Action.TEAM_JOIN_AS_ADMIN: Rule(_NO, _NO, _NO, Grant.IF_ADMINS_JOIN),
    Action.TEAM_LEAVE: _EVERYONE,
    Action.MEMBER_READ_EMAIL: _ADMINS_OR_CUSTOM,
    Action.MEMBER_INVITE: Rule(_NO, Grant.IF_MEMBERS_INVITE, _YES, _YES, custom=True),
    Action.MEMBER_REMOVE: _ADMINS_OR_CUSTOM,
    Action.MEMBER_UPDATE_ROLE: _ADMINS,
    Action.SERVICE_ACCOUNT_MANAGE: _ADMINS,
    Action.AUTOMATION_READ: Rule(_YES, _YES, _YES, _YES),
    Action.AUTOMATION_MANAGE: _ADMINS_OR_CUSTOM,
    Action.WEBHOOK_MANAGE: _ADMINS_OR_CUSTOM,
    Action.SLACK_MANAGE: _ADMINS_OR_CUSTOM,
    Action.SECRET_MANAGE: _ADMINS_OR_CUSTOM,
    Action.USAGE_READ_TEAM: _ADMINS_OR_CUSTOM,
    Action.STORAGE_READ: _ADMINS_OR_CUSTOM,
    Action.PROJECT_READ: _EVERYONE,
    Action.PROJECT_READ_VISIBILITY: _ADMINS,
    Action.PROJECT_JOIN: Rule(_NO, _NO, _YES),
    Action.PROJECT_CREATE: _MEMBERS,
    Action.PROJECT_UPDATE: Rule(_NO, _OWNER, _YES, _YES, custom=True),
    Action.PROJECT_UPDATE_OVERVIEW: _MEMBERS,
    Action.PROJECT_UPDATE_VISIBILITY: Rule(_NO, _OWNER, _YES, _YES, custom=True),
    Action.PROJECT_MANAGE_MEMBERS: Rule(_NO, _OWNER, _YES, _YES),
    Action.PROJECT_SHARE: Rule(_NO, _NO, Grant.IF_LINKS),
    Action.PROJECT_DELETE: Rule(_NO, Grant.SOLE_AUTHOR, _YES, custom=True),
    Action.PROJECT_TRANSFER: Rule(_NO, _NO, _YES),
    Action.RUN_READ: _EVERYONE,
    Action.RUN_CREATE: _MEMBERS,
    Action.RUN_UPDATE: _MEMBERS,
    Action.RUN_SET_AUTHOR: Rule(_NO, _NO, _YES),
    Action.RUN_MOVE: _AUTHORS,
    Action.RUN_DELETE: _AUTHORS,
    Action.RUN_STOP: _AUTHORS,
    Action.WORKSPACE_READ: _EVERYONE,
    Action.WORKSPACE_UPDATE: _MEMBERS,
    Action.REPORT_READ: _EVERYONE,
    Action.REPORT_COMMENT: _EVERYONE,
    Action.REPORT_FOLLOW: _EVERYONE,
    Action.REPORT_CREATE: _MEMBERS,
    Action.REPORT_UPDATE: _AUTHORS,
    Action.REPORT_DELETE: _AUTHORS,
    Action.REPORT_SHARE: _AUTHORS,
    Action.REPORT_SHARE_PUBLIC: Rule(_NO, Grant.OWN_IF_LINKS, Grant.IF_LINKS, custom=True),
    Action.ARTIFACT_READ: _EVERYONE,
    Action.ARTIFACT_DOWNLOAD: _MEMBERS,
    Action.ARTIFACT_CREATE: _MEMBERS,
    Action.ARTIFACT_UPDATE: _MEMBERS,
    Action.ARTIFACT_DELETE: _MEMBERS,
    Action.ARTIFACT_ALIAS: _MEMBERS,
    Action.SWEEP_READ: _EVERYONE,
    Action.SWEEP_CREATE: _MEMBERS,
    Action.SWEEP_CONTROL: _AUTHORS,
    Action.SWEEP_DELETE: _AUTHORS,
    Action.REGISTRY_READ: _EVERYONE,
    Action.REGISTRY_DOWNLOAD: _EVERYONE,
    Action.REGISTRY_LINK: _MEMBERS,
    Action.REGISTRY_ALIAS: _MEMBERS,
    Action.REGISTRY_MANAGE_ADMINS: Rule(_NO, _NO, _YES),
    # Not team administrators: they may appoint registry administrators, also themselves, which is audited.
    Action.REGISTRY_PROTECTED_ALIAS: Rule(_NO, _NO, _NO),
}

REGISTRY_ADMIN: Final = frozenset(
    (
        Action.REGISTRY_LINK,
        Action.REGISTRY_ALIAS,
        Action.REGISTRY_MANAGE_ADMINS,
        Action.REGISTRY_PROTECTED_ALIAS,
    )
)
"""What an administrator of a registry may do in it, beyond the role in the team."""

CUSTOM_ACTIONS: Final = frozenset(action for action, rule in MATRIX.items() if rule.custom)
"""What a custom role may add to its base."""

OPEN_TO_ALL: Final = frozenset((Action.RUN_CREATE, Action.REPORT_CREATE))
"""What every signed-in principal may do in an open project."""

OPEN_TO_AUTHORS: Final = frozenset(
    (
        Action.RUN_UPDATE,
        Action.RUN_STOP,
        Action.RUN_DELETE,
        Action.REPORT_UPDATE,
        Action.REPORT_DELETE,
    )
)
"""The same, with what they made there."""


class OrgRole(Enum):
    """A role in the organisation; a user has several."""

    USER = "user"
    TEAM_ADMIN = "administrator of any team"
    ORG_ADMIN = "administrator of the organisation"
    BILLING_VIEWER = "billing viewer"
    BILLING_ADMIN = "billing administrator"


_ORG_ADMINS: Final = frozenset((OrgRole.ORG_ADMIN,))

ORGANISATION_MATRIX: Final[dict[Action, frozenset[OrgRole]]] = {
    Action.TEAM_CREATE: _ORG_ADMINS,  # and users, by `OrganisationPolicies.members_create_teams`
    Action.ORG_SETTINGS: _ORG_ADMINS,
    Action.ORG_MEMBER_READ: _ORG_ADMINS,
    Action.ORG_MEMBER_UPDATE: _ORG_ADMINS,
    Action.ORG_INVITE: _ORG_ADMINS,  # and team administrators, by `team_admins_invite_new`
    Action.ORG_ROLE_READ: frozenset((OrgRole.USER,)),
    Action.ORG_ROLE_MANAGE: _ORG_ADMINS,
    Action.ORG_SERVICE_ACCOUNT: _ORG_ADMINS,
    Action.ORG_BUCKET_MANAGE: _ORG_ADMINS,
    Action.ORG_KEY_READ: _ORG_ADMINS,
    Action.ORG_KEY_REVOKE: _ORG_ADMINS,
    Action.ORG_AUDIT_READ: _ORG_ADMINS,
    Action.NAME_RELEASE: _ORG_ADMINS,
    Action.BILLING_READ: frozenset((OrgRole.ORG_ADMIN, OrgRole.BILLING_VIEWER, OrgRole.BILLING_ADMIN)),
    Action.BILLING_MANAGE: frozenset((OrgRole.ORG_ADMIN, OrgRole.BILLING_ADMIN)),
    Action.BILLING_SETTLE: frozenset((OrgRole.BILLING_ADMIN,)),
    Action.BILLING_ASSIGN: frozenset((OrgRole.ORG_ADMIN, OrgRole.BILLING_ADMIN)),
}

ACCOUNT_ACTIONS: Final = frozenset(
    (
        Action.ACCOUNT_READ,
        Action.ACCOUNT_UPDATE,
        Action.ACCOUNT_EMAILS,
        Action.ACCOUNT_SECURITY,
        Action.ACCOUNT_KEYS,
        Action.ACCOUNT_DELETE,
    )
)
"""What a user may do with their own account. Nobody else may, administrators neither."""

UNVERIFIED_ACTIONS: Final = frozenset((Action.ACCOUNT_READ, Action.ACCOUNT_EMAILS, Action.ACCOUNT_DELETE))
"""All that a user may do before an address of theirs is verified."""
