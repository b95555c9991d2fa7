"""`runvitals import PATH …`: import W&B run files."""

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
        help="import runs from W&B files (run-….wandb)",
        description="Import each .wandb file as a run: system metrics, logged rows, configuration, summary, "
        "console output and how it ended. The files are not changed. Runs that already exist are skipped.",
    )
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="a .wandb file, a run folder, or a folder of runs (wandb/)"
    )
    parser.add_argument("--project", help="default: as in the file")
    parser.add_argument("--run", metavar="ID", help="default: as in the file; for one file only")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    found = [file for path in arguments.paths for file in files(path)]
    if arguments.run and len(found) > 1:
        raise ValueError(f"--run {arguments.run} applies to a single file, but {len(found)} files were found")
    failed = 0
    for file in found:
        try:
            made = import_file(file, directory(arguments), arguments.run, arguments.project)
        except FileExistsError as error:
            print(f"{file}: {error}", file=sys.stderr)
            failed += 1
            continue
        text = f"{made.samples} samples, {made.rows} log() rows, {made.console_records} console records"
        if made.damaged:
            text += f"; skipped {made.damaged} damaged records"
        if made.cut:
            text += "; the file ends in the middle of a record"
        print(f"{made.run} of project {made.project}: {text}")
    return 1 if failed else 0


def files(path: str) -> Iterator[str]:
    """The `.wandb` files at a path, sorted by name.

    Raises:
        FileNotFoundError: no such file.
    """
    if not os.path.isdir(path):
        yield path
        return
    found = []
    for folder, _, names in os.walk(path):  # without following `latest-run`
        found += [os.path.join(folder, name) for name in names if name.endswith(".wandb")]
    if not found:
        raise FileNotFoundError(f"no .wandb file found in {path}")
    yield from sorted(found)
