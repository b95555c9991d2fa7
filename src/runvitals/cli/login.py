"""`runvitals login`: store the token for a server."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from typing import Any

from runvitals.cli.formatting import inert
from runvitals.sdk.settings import SETTINGS


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "login",
        help="store the token for a server",
        description="Asks for the token (or reads a line from standard input if that is not a terminal), "
        "checks it with the server, and stores it in a file that only you can read. RUNVITALS_TOKEN takes "
        "precedence for the server in RUNVITALS_SERVER.",
    )
    parser.add_argument("url", metavar="URL", help="the server: http://host[:port] or https://…")


def run(arguments: argparse.Namespace) -> int:
    from runvitals.relay.destinations.runvitals import login

    url = SETTINGS["server"].parse(arguments.url, "argument")
    secret = getpass.getpass(f"token for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()
    secret = secret.strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        # Not "invalid token: …": redaction would take the next word for the token.
        raise ValueError(
            "the token is not valid; expected rvt_…, as printed by `runvitals token create NAME`"
        )
    login.check(url, secret)
    print(f"token stored in {inert(login.save(url, secret, os.environ))}")
    return 0
