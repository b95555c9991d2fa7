"""`runvitals trust`: trust a project's `runvitals.toml`."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.base.terminal_text import inert
from runvitals.cli.command_list import COMMANDS
from runvitals.monitoring.settings import trust
from runvitals.monitoring.settings.settings import SETTINGS, find, needing_trust
from runvitals.monitoring.settings.settings_files import PROJECT_FILE, parsed, project_file, read


def add(subparsers: Any) -> None:
    """Add `runvitals trust` to the parser."""
    parser = subparsers.add_parser(
        "trust",
        help=COMMANDS["trust"],
        description="A runvitals.toml comes with its repository. Its harmless settings always apply. "
        "Servers, destinations, endpoints, paths and headers apply only after you have trusted the file. Any "
        "change of the file revokes the trust.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help=f"default: the {PROJECT_FILE} in effect in this folder"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="list the trusted files")
    what.add_argument("--remove", action="store_true", help="revoke the trust in FILE")


def run(arguments: argparse.Namespace) -> int:
    """Trust a file, revoke its trust, or list the trusted files; return 0."""
    if arguments.list:
        return _list()
    path = _file(arguments.file)
    if arguments.remove:
        if not trust.remove(path, os.environ):
            raise LookupError(f"{path} is not trusted")
        print(f"{inert(path)} is no longer trusted")
        return 0
    content = read(path)  # read once, so that what is shown is what is trusted
    table = parsed(path, content)
    for name, value in table.items():
        find(name, path).parse(value, path)
    trust.trust(path, content, os.environ)
    print(f"{inert(path)} is now trusted until it changes")
    for name in needing_trust(table):
        print(f"  {name} = {inert(json.dumps(SETTINGS[name].shown(table[name]), ensure_ascii=False))}")
    return 0


def _file(named: str | None) -> str:
    path = project_file(os.getcwd()) if named is None else os.path.abspath(named)
    if path is None:
        raise LookupError(f"no {PROJECT_FILE} found in this folder or its parents")
    return os.path.join(path, PROJECT_FILE) if os.path.isdir(path) else path


def _list() -> int:
    for path in sorted(trust.listed(os.environ)):
        try:
            why = trust.reason_untrusted(path, read(path), os.environ)
        except ValueError as error:
            why = str(error)
        print(f"{inert(path)}{f'  (no longer trusted: {inert(why)})' if why else ''}")
    return 0
