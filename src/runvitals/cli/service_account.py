"""`runvitals service-account`: the accounts of programs on a server."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli.account_api import (
    AccountApi,
    Call,
    add_actions,
    check_confirmation,
    finish,
    run_on_accounts,
    service_account_path,
)
from runvitals.cli.account_output import Columns, Listing, Outcome, day, when


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals service-account`."""
    actions = add_actions(parser, "A service account has keys and never signs in: see `runvitals key`.")
    create = actions.add_parser("create", help="create a service account of a team")
    create.add_argument("account", metavar="TEAM/NAME")
    create.add_argument("--read-only", action="store_true", help="it may log and change nothing")
    show = actions.add_parser("list", help="list service accounts")
    show.add_argument("team", metavar="TEAM", nargs="?", help="only of this team")
    for name, text in (
        ("disable", "stop the keys of a service account, until `enable`"),
        ("enable", "let the keys of a service account work again"),
        ("delete", "delete a service account with its keys; its runs stay"),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("account", metavar="TEAM/NAME")
    action.add_argument("--confirm", metavar="TEAM/NAME", required=True, help="the name again")
    finish(actions, by_key=_CALLS.keys() - {"create"})


def run(arguments: argparse.Namespace) -> int:
    """Run an action on service accounts; return the exit code."""
    return run_on_accounts(arguments, _CALLS)


def _create(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    team, slash, name = arguments.account.partition("/")
    if not slash:
        raise ValueError(f"invalid service account {arguments.account!r}; expected TEAM/NAME")
    new = {"name": name, "reads_only": arguments.read_only, "scope": None}
    account = api.send("POST", "/teams/{team}/service-accounts", new, team=api.team(team))
    path = service_account_path(account)
    how = f"`runvitals key create NAME --service-account {path}` makes a key"
    return Outcome(f"created the service account {path}; {how}", account)


def _list(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    if arguments.team is None:
        accounts = list(api.service_accounts().values())
    else:
        path, team = "/teams/{team}/service-accounts", api.team(arguments.team)
        accounts = api.every(path, "service_accounts", team=team)
    return Listing(accounts, _ACCOUNTS, _NO_ACCOUNTS)


def _disable(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    _send(api, "PATCH", arguments.account, {"disabled": True})
    return Outcome(f"the keys of {arguments.account} no longer work")


def _enable(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    _send(api, "PATCH", arguments.account, {"disabled": False})
    return Outcome(f"the keys of {arguments.account} work")


def _delete(api: AccountApi, arguments: argparse.Namespace) -> Outcome:
    check_confirmation(arguments, arguments.account)
    _send(api, "DELETE", arguments.account)
    return Outcome(f"deleted {arguments.account} with its keys; its runs stay")


def _send(api: AccountApi, method: str, account: str, body: Any = None) -> None:
    path, names = api.service_account(account)
    api.send(method, path, body, **names)


def _state(account: dict[str, Any]) -> str:
    since_ms = account["disabled_ms"]
    return "active" if since_ms is None else f"disabled since {day(since_ms)}"


_ACCOUNTS: Columns = {
    "ACCOUNT": service_account_path,
    "RUNS GO TO": lambda account: account["default_team"] or account["team"],
    "MAY": lambda account: "read" if account["reads_only"] else "read and log",
    "KEYS": lambda account: account["keys"],
    "LAST USED": lambda account: when(account["last_used_ms"]),
    "CREATED": lambda account: day(account["created_ms"]),
    "STATE": _state,
}
_NO_ACCOUNTS = "there are no service accounts; `runvitals service-account create TEAM/NAME` creates one"
_CALLS: dict[str, Call] = {
    "create": _create,
    "list": _list,
    "disable": _disable,
    "enable": _enable,
    "delete": _delete,
}
