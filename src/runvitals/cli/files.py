"""`runvitals files RUN`: list or copy the files that a run saved, and what it logged besides numbers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert, moment, table
from runvitals.cli.show import RUN_HELP
from runvitals.model.media_types import BINARY
from runvitals.readers.journals.run_handle import OpenRun, open_run

_EXTENSIONS = {"image/svg+xml": ".svg", "audio/mpeg": ".mp3", "text/plain": ".txt", BINARY: ""}


class ListedFile(NamedTuple):
    """A file of a run. `path`: of the run's own copy; None if it is gone."""

    name: str
    bytes: int
    type: str
    time_ms: int
    path: str | None


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals files`."""
    parser.description = (
        "Lists the files that a run saved with run.save(). With --media, also images, tables and "
        "everything else that it logged, as NAME/STEP. With --output, copies them into a folder."
    )
    parser.add_argument("id", metavar="RUN", help=RUN_HELP)
    parser.add_argument(
        "--names", nargs="+", action="extend", metavar="GLOB", help="only files whose names match"
    )
    parser.add_argument("--media", action="store_true", help="also what was logged besides numbers")
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="copy them into this folder; created if missing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for scripts")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """List files of a run, or copy them; return 1 if the content of one is gone."""
    opened = open_run(arguments.id, directory(arguments))
    files = [
        file
        for file in listed_files(opened, arguments.media)
        if not arguments.names or any(fnmatchcase(file.name, glob) for glob in arguments.names)
    ]
    if arguments.names and not files:
        raise ValueError(f"--names {' '.join(arguments.names)}: no file of the run matches")
    if arguments.output is not None:
        return _copy(files, arguments.output)
    rows = [[inert(file.name), f"{file.bytes:,}", file.type, moment(file.time_ms)] for file in files]
    if arguments.json:
        print(json.dumps([file._asdict() for file in files], indent=1))
    elif rows:
        print(table([["NAME", "BYTES", "TYPE", "SAVED (UTC)"], *rows]))
    return 0


def listed_files(opened: OpenRun, media: bool) -> Iterator[ListedFile]:
    """Yield the saved files of a run; with `media`, also the files of what it logged."""
    for saved in opened.files():
        yield ListedFile(saved.name, saved.bytes, saved.type, saved.time_ms, saved.path)
    for key in opened.media_keys() if media else ():
        for record in opened.media(key.key):
            for number, item in enumerate(record.items):
                if not item.get("sha256"):
                    continue
                step = "none" if record.step is None else f"{record.step:g}"
                rank = "" if record.rank is None else f"-rank{record.rank}"
                name = f"{key.key}/{step}{rank}-{number}{_extension(item['type'])}"
                yield ListedFile(name, item["bytes"], item["type"], record.time_ms, opened.path_of(item))


def _extension(media_type: str) -> str:
    kind = media_type.partition(";")[0]
    if kind in _EXTENSIONS:
        return _EXTENSIONS[kind]
    extension = kind.rpartition("/")[2]
    return f".{extension}" if extension.isalnum() else ""


def _copy(files: list[ListedFile], folder: str) -> int:
    """Copy files; return the exit code: 1 if one of them is gone."""
    missing = 0
    for file in files:
        if file.path is None:
            print(f"runvitals: {inert(file.name)}: its content is gone", file=sys.stderr)
            missing += 1
            continue
        target = os.path.join(folder, *safe_parts(file.name))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(file.path, target)
        print(inert(target))
    return 1 if missing else 0


def safe_parts(name: str) -> list[str]:
    r"""Return the parts of a name, which never lead out of the folder that it is written to.

    Example:
        >>> safe_parts("../etc//passwd"), safe_parts("C:\\x")
        (['_', 'etc', 'passwd'], ['C__x'])
    """
    parts = [part for part in name.split("/") if part not in ("", ".")]
    cleaned = ["".join("_" if c in "\\:" or ord(c) < 32 else c for c in part) for part in parts]
    return [("_" if part == ".." else part)[-200:] for part in cleaned] or ["_"]
