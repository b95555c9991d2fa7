"""`runvitals delete RUN …`: move runs to the trash, or restore them."""

from __future__ import annotations

import argparse

from runvitals.cli.run_changes import add_runs, change_each


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals delete`."""
    parser.description = "The trash of `runvitals ui`, or that of the server, removes them for good."
    parser.add_argument("--restore", action="store_true", help="restore them from the trash instead")
    add_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Move each run to the trash or out of it; return 1 if one was not."""
    if arguments.restore:
        return change_each(arguments, lambda runs, reference: runs.restore(reference), "restored")
    return change_each(arguments, lambda runs, reference: runs.delete(reference), "moved to the trash:")
