"""The common part of the commands about accounts: they call the routes of the API that do the same.

The routes run in the process of the command, on the server's metadata store: a user who can write to that
database may do everything, so no sign-in is needed, and the changes are in the audit log, made by `cli`. What
a key may do can be done at a server too, with `--server`.

What the API has no route for works on the database itself: lists of all that is stored; users, members and
links that nobody was sent by mail; passwords; keys; what is without accounts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runvitals.cli.account_output import Listing, Outcome, expected, printed
from runvitals.cli.command_list import COMMANDS
from runvitals.cli.store_options import add_store, existing_metadata_address
from runvitals.cli.team_definitions import connected, every

if TYPE_CHECKING:
    from runvitals.readers.servers.connection import ApiConnection
    from runvitals.server.account_store import AccountStore
    from runvitals.server.accounts.storage.users import UserRow
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.mail.notices import Notices
    from runvitals.server.teams.storage.service_accounts import ServiceAccountRow
    from runvitals.server.teams.storage.teams import TeamRow

DESCRIPTION = "Works on the server's metadata store, also while the server is running."

Work = Callable[["AccountStore", argparse.Namespace, "Actor", int], Listing | Outcome]
"""An action that works on the database itself."""
Call = Callable[["AccountApi", argparse.Namespace], Listing | Outcome]
"""An action that calls the API."""
_NO_CALLS: Mapping[str, Call] = MappingProxyType({})


class AccountApi:
    """The routes of the API about accounts.

    Args:
        send: as `RoutesInProcess.send`.

    Attributes:
        accounts: the accounts that the routes in this process work on; None: the routes are a server's.
    """

    def __init__(
        self,
        send: Callable[[str, str, Mapping[str, str], Any], Any],
        accounts: AccountStore | None = None,
        server: ApiConnection | None = None,
    ) -> None:
        self._send = send
        self.accounts = accounts
        self._server = server

    def send(self, method: str, path: str, body: Any = None, **names: str) -> Any:
        """Return the JSON of a response, None if it has no content.

        Args:
            path: below `/api/v1`, with the names of parameters in braces.
            names: the values of these parameters.
        """
        return self._send(method, path, names, body)

    def every(
        self, path: str, what: str, parameters: Sequence[tuple[str, str]] = (), **names: str
    ) -> list[dict[str, Any]]:
        """Return all entries of a list of a server.

        Args:
            what: the name of the list in the responses.
            path, names: as of `send`.
        """
        from runvitals.readers.servers.connection import path_with

        assert self._server is not None
        return every(self._server, path_with(path, names), what, parameters)

    @property
    def database(self) -> AccountStore:
        """The accounts, for an action that cannot call a server."""
        assert self.accounts is not None
        return self.accounts

    def user(self, name: str) -> str:
        """Return the name of a user as it is stored, which a server checks itself; or raise LookupError."""
        return name if self.accounts is None else user_named(self.accounts, name).name

    def team(self, name: str, *, in_trash: bool = False) -> str:
        """Return the name of a team as it is stored: see `user` and `team_named`."""
        return name if self.accounts is None else team_named(self.accounts, name, in_trash=in_trash).name


def add_actions(subparsers: Any, command: str, about: str = "") -> Any:
    """Add a command to the parser; return its subcommands, to finish with `finish`."""
    parser = subparsers.add_parser(
        command, help=COMMANDS[command], description=f"{about} {DESCRIPTION}".lstrip()
    )
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def finish(actions: Any, by_key: Collection[str] = ()) -> None:
    """Add the options that every subcommand has.

    Args:
        by_key: the subcommands that call only what a key may do, and so can call a server.
    """
    for name, action in actions.choices.items():
        action.add_argument("--json", action="store_true", help="print JSON, for scripts")
        add_store(action)
        action.set_defaults(server=None)
        if name in by_key:
            action.add_argument(
                "--server",
                metavar="URL",
                help="ask this server, with the stored key and its rights, instead of using its store",
            )


def run_on_accounts(
    arguments: argparse.Namespace, works: Mapping[str, Work], calls: Mapping[str, Call] = _NO_CALLS
) -> int:
    """Run the action of the arguments, and print its result.

    Args:
        works: actions on the database; without `--server`, before those of the same name that call the API.
    """
    work, call = works.get(arguments.action), calls.get(arguments.action)
    if arguments.server is not None and call is not None:
        with connected(arguments) as server:
            result = call(AccountApi(server.send_to, server=server), arguments)
    else:
        result = _run_on_store(arguments, work, call)
    print(printed(result, arguments.json))
    return 0


def _run_on_store(arguments: argparse.Namespace, work: Work | None, call: Call | None) -> Listing | Outcome:
    from runvitals.server.audit.storage.audit import CLI
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.store.errors import MetadataStoreError

    try:
        with open_metadata_store(existing_metadata_address(arguments)) as metadata_store:
            accounts = metadata_store.accounts
            if work is not None:
                return work(accounts, arguments, CLI, now_ms())
            from runvitals.server.in_process import RoutesInProcess

            assert call is not None
            with closing(RoutesInProcess(metadata_store, now_ms)) as routes:
                return call(AccountApi(routes.send, accounts), arguments)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None


def now_ms() -> int:
    """Return the time now, ms UTC."""
    return time.time_ns() // 1_000_000


def notices(accounts: AccountStore, now_ms: int) -> Notices:
    """Return what sends mail to users about an action on the database: a server delivers it."""
    from runvitals.server.mail.notices import Notices

    return Notices(accounts, accounts.mail_drafts, now_ms)


def user_named(accounts: AccountStore, name: str) -> UserRow:
    """Return a user by name; a LookupError names the users that there are."""
    from runvitals.store.errors import NotFound

    try:
        return accounts.users.by_name(name)
    except NotFound as error:
        names = (row.user.name for row in accounts.users.listed())
        raise LookupError(f"{error}; {expected(names, 'runvitals user list')}") from None


def team_named(accounts: AccountStore, name: str, *, in_trash: bool = False) -> TeamRow:
    """Return a team by name, from the trash or else from outside it; a LookupError names those there."""
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
    """Raise ValueError if `--confirm` is not the name."""
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
