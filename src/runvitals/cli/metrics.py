"""`runvitals metrics`: list the metric definitions: keys, units and sources."""

from __future__ import annotations

import argparse
import json
import shutil
import sys

from runvitals.model.metrics import DEFINITIONS, SUBJECTS, reference


def add(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand."""
    parser.description = "List all metrics, or those that match PATTERN."
    parser.add_argument(
        "pattern",
        nargs="?",
        metavar="PATTERN",
        help="a key (gpu.0.temp), a glob over keys ('disk.*MBps'), or a word in a name or description (swap)",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="full definitions as a JSON array")
    form.add_argument("--markdown", action="store_true", help="print docs/reference/metrics.md")


def run(arguments: argparse.Namespace) -> int:
    """Print the metrics.

    Raises:
        LookupError: no metric matches the pattern.
    """
    subjects = SUBJECTS
    if arguments.pattern is not None:
        subjects = reference.select(SUBJECTS, DEFINITIONS.search(arguments.pattern))
        if not subjects:
            raise LookupError(f"no metric's key, name or description matches {arguments.pattern!r}")
    if arguments.json:
        rows = [reference.as_json(subject, row) for subject, rows in subjects.items() for row in rows]
        print(json.dumps(rows, ensure_ascii=False, indent=2))
    elif arguments.markdown:
        print(reference.markdown(subjects), end="")
    else:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print("\n".join(reference.table(subjects, width)), end="")
    return 0
