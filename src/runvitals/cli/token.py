"""`runvitals token`: the access tokens of a server."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from runvitals.base.numbers import parse_integer
from runvitals.cli.account_api import now_ms, opened_metadata
from runvitals.cli.formatting import inert, moment, table
from runvitals.cli.store_options import add_store
from runvitals.model.limits import INT64

if TYPE_CHECKING:
    from runvitals.server.metadata_store import MetadataStore


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals token`."""
    parser.description = "Works on the server's metadata store, also while the server is running."
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("create", help="print a new token, once").add_argument("name", metavar="NAME")
    listed = actions.add_parser(
        "list", help="list tokens by name and times; the tokens themselves are never shown"
    )
    listed.add_argument("--json", action="store_true", help="print JSON, for scripts")
    revoke = actions.add_parser("revoke", help="revoke a token")
    revoke.add_argument("id", metavar="ID", type=_parse_id, help="the ID column of `list`")
    for action in actions.choices.values():
        add_store(action)


def _parse_id(text: str) -> int:
    number = parse_integer(text, INT64 - 1)
    if number is None:
        hint = "`runvitals token list` shows them"
        raise argparse.ArgumentTypeError(f"{text!r:.80} is not a token number; {hint}")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Create and print a token, revoke one, or list all; return 0."""
    with opened_metadata(arguments) as metadata_store:
        if arguments.action == "create":
            print(metadata_store.tokens.create(arguments.name, now_ms())[0])
        elif arguments.action == "revoke":
            metadata_store.tokens.revoke(arguments.id, now_ms())
        elif arguments.json:
            print(json.dumps([asdict(token) for token in metadata_store.tokens.all()], indent=1))
        else:
            print(_token_table(metadata_store))
    return 0


def _token_table(metadata_store: MetadataStore) -> str:
    rows = [["ID", "NAME", "CREATED", "LAST USED", "REVOKED"]]
    for token in metadata_store.tokens.all():
        times = (token.created_ms, token.last_used_ms, token.revoked_ms)
        moments = ("-" if time_ms is None else moment(time_ms) for time_ms in times)
        rows.append([str(token.id), inert(token.name), *moments])
    return table(rows, right=frozenset((0,)))
