"""`runvitals login`: keep the token for a server."""

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
        help="keep the token for a server",
        description="Asks for the token (or reads a line of standard input where that is no terminal), and "
        "keeps it in a file that only you can read, once the server has taken it. RUNVITALS_TOKEN goes "
        "before it, for the server that RUNVITALS_SERVER names.",
    )
    parser.add_argument("url", metavar="URL", help="the server: http://host[:port] or https://…")


def run(arguments: argparse.Namespace) -> int:
    from runvitals.relay.destinations.runvitals import login

    url = SETTINGS["server"].parse(arguments.url, "argument")
    secret = getpass.getpass(f"token for {url}: ") if sys.stdin.isatty() else sys.stdin.readline()
    secret = secret.strip()
    if not secret or not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ValueError("that is no token: `runvitals token create NAME` on the server prints one, rvt_…")
    login.check(url, secret)
    print(f"kept in {inert(login.keep(url, secret, os.environ))}")
    return 0
