"""`runvitals logout`: delete the stored key or token of a server."""

from __future__ import annotations

import argparse
import os

from runvitals.cli.formatting import inert


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals logout`."""
    parser.add_argument("url", metavar="URL", nargs="?", help="default: all servers")


def run(arguments: argparse.Namespace) -> int:
    """Delete stored keys; return 0."""
    from runvitals.base import stored_keys

    gone = stored_keys.delete(arguments.url, os.environ)
    if not gone:
        raise LookupError(f"no stored key or token for {arguments.url or 'any server'}")
    for url in gone:
        print(f"deleted the key or token for {inert(url)}")
    return 0
