"""`runvitals rename RUN NAME`: give a run another name."""

from __future__ import annotations

import argparse

from runvitals.cli.run_changes import add_runs, change_each


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals rename`."""
    parser.description = "Its id stays the same."
    add_runs(parser, several=False)
    parser.add_argument("name", metavar="NAME")


def run(arguments: argparse.Namespace) -> int:
    """Rename the run; return 1 if it was not renamed."""
    return change_each(
        arguments, lambda runs, reference: runs.edit(reference, {"name": arguments.name}), "renamed"
    )
