"""`runvitals tag RUN … --add TAG`: change the tags of runs."""

from __future__ import annotations

import argparse

from runvitals.cli import WrongUsage
from runvitals.cli.run_changes import add_runs, change_each


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals tag`."""
    parser.add_argument("--add", metavar="TAG", action="append", default=[], help="may be repeated")
    parser.add_argument("--remove", metavar="TAG", action="append", default=[], help="may be repeated")
    add_runs(parser)


def run(arguments: argparse.Namespace) -> int:
    """Change the tags of each run; return 1 if those of one were not changed."""
    if not arguments.add and not arguments.remove:
        raise WrongUsage("expected --add TAG or --remove TAG")
    return change_each(
        arguments, lambda runs, reference: runs.tag(reference, arguments.add, arguments.remove), "tagged"
    )
