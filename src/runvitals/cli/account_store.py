"""The common part of `user`, `team`, `key` and `invite`: they work on the metadata store of a server.

A user who can write to that database may do everything, so the commands ask for no sign-in. Every change is
in the audit log, made by `cli`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from runvitals.cli.formatting import inert, moment, table
from runvitals.cli.server import add_store, store_locations

if TYPE_CHECKING:
    from runvitals.store.metadata.accounts.account_store import AccountStore
    from runvitals.store.metadata.accounts.audit import Actor

DESCRIPTION = "Works on the server's metadata store, also while the server is running."

Work = Callable[["AccountStore", argparse.Namespace, "Actor", int], object]


def add_actions(parser: argparse.ArgumentParser) -> Any:
    """The subcommands of a command; finish each with `finish`."""
    return parser.add_subparsers(dest="action", metavar="ACTION", required=True)


def finish(actions: Any) -> None:
    """Add the options that every subcommand has."""
    for action in actions.choices.values():
        action.add_argument("--json", action="store_true", help="print JSON")
        add_store(action)


def run_on_accounts(arguments: argparse.Namespace, work: Work) -> int:
    """Run `work` on the accounts, and print what it returns: rows, one row, a text, or nothing."""
    try:
        from runvitals.store.errors import MetadataStoreError
        from runvitals.store.metadata import open_metadata_store
        from runvitals.store.metadata.accounts.audit import CLI
    except ModuleNotFoundError as error:
        print(f"runvitals: accounts require {error.name}: pip install 'runvitals[server]'", file=sys.stderr)
        return 1
    try:
        with open_metadata_store(store_locations(arguments)[1]) as metadata_store:
            result = work(metadata_store.accounts, arguments, CLI, time.time_ns() // 1_000_000)
    except MetadataStoreError as error:
        raise OSError(str(error)) from None
    if arguments.json:
        print(json.dumps(_as_json(result), indent=1))
    elif result is not None:
        print(_as_text(result))
    return 0


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


def _as_json(result: object) -> Any:
    if isinstance(result, (list, tuple)):
        return [_as_json(row) for row in result]
    if isinstance(result, (frozenset, set)):
        return sorted(result)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = dataclasses.fields(result)
        return {field.name: _as_json(getattr(result, field.name)) for field in fields}
    if isinstance(result, dict):
        return {name: _as_json(value) for name, value in result.items()}
    return result


def _as_text(result: object) -> str:
    if isinstance(result, list):
        return _rows(result)
    if isinstance(result, dict):
        return "\n".join(f"{name}: {_cell(name, value)}" for name, value in result.items())
    if dataclasses.is_dataclass(result):
        return _rows([result])
    return inert(str(result))


def _rows(rows: Sequence[Any]) -> str:
    if not rows:
        return "none"
    names = list(_as_json(rows[0]))
    header = [name.removesuffix("_ms").replace("_", " ").upper() for name in names]
    lines: Iterable[list[str]] = ([_cell(name, getattr(row, name)) for name in names] for row in rows)
    return table([header, *lines])


def _cell(name: str, value: object) -> str:
    if value is None or value in ("", frozenset()):
        return "-"
    if name.endswith("_ms") and isinstance(value, int):
        return moment(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, frozenset):
        return ", ".join(inert(str(item)) for item in sorted(value))
    return inert(str(value))
