"""`runvitals whoami`: whom the stored key of a server stands for."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.cli.formatting import inert


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser("whoami", help="show whom the stored key of a server stands for")
    parser.add_argument("url", metavar="URL", nargs="?", help="default: the only server with a stored key")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    from runvitals.relay.destinations.runvitals import login

    url = login.known_server(arguments.url, os.environ)
    account = login.account(url, os.environ)
    if arguments.json:
        print(json.dumps(account, indent=1))
        return 0
    kind, name = account.get("kind"), inert(str(account.get("name", "")))
    if kind == "user":
        teams = ", ".join(inert(str(team["name"])) for team in account.get("teams", [])) or "none"
        print(f"{name} at {inert(url)}; teams: {teams}; runs go to {inert(str(account['default_entity']))}")
    elif kind == "service_account":
        print(f"service account {name} at {inert(url)}")
    else:
        print(f"{inert(url)} has no accounts; the stored token is valid")
    return 0
