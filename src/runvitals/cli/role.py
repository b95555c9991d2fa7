"""`runvitals role`: the custom roles of a server."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli.account_api import AccountApi, Call, add_actions, finish, run_on_accounts
from runvitals.cli.account_output import Columns, Listing, Outcome


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals role`."""
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
    finish(actions, _CALLS)


def run(arguments: argparse.Namespace) -> int:
    """Create, change, list or delete custom roles; return the exit code."""
    return run_on_accounts(arguments, _CALLS)


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    new = {"name": arguments.name, "base": arguments.base, "permissions": arguments.add or []}
    row = _row(api.send("POST", "/organisation/roles", {**new, "description": arguments.description or ""}))
    return Outcome(f"created the role {_described(row)}", row)


def _set(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    changes = {"permissions": arguments.add, "description": arguments.description}
    sent = {name: value for name, value in changes.items() if value is not None}
    row = _row(api.send("PATCH", "/organisation/roles/{role}", sent, role=arguments.name))
    return Outcome(f"the role is now {_described(row)}; {row['users']} members have it", row)


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    return Listing([_row(role) for role in api.every("/organisation/roles", "roles")], _ROLES, _NO_ROLES)


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    users = api.send("DELETE", "/organisation/roles/{role}", role=arguments.name)["people"]
    return Outcome(f"deleted the role; {users} members have its base role now", {"users": users})


def _row(role: dict[str, Any]) -> dict[str, Any]:
    """A role of a response, with the names that the command's JSON has always had."""
    names = {"permissions": "actions", "people": "users"}
    return {names.get(name, name): value for name, value in role.items()}


def _described(row: dict[str, Any]) -> str:
    added = ", ".join(sorted(row["actions"])) or "nothing"
    return f"{row['name']}: {row['base']}, and in addition {added}"


_ROLES: Columns = {
    "ROLE": lambda role: role["name"],
    "BASE": lambda role: role["base"],
    "ADDS": lambda role: role["actions"],
    "MEMBERS": lambda role: role["users"],
    "TEAMS": lambda role: role["teams"],
    "DESCRIPTION": lambda role: role["description"],
}
_NO_ROLES = "there are no custom roles; `runvitals role create NAME --base viewer` creates one"
_CALLS: dict[str, Call] = {"create": _create, "set": _set, "list": _list, "delete": _delete}
