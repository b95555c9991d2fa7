"""`runvitals team`: the teams of a server, their members and service accounts."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, run_on_accounts

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor

_ROLE = "viewer, member, admin, or a custom role; default: member"


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "team",
        help="create and remove the teams of a server, and change their members",
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
    service = actions.add_parser("service-account", help="create an account for a program, such as CI")
    service.add_argument("team", metavar="TEAM")
    service.add_argument("account", metavar="NAME")
    service.add_argument("--read-only", action="store_true", help="it may log and change nothing")
    delete = actions.add_parser("delete", help="move a team and all it owns to the trash")
    delete.add_argument("team", metavar="TEAM")
    delete.add_argument("--confirm", metavar="TEAM", required=True, help="the name again")
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    first = None if arguments.admin is None else accounts.users.by_name(arguments.admin).id
    team = accounts.teams.create(arguments.team, by, now_ms, administrator=first)
    if arguments.adopt:
        accounts.teams.adopt(team.id, by, now_ms)
    return team


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.teams.all()


def _members(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.members.of_team(arguments.team)


def _adopt(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    team = accounts.teams.by_name(arguments.team)
    return {"projects": accounts.teams.adopt(team.id, by, now_ms)}


def _add(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.members.add(arguments.team, arguments.user, arguments.role, by, now_ms)
    return None


def _role(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.members.set_role(arguments.team, arguments.user, arguments.role, by, now_ms)
    return None


def _remove(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.members.remove(arguments.team, arguments.user, by, now_ms)
    return None


def _service_account(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    team = accounts.teams.by_name(arguments.team)
    return accounts.service_accounts.create(
        arguments.account, team.id, by, now_ms, reads_only=arguments.read_only
    )


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    if arguments.confirm != arguments.team:
        raise ValueError(f"--confirm {arguments.confirm!r} is not the name {arguments.team!r}")
    accounts.teams.delete(arguments.team, by, now_ms)
    return None


def _restore(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    accounts.teams.restore(arguments.team, by, now_ms)
    return None


_ACTIONS = {
    "create": _create,
    "list": _list,
    "members": _members,
    "adopt": _adopt,
    "add": _add,
    "role": _role,
    "remove": _remove,
    "service-account": _service_account,
    "delete": _delete,
    "restore": _restore,
}
