"""The organisation's settings that change who may do what."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    anonymous_read: bool = False
    members_create_teams: bool = False
    team_admins_invite_new: bool = True
    team_admins_edit_privacy: bool = False
    admins_join_teams: bool = True
    public_projects: bool = True
    public_links: bool = True
    personal_entities: bool = True


DEFAULT_POLICIES = OrganisationPolicies()
