"""Taking a right away never adds another, and what nothing grants is denied."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.matrix import CUSTOM_ACTIONS, Role
from runvitals.server.access.decisions.policies import OrganisationPolicies, visibility_problem
from runvitals.server.access.principals import (
    Access,
    Anonymous,
    KeyLimits,
    KeyScope,
    Membership,
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

TEAMS, PROJECTS, USERS = (7, 8), (3, 4), (1, 2)
memberships = st.builds(
    Membership, st.sampled_from(Role), st.frozensets(st.sampled_from(sorted(CUSTOM_ACTIONS)), max_size=4)
)
keys = st.none() | st.builds(
    KeyLimits, st.sampled_from(KeyScope), st.none() | st.frozensets(st.sampled_from(TEAMS))
)
users = st.builds(
    User,
    id=st.sampled_from(USERS),
    state=st.sampled_from(("active", "active", "active", "unverified", "suspended")),
    org_admin=st.booleans(),
    access=st.sampled_from(Access),
    billing=st.sampled_from(("none", "viewer", "admin")),
    teams=st.dictionaries(st.sampled_from(TEAMS), memberships),
    projects=st.dictionaries(st.sampled_from(PROJECTS), st.none() | memberships),
    registries=st.frozensets(st.just(5)),
    key=keys,
)
services = st.builds(
    ServiceAccount,
    id=st.just(6),
    team=st.none() | st.sampled_from(TEAMS),
    projects=st.frozensets(st.sampled_from(PROJECTS)),
    reads_only=st.booleans(),
    legacy=st.booleans(),
    key=keys,
)
switches = st.booleans()
policies = st.builds(OrganisationPolicies, *[switches] * 7)
teams = st.builds(Entity, st.sampled_from(TEAMS), st.none(), switches, switches, switches, switches, switches)
spaces = st.builds(Entity, st.just(20), st.sampled_from(USERS))
owners = st.none() | st.sampled_from(USERS)
projects = st.builds(
    Project,
    st.sampled_from(PROJECTS),
    teams | spaces,
    st.sampled_from(Visibility),
    owners,
    switches,
    switches,
)
items = st.builds(
    ProjectItem,
    st.sampled_from(("run", "report", "artifact", "sweep", "workspace")),
    st.just(9),
    projects,
    owners,
    st.none() | st.just(6),
    switches,
)
resources = (
    st.just(Organisation())
    | st.builds(Account, st.sampled_from(USERS))
    | teams
    | spaces
    | st.builds(Member, teams, st.sampled_from(Role), switches)
    | projects
    | items
    | st.builds(Registry, st.just(5), teams)
)


def rights(principal: Any, resource: Resource, policy: OrganisationPolicies) -> set[Action]:
    return {action for action in Action if decide(principal, action, resource, policy) is Decision.ALLOWED}


def lowered(membership: Membership) -> Membership:
    below = Role.MEMBER if membership.role is Role.ADMIN else Role.VIEWER
    return replace(membership, role=below)


def lesser(user: User, draw: st.DrawFn) -> User:
    """The user with one right taken away."""
    changes: list[dict[str, Any]] = [
        {"org_admin": False},
        {"billing": "none"},
        {"registries": frozenset()},
        {"access": Access.VIEWER if user.access is Access.FULL else Access.NONE},
        {"key": KeyLimits(KeyScope.READ)}
        if user.key is None
        else {"key": replace(user.key, entities=frozenset())},
        {"state": "suspended"},
    ]
    for team, membership in user.teams.items():
        changes.append({"teams": {other: kept for other, kept in user.teams.items() if other != team}})
        changes.append({"teams": {**user.teams, team: lowered(membership)}})
        changes.append({"teams": {**user.teams, team: Membership(membership.role)}})
    for project, given_role in user.projects.items():
        if given_role is not None:
            changes.append({"projects": {**user.projects, project: lowered(given_role)}})
            changes.append({"projects": {**user.projects, project: Membership(given_role.role)}})
        else:
            kept = {other: role for other, role in user.projects.items() if other != project}
            changes.append({"projects": kept})
    return replace(user, **draw(st.sampled_from(changes)))


@settings(max_examples=300)
@given(data=st.data(), user=users, resource=resources, policy=policies)
def test_taking_a_right_from_a_user_adds_none(
    data: st.DataObject, user: User, resource: Resource, policy: OrganisationPolicies
) -> None:
    less = lesser(user, data.draw)  # type: ignore[arg-type]
    assert rights(less, resource, policy) <= rights(user, resource, policy)


@settings(max_examples=300)
@given(
    user=users,
    team=st.sampled_from(TEAMS),
    action=st.sampled_from(sorted(CUSTOM_ACTIONS)),
    resource=resources,
    policy=policies,
)
def test_an_action_of_a_custom_role_takes_none_and_adds_no_other(
    user: User, team: int, action: Action, resource: Resource, policy: OrganisationPolicies
) -> None:
    membership = user.teams.get(team)
    if membership is None:
        return
    more = Membership(membership.role, membership.added | {action})
    before = rights(user, resource, policy)
    after = rights(replace(user, teams={**user.teams, team: more}), resource, policy)
    assert before <= after <= before | {action}


@settings(max_examples=200)
@given(account=services, resource=resources, policy=policies)
def test_taking_a_right_from_a_service_account_adds_none(
    account: ServiceAccount, resource: Resource, policy: OrganisationPolicies
) -> None:
    full = rights(account, resource, policy)
    assert rights(replace(account, projects=frozenset()), resource, policy) <= full
    assert rights(replace(account, reads_only=True), resource, policy) <= full
    assert rights(replace(account, legacy=False), resource, policy) <= full


@settings(max_examples=200)
@given(
    principal=users | services | st.just(Anonymous()),
    project=projects,
    policy=policies,
    narrower=st.sampled_from(Visibility),
)
def test_narrowing_a_projects_visibility_adds_no_right(
    principal: Any, project: Project, policy: OrganisationPolicies, narrower: Visibility
) -> None:
    levels = list(Visibility)
    if levels.index(narrower) > levels.index(project.visibility) or visibility_problem(project, narrower):
        return  # wider, or refused: without an owner, a private project would open to administrators
    closed = replace(project, visibility=narrower)
    # Joining is what a restricted project offers in place of being open to administrators.
    added = rights(principal, closed, policy) - rights(principal, project, policy)
    assert added <= {Action.PROJECT_JOIN}


@given(principal=users | services | st.just(Anonymous()), resource=resources, policy=policies)
def test_turning_a_switch_off_adds_no_right(
    principal: Any, resource: Resource, policy: OrganisationPolicies
) -> None:
    off = OrganisationPolicies(*[False] * 7)
    assert rights(principal, resource, off) <= rights(principal, resource, policy)


@given(resource=resources)
def test_visitors_and_strangers_have_nothing_by_default(resource: Resource) -> None:
    default = OrganisationPolicies()
    assert not rights(Anonymous(), resource, default)
    if not isinstance(resource, Project | ProjectItem | Organisation | Account):
        assert rights(User(99), resource, default) <= {Action.TEAM_PROFILE}
