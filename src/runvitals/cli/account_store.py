"""The common part of the commands about accounts: they work on the metadata store of a server.

A user who can write to that database may do everything, so the commands ask for no sign-in. Every change is
in the audit log, made by `cli`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Listing, Outcome, expected, printed
from runvitals.cli.store_options import add_store, existing_metadata_address

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.users import UserRow
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.teams.storage.service_accounts import ServiceAccountRow
    from runvitals.server.teams.storage.teams import TeamRow

DESCRIPTION = "Works on the server's metadata store, also while the server is running."

Work = Callable[["AccountStore", argparse.Namespace, "Actor", int], Listing | Outcome]


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """The subcommands of a command; finish each with `finish`."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def finish(actions: Any) -> None:
    """Add the options that every subcommand has."""
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON, for scripts")
        add_store(action)


def run_on_accounts(arguments: argparse.Namespace, work: Work) -> int:
    """Run `work` on the accounts, and print its result."""
    from runvitals.server.audit.storage.audit import CLI
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.store.errors import MetadataStoreError

    try:
        with open_metadata_store(existing_metadata_address(arguments)) as metadata_store:
            result = work(metadata_store.accounts, arguments, CLI, time.time_ns() // 1_000_000)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    print(printed(result, arguments.json))
    return 0


def user_named(accounts: AccountStore, name: str) -> UserRow:
    """Raises:
    LookupError: there is no such user; the text names those that there are.
    """
    from runvitals.store.errors import NotFound

    try:
        return accounts.users.by_name(name)
    except NotFound as error:
        names = (row.user.name for row in accounts.users.listed())
        raise LookupError(f"{error}; {expected(names, 'runvitals user list')}") from None


def team_named(accounts: AccountStore, name: str, *, in_trash: bool = False) -> TeamRow:
    """Args:
        in_trash: whether it has to be in the trash; if not, it must not be.

    Raises:
        LookupError: there is no such team; the text names those that there are.
    """
    teams = {row.name: row for row in accounts.teams.all() if (row.deleted_ms is not None) == in_trash}
    found = teams.get(name.lower())
    if found is None:
        where = " in the trash" if in_trash else ""
        raise LookupError(f"there is no team {name!r}{where}; {expected(teams, 'runvitals team list')}")
    return found


def service_account_named(accounts: AccountStore, path: str) -> ServiceAccountRow:
    """The service account TEAM/NAME; NAME alone is one of the organisation.

    Raises:
        LookupError: there is no such account; the text names those that there are.
    """
    known = {service_account_path(row): row for row in accounts.service_accounts.all()}
    if path not in known:
        names = expected(known, "runvitals service-account list")
        raise LookupError(f"there is no service account {path!r}; {names}")
    return known[path]


def service_account_path(row: ServiceAccountRow) -> str:
    """How a service account is named on the command line."""
    return row.name if row.team is None else f"{row.team}/{row.name}"


def link(accounts: AccountStore, path: str) -> str:
    """A path of the server as a link, if the server knows its own address."""
    return str(accounts.settings.all().get("url") or "").rstrip("/") + path


def check_confirmation(arguments: argparse.Namespace, name: str) -> None:
    """Raises:
    ValueError: `--confirm` is not the name.
    """
    if arguments.confirm != name:
        raise ValueError(f"--confirm {arguments.confirm!r} is not the name {name!r}")


def read_password(prompt: str) -> str:
    """A password from the terminal, or the first line of stdin: never an argument, which `ps` shows.

    Raises:
        ValueError: the two that were typed differ.
    """
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    import getpass

    password = getpass.getpass(f"{prompt}: ")
    if getpass.getpass("The same again: ") != password:
        raise ValueError("the two passwords differ")
    return password
