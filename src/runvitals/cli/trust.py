"""`runvitals trust`: trust a project's `runvitals.toml`."""

from __future__ import annotations

import argparse
import json
import os

from runvitals.base.terminal_text import inert
from runvitals.cli import WrongUsage
from runvitals.monitoring.settings import trust
from runvitals.monitoring.settings.settings import SETTINGS, find, needing_trust
from runvitals.monitoring.settings.settings_files import PROJECT_FILE, parse, project_file, read


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals trust`."""
    parser.description = (
        "A runvitals.toml comes with its repository. Its harmless settings always apply. "
        "Servers, destinations, endpoints, paths and headers apply only after you have trusted the file. Any "
        "change of the file revokes the trust."
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help=f"default: the {PROJECT_FILE} in effect in this folder"
    )
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--list", action="store_true", help="list the trusted files")
    actions.add_argument("--remove", action="store_true", help="revoke the trust in FILE")
    parser.add_argument("--json", action="store_true", help="with --list: print JSON, for scripts")


def run(arguments: argparse.Namespace) -> int:
    """Trust a file, revoke its trust, or list the trusted files; return 0."""
    if arguments.list:
        return _list(arguments.json)
    if arguments.json:
        raise WrongUsage("--json needs --list")
    path = _file(arguments.file)
    if arguments.remove:
        if not trust.remove(path, os.environ):
            raise LookupError(f"{path} is not trusted")
        print(f"{inert(path)} is no longer trusted")
        return 0
    content = read(path)  # read once, so that what is shown is what is trusted
    table = parse(path, content)
    for name, value in table.items():
        find(name, path).parse(value, path)
    trust.trust(path, content, os.environ)
    print(f"{inert(path)} is now trusted until it changes")
    for name in needing_trust(table):
        print(f"  {name} = {inert(json.dumps(SETTINGS[name].redact(table[name]), ensure_ascii=False))}")
    return 0


def _file(file: str | None) -> str:
    path = project_file(os.getcwd()) if file is None else os.path.abspath(file)
    if path is None:
        raise LookupError(f"no {PROJECT_FILE} found in this folder or its parents")
    return os.path.join(path, PROJECT_FILE) if os.path.isdir(path) else path


def _list(as_json: bool) -> int:
    reasons = {path: _why_not(path) for path in sorted(trust.trusted_files(os.environ))}
    if as_json:
        rows = [{"file": path, "trusted": not why, "why_not": why} for path, why in reasons.items()]
        print(json.dumps(rows, indent=1))
        return 0
    for path, why in reasons.items():
        print(f"{inert(path)}{f'  (no longer trusted: {inert(why)})' if why else ''}")
    return 0


def _why_not(path: str) -> str | None:
    try:
        return trust.reason_untrusted(path, read(path), os.environ) or None
    except ValueError as error:
        return str(error)
