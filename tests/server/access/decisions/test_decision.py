"""Decisions compared with the specification, cell by cell: permissions.csv.

`stated` is what the specification says of a role, `decided` what was decided where it says "conditional" or
leaves a choice: yes, no, own (only on what the principal made), or `if SWITCH` (only while a setting is on).
Rows without a permission are not rights: `on` names what decides instead.
"""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from runvitals.server.access.actions import Action
from runvitals.server.access.decisions.decision import Decision, decide
from runvitals.server.access.decisions.matrix import MATRIX, ORGANISATION_MATRIX, Role
from runvitals.server.access.decisions.policies import DEFAULT_POLICIES
from runvitals.server.access.principals import (
    Access,
    Anonymous,
    GuestLink,
    KeyLimits,
    KeyScope,
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

ROWS = list(csv.DictReader((Path(__file__).parents[1] / "permissions.csv").read_text().splitlines()))
RIGHTS = [row for row in ROWS if row["permission"]]
ELSEWHERE = {
    "a deleted account is not kept",
    "names are unique",
    "names never change",
    "billing decides",
    "the primary address is verified",
    "the primary address stays",
    "custom roles are checked",
    "attribution decides",
}
ME, OTHER = 1, 2
TEAM, OTHER_TEAM = Entity(7), Entity(8)
PROJECT, REGISTRY = 3, 4
SWITCHES = ("members_create_teams", "team_admins_edit_privacy", "anonymous_read")
ITEMS = ("run", "report", "artifact", "sweep", "workspace")


def principal_of(role: str, added: bool) -> Principal:
    teams = {
        "view_only": Membership(Role.VIEWER),
        "member": Membership(Role.MEMBER),
        "registry_admin": Membership(Role.MEMBER),
        "team_admin": Membership(Role.ADMIN),
    }
    if role == "visitor":
        return Anonymous()
    if role == "service_account":
        return ServiceAccount(5, TEAM.id)
    admin = role in ("org_admin", "system_admin", "billing_admin")
    return User(
        ME,
        org_admin=admin,
        billing="admin" if role == "billing_admin" else "none",
        teams={TEAM.id: teams[role]} if role in teams else {},
        projects={PROJECT: None} if added else {},
        registries=frozenset((REGISTRY,)) if role == "registry_admin" else frozenset(),
    )


def resource_of(on: str, author: int, team: Entity) -> Resource:
    if on == "organisation":
        return Organisation()
    if on == "account":
        return Account(author)
    if on == "team":
        return team
    if on == "registry":
        return Registry(REGISTRY, team)
    if on.endswith("member"):
        return Member(team, Role.ADMIN if on == "admin member" else Role.MEMBER, custom=on == "custom member")
    entity = OTHER_TEAM if "another team" in on else team
    levels = [level for level in Visibility if on.startswith(level.value)]
    owner = ME if "own project" in on else None
    project = Project(PROJECT, entity, levels[0] if levels else Visibility.TEAM, owner)
    kinds = [word for word in on.split() if word in ITEMS]
    return ProjectItem(kinds[0], 9, project, author) if kinds else project  # type: ignore[arg-type]


def outcome(row: dict[str, str], permission: str, on: str, *, own: bool, switch: str = "") -> bool:
    team = replace(TEAM, members_invite=switch == "members_invite", public_links="without links" not in on)
    policies = replace(DEFAULT_POLICIES, **{switch: True}) if switch in SWITCHES else DEFAULT_POLICIES
    principal = principal_of(row["role"], added=switch == "added")
    resource = resource_of(on.strip(), ME if own else OTHER, team)
    return decide(principal, Action(permission), resource, policies) is Decision.ALLOWED


def pairs(row: dict[str, str]) -> list[tuple[str, str]]:
    """Each permission of a row with what it is on."""
    permissions = row["permission"].split()
    if len(permissions) == 1:
        return [(permissions[0], row["on"])]
    resources = row["on"].split(";") if ";" in row["on"] else row["on"].split()
    return list(
        zip(permissions, resources * len(permissions) if len(resources) == 1 else resources, strict=False)
    )


@pytest.mark.parametrize("row", RIGHTS, ids=lambda row: f"{row['action'][:50]}-{row['role']}")
def test_a_cell_of_the_specification(row: dict[str, str]) -> None:
    decided = row["decided"]
    for permission, on in pairs(row):
        if decided == "own":
            assert outcome(row, permission, on, own=True)
            assert not outcome(row, permission, on, own=False)
        elif decided.startswith("if "):
            for own in (True, False):
                assert not outcome(row, permission, on, own=own)
                assert outcome(row, permission, on, own=own, switch=decided[3:])
        else:
            # "no" holds for the principal's own things too, where the row is not about those of others.
            own = decided == "no" and "own project" not in on and row["role"] != "former_member"
            assert outcome(row, permission, on, own=own) is (decided == "yes")


def test_the_fixture_agrees_with_what_is_stated() -> None:
    assert len(ROWS) == 303
    for row in ROWS:
        if not row["permission"]:
            assert row["on"] in ELSEWHERE
        elif row["stated"] in ("yes", "own") and row["decided"] != "if anonymous_read":
            assert row["decided"] == row["stated"], row
        elif row["stated"] == "no" and row["decided"] != "no":
            # What the specification lets a setting open, and usage alerts, which are not fixed here.
            assert row["decided"].startswith("if ") or row["action"] == "Configure usage alerts", row


def test_every_action_is_in_exactly_one_place() -> None:
    account = {action for action in Action if action.kind in ("account", "user")}
    assert set(MATRIX) | set(ORGANISATION_MATRIX) | account == set(Action)
    assert not set(MATRIX) & set(ORGANISATION_MATRIX)


RUN = ProjectItem("run", 9, Project(PROJECT, TEAM), OTHER)


def test_what_may_not_be_read_is_hidden_and_what_may_is_denied() -> None:
    assert decide(User(ME), Action.RUN_DELETE, RUN) is Decision.HIDDEN
    viewer = User(ME, teams={TEAM.id: Membership(Role.VIEWER)})
    assert decide(viewer, Action.RUN_DELETE, RUN) is Decision.DENIED
    assert decide(User(ME), Action.ORG_SETTINGS, Organisation()) is Decision.DENIED
    assert decide(Anonymous(), Action.ORG_SETTINGS, Organisation()) is Decision.HIDDEN
    assert decide(User(ME), Action.ACCOUNT_UPDATE, Account(OTHER)) is Decision.HIDDEN


def test_an_administrator_of_the_organisation_reads_no_runs_of_other_teams() -> None:
    admin = User(ME, org_admin=True)
    assert decide(admin, Action.TEAM_UPDATE, TEAM) is Decision.ALLOWED
    assert decide(admin, Action.RUN_READ, RUN) is Decision.HIDDEN
    assert decide(admin, Action.TEAM_JOIN_AS_ADMIN, TEAM) is Decision.ALLOWED
    closed = replace(DEFAULT_POLICIES, admins_join_teams=False)
    assert decide(admin, Action.TEAM_JOIN_AS_ADMIN, TEAM, closed) is Decision.DENIED


@pytest.mark.parametrize("state", ["unverified", "suspended", "deleted"])
def test_an_account_that_is_not_active_may_only_confirm_its_address(state: str) -> None:
    user = User(ME, state=state, org_admin=True, teams={TEAM.id: Membership(Role.ADMIN)})  # type: ignore[arg-type]
    assert decide(user, Action.RUN_READ, RUN) is Decision.HIDDEN
    assert decide(user, Action.ORG_SETTINGS, Organisation()) is Decision.HIDDEN
    allowed = decide(user, Action.ACCOUNT_EMAILS, Account(ME)) is Decision.ALLOWED
    assert allowed is (state == "unverified")


def test_access_limits_the_role_in_every_team() -> None:
    admin = User(ME, teams={TEAM.id: Membership(Role.ADMIN)})
    assert decide(replace(admin, access=Access.VIEWER), Action.RUN_READ, RUN) is Decision.ALLOWED
    assert decide(replace(admin, access=Access.VIEWER), Action.RUN_DELETE, RUN) is Decision.DENIED
    assert decide(replace(admin, access=Access.NONE), Action.RUN_READ, RUN) is Decision.HIDDEN
    public = ProjectItem("run", 9, Project(PROJECT, TEAM, Visibility.PUBLIC))
    assert decide(replace(admin, access=Access.NONE), Action.RUN_READ, public) is Decision.HIDDEN


def test_a_custom_role_adds_an_action_on_everything() -> None:
    moderator = User(ME, teams={TEAM.id: Membership(Role.VIEWER, frozenset((Action.RUN_DELETE,)))})
    assert decide(moderator, Action.RUN_DELETE, RUN) is Decision.ALLOWED
    assert decide(moderator, Action.RUN_STOP, RUN) is Decision.DENIED
    assert decide(replace(moderator, access=Access.VIEWER), Action.RUN_DELETE, RUN) is Decision.DENIED


def test_a_custom_role_cannot_handle_administrators() -> None:
    inviter = User(
        ME,
        teams={TEAM.id: Membership(Role.MEMBER, frozenset((Action.MEMBER_INVITE, Action.MEMBER_REMOVE)))},
    )
    assert decide(inviter, Action.MEMBER_INVITE, Member(TEAM, Role.MEMBER)) is Decision.ALLOWED
    assert decide(inviter, Action.MEMBER_INVITE, Member(TEAM, Role.ADMIN)) is Decision.DENIED
    assert decide(inviter, Action.MEMBER_INVITE, Member(TEAM, Role.VIEWER, custom=True)) is Decision.DENIED
    assert decide(inviter, Action.MEMBER_REMOVE, Member(TEAM, Role.ADMIN)) is Decision.DENIED


def test_the_role_in_a_project_replaces_that_in_the_team_but_lifts_no_viewer() -> None:
    raised = {PROJECT: Membership(Role.ADMIN)}
    member = User(ME, teams={TEAM.id: Membership(Role.MEMBER)}, projects=raised)
    viewer = User(ME, teams={TEAM.id: Membership(Role.VIEWER)}, projects=raised)
    assert decide(member, Action.RUN_DELETE, RUN) is Decision.ALLOWED
    assert decide(viewer, Action.RUN_DELETE, RUN) is Decision.DENIED
    assert decide(User(ME, projects=raised), Action.RUN_READ, RUN) is Decision.HIDDEN


def test_a_private_project_is_its_owners_and_a_restricted_one_can_be_joined() -> None:
    admin = User(ME, teams={TEAM.id: Membership(Role.ADMIN)}, projects={PROJECT: None})
    private = Project(PROJECT, TEAM, Visibility.PRIVATE, OTHER)
    assert decide(admin, Action.PROJECT_READ, private) is Decision.HIDDEN
    assert decide(admin, Action.PROJECT_JOIN, private) is Decision.HIDDEN
    owner = User(OTHER, teams={TEAM.id: Membership(Role.MEMBER)})
    assert decide(owner, Action.PROJECT_READ, private) is Decision.ALLOWED
    nobodys = replace(private, owner_id=None)
    assert decide(admin, Action.PROJECT_MANAGE_MEMBERS, nobodys) is Decision.ALLOWED
    assert decide(owner, Action.PROJECT_READ, nobodys) is Decision.HIDDEN
    restricted = Project(PROJECT, TEAM, Visibility.RESTRICTED, OTHER)
    outsider = replace(admin, projects={})
    assert decide(outsider, Action.PROJECT_JOIN, restricted) is Decision.ALLOWED
    assert decide(outsider, Action.PROJECT_READ, restricted) is Decision.HIDDEN


def test_a_key_does_no_more_than_its_scope_and_its_teams() -> None:
    admin = User(ME, org_admin=True, teams={TEAM.id: Membership(Role.ADMIN)})

    def by_key(scope: KeyScope, action: Action, resource: Resource, *teams: int) -> Decision:
        key = KeyLimits(scope, frozenset(teams) if teams else None)
        return decide(replace(admin, key=key), action, resource)

    assert by_key(KeyScope.INGEST, Action.RUN_CREATE, RUN.project) is Decision.ALLOWED
    assert by_key(KeyScope.INGEST, Action.RUN_READ, RUN) is Decision.HIDDEN
    assert by_key(KeyScope.READ, Action.RUN_READ, RUN) is Decision.ALLOWED
    assert by_key(KeyScope.READ, Action.RUN_DELETE, RUN) is Decision.DENIED
    assert by_key(KeyScope.WRITE, Action.RUN_DELETE, RUN) is Decision.ALLOWED
    assert by_key(KeyScope.WRITE, Action.TEAM_UPDATE, TEAM) is Decision.DENIED
    assert by_key(KeyScope.FULL, Action.TEAM_UPDATE, TEAM) is Decision.ALLOWED
    assert by_key(KeyScope.FULL, Action.ORG_SETTINGS, Organisation()) is Decision.DENIED
    assert by_key(KeyScope.WRITE, Action.RUN_READ, RUN, OTHER_TEAM.id) is Decision.HIDDEN


def test_service_accounts_log_and_manage_nobody() -> None:
    account = ServiceAccount(5, TEAM.id)
    own = ProjectItem("run", 9, Project(PROJECT, TEAM), None, 5)
    assert decide(account, Action.RUN_DELETE, own) is Decision.ALLOWED
    assert decide(account, Action.RUN_DELETE, replace(own, author_id=OTHER)) is Decision.DENIED
    inviting = replace(TEAM, members_invite=True)
    assert decide(account, Action.MEMBER_INVITE, Member(inviting, Role.VIEWER)) is Decision.DENIED
    assert decide(replace(account, reads_only=True), Action.RUN_CREATE, own.project) is Decision.DENIED
    restricted = Project(PROJECT, TEAM, Visibility.RESTRICTED)
    everywhere = ServiceAccount(6, None)
    assert decide(everywhere, Action.RUN_CREATE, Project(PROJECT, OTHER_TEAM)) is Decision.ALLOWED
    assert decide(everywhere, Action.RUN_CREATE, restricted) is Decision.HIDDEN
    added = replace(account, projects=frozenset((PROJECT,)))
    assert decide(added, Action.RUN_CREATE, restricted) is Decision.ALLOWED


def test_tokens_from_before_accounts_may_do_everything_to_data() -> None:
    legacy = ServiceAccount(5, TEAM.id, legacy=True)
    assert decide(legacy, Action.RUN_DELETE, RUN) is Decision.ALLOWED
    assert decide(legacy, Action.PROJECT_DELETE, RUN.project) is Decision.ALLOWED
    assert decide(legacy, Action.PROJECT_MANAGE_MEMBERS, RUN.project) is Decision.DENIED
    assert decide(legacy, Action.TEAM_UPDATE, TEAM) is Decision.DENIED
    assert decide(legacy, Action.ORG_SETTINGS, Organisation()) is Decision.HIDDEN


def test_what_is_in_the_trash_is_there_for_those_who_may_delete_it() -> None:
    deleted = replace(RUN, deleted=True)
    admin = User(ME, teams={TEAM.id: Membership(Role.ADMIN)})
    member = User(ME, teams={TEAM.id: Membership(Role.MEMBER)})
    assert decide(admin, Action.RUN_READ, deleted) is Decision.ALLOWED
    assert decide(admin, Action.RUN_DELETE, deleted) is Decision.ALLOWED
    assert decide(admin, Action.RUN_STOP, deleted) is Decision.DENIED
    assert decide(member, Action.RUN_READ, deleted) is Decision.HIDDEN
    assert decide(member, Action.RUN_READ, replace(deleted, author_id=ME)) is Decision.ALLOWED
    gone = Project(PROJECT, replace(TEAM, deleted=True))
    assert decide(admin, Action.PROJECT_READ, gone) is Decision.HIDDEN
    restorer = User(ME, org_admin=True)
    assert decide(restorer, Action.TEAM_DELETE, gone.entity) is Decision.ALLOWED
    assert decide(restorer, Action.TEAM_UPDATE, gone.entity) is Decision.DENIED


def test_a_guest_link_shows_one_thing() -> None:
    link = GuestLink("project", PROJECT)
    assert decide(link, Action.RUN_READ, RUN) is Decision.ALLOWED
    assert decide(link, Action.RUN_DELETE, RUN) is Decision.DENIED
    assert decide(link, Action.RUN_READ, replace(RUN, project=Project(99, TEAM))) is Decision.HIDDEN
    assert decide(GuestLink("run", 8), Action.RUN_READ, RUN) is Decision.HIDDEN
    off = replace(DEFAULT_POLICIES, public_links=False)
    assert decide(link, Action.RUN_READ, RUN, off) is Decision.HIDDEN


def test_the_operator_may_do_everything_with_runs_and_nothing_about_access() -> None:
    for action in (Action.RUN_CREATE, Action.RUN_DELETE, Action.SWEEP_CONTROL, Action.REGISTRY_LINK):
        assert decide(Operator(), action, RUN) is Decision.ALLOWED
    for action in (Action.PROJECT_SHARE, Action.PROJECT_UPDATE_VISIBILITY, Action.RUN_SET_AUTHOR):
        assert decide(Operator(), action, RUN) is Decision.DENIED
    for action in (Action.ORG_SETTINGS, Action.TEAM_CREATE, Action.BILLING_MANAGE):
        assert decide(Operator(), action, Organisation()) is Decision.HIDDEN


def test_a_users_own_space() -> None:
    mine, theirs = Project(PROJECT, Entity(20, owner_id=ME)), Project(PROJECT, Entity(21, owner_id=OTHER))
    assert decide(User(ME), Action.RUN_CREATE, mine) is Decision.ALLOWED
    assert decide(User(ME), Action.PROJECT_DELETE, mine) is Decision.ALLOWED
    assert decide(User(ME), Action.MEMBER_INVITE, Member(mine.entity, Role.VIEWER)) is Decision.DENIED
    assert decide(User(ME, org_admin=True), Action.RUN_READ, theirs) is Decision.HIDDEN
    assert decide(User(ME, access=Access.VIEWER), Action.RUN_CREATE, mine) is Decision.DENIED
