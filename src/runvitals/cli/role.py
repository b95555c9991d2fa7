"""`runvitals role`: the custom roles of a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, run_on_accounts

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "role", help="create, change and delete the custom roles of a server", description=DESCRIPTION
    )
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


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    from runvitals.accounts.custom_roles import custom_role

    added, description = arguments.add or [], arguments.description or ""
    role = custom_role(arguments.name, arguments.base, added, description)
    actions = [action.value for action in role.added]
    return accounts.roles.create(role.name, role.base.value, actions, role.description, by, now_ms)


def _set(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    from runvitals.accounts.custom_roles import custom_role

    before = accounts.roles.get(arguments.name)
    added = sorted(before.actions) if arguments.add is None else arguments.add
    description = before.description if arguments.description is None else arguments.description
    role = custom_role(before.name, before.base, added, description)
    actions = [action.value for action in role.added]
    return accounts.roles.update(
        before.name, by, now_ms, name=role.name, description=role.description, actions=actions
    )


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return accounts.roles.all()


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    return {"users": accounts.roles.delete(arguments.name, by, now_ms)}


_ACTIONS = {"create": _create, "set": _set, "list": _list, "delete": _delete}
