"""`runvitals user`: the users of a server."""

from __future__ import annotations

import argparse
from typing import Any

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
from runvitals.cli.account_output import Columns, Listing, Outcome, day


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals user`."""
    actions = add_actions(parser)
    create = actions.add_parser("create", help="create a user")
    create.add_argument("name", metavar="NAME", help="letters a to z, digits, - and _; it never changes")
    create.add_argument("--email", metavar="ADDRESS", help="counts as verified")
    create.add_argument("--display-name", metavar="TEXT", default="", help="default: NAME")
    create.add_argument("--admin", action="store_true", help="an administrator of the organisation")
    create.add_argument("--password", action="store_true", help="read a password from the terminal or stdin")
    actions.add_parser("list", help="list users")
    change = actions.add_parser("set", help="change a user's role in the organisation or access to teams")
    change.add_argument("name", metavar="NAME")
    change.add_argument("--role", choices=("member", "admin"), help="in the organisation")
    change.add_argument("--access", choices=("full", "viewer", "none"), help="the most in any team")
    change.add_argument("--billing", choices=("none", "viewer", "admin"))
    for name, text in (
        ("password", "set a user's password, read from the terminal or stdin"),
        ("reset-link", "print a link with which a user sets a new password within an hour"),
        ("remove-second-factor", "let a user who lost phone and recovery codes sign in by password alone"),
        ("suspend", "end a user's sessions and stop their keys, until `resume`"),
        ("resume", "let a suspended user in again"),
    ):
        actions.add_parser(name, help=text).add_argument("name", metavar="NAME")
    delete = actions.add_parser("delete", help="delete an account for good; runs in teams stay")
    delete.add_argument("name", metavar="NAME")
    delete.add_argument("--confirm", metavar="NAME", required=True, help="the name again")
    finish(actions, by_key=("list",))


def run(arguments: argparse.Namespace) -> int:
    """Run an action on users; return the exit code."""
    return run_on_accounts(arguments, _CALLS, _WORKS)


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    return Listing(api.every("/organisation/members", "members"), _USERS, _NO_USERS)


def _set(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    fields = {
        "org_role": arguments.role,
        "access": arguments.access,
        "billing_role": arguments.billing,
    }
    changes = {name: value for name, value in fields.items() if value is not None}
    if not changes:
        raise ValueError("nothing to change; expected --role, --access or --billing")
    user = _change(api, arguments, changes)
    roles = f"role {user['org_role']}, access {user['access']}, billing {user['billing_role']}"
    return Outcome(f"{user['name']} has now: {roles}", user)


def _change(api: AccountApi, arguments: argparse.Namespace, changes: dict[str, Any]) -> dict[str, Any]:
    name = api.user(arguments.name)
    user: dict[str, Any] = api.send("PATCH", "/organisation/members/{name}", changes, name=name)
    return user


def _suspend(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user = _change(api, arguments, {"state": "suspended"})
    name = user["name"]
    return Outcome(f"{name} is suspended; `runvitals user resume {name}` ends that", user)


def _resume(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user = _change(api, arguments, {"state": "active"})
    return Outcome(f"{user['name']} may sign in again", user)


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    name = api.user(arguments.name)
    check_confirmation(arguments, name)
    api.send("DELETE", "/organisation/members/{name}", name=name)
    return Outcome(f"the account {name} is deleted")


_USERS: Columns = {
    "USER": lambda user: user["name"],
    "NAME": lambda user: user["display_name"],
    "E-MAIL": lambda user: user["email"],
    "ROLE": lambda user: user["org_role"],
    "ACCESS": lambda user: user["access"],
    "TEAMS": lambda user: user["teams"],
    "STATE": lambda user: user["state"],
    "LAST ACTIVE": lambda user: day(user["last_seen_ms"]),
}
_NO_USERS = "there are no users; `runvitals user create NAME --admin` creates the first"
_WORKS: dict[str, Work] = {
    "create": database_actions.create_user,
    "set": database_actions.prepare_administrator,
    "password": database_actions.set_password,
    "reset-link": database_actions.make_reset_link,
    "remove-second-factor": database_actions.remove_second_factor,
}
_CALLS: dict[str, Call] = {
    "list": _list,
    "set": _set,
    "suspend": _suspend,
    "resume": _resume,
    "delete": _delete,
}
