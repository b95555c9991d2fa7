"""`runvitals role`: the custom roles of a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome
from runvitals.cli.account_store import DESCRIPTION, Work, add_actions, finish, run_on_accounts
from runvitals.cli.command_list import COMMANDS

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.organisation.storage.roles import RoleRow


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("role", help=COMMANDS["role"], description=DESCRIPTION)
    actions = add_actions(parser)
    create = actions.add_parser("create", help="create a role")
    create.add_argument("name", metavar="NAME")
    create.add_argument("--base", choices=("viewer", "member"), required=True, help="what it adds to")
    change = actions.add_parser(
        "set", help="change a role, for everybody who has it; what is left out does not change"
    )
    change.add_argument("name", metavar="NAME")
    for action in (create, change):
        action.add_argument(
            "--add",
            metavar="PERMISSION",
            action="append",
            help="such as run:update; may be repeated; all that it adds to its base",
        )
        action.add_argument("--description", metavar="TEXT")
    actions.add_parser("list", help="list roles")
    delete = actions.add_parser("delete", help="delete a role; who has it keeps its base role")
    delete.add_argument("name", metavar="NAME")
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.access.custom_roles import custom_role

    added, description = arguments.add or [], arguments.description or ""
    role = custom_role(arguments.name, arguments.base, added, description)
    actions = [action.value for action in role.added]
    row = accounts.roles.create(role.name, role.base.value, actions, role.description, by, now_ms)
    return Outcome(f"created the role {_described(row)}", row)


def _set(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.access.custom_roles import custom_role

    before = accounts.roles.get(arguments.name)
    added = sorted(before.actions) if arguments.add is None else arguments.add
    description = before.description if arguments.description is None else arguments.description
    role = custom_role(before.name, before.base, added, description)
    actions = [action.value for action in role.added]
    row = accounts.roles.update(
        before.name, by, now_ms, name=role.name, description=role.description, actions=actions
    )
    return Outcome(f"the role is now {_described(row)}; {row.users} members have it", row)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    empty = "there are no custom roles; `runvitals role create NAME --base viewer` creates one"
    return Listing(accounts.roles.all(), _ROLES, empty)


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    users = accounts.roles.delete(arguments.name, by, now_ms)
    return Outcome(f"deleted the role; {users} members have its base role now", {"users": users})


def _described(row: RoleRow) -> str:
    added = ", ".join(sorted(row.actions)) or "nothing"
    return f"{row.name}: {row.base}, and in addition {added}"


_ROLES: Columns = {
    "ROLE": lambda role: role.name,
    "BASE": lambda role: role.base,
    "ADDS": lambda role: role.actions,
    "MEMBERS": lambda role: role.users,
    "TEAMS": lambda role: role.teams,
    "DESCRIPTION": lambda role: role.description,
}
_ACTIONS: dict[str, Work] = {"create": _create, "set": _set, "list": _list, "delete": _delete}
