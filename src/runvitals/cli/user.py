"""`runvitals user`: the users of a server."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, day
from runvitals.cli.account_store import (
    AccountApi,
    Call,
    Work,
    add_actions,
    check_confirmation,
    finish,
    link,
    notices,
    now_ms,
    read_password,
    run_on_accounts,
    user_named,
)
from runvitals.cli.first_administrator import tell_removed

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.users import UserRow
    from runvitals.server.audit.storage.audit import Actor


def add(subparsers: Any) -> None:
    """Add `runvitals user` to the parser."""
    actions = add_actions(subparsers, "user")
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
    return run_on_accounts(arguments, _WORKS, _CALLS)


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    addresses = (arguments.email,) if arguments.email else ()
    hashed = _hashed(arguments.name, addresses) if arguments.password else None
    if arguments.admin:
        tell_removed(accounts.remove_planted(by, now_ms))
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
        return Outcome(f"created the user {user.name}", user)
    how = f"`runvitals user reset-link {user.name}` prints a link to set a password"
    return Outcome(f"created the user {user.name}; {how}", user)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    rows = [
        {**asdict(row.user), "email": row.address, "teams": list(row.teams)}
        for row in accounts.users.listed()
    ]
    return Listing(rows, _USERS, _NO_USERS)


def _list_at_server(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    return Listing(api.every("/organisation/members", "members"), _USERS, _NO_USERS)


def _set(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    wanted = {
        "org_role": arguments.role,
        "access": arguments.access,
        "billing_role": arguments.billing,
    }
    changes = {name: value for name, value in wanted.items() if value is not None}
    if not changes:
        raise ValueError("nothing to change; expected --role, --access or --billing")
    if arguments.role == "admin":
        from runvitals.server.audit.storage.audit import CLI

        tell_removed(api.database.remove_planted(CLI, now_ms()))
    user = _change(api, arguments, changes)
    shown = f"role {user.org_role}, access {user.access}, billing {user.billing_role}"
    return Outcome(f"{user.name} has now: {shown}", user)


def _change(api: AccountApi, arguments: argparse.Namespace, changes: dict[str, Any]) -> UserRow:
    name = api.user(arguments.name)
    api.send("PATCH", "/organisation/members/{name}", changes, name=name)
    return api.database.users.by_name(name)


def _password(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    from runvitals.server.mail.messages import password_changed

    user = user_named(accounts, arguments.name)
    hashed = _hashed(user.name, tuple(email.address for email in accounts.emails.of_user(user.id)))

    def change() -> None:
        accounts.credentials.set_password(user.id, hashed, by, now_ms, must_change=True)
        notices(accounts, now_ms).to_user(user.id, password_changed(user.name))

    accounts.in_one_transaction(change)
    return Outcome(f"the password of {user.name} was set; {user.name} has to choose another after signing in")


def _reset_link(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    user = user_named(accounts, arguments.name)
    secret = accounts.one_time_tokens.create("reset_password", now_ms, user_id=user.id)
    accounts.audit.record(now_ms, by, "user.password_reset_link", target=user.name)
    path = f"/-/reset#{secret}"
    return Outcome(link(accounts, path), {"path": path})


def _remove_second_factor(
    accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int
) -> Outcome:
    from runvitals.server.mail.messages import second_factor_removed

    user = user_named(accounts, arguments.name)
    asked = accounts.passkeys.asked_after_password(user.id)
    if accounts.credentials.second_factor(user.id) is None and not asked:
        raise LookupError(f"{user.name} has no second factor")

    def change() -> None:
        if asked:
            accounts.passkeys.ask_after_password(user.id, False, (), by, now_ms)
        accounts.credentials.remove_second_factor(user.id, by, now_ms)
        notices(accounts, now_ms).to_user(user.id, second_factor_removed(user.name))

    accounts.in_one_transaction(change)
    return Outcome(f"{user.name} signs in by password alone now")


def _suspend(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user = _change(api, arguments, {"state": "suspended"})
    return Outcome(f"{user.name} is suspended; `runvitals user resume {user.name}` ends that", user)


def _resume(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    user = _change(api, arguments, {"state": "active"})
    return Outcome(f"{user.name} may sign in again", user)


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    name = api.user(arguments.name)
    check_confirmation(arguments, name)
    api.send("DELETE", "/organisation/members/{name}", name=name)
    return Outcome(f"the account {name} is deleted")


def _hashed(name: str, addresses: tuple[str, ...]) -> str:
    from runvitals.server.accounts.passwords import Passwords, password_problem

    password = read_password("Password")
    problem = password_problem(password, name=name, addresses=addresses)
    if problem is not None:
        raise ValueError(problem)
    return Passwords().hash(password)


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
    "create": _create,
    "list": _list,
    "password": _password,
    "reset-link": _reset_link,
    "remove-second-factor": _remove_second_factor,
}
_CALLS: dict[str, Call] = {
    "list": _list_at_server,
    "set": _set,
    "suspend": _suspend,
    "resume": _resume,
    "delete": _delete,
}
