"""`runvitals service-account`: the accounts of programs on a server."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Columns, Listing, Outcome, day, when
from runvitals.cli.account_store import (
    AccountApi,
    Call,
    Work,
    add_actions,
    check_confirmation,
    finish,
    run_on_accounts,
    service_account_named,
    service_account_path,
    team_named,
)

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.teams.storage.service_accounts import ServiceAccountRow


def add(subparsers: Any) -> None:
    """Add `runvitals service-account` to the parser."""
    actions = add_actions(
        subparsers, "service-account", "A service account has keys and never signs in: see `runvitals key`."
    )
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
    finish(actions, _CALLS)


def run(arguments: argparse.Namespace) -> int:
    """Run an action on service accounts; return the exit code."""
    return run_on_accounts(arguments, _WORKS, _CALLS)


def _create(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Outcome:
    team_name, slash, name = arguments.account.partition("/")
    if not slash:
        raise ValueError(f"invalid service account {arguments.account!r}; expected TEAM/NAME")
    team = team_named(accounts, team_name)
    row = accounts.service_accounts.create(name, team.id, by, now_ms, reads_only=arguments.read_only)
    path = service_account_path(row)
    how = f"`runvitals key create NAME --service-account {path}` makes a key"
    return Outcome(f"created the service account {path}; {how}", row)


def _list(accounts: AccountStore, arguments: argparse.Namespace, by: Actor, now_ms: int) -> Listing:
    team = None if arguments.team is None else team_named(accounts, arguments.team).id
    return Listing(accounts.service_accounts.all(team), _ACCOUNTS, _NO_ACCOUNTS)


def _list_at_server(api: AccountApi, arguments: argparse.Namespace) -> Listing:
    if arguments.team is None:
        raise ValueError("expected TEAM: a server lists the service accounts of one team")
    path = "/teams/{team}/service-accounts"
    accounts = api.every(path, "service_accounts", team=arguments.team)
    return Listing([SimpleNamespace(**account) for account in accounts], _ACCOUNTS, _NO_ACCOUNTS)


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
    """Change the service account TEAM/NAME; NAME alone is one of the organisation.

    Raises:
        LookupError: there is no such account; the text names those that there are.
    """
    if api.accounts is not None:
        service_account_named(api.accounts, account)
    team, _, name = account.rpartition("/")
    if team:
        api.send(method, "/teams/{team}/service-accounts/{account}", body, team=team, account=name)
    else:
        api.send(method, "/organisation/service-accounts/{account}", body, account=name)


def _state(row: ServiceAccountRow) -> str:
    return "active" if row.disabled_ms is None else f"disabled since {day(row.disabled_ms)}"


_ACCOUNTS: Columns = {
    "ACCOUNT": service_account_path,
    "RUNS GO TO": lambda row: row.default_team or row.team,
    "MAY": lambda row: "read" if row.reads_only else "read and log",
    "KEYS": lambda row: row.keys,
    "LAST USED": lambda row: when(row.last_used_ms),
    "CREATED": lambda row: day(row.created_ms),
    "STATE": _state,
}
_NO_ACCOUNTS = "there are no service accounts; `runvitals service-account create TEAM/NAME` creates one"
_WORKS: dict[str, Work] = {
    "create": _create,
    "list": _list,
}
_CALLS: dict[str, Call] = {
    "list": _list_at_server,
    "disable": _disable,
    "enable": _enable,
    "delete": _delete,
}
