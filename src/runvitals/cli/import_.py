"""`runvitals import PATH …`: runs that W&B kept, as runs of ours."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any

from runvitals.cli.data_folder import add_dir, directory
from runvitals.wandb_files.importer import import_file


def add(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "import",
        help="make runs of W&B's files (run-….wandb)",
        description="Make a run of each .wandb file: system metrics, what was logged, configuration, "
        "summary, console, how it ended. The files stay as they are; a run that is here already is passed "
        "over.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a .wandb file, a run's folder, or a folder of runs (wandb/)"
    )
    parser.add_argument("--project", help="default: as in the file")
    parser.add_argument("--run", metavar="ID", help="default: as in the file; for one file only")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    found = [file for path in arguments.paths for file in files(path)]
    if arguments.run and len(found) > 1:
        raise ValueError(
            f"--run {arguments.run}: there are {len(found)} files, and a run has an id of its own"
        )
    failed = 0
    for file in found:
        try:
            made = import_file(file, directory(arguments), arguments.run, arguments.project)
        except FileExistsError as error:
            print(f"{file}: {error}", file=sys.stderr)
            failed += 1
            continue
        told = f"{made.samples} samples, {made.rows} log() rows, {made.pieces} pieces of the console"
        if made.damaged:
            told += f"; {made.damaged} damaged places passed over"
        if made.cut:
            told += "; the file ends in the middle of a record"
        print(f"{made.run} of project {made.project}: {told}")
    return 1 if failed else 0


def files(path: str) -> Iterator[str]:
    """The `.wandb` files that a path names, oldest name first.

    Raises:
        FileNotFoundError: there are none.
    """
    if not os.path.isdir(path):
        yield path
        return
    found = []
    for folder, _, names in os.walk(path):  # without following `latest-run`
        found += [os.path.join(folder, name) for name in names if name.endswith(".wandb")]
    if not found:
        raise FileNotFoundError(f"{path}: there is no .wandb file in it")
    yield from sorted(found)
