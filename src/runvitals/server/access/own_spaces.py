"""What there is to do in users' own spaces."""

from __future__ import annotations

from typing import Final

from runvitals.server.access.actions import PROJECT_ACTIONS, Action
from runvitals.server.access.policies import OrganisationPolicies
from runvitals.server.access.resources import Project, Resource

_ACTIONS: Final = PROJECT_ACTIONS | {
    Action.TEAM_READ,
    Action.TEAM_PROFILE,
    Action.STORAGE_READ,
    Action.USAGE_READ_TEAM,
    # Alert rules. The automations of a team are found by its name, so own spaces have none.
    Action.AUTOMATION_READ,
    Action.AUTOMATION_MANAGE,
}
_ADDITIONS: Final = frozenset((Action.PROJECT_CREATE, Action.RUN_CREATE, Action.PROJECT_TRANSFER))


def own_space_has(action: Action, resource: Resource, policies: OrganisationPolicies) -> bool:
    """Whether an action exists in users' own spaces.

    Where only teams have projects, nothing is added to own spaces. What is there stays theirs, and may be
    given to a team.
    """
    if action not in _ACTIONS:
        return False
    if policies.personal_entities or action not in _ADDITIONS:
        return True
    return action is Action.PROJECT_TRANSFER and isinstance(resource, Project)
