from __future__ import annotations

import pytest

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.custom_roles import added_actions, custom_role
from runvitals.server.access.decisions.matrix import CUSTOM_ACTIONS, Role
from runvitals.server.access.decisions.policies import OrganisationPolicies, visibility_problem
from runvitals.server.access.resources import Entity, Project, Visibility


def test_a_custom_role_adds_actions_to_its_base() -> None:
    role = custom_role(" Labeller ", "viewer", ["run:update", "run:update"])
    assert (role.name, role.base, role.added) == ("Labeller", Role.VIEWER, {Action.RUN_UPDATE})


@pytest.mark.parametrize(
    ("name", "base", "actions", "message"),
    [
        ("", "viewer", [], "1 to 64 characters"),
        ("Admin", "viewer", [], "is reserved"),
        ("x", "admin", [], "expected viewer or member"),
        ("x", "viewer", ["run:fly"], "cannot add 'run:fly'"),
        ("x", "viewer", ["member:update_role"], "cannot add 'member:update_role'"),
    ],
)
def test_an_invalid_custom_role(name: str, base: str, actions: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        custom_role(name, base, actions)


def test_no_custom_role_may_change_roles_or_the_organisation() -> None:
    forbidden = {
        Action.MEMBER_UPDATE_ROLE,
        Action.SERVICE_ACCOUNT_MANAGE,
        Action.TEAM_UPDATE_PRIVACY,
        Action.TEAM_DELETE,
        Action.PROJECT_TRANSFER,
        Action.PROJECT_MANAGE_MEMBERS,
        Action.REGISTRY_MANAGE_ADMINS,
        Action.REGISTRY_PROTECTED_ALIAS,
        Action.ORG_SETTINGS,
        Action.BILLING_MANAGE,
    }
    assert not forbidden & CUSTOM_ACTIONS
    for action in forbidden:
        with pytest.raises(ValueError, match="cannot add"):
            added_actions([action.value])


TEAM = Entity(7)


@pytest.mark.parametrize(
    ("project", "visibility", "policies", "problem"),
    [
        (Project(1, TEAM), Visibility.OPEN, OrganisationPolicies(), None),
        (
            Project(1, TEAM),
            Visibility.PUBLIC,
            OrganisationPolicies(public_projects=False),
            "organisation has",
        ),
        (Project(1, Entity(7, public_projects=False)), Visibility.OPEN, OrganisationPolicies(), "team has"),
        (
            Project(1, TEAM, Visibility.RESTRICTED),
            Visibility.OPEN,
            OrganisationPolicies(),
            "opened to its team",
        ),
        (Project(1, Entity(7, owner_id=1)), Visibility.RESTRICTED, OrganisationPolicies(), "own space"),
        (Project(1, TEAM), Visibility.PRIVATE, OrganisationPolicies(), "without an owner"),
        # What is public already stays so.
        (
            Project(1, TEAM, Visibility.PUBLIC),
            Visibility.PUBLIC,
            OrganisationPolicies(public_projects=False),
            None,
        ),
    ],
)
def test_which_visibility_a_project_may_get(
    project: Project, visibility: Visibility, policies: OrganisationPolicies, problem: str | None
) -> None:
    found = visibility_problem(project, visibility, policies)
    assert (found is None) if problem is None else (problem in (found or ""))
