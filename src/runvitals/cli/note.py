"""`runvitals note RUN TEXT`: write notes about a run."""

from __future__ import annotations

import argparse
import sys

from runvitals.cli.run_changes import ChangeableRuns, add_runs, change_each


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals note`."""
    parser.add_argument("--append", action="store_true", help="keep the present notes, and write after them")
    add_runs(parser, several=False)
    parser.add_argument("text", metavar="TEXT", help="Markdown; - reads standard input")


def run(arguments: argparse.Namespace) -> int:
    """Write the notes; return 1 if they were not written."""
    text = sys.stdin.read() if arguments.text == "-" else arguments.text

    def write(runs: ChangeableRuns, reference: str) -> str:
        before = runs.notes(reference).rstrip() if arguments.append else ""
        return runs.edit(reference, {"notes": f"{before}\n\n{text}" if before else text})

    return change_each(arguments, write, "notes written:")
