"""`runvitals team`: the teams of a server and their members."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, day, when
from runvitals.cli.account_store import (
    AccountApi,
    Call,
    Work,
    add_actions,
    check_confirmation,
    finish,
    notices,
    run_on_accounts,
    team_named,
    user_named,
)

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor

_MEMBER = "/teams/{team}/members/{member}"
_ROLE = "viewer, member, admin, or a custom role; default: member"


def add(subparsers: Any) -> None:
    """Add `runvitals team` to the parser."""
    actions = add_actions(subparsers, "team")
    create = actions.add_parser("create", help="create a team")
    create.add_argument("team", metavar="TEAM", help="letters a to z, digits, - and _; it never changes")
    create.add_argument("--admin", metavar="USER", help="its first administrator")
    create.add_argument("--adopt", action="store_true", help="own what the server stored before accounts")
    actions.add_parser("list", help="list teams")
    for name, text in (
        ("members", "list the members of a team"),
        ("adopt", "own the projects and tokens that the server has had before accounts"),
        ("restore", "take a team out of the trash"),
    ):
        actions.add_parser(name, help=text).add_argument("team", metavar="TEAM")
    for name, text in (("add", "add a user to a team"), ("role", "change a member's role")):
        member = actions.add_parser(name, help=text)
        member.add_argument("team", metavar="TEAM")
        member.add_argument("user", metavar="USER")
        member.add_argument("--role", default="member", help=_ROLE)
    remove = actions.add_parser("remove", help="remove a member; their runs stay")
    remove.add_argument("team", metavar="TEAM")
    remove.add_argument("user", metavar="USER")
    delete = actions.add_parser("delete", help="move a team and all it owns to the trash")
    delete.add_argument("team", metavar="TEAM")
    delete.add_argument("--confirm", metavar="TEAM", required=True, help="the name again")
    finish(actions, by_key=("members", "role", "remove"))


def run(arguments: argparse.Namespace) -> int:
    """Run an action on teams or their members; return the exit code."""
    return run_on_accounts(arguments, _WORKS, _CALLS)


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    first = None if arguments.admin is None else user_named(accounts, arguments.admin).id
    team = accounts.teams.create(arguments.team, by, now_ms, administrator=first)
    if arguments.adopt:
        accounts.teams.adopt(team.id, by, now_ms)
    whose = "without members" if first is None else f"with {arguments.admin} as administrator"
    return Outcome(f"created the team {team.name} {whose}", team)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    return Listing(
        accounts.teams.all(), _TEAMS, "there are no teams; `runvitals team create NAME` creates one"
    )


def _members(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    team = team_named(accounts, arguments.team).name
    return Listing(accounts.members.of_team(team), _MEMBERS, _no_members(team))


def _members_at_server(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    members = api.every("/teams/{team}/members", "members", team=arguments.team)
    rows = [SimpleNamespace(**member, address=member.get("email")) for member in members]
    return Listing(rows, _MEMBERS, _no_members(arguments.team))


def _no_members(team: str) -> str:
    return f"the team {team} has no members; `runvitals team add {team} USER` adds one"


def _adopt(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team = team_named(accounts, arguments.team)
    projects = accounts.teams.adopt(team.id, by, now_ms)
    return Outcome(f"the team {team.name} has got {projects} projects", {"projects": projects})


def _add(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.audit.storage.audit import OPERATOR_NAME
    from runvitals.server.mail.messages import added_to_team

    team, user = team_named(accounts, arguments.team), user_named(accounts, arguments.user)

    def add_member() -> None:
        accounts.members.add(team.name, user.name, arguments.role, by, now_ms)
        message = added_to_team(team.name, arguments.role, OPERATOR_NAME)
        notices(accounts, now_ms).to_user(user.id, message)

    accounts.in_one_transaction(add_member)
    return Outcome(f"{user.name} is in the team {team.name} now, as {arguments.role}")


def _role(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team, user = _membership(api, arguments)
    kind = "role" if arguments.role in ("viewer", "member", "admin") else "custom_role"
    api.send("PATCH", _MEMBER, {kind: arguments.role}, team=team, member=user)
    return Outcome(f"{user} is {arguments.role} in the team {team} now")


def _remove(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team, user = _membership(api, arguments)
    api.send("DELETE", _MEMBER, team=team, member=user)
    return Outcome(f"{user} is no longer in the team {team}")


def _membership(api: AccountApi, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the names of the team and of its member, or raise LookupError."""
    team, user = api.team(arguments.team), api.user(arguments.user)
    if api.accounts is not None:
        api.accounts.members.get(team, user)
    return team, user


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team = api.team(arguments.team)
    check_confirmation(arguments, team)
    api.send("DELETE", "/teams/{team}", {"confirm": arguments.confirm}, team=team)
    return Outcome(f"the team {team} is in the trash; `runvitals team restore {team}` takes it back")


def _restore(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team = api.team(arguments.team, in_trash=True)
    api.send("POST", "/teams/{team}/restore", team=team)
    return Outcome(f"the team {team} is back")


_TEAMS: Columns = {
    "TEAM": lambda team: team.name,
    "NAME": lambda team: team.display_name,
    "MEMBERS": lambda team: team.members,
    "NEW PROJECTS": lambda team: team.default_visibility,
    "CREATED": lambda team: day(team.created_ms),
    "STATE": lambda team: "active" if team.deleted_ms is None else f"in the trash: {day(team.deleted_ms)}",
}
_MEMBERS: Columns = {
    "USER": lambda member: member.name,
    "NAME": lambda member: member.display_name,
    "E-MAIL": lambda member: member.address,
    "ROLE": lambda member: member.custom_role or member.role,
    "JOINED": lambda member: day(member.created_ms),
    "LAST ACTIVE": lambda member: day(member.last_seen_ms),
    "ENDS": lambda member: when(member.expires_ms),
}
_WORKS: dict[str, Work] = {
    "create": _create,
    "list": _list,
    "members": _members,
    "adopt": _adopt,
    "add": _add,
}
_CALLS: dict[str, Call] = {
    "members": _members_at_server,
    "role": _role,
    "remove": _remove,
    "delete": _delete,
    "restore": _restore,
}
