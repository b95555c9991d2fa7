"""`runvitals whoami`: whom the stored key of a server stands for."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.cli.formatting import inert, table


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals whoami`."""
    parser.add_argument("url", metavar="URL", nargs="?", help="default: the only server with a stored key")
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")


def run(arguments: argparse.Namespace) -> int:
    """Print the account of the stored key; return 0."""
    from runvitals.base import stored_keys

    url = stored_keys.known_server(arguments.url, os.environ)
    account = stored_keys.account(url, os.environ)
    if arguments.json:
        print(json.dumps(account, indent=1))
        return 0
    print(table(_account_rows(url, account)))
    return 0


def _account_rows(url: str, account: dict[str, Any]) -> list[list[str]]:
    """Return rows of a label and a text about the account of a key."""
    kind = account.get("kind")
    if kind == "user":
        user_text = f"{account['name']} ({account['display_name']})"
        about = [
            ("user", user_text),
            ("e-mail", account.get("email") or "none"),
            ("organisation", _ORGANISATION_ROLES.get(str(account.get("org_role")), "")),
            ("teams", ", ".join(map(_team, account.get("teams", []))) or "none"),
            ("runs go to", account["default_entity"]),
        ]
    elif kind == "service_account":
        about = [("service account", account["name"])]
    else:
        about = [("token", "valid; this server has no accounts")]
    if account.get("key"):
        about.append(("key", account["key"]))
    return [[label, inert(str(text))] for label, text in [("server", url), *about] if text]


def _team(team: dict[str, Any]) -> str:
    return f"{team['name']} ({team.get('custom_role') or team['role']})"


_ORGANISATION_ROLES = {"admin": "administrator", "member": "member"}
