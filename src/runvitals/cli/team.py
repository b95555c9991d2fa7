"""`runvitals team`: the teams of a server and their members."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, day, when
from runvitals.cli.account_store import (
    DESCRIPTION,
    Work,
    add_actions,
    check_confirmation,
    finish,
    run_on_accounts,
    team_named,
    user_named,
)
from runvitals.cli.command_list import COMMANDS

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor

_ROLE = "viewer, member, admin, or a custom role; default: member"


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "team",
        help=COMMANDS["team"],
        description=DESCRIPTION,
    )
    actions = add_actions(parser)
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
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


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
    team = team_named(accounts, arguments.team)
    empty = f"the team {team.name} has no members; `runvitals team add {team.name} USER` adds one"
    return Listing(accounts.members.of_team(team.name), _MEMBERS, empty)


def _adopt(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team = team_named(accounts, arguments.team)
    projects = accounts.teams.adopt(team.id, by, now_ms)
    return Outcome(f"the team {team.name} has got {projects} projects", {"projects": projects})


def _add(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team, user = team_named(accounts, arguments.team), user_named(accounts, arguments.user)
    accounts.members.add(team.name, user.name, arguments.role, by, now_ms)
    return Outcome(f"{user.name} is in the team {team.name} now, as {arguments.role}")


def _role(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team, user = team_named(accounts, arguments.team), user_named(accounts, arguments.user)
    accounts.members.set_role(team.name, user.name, arguments.role, by, now_ms)
    return Outcome(f"{user.name} is {arguments.role} in the team {team.name} now")


def _remove(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team, user = team_named(accounts, arguments.team), user_named(accounts, arguments.user)
    accounts.members.remove(team.name, user.name, by, now_ms)
    return Outcome(f"{user.name} is no longer in the team {team.name}")


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team = team_named(accounts, arguments.team)
    check_confirmation(arguments, team.name)
    accounts.teams.delete(team.name, by, now_ms)
    return Outcome(
        f"the team {team.name} is in the trash; `runvitals team restore {team.name}` takes it back"
    )


def _restore(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team = team_named(accounts, arguments.team, in_trash=True)
    accounts.teams.restore(team.name, by, now_ms)
    return Outcome(f"the team {team.name} is back")


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
_ACTIONS: dict[str, Work] = {
    "create": _create,
    "list": _list,
    "members": _members,
    "adopt": _adopt,
    "add": _add,
    "role": _role,
    "remove": _remove,
    "delete": _delete,
    "restore": _restore,
}
