"""`runvitals rename RUN NAME`: give a run another name."""

from __future__ import annotations

import argparse
from typing import Any

from runvitals.cli.command_list import COMMANDS
from runvitals.cli.run_changes import add_runs, change_each


def add(subparsers: Any) -> None:
    """Add `runvitals rename` to the parser."""
    parser = subparsers.add_parser("rename", help=COMMANDS["rename"], description="Its id stays the same.")
    add_runs(parser, several=False)
    parser.add_argument("name", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Rename the run; return 1 if it was not renamed."""
    return change_each(
        arguments, lambda runs, reference: runs.edit(reference, {"name": arguments.name}), "renamed"
    )
