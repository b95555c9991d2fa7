"""The common part of the commands about accounts, which are clients of the API.

With `--server` a command calls a server, with the rights of the stored key. Without it, it calls the same
routes in its own process, on the server's metadata store: a user who can write to that database may do
everything, so no sign-in is needed, and the changes are in the audit log, made by `cli`. What has no route,
because nobody may do it over the network, is in `database_actions`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runvitals.cli import WrongUsage
from runvitals.cli.account_output import Listing, Outcome, expected, printed
from runvitals.cli.store_options import add_store, existing_metadata_address
from runvitals.cli.team_definitions import connected, every

if TYPE_CHECKING:
    from runvitals.server.account_store import AccountStore
    from runvitals.server.audit.storage.audit import Actor
    from runvitals.server.metadata_store import MetadataStore

DESCRIPTION = "Works on the server's metadata store, also while the server is running."

Work = Callable[["AccountStore", argparse.Namespace, "Actor", int], Outcome | None]
"""An action on the database itself; None: the API is to be called."""
Call = Callable[["AccountApi", argparse.Namespace], Listing | Outcome]
"""An action that calls the API."""
_NO_WORKS: Mapping[str, Work] = MappingProxyType({})
Parameters = Iterable[tuple[str, Any]]


class AccountApi:
    """The routes of the API about accounts.

    Args:
        call: sends a request: method, path, names in the path, body, parameters of the query.
        in_process: whether the routes are in this process, and no server checks names of its own accord.
    """

    def __init__(
        self, call: Callable[[str, str, Mapping[str, str], Any, Parameters], Any], *, in_process: bool = False
    ) -> None:
        self._call = call
        self.in_process = in_process

    def send(self, method: str, path: str, body: Any = None, **names: str) -> Any:
        """Return the JSON of a response, None if it has no content.

        Args:
            path: below `/api/v1`, with the names of parameters in braces.
            names: the values of these parameters.
        """
        return self._call(method, path, names, body, ())

    def get(self, path: str, parameters: Parameters = (), **names: str) -> Any:
        """Return what a GET answers. `parameters`: of the query; None is left out."""
        return self._call("GET", path, names, None, parameters)

    def every(self, path: str, what: str, parameters: Parameters = (), **names: str) -> list[dict[str, Any]]:
        """Return all entries of a list.

        Args:
            what: the name of the list in the responses.
            path, names: as of `send`.
        """
        return every(lambda path, page: self.get(path, page, **names), path, what, parameters)

    def teams(self, *, in_trash: bool = False) -> dict[str, dict[str, Any]]:
        """Return the teams in the trash, or those outside it, by name."""
        teams = self.every("/organisation/teams", "teams")
        return {team["name"]: team for team in teams if (team["deleted_ms"] is not None) == in_trash}

    def service_accounts(self) -> dict[str, dict[str, Any]]:
        """Return all service accounts by TEAM/NAME; those of the organisation by NAME."""
        accounts = self.every("/organisation/service-accounts", "service_accounts")
        for team in self.teams():
            accounts += self.every("/teams/{team}/service-accounts", "service_accounts", team=team)
        return {service_account_path(account): account for account in accounts}

    def user(self, name: str) -> str:
        """Return the name of a user as it is stored, which a server checks itself; or raise LookupError."""
        if not self.in_process:
            return name
        users = [user["name"] for user in self.every("/organisation/members", "members")]
        return _existing_name(name.lower(), users, f"there is no user {name!r}", "runvitals user list")

    def team(self, name: str, *, in_trash: bool = False) -> str:
        """Return the name of a team as it is stored: see `user`. `in_trash`: of one in the trash."""
        if not self.in_process:
            return name
        where = " in the trash" if in_trash else ""
        teams = self.teams(in_trash=in_trash)
        return _existing_name(name.lower(), teams, f"there is no team {name!r}{where}", "runvitals team list")

    def service_account(self, path: str) -> tuple[str, dict[str, str]]:
        """Return the address of the service account TEAM/NAME, or NAME of the organisation, and its names.

        Raises:
            LookupError: there is no such account; the text names those that there are.
        """
        if self.in_process:
            error = f"there is no service account {path!r}"
            _existing_name(path, self.service_accounts(), error, "runvitals service-account list")
        team, _, name = path.rpartition("/")
        if team:
            return "/teams/{team}/service-accounts/{account}", {"team": team, "account": name}
        return "/organisation/service-accounts/{account}", {"account": name}

    def link(self, path: str) -> str:
        """Return a path of the server as a link, if the server knows its own address."""
        if not self.in_process:
            return path
        return str(self.get("/organisation/settings")["settings"]["url"]["value"] or "").rstrip("/") + path


def _existing_name(name: str, names: Collection[str], error: str, command: str) -> str:
    """Return a name that there is. `command`: lists all of them, where the error cannot."""
    if name not in names:
        raise LookupError(f"{error}; {expected(names, command)}")
    return name


def service_account_path(account: Mapping[str, Any]) -> str:
    """How a service account is named on the command line."""
    return str(account["name"] if account["team"] is None else f"{account['team']}/{account['name']}")


def add_actions(parser: argparse.ArgumentParser, about: str = "") -> Any:
    """Describe a command; return its subcommands, to finish with `finish`."""
    parser.description = f"{about} {DESCRIPTION}".lstrip()
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
    arguments: argparse.Namespace, calls: Mapping[str, Call], works: Mapping[str, Work] = _NO_WORKS
) -> int:
    """Run the action of the arguments, and print its result. `works`: what to do on the database first."""
    if arguments.server is not None:
        with connected(arguments) as server:
            result = calls[arguments.action](AccountApi(server.call), arguments)
    else:
        result = _run_on_store(arguments, calls, works)
    print(printed(result, arguments.json))
    return 0


def _run_on_store(
    arguments: argparse.Namespace, calls: Mapping[str, Call], works: Mapping[str, Work]
) -> Listing | Outcome:
    with opened_metadata(arguments) as metadata_store:
        work = works.get(arguments.action)
        if work is not None:
            from runvitals.server.audit.storage.audit import CLI

            done = work(metadata_store.accounts, arguments, CLI, now_ms())
            if done is not None:
                return done
        with api_in_process(metadata_store) as api:
            return calls[arguments.action](api, arguments)


@contextmanager
def opened_metadata(arguments: argparse.Namespace) -> Iterator[MetadataStore]:
    """Open the metadata store of the arguments; an OSError says what is wrong with it."""
    from runvitals.server.metadata_store import open_metadata_store
    from runvitals.store.errors import MetadataStoreError

    try:
        with open_metadata_store(existing_metadata_address(arguments)) as metadata_store:
            yield metadata_store
    except MetadataStoreError as error:
        raise OSError(str(error)) from None


@contextmanager
def api_in_process(metadata_store: MetadataStore) -> Iterator[AccountApi]:
    """The routes, in this process."""
    from runvitals.server.in_process import RoutesInProcess

    with closing(RoutesInProcess(metadata_store, now_ms)) as routes:
        yield AccountApi(routes.send, in_process=True)


def now_ms() -> int:
    """Return the time now, ms UTC."""
    return time.time_ns() // 1_000_000


def check_confirmation(arguments: argparse.Namespace, name: str) -> None:
    """Raise ValueError if `--confirm` is not the name."""
    if arguments.confirm != name:
        raise WrongUsage(f"--confirm {arguments.confirm!r} is not the name {name!r}")
