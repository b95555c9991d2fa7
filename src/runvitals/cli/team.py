"""`runvitals team`: the teams of a server and their members."""

from __future__ import annotations

import argparse

from runvitals.cli import database_actions
from runvitals.cli.account_api import (
    AccountApi,
    Call,
    Work,
    add_actions,
    check_confirmation,
    finish,
    run_on_accounts,
)
from runvitals.cli.account_output import Columns, Listing, Outcome, day, when

_MEMBER = "/teams/{team}/members/{member}"
_ROLE = "viewer, member, admin, or a custom role; default: member"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals team`."""
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
    finish(actions, by_key=("members", "role", "remove"))


def run(arguments: argparse.Namespace) -> int:
    """Run an action on teams or their members; return the exit code."""
    return run_on_accounts(arguments, _CALLS, _WORKS)


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    name = api.send("POST", "/teams", {"name": arguments.team})["name"]
    return Outcome(f"created the team {name} without members", api.teams()[name])


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    teams = api.every("/organisation/teams", "teams")
    return Listing(teams, _TEAMS, "there are no teams; `runvitals team create NAME` creates one")


def _members(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    team = api.team(arguments.team)
    members = api.every("/teams/{team}/members", "members", team=team)
    rows = [{**member, "address": member.get("email")} for member in members]
    return Listing(
        rows, _MEMBERS, f"the team {team} has no members; `runvitals team add {team} USER` adds one"
    )


def _role(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team, user = api.team(arguments.team), api.user(arguments.user)
    kind = "role" if arguments.role in ("viewer", "member", "admin") else "custom_role"
    api.send("PATCH", _MEMBER, {kind: arguments.role}, team=team, member=user)
    return Outcome(f"{user} is {arguments.role} in the team {team} now")


def _remove(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team, user = api.team(arguments.team), api.user(arguments.user)
    api.send("DELETE", _MEMBER, team=team, member=user)
    return Outcome(f"{user} is no longer in the team {team}")


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
    "TEAM": lambda team: team["name"],
    "NAME": lambda team: team["display_name"],
    "MEMBERS": lambda team: team["members"],
    "NEW PROJECTS": lambda team: team["default_visibility"],
    "CREATED": lambda team: day(team["created_ms"]),
    "STATE": lambda team: (
        "active" if team["deleted_ms"] is None else f"in the trash: {day(team['deleted_ms'])}"
    ),
}
_MEMBERS: Columns = {
    "USER": lambda member: member["name"],
    "NAME": lambda member: member["display_name"],
    "E-MAIL": lambda member: member["address"],
    "ROLE": lambda member: member["custom_role"] or member["role"],
    "JOINED": lambda member: day(member["created_ms"]),
    "LAST ACTIVE": lambda member: day(member["last_seen_ms"]),
    "ENDS": lambda member: when(member["expires_ms"]),
}
_WORKS: dict[str, Work] = {
    "create": database_actions.create_team,
    "adopt": database_actions.adopt,
    "add": database_actions.add_member,
}
_CALLS: dict[str, Call] = {
    "create": _create,
    "list": _list,
    "members": _members,
    "role": _role,
    "remove": _remove,
    "delete": _delete,
    "restore": _restore,
}
