"""The organisation's settings that change who may do what, and the rules that depend on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from runvitals.server.access.actions import PROJECT_ACTIONS, Action
from runvitals.server.access.resources import Project, Resource, Visibility

_OWN_SPACE_ACTIONS: Final = PROJECT_ACTIONS | {
    Action.TEAM_READ,
    Action.TEAM_PROFILE,
    Action.STORAGE_READ,
    Action.USAGE_READ_TEAM,
    Action.REGISTRY_READ,
    Action.REGISTRY_DOWNLOAD,
    Action.REGISTRY_LINK,
    Action.REGISTRY_ALIAS,
    # Alert rules. The automations of a team are found by its name, so own spaces have none.
    Action.AUTOMATION_READ,
    Action.AUTOMATION_MANAGE,
}
_ADDITIONS: Final = frozenset(
    (Action.PROJECT_CREATE, Action.RUN_CREATE, Action.REGISTRY_LINK, Action.PROJECT_TRANSFER)
)
_BEYOND_ORGANISATION: Final = frozenset((Visibility.PUBLIC, Visibility.OPEN))


@dataclass(frozen=True, slots=True)
class OrganisationPolicies:
    """Settings of the organisation, at their defaults.

    Attributes:
        anonymous_read: whether visitors who are not signed in may read public and open projects.
        members_create_teams: whether every user may create a team, not only administrators.
        team_admins_invite_new: whether team administrators may invite people who have no account.
        team_admins_edit_privacy: whether team administrators may change a team's privacy settings.
        admins_join_teams: whether administrators of the organisation may join any team.
        public_projects: whether projects may be made public or open.
        public_links: whether links for people without an account may be made.
        personal_entities: whether users have projects in a space of their own, not only in teams.
        embed_origins: the sites that may show reports in frames.
    """

    anonymous_read: bool = False
    members_create_teams: bool = False
    team_admins_invite_new: bool = True
    team_admins_edit_privacy: bool = False
    admins_join_teams: bool = True
    public_projects: bool = True
    public_links: bool = True
    personal_entities: bool = True
    embed_origins: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> OrganisationPolicies:
        """Return the policies that are in the settings of the organisation, which must be complete."""
        return cls(
            anonymous_read=settings["anonymous_access"] == "read",
            members_create_teams=settings["team_creation"] == "members",
            team_admins_invite_new=settings["team_admins_invite_new"],
            team_admins_edit_privacy=settings["team_admins_edit_privacy"],
            admins_join_teams=settings["admin_team_access"],
            public_projects=settings["allow_public_projects"],
            public_links=settings["allow_public_links"],
            personal_entities=settings["personal_entities"],
            embed_origins=tuple(settings["embed_origins"]),
        )


DEFAULT_POLICIES = OrganisationPolicies()


def own_space_has(action: Action, resource: Resource, policies: OrganisationPolicies) -> bool:
    """Return whether an action exists in users' own spaces.

    Where only teams have projects, nothing is added to own spaces. What is there stays theirs, and may be
    given to a team.
    """
    if action not in _OWN_SPACE_ACTIONS:
        return False
    if policies.personal_entities or action not in _ADDITIONS:
        return True
    return action is Action.PROJECT_TRANSFER and isinstance(resource, Project)


def visibility_problem(
    project: Project, visibility: Visibility, policies: OrganisationPolicies = DEFAULT_POLICIES
) -> str | None:
    r"""Return why a project cannot get this visibility; None where it can.

    What is public already stays public when a team or the organisation switches public projects off.

    Example:
        >>> from runvitals.server.access.resources import Entity
        >>> visibility_problem(Project(1, Entity(7, owner_id=3)), Visibility.RESTRICTED)
        'a project in a user\'s own space cannot be restricted; use "team", which only that user sees'
    """
    if visibility is project.visibility:
        return None
    if project.entity.owner_id is not None and visibility is Visibility.RESTRICTED:
        return 'a project in a user\'s own space cannot be restricted; use "team", which only that user sees'
    if visibility is Visibility.PRIVATE and project.owner_id is None:
        return "a project without an owner cannot be private: nobody could read it"
    if visibility in _BEYOND_ORGANISATION:
        if not policies.public_projects:
            return "the organisation has switched public projects off"
        if not project.entity.public_projects:
            return "the team has switched public projects off"
    if project.visibility is Visibility.RESTRICTED and visibility in _BEYOND_ORGANISATION:
        return "a restricted project must be opened to its team first"
    return None
