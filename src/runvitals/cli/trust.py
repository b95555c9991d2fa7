"""`runvitals trust`: let a project's `runvitals.toml` set what only the user may."""

from __future__ import annotations

import argparse
import json
import os
from typing import Any

from runvitals.sdk import trust
from runvitals.sdk.settings import SETTINGS, find, wanting_trust
from runvitals.sdk.settings_files import PROJECT_FILE, parsed, project_file, read
from runvitals.terminal import inert


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "trust",
        help="let a project's runvitals.toml name servers, destinations and paths",
        description="A runvitals.toml comes with the repository it lies in. What it sets is used as far as "
        "it is harmless; servers, destinations, endpoints, paths and headers are used only once you have "
        "trusted the file. The trust is in its content: it ends when the file is changed.",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help=f"default: the {PROJECT_FILE} that is in force here"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="the files that were trusted")
    what.add_argument("--remove", action="store_true", help="trust it no longer")


def run(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list()
    path = _file(arguments.file)
    if arguments.remove:
        if not trust.remove(path, os.environ):
            raise LookupError(f"{path} is not trusted")
        print(f"{inert(path)} is trusted no longer")
        return 0
    content = read(path)  # once: what is shown is what is trusted
    table = parsed(path, content)
    for name, value in table.items():
        find(name, path).parse(value, path)
    trust.trust(path, content, os.environ)
    print(f"{inert(path)} is trusted as it is now")
    for name in wanting_trust(table):
        print(f"  {name} = {inert(json.dumps(SETTINGS[name].shown(table[name]), ensure_ascii=False))}")
    return 0


def _file(named: str | None) -> str:
    path = project_file(os.getcwd()) if named is None else os.path.abspath(named)
    if path is None:
        raise LookupError(f"there is no {PROJECT_FILE} here or in a folder above")
    return os.path.join(path, PROJECT_FILE) if os.path.isdir(path) else path


def _list() -> int:
    for path in sorted(trust.listed(os.environ)):
        try:
            why = trust.objection(path, read(path), os.environ)
        except ValueError as error:
            why = str(error)
        print(f"{inert(path)}{f'  (no longer: {inert(why)})' if why else ''}")
    return 0
