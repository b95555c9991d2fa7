"""Users' own spaces, where the organisation lets only teams have projects."""

from __future__ import annotations

import pytest

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.matrix import Role
from runvitals.server.access.decisions.policies import OrganisationPolicies
from runvitals.server.access.principals import Membership, User
from runvitals.server.access.resources import Entity, Project, ProjectItem, Visibility

ADA, OWN, TEAM = User(1, teams={7: Membership(Role.ADMIN)}), Entity(5, owner_id=1), Entity(7)
PROJECT = Project(3, OWN, Visibility.TEAM, 1)
TEAMS_ONLY = OrganisationPolicies(personal_entities=False)


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        (Action.PROJECT_CREATE, OWN),
        (Action.RUN_CREATE, PROJECT),
        (Action.PROJECT_TRANSFER, OWN),
    ],
)
def test_nothing_is_added_to_own_spaces(action: Action, resource: Entity | Project) -> None:
    assert decide(ADA, action, resource) is Decision.ALLOWED
    assert decide(ADA, action, resource, TEAMS_ONLY) is Decision.DENIED


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        (Action.PROJECT_READ, PROJECT),
        (Action.PROJECT_TRANSFER, PROJECT),
        (Action.PROJECT_DELETE, PROJECT),
        (Action.RUN_UPDATE, ProjectItem("run", 9, PROJECT, author_id=1)),
        (Action.PROJECT_CREATE, TEAM),
    ],
)
def test_what_is_there_stays_theirs(action: Action, resource: Entity | Project | ProjectItem) -> None:
    assert decide(ADA, action, resource, TEAMS_ONLY) is Decision.ALLOWED
