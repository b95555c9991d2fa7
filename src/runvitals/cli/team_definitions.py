"""Definitions of a team, and files of them, for `runvitals alerts` and `runvitals automations`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from runvitals.cli.formatting import inert

if TYPE_CHECKING:
    from runvitals.readers.servers.connection import ApiConnection


def add_server(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the server."""
    parser.add_argument("--server", metavar="URL", help="default: the only server with a stored key")


def add_listings(actions: Any, listings: Iterable[tuple[str, str]]) -> None:
    """Add subcommands that list something of a team: the name and the help of each."""
    for name, text in listings:
        listed = actions.add_parser(name, help=text)
        listed.add_argument("team", metavar="TEAM")
        listed.add_argument("--json", action="store_true", help="print JSON, for scripts")


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[ApiConnection]:
    """A connection to the server of `--server`."""
    from runvitals.base import stored_keys
    from runvitals.readers.servers.connection import ApiConnection

    url = stored_keys.known_server(arguments.server, os.environ)
    server = ApiConnection(url, stored_keys.token(url, os.environ), 60)
    try:
        yield server
    finally:
        server.close()


def every(
    get: Callable[[str, list[tuple[str, Any]]], Any],
    path: str,
    what: str,
    parameters: Iterable[tuple[str, Any]] = (),
) -> list[dict[str, Any]]:
    """Return all entries of a list of the API, page by page.

    Args:
        get: calls the API with a path and parameters.
        what: the name of the list in the response.
    """
    entries: list[dict[str, Any]] = []
    after = None
    while True:
        page = get(path, [*parameters, ("limit", 100), ("after", after)])
        entries += page[what]
        after = page["next"]
        if after is None:
            return entries


def delete_others(
    server: ApiConnection, path: str, existing: Mapping[str, Mapping[str, Any]], names: Iterable[str]
) -> None:
    """Delete what a file does not have, by name."""
    for name in existing.keys() - set(names):
        server.send("DELETE", f"{path}/{existing[name]['id']}", None)
        print(f"deleted {inert(name)}")


def read_definitions(path: str, kind: str) -> list[dict[str, Any]]:
    """The rules of a file, or its automations.

    Args:
        kind: what the list is called in the file: `rule` or `automation`.

    Raises:
        ValueError: it is neither TOML, YAML nor JSON, or has no list of them with different names.
        OSError: it could not be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = _READERS.get(os.path.splitext(path)[1], _toml)(file.read())
    except ValueError as error:  # errors of TOML, JSON and UTF-8 are ValueErrors
        raise ValueError(f"{path}: {error}") from None
    rules = content.get(kind) if isinstance(content, dict) else None
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise ValueError(f"{path}: expected a list: a table [[{kind}]] each")
    names: set[str] = set()
    for number, definition in enumerate(rules, 1):
        name = definition.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"{path}: {kind} {number} has no name")
        if name in names:
            raise ValueError(f"{path}: {kind} {number} has the name {name!r} of another {kind}")
        names.add(name)
    return rules


def send_definition(
    server: ApiConnection, method: str, path: str, body: Mapping[str, Any], where: str
) -> Any:
    """Send a rule or an automation of a file.

    Args:
        where: the file and the name, for errors.

    Raises:
        ValueError: the server rejected it.
    """
    from runvitals.readers.servers.connection import ServerError

    try:
        return server.send(method, path, body)
    except ServerError as error:
        raise ValueError(f"{where}: {field_errors(error.fields) or error}") from error


def field_errors(fields: Mapping[str, str]) -> str:
    """Return the errors on one line, each after the name of its field."""
    return "; ".join(f"{inert(name)}: {inert(text)}" for name, text in fields.items())


def _toml(text: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ValueError("YAML needs PyYAML: pip install pyyaml; or write the rules as TOML") from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        position = "" if mark is None else f" (at line {mark.line + 1}, column {mark.column + 1})"
        raise ValueError(f"{getattr(error, 'problem', None) or 'invalid YAML'}{position}") from None


_READERS: Final[dict[str, Callable[[str], Any]]] = {".json": json.loads, ".yaml": _yaml, ".yml": _yaml}
