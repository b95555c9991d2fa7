"""`runvitals registry`: read and change the registries of a server."""

from __future__ import annotations

import argparse
import json
import os
from contextlib import closing
from typing import Any

from runvitals.cli import WrongUsage
from runvitals.cli.artifact import add_download
from runvitals.cli.formatting import inert, moment, table

_VERSION = "team/registry/collection[:alias]; the alias may be a version: v3"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals registry`."""
    parser.description = (
        "Collections of models, datasets and other artifacts of a team. Works with the server of "
        "--server, RUNVITALS_SERVER or `runvitals login`."
    )
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = commands.add_parser("ls", help="list registries, collections, or the versions of a collection")
    listed.add_argument("name", metavar="NAME", nargs="?", help="team/registry[/collection]; default: all")
    get = commands.add_parser("get", help="download a version")
    get.add_argument("name", metavar="NAME", help=_VERSION)
    add_download(get)
    link = commands.add_parser("link", help="link a version of an artifact to a collection")
    link.add_argument("artifact", metavar="ARTIFACT", help="[team/]project/name[:alias]")
    link.add_argument("name", metavar="COLLECTION", help="team/registry/collection")
    link.add_argument("--alias", action="append", default=[], help="that the version gets there")
    unlink = commands.add_parser("unlink", help="remove a version from a collection")
    unlink.add_argument("name", metavar="NAME", help=_VERSION)
    alias = commands.add_parser("alias", help="let an alias name a version")
    alias.add_argument("name", metavar="NAME", help=_VERSION)
    alias.add_argument("alias", metavar="ALIAS")
    alias.add_argument("--remove", action="store_true", help="remove it instead")
    alias.add_argument("--request", metavar="WHY", nargs="?", const="", help="ask for it, if it is protected")
    requests = commands.add_parser("requests", help="list the open requests for protected aliases")
    requests.add_argument("name", metavar="NAME", help="team/registry")
    for listing in (listed, requests):
        listing.add_argument("--json", action="store_true", help="print JSON, for scripts")
    decide = commands.add_parser("decide", help="decide about a request")
    decide.add_argument("name", metavar="NAME", help="team/registry")
    decide.add_argument("number", metavar="NUMBER", type=int)
    decide.add_argument("decision", choices=("approve", "decline", "withdraw"))
    decide.add_argument("--text", default="", help="why")
    for command in (listed, get, link, unlink, alias, requests, decide):
        command.add_argument(
            "--server", metavar="URL", help="default: RUNVITALS_SERVER, or that of the login"
        )


def run(arguments: argparse.Namespace) -> int:
    """Read or change a registry; return 0."""
    from runvitals.base import stored_keys
    from runvitals.readers.servers.connection import ApiConnection

    server = stored_keys.known_server(arguments.server, os.environ)
    actions = {
        "ls": _list,
        "get": _get,
        "link": _link,
        "unlink": _unlink,
        "alias": _alias,
        "requests": _requests,
        "decide": _decide,
    }
    with closing(ApiConnection(server, stored_keys.token(server, os.environ), 30.0)) as connection:
        actions[arguments.action](connection, arguments)
    return 0


def _list(connection: Any, arguments: argparse.Namespace) -> None:
    from runvitals.readers.servers.registries import registry_names

    if arguments.name is None:
        listed = list(registry_names(connection))
        rows = [
            [f"{row['entity']}/{row['name']}", str(row["collections"]), str(row["versions"])]
            for row in listed
        ]
        _print(["REGISTRY", "COLLECTIONS", "VERSIONS"], rows, listed, arguments)
        return
    registry, collection, _ = _parts(connection, arguments.name)
    if not collection:
        listed = list(registry.collections())
        rows = [[row["name"], row["type"], _aliases(row["aliases"]), str(row["versions"])] for row in listed]
        _print(["COLLECTION", "TYPE", "ALIASES", "VERSIONS"], rows, listed, arguments)
        return
    listed = list(registry.versions(collection))
    rows = [
        [
            f"v{row['version']}",
            ", ".join(row["aliases"]),
            f"{row['bytes']:,}",
            row["author"],
            moment(row["created_ms"]),
        ]
        for row in listed
    ]
    _print(["VERSION", "ALIASES", "BYTES", "BY", "LINKED (UTC)"], rows, listed, arguments)


def _aliases(aliases: dict[str, int]) -> str:
    return ", ".join(f"{alias} v{number}" for alias, number in sorted(aliases.items()))


def _print(
    head: list[str], rows: list[list[str]], listed: list[dict[str, Any]], arguments: argparse.Namespace
) -> None:
    if arguments.json:
        print(json.dumps(listed, indent=1))
    elif rows:
        print(table([head, *([inert(text) for text in row] for row in rows)]))


def _get(connection: Any, arguments: argparse.Namespace) -> None:
    registry, _, name = _version(connection, arguments.name)
    print(inert(registry.download(name, arguments.output, arguments.include)))


def _link(connection: Any, arguments: argparse.Namespace) -> None:
    registry, collection, _ = _version(connection, arguments.name)
    linked = registry.link(arguments.artifact, collection, arguments.alias)
    print(inert(f"{registry.team}/{registry.name}/{linked['collection']}:v{linked['version']}"))


def _unlink(connection: Any, arguments: argparse.Namespace) -> None:
    registry, _, name = _version(connection, arguments.name)
    registry.unlink(name)


def _alias(connection: Any, arguments: argparse.Namespace) -> None:
    registry, collection, name = _version(connection, arguments.name)
    if arguments.remove:
        registry.delete_alias(collection, arguments.alias)
    elif arguments.request is not None:
        request = registry.request_alias(name, arguments.alias, arguments.request)
        print(inert(f"request {request['id']}"))
    else:
        registry.set_alias(name, arguments.alias)


def _requests(connection: Any, arguments: argparse.Namespace) -> None:
    registry, _, _ = _parts(connection, arguments.name)
    listed = list(registry.requests("open"))
    rows = [
        [
            str(row["id"]),
            f"{row['collection']}:v{row['number']}",
            row["alias"],
            row["author"],
            moment(row["created_ms"]),
        ]
        for row in listed
    ]
    _print(["REQUEST", "VERSION", "ALIAS", "BY", "SINCE (UTC)"], rows, listed, arguments)


def _decide(connection: Any, arguments: argparse.Namespace) -> None:
    registry, _, _ = _parts(connection, arguments.name)
    decided = registry.decide(arguments.number, arguments.decision, arguments.text)
    print(inert(f"request {decided['id']} is {decided['state']}"))


def _parts(connection: Any, text: str) -> tuple[Any, str, str]:
    """Return the registry, the collection and `collection:alias` of a name; both empty without one."""
    from runvitals.readers.servers.registries import registry_of

    parts = text.split("/", 2)
    registry = registry_of(connection, "/".join(parts[:2]))
    name = parts[2] if len(parts) > 2 else ""
    return registry, name.partition(":")[0], name


def _version(connection: Any, text: str) -> tuple[Any, str, str]:
    registry, collection, name = _parts(connection, text)
    if not collection:
        raise WrongUsage(f"{text!r} names no collection; expected {_VERSION}")
    return registry, collection, name
