"""The actions that rights are granted for, and what a route may need instead of one.

The values of actions are stored in custom roles, so they never change. The part before the colon names
the kind of resource.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

PUBLIC: Final = "public"
"""A route that anyone may call: it shows nothing of anyone, or checks a secret of its own."""
ACCOUNT: Final = "account"
"""A route about the requester's own account: `account:read` for GET, otherwise `account:update`."""
AUTHENTICATED: Final = "authenticated"
"""A route that needs a key or a session with any rights, or a request from this machine."""
OWN_PASSWORD: Final = "own password"
"""A route that changes the requester's own password: all that a session may call, besides public routes,
while an administrator's password must be changed."""
FILTERED: Final = "filtered "
"""Prefix of the action by which a route filters what it lists."""
NO_ADMINISTRATOR: Final = (
    "this server has no administrator yet: until the link that `runvitals server` printed has created one, "
    "it only takes and shows runs"
)


class Action(str, Enum):
    """An action of a principal on a resource."""

    ACCOUNT_READ = "account:read"
    ACCOUNT_UPDATE = "account:update"
    ACCOUNT_EMAILS = "account:emails"
    ACCOUNT_SECURITY = "account:security"
    ACCOUNT_KEYS = "account:keys"
    ACCOUNT_DELETE = "account:delete"
    USER_READ = "user:read"

    TEAM_PROFILE = "team:profile"
    TEAM_READ = "team:read"
    TEAM_READ_SETTINGS = "team:read_settings"
    TEAM_UPDATE = "team:update"
    TEAM_UPDATE_PRIVACY = "team:update_privacy"
    TEAM_READ_AUDIT = "team:read_audit"
    TEAM_DELETE = "team:delete"
    TEAM_JOIN_AS_ADMIN = "team:join_as_admin"
    TEAM_LEAVE = "team:leave"
    MEMBER_READ_EMAIL = "member:read_email"
    MEMBER_INVITE = "member:invite"
    MEMBER_REMOVE = "member:remove"
    MEMBER_UPDATE_ROLE = "member:update_role"
    SERVICE_ACCOUNT_MANAGE = "service_account:manage"
    AUTOMATION_READ = "automation:read"
    AUTOMATION_MANAGE = "automation:manage"
    WEBHOOK_MANAGE = "webhook:manage"
    SLACK_MANAGE = "slack:manage"
    SECRET_MANAGE = "secret:manage"
    USAGE_READ_TEAM = "usage:read_team"
    STORAGE_READ = "storage:read"

    PROJECT_READ = "project:read"
    PROJECT_READ_VISIBILITY = "project:read_visibility"
    PROJECT_JOIN = "project:join"
    PROJECT_CREATE = "project:create"
    PROJECT_UPDATE = "project:update"
    PROJECT_UPDATE_OVERVIEW = "project:update_overview"
    PROJECT_UPDATE_VISIBILITY = "project:update_visibility"
    PROJECT_MANAGE_MEMBERS = "project:manage_members"
    PROJECT_SHARE = "project:share"
    PROJECT_DELETE = "project:delete"
    PROJECT_TRANSFER = "project:transfer"
    RUN_READ = "run:read"
    RUN_CREATE = "run:create"
    RUN_UPDATE = "run:update"
    RUN_SET_AUTHOR = "run:set_author"
    RUN_MOVE = "run:move"
    RUN_DELETE = "run:delete"
    RUN_STOP = "run:stop"
    WORKSPACE_READ = "workspace:read"
    WORKSPACE_UPDATE = "workspace:update"
    REPORT_READ = "report:read"
    REPORT_COMMENT = "report:comment"
    REPORT_FOLLOW = "report:follow"
    REPORT_CREATE = "report:create"
    REPORT_UPDATE = "report:update"
    REPORT_DELETE = "report:delete"
    REPORT_SHARE = "report:share"
    REPORT_SHARE_PUBLIC = "report:share_public"
    ARTIFACT_READ = "artifact:read"
    ARTIFACT_DOWNLOAD = "artifact:download"
    ARTIFACT_CREATE = "artifact:create"
    ARTIFACT_UPDATE = "artifact:update"
    ARTIFACT_DELETE = "artifact:delete"
    ARTIFACT_ALIAS = "artifact:alias"
    SWEEP_READ = "sweep:read"
    SWEEP_CREATE = "sweep:create"
    SWEEP_CONTROL = "sweep:control"
    SWEEP_DELETE = "sweep:delete"
    REGISTRY_READ = "registry:read"
    REGISTRY_DOWNLOAD = "registry:download"
    REGISTRY_LINK = "registry:link"
    REGISTRY_ALIAS = "registry:alias"
    REGISTRY_MANAGE_ADMINS = "registry:manage_admins"
    REGISTRY_PROTECTED_ALIAS = "registry:protected_alias"

    TEAM_CREATE = "team:create"
    ORG_SETTINGS = "org:settings"
    ORG_MEMBER_READ = "org:member_read"
    ORG_MEMBER_UPDATE = "org:member_update"
    ORG_INVITE = "org:invite"
    ORG_ROLE_READ = "org:role_read"
    ORG_ROLE_MANAGE = "org:role_manage"
    ORG_SERVICE_ACCOUNT = "org:service_account"
    ORG_BUCKET_MANAGE = "org:bucket_manage"
    ORG_KEY_READ = "org:key_read"
    ORG_KEY_REVOKE = "org:key_revoke"
    ORG_AUDIT_READ = "org:audit_read"
    NAME_RELEASE = "name:release"
    BILLING_READ = "billing:read"
    BILLING_MANAGE = "billing:manage"
    BILLING_SETTLE = "billing:settle"
    BILLING_ASSIGN = "billing:assign"

    # Enum's own hash is a Python function; every decision hashes actions.
    __hash__ = str.__hash__

    @property
    def kind(self) -> str:
        """The kind of resource: `run` of `run:read`."""
        return self.value.partition(":")[0]


def _of_kinds(*kinds: str) -> frozenset[Action]:
    return frozenset(action for action in Action if action.kind in kinds)


PROJECT_KINDS: Final = ("project", "run", "workspace", "report", "artifact", "sweep")
PROJECT_ACTIONS: Final = _of_kinds(*PROJECT_KINDS)
"""Actions on a project and on what is in it."""

DATA_READS: Final = frozenset(
    (
        Action.PROJECT_READ,
        Action.RUN_READ,
        Action.WORKSPACE_READ,
        Action.REPORT_READ,
        Action.ARTIFACT_READ,
        Action.SWEEP_READ,
    )
)
"""What everyone may read of a project that is visible beyond its team."""

READS: Final = DATA_READS | frozenset(
    (
        Action.ACCOUNT_READ,
        Action.USER_READ,
        Action.TEAM_PROFILE,
        Action.TEAM_READ,
        Action.TEAM_READ_SETTINGS,
        Action.TEAM_READ_AUDIT,
        Action.MEMBER_READ_EMAIL,
        Action.AUTOMATION_READ,
        Action.USAGE_READ_TEAM,
        Action.STORAGE_READ,
        Action.PROJECT_READ_VISIBILITY,
        Action.ARTIFACT_DOWNLOAD,
        Action.REGISTRY_READ,
        Action.REGISTRY_DOWNLOAD,
        Action.ORG_MEMBER_READ,
        Action.ORG_ROLE_READ,
        Action.ORG_KEY_READ,
        Action.ORG_AUDIT_READ,
        Action.BILLING_READ,
    )
)
"""Actions that change nothing."""

NEEDS_SUDO: Final = frozenset(
    (
        Action.ACCOUNT_EMAILS,
        Action.ACCOUNT_SECURITY,
        Action.ACCOUNT_KEYS,
        Action.ACCOUNT_DELETE,
        Action.TEAM_DELETE,
        Action.PROJECT_TRANSFER,
        Action.ORG_SETTINGS,
        Action.ORG_MEMBER_UPDATE,
        Action.ORG_SERVICE_ACCOUNT,
        Action.ORG_BUCKET_MANAGE,
        Action.NAME_RELEASE,
        Action.BILLING_SETTLE,
        Action.BILLING_ASSIGN,
    )
)
"""Actions for which a session must have confirmed the password lately. A key never suffices."""

OPERATOR_ACTIONS: Final = frozenset(
    (
        Action.PROJECT_READ,
        Action.PROJECT_UPDATE,
        Action.PROJECT_UPDATE_OVERVIEW,
        Action.PROJECT_DELETE,
        Action.RUN_READ,
        Action.RUN_CREATE,
        Action.RUN_UPDATE,
        Action.RUN_DELETE,
        Action.RUN_STOP,
        Action.WORKSPACE_READ,
        Action.WORKSPACE_UPDATE,
        Action.ARTIFACT_READ,
        Action.ARTIFACT_DOWNLOAD,
        Action.ARTIFACT_CREATE,
        Action.ARTIFACT_UPDATE,
        Action.ARTIFACT_DELETE,
        Action.ARTIFACT_ALIAS,
        Action.SWEEP_READ,
        Action.SWEEP_CREATE,
        Action.SWEEP_CONTROL,
        Action.SWEEP_DELETE,
        Action.REGISTRY_READ,
        Action.REGISTRY_DOWNLOAD,
        Action.REGISTRY_LINK,
        Action.REGISTRY_ALIAS,
        Action.USAGE_READ_TEAM,
        Action.BILLING_READ,
    )
)
"""What a server without accounts allows everyone: to send, read and tidy up runs. What decides about access
waits for the first administrator, because it would still be there afterwards."""

INGEST: Final = frozenset((Action.RUN_CREATE, Action.PROJECT_CREATE))
"""What a training machine needs: a stolen key of this scope reads nothing."""

WRITES: Final = (READS | PROJECT_ACTIONS | {Action.REGISTRY_LINK, Action.REGISTRY_ALIAS}) - NEEDS_SUDO
"""Reading, and changing projects, what is in them, and the models of the registry."""

SERVICE_ACCOUNT_ACTIONS: Final = (
    PROJECT_ACTIONS
    | {
        Action.TEAM_READ,
        Action.TEAM_PROFILE,
        Action.AUTOMATION_READ,
        Action.REGISTRY_READ,
        Action.REGISTRY_DOWNLOAD,
        Action.REGISTRY_LINK,
        Action.REGISTRY_ALIAS,
    }
) - {
    Action.PROJECT_MANAGE_MEMBERS,
    Action.PROJECT_SHARE,
    Action.PROJECT_JOIN,
    Action.PROJECT_TRANSFER,
    Action.RUN_SET_AUTHOR,
}
"""The most that a service account may do: data, never people, settings or billing."""
