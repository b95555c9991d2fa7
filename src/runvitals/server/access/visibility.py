"""The rules for a change of a project's visibility, beside the right to make it."""

from __future__ import annotations

from typing import Final

from runvitals.server.access.policies import DEFAULT_POLICIES, OrganisationPolicies
from runvitals.server.access.resources import Project, Visibility

_BEYOND_ORGANISATION: Final = frozenset((Visibility.PUBLIC, Visibility.OPEN))


def visibility_problem(
    project: Project, wanted: Visibility, policies: OrganisationPolicies = DEFAULT_POLICIES
) -> str | None:
    """Why a project cannot get this visibility; None where it can.

    What is public already stays public when a team or the organisation switches public projects off.

    Example:
        >>> from runvitals.server.access.resources import Entity
        >>> visibility_problem(Project(1, Entity(7, owner_id=3)), Visibility.RESTRICTED)
        'a project in a user\\'s own space cannot be restricted; use "team", which only that user sees'
    """
    if wanted is project.visibility:
        return None
    if project.entity.owner_id is not None and wanted is Visibility.RESTRICTED:
        return 'a project in a user\'s own space cannot be restricted; use "team", which only that user sees'
    if wanted is Visibility.PRIVATE and project.owner_id is None:
        return "a project without an owner cannot be private: nobody could read it"
    if wanted in _BEYOND_ORGANISATION:
        if not policies.public_projects:
            return "the organisation has switched public projects off"
        if not project.entity.public_projects:
            return "the team has switched public projects off"
    if project.visibility is Visibility.RESTRICTED and wanted in _BEYOND_ORGANISATION:
        return "a restricted project must be opened to its team first"
    return None
