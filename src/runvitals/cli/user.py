"""`runvitals user`: the users of a server."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_store import DESCRIPTION, add_actions, finish, read_password, run_on_accounts

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "user",
        help="create, change and remove the users of a server",
        description=DESCRIPTION,
    )
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
    finish(actions)


def run(arguments: argparse.Namespace) -> int:
    return run_on_accounts(arguments, _ACTIONS[arguments.action])


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    addresses = (arguments.email,) if arguments.email else ()
    hashed = _hashed(arguments.name, addresses) if arguments.password else None
    user = accounts.users.create(
        arguments.name,
        by,
        now_ms,
        display_name=arguments.display_name,
        address=arguments.email,
        verified=True,
        org_role="admin" if arguments.admin else "member",
    )
    if hashed is not None:
        accounts.credentials.set_password(user.id, hashed, by, now_ms)
    return user


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    users, after = [], 0
    while page := accounts.users.page(after):
        users += page
        after = page[-1].id
    return users


def _set(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    wanted = {
        "org_role": arguments.role,
        "access": arguments.access,
        "billing_role": arguments.billing,
    }
    changes = {name: value for name, value in wanted.items() if value is not None}
    if not changes:
        raise ValueError("nothing to change; expected --role, --access or --billing")
    return accounts.users.update(accounts.users.by_name(arguments.name).id, by, now_ms, **changes)


def _password(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    user = accounts.users.by_name(arguments.name)
    addresses = tuple(email.address for email in accounts.emails.of_user(user.id))
    accounts.credentials.set_password(user.id, _hashed(user.name, addresses), by, now_ms, must_change=True)
    return None


def _reset_link(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    user = accounts.users.by_name(arguments.name)
    secret = accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
    accounts.audit.record(now_ms, by, "user.password_reset_link", target=user.name)
    return {"path": f"/-/reset#{secret}"}


def _remove_second_factor(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> object:
    user = accounts.users.by_name(arguments.name)
    if accounts.credentials.second_factor(user.id) is None:
        raise LookupError(f"{user.name} has no second factor")
    accounts.credentials.remove_second_factor(user.id, by, now_ms)
    return None


def _set_state(state: str) -> Any:
    def work(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
        user = accounts.users.by_name(arguments.name)
        return accounts.users.update(user.id, by, now_ms, state=state)

    return work


def _delete(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> object:
    if arguments.confirm != arguments.name:
        raise ValueError(f"--confirm {arguments.confirm!r} is not the name {arguments.name!r}")
    accounts.users.delete(accounts.users.by_name(arguments.name).id, by, now_ms)
    return None


def _hashed(name: str, addresses: tuple[str, ...]) -> str:
    try:
        from runvitals.accounts.passwords import Passwords, password_problem
    except ModuleNotFoundError as error:
        raise OSError(f"passwords require {error.name}: pip install 'runvitals[server]'") from None
    password = read_password("Password")
    problem = password_problem(password, name=name, addresses=addresses)
    if problem is not None:
        raise ValueError(problem)
    return Passwords().hash(password)


_ACTIONS = {
    "create": _create,
    "list": _list,
    "set": _set,
    "password": _password,
    "reset-link": _reset_link,
    "remove-second-factor": _remove_second_factor,
    "suspend": _set_state("suspended"),
    "resume": _set_state("active"),
    "delete": _delete,
}
