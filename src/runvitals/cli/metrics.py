"""`runvitals metrics`: what can be measured, under which key, in which unit."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from runvitals.metrics import CATALOG, SUBJECTS, reference


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the subcommand."""
    parser = subparsers.add_parser(
        "metrics",
        help="list every metric: key, unit, kind, where it comes from",
        description="List every metric of the catalogue, or those that PATTERN finds.",
    )
    parser.add_argument(
        "pattern",
        nargs="?",
        metavar="PATTERN",
        help="a key (gpu.0.temp), a glob over keys ('disk.*MBps'), or a word in a name or description (swap)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="everything about each metric, as a JSON array")
    form.add_argument("--markdown", action="store_true", help="the reference page docs/reference/metrics.md")


def run(arguments: argparse.Namespace) -> int:
    """Print the metrics.

    Raises:
        LookupError: the pattern finds none.
    """
    subjects = SUBJECTS
    if arguments.pattern is not None:
        subjects = reference.select(SUBJECTS, CATALOG.search(arguments.pattern))
        if not subjects:
            raise LookupError(f"metrics: no key, name or description matches {arguments.pattern!r}")
    if arguments.json:
        rows = [reference.as_json(subject, row) for subject, rows in subjects.items() for row in rows]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    elif arguments.markdown:
        print(reference.markdown(subjects), end="")
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(reference.table(subjects, width)), end="")
    return 0
