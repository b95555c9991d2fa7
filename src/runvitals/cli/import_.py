"""`runvitals import SOURCE …`: import runs that W&B, MLflow, TensorBoard and other systems recorded."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from runvitals.base.progress import WorkProgress
from runvitals.cli import WrongUsage
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import inert
from runvitals.journal import paths
from runvitals.monitoring.settings.settings import SETTINGS

if TYPE_CHECKING:
    from runvitals.readers.importers.report import ImportReport
    from runvitals.readers.wandb_files.importer import ImportResult

_FORMS = (
    "wandb:ENTITY/PROJECT",
    "mlflow:URI",
    "tensorboard:FOLDER",
    "csv:FILE",
    "neptune:FOLDER",
    "trackio:FOLDER",
    "clearml:FOLDER",
    "aim:FOLDER",
)
_KINDS = tuple(form.partition(":")[0] for form in _FORMS)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals import`."""
    parser.description = (
        "Import runs that another system recorded: metrics, configuration, summary, output and "
        "files, and how they ended, as far as the source has them. Sources are not changed. Runs that "
        "already exist are skipped, so an import that was interrupted can be repeated."
    )
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="a .wandb file, or a folder of them (wandb/); wandb:ENTITY/PROJECT[/RUN] of a W&B server; "
        "mlflow:URI with a SQLite file, a folder mlruns, or a server's URL; tensorboard:FOLDER; csv:FILE or "
        "csv:FOLDER; neptune:FOLDER with the Parquet files of neptune-exporter; trackio:FOLDER or "
        "trackio:PROJECT.db; clearml:FOLDER or clearml:FILE.zip of an offline session; "
        "aim:FOLDER, which has the folder .aim",
    )
    parser.add_argument("--project", help="default: as in the source")
    parser.add_argument(
        "--run", metavar="ID", help="of a .wandb or CSV file: the new id; else: import only this run"
    )
    parser.add_argument(
        "--entity", metavar="TEAM", default="", help="team or user that gets the runs with --to"
    )
    parser.add_argument("--to", metavar="URL", help="also deliver the imported runs to this server")
    parser.add_argument("--server", metavar="URL", help="of W&B; default: WANDB_BASE_URL, else its service")
    parser.add_argument(
        "--artifacts",
        metavar="FOLDER",
        help="of MLflow: read artifacts below this folder, too; default: only those in the folder mlruns, "
        "and in mlruns and mlartifacts beside a SQLite file",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="read everything, print what would be imported and what would not, and keep nothing",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="print errors and what was left out only")
    add_dir(parser)


def run(arguments: argparse.Namespace) -> int:
    """Import runs, and deliver them with `--to`; return 1 if something failed."""
    if not arguments.dry_run:
        return _import(arguments)
    with _scratch_folder(directory(arguments)) as folder:
        failed = _import(argparse.Namespace(**{**vars(arguments), "dir": folder, "to": None}))
    print("nothing was imported: this was a dry run")
    return failed


@contextmanager
def _scratch_folder(folder: str) -> Iterator[str]:
    """A data folder in which the same runs exist, and which is removed at the end."""
    runs = paths.runs_dir(folder)
    with TemporaryDirectory(prefix=".import-", dir=folder if os.path.isdir(folder) else None) as scratch:
        os.makedirs(paths.runs_dir(scratch))
        for name in os.listdir(runs) if os.path.isdir(runs) else ():
            os.symlink(os.path.join(runs, name), os.path.join(paths.runs_dir(scratch), name))
        yield scratch


def _import(arguments: argparse.Namespace) -> int:
    failed = 0
    imported: list[str] = []
    for kind, sources in _by_kind(arguments.sources).items():
        if kind == "":
            ids, errors = _import_files(sources, arguments)
        else:
            ids, errors = _import_all(kind, sources, arguments)
        imported += ids
        failed += errors
    if arguments.to and imported:
        failed += _deliver(imported, arguments)
    return 1 if failed else 0


def _by_kind(sources: list[str]) -> dict[str, list[str]]:
    """Return the addresses of each kind of source; "" for `.wandb` files."""
    by_kind: dict[str, list[str]] = {}
    for source in sources:
        kind, colon, address = source.partition(":")
        known_kind = kind if colon and kind in _KINDS and not os.path.exists(source) else ""
        by_kind.setdefault(known_kind, []).append(address if known_kind else source)
    return by_kind


def _import_all(kind: str, addresses: list[str], arguments: argparse.Namespace) -> tuple[list[str], int]:
    """Import from sources of one kind; return the ids, also of existing runs, and the failures."""
    ids: list[str] = []
    failed = 0
    for address in addresses:
        report = _followed(_reports(kind, address, arguments), arguments.quiet)
        if report is None:
            continue
        for run_id, reason in report.failed.items():
            print(f"{inert(run_id)}: {inert(reason)}", file=sys.stderr)
        if report.existing:
            print(f"{len(report.existing)} runs exist already and were left as they are")
        for content, count in report.left_out.items():
            print(f"not imported: {count} × {inert(content)}")
        ids += [*report.imported, *report.existing]
        failed += len(report.failed)
    return ids, failed


def _followed(reports: Iterator[ImportReport], quiet: bool) -> ImportReport | None:
    """Print a line about each imported run, and how far the import is; return the last report."""
    report, printed, done = None, 0, 0
    with nullcontext() if quiet else WorkProgress("importing", 0, "runs") as progress:
        for report in reports:
            if progress is None:
                continue
            for text in islice(report.imported.values(), printed, None):
                progress.print(inert(text))
            progress.expect(report.total)
            progress.detail = f", {report.rows:,} rows" if report.rows else ""
            progress.add(report.done - done)
            printed, done = len(report.imported), report.done
    return report


def _reports(kind: str, address: str, arguments: argparse.Namespace) -> Iterator[ImportReport]:
    folder, project, run_id, team = (
        directory(arguments),
        arguments.project,
        arguments.run,
        _team(arguments),
    )
    if kind == "csv":
        from runvitals.readers.importers.csv_files.importer import import_csv

        return import_csv(address, folder, project, run_id, team)
    if kind == "neptune":
        from runvitals.readers.importers.neptune.importer import import_neptune

        return import_neptune(address, folder, project, run_id, team)
    if kind == "clearml":
        from runvitals.readers.importers.clearml.importer import import_clearml

        return import_clearml(address, folder, project, run_id, team)
    if kind == "trackio":
        from runvitals.readers.importers.trackio.importer import import_trackio

        return import_trackio(address, folder, project, run_id, team)
    if kind == "aim":
        from runvitals.readers.importers.aim.importer import import_aim

        return import_aim(address, folder, project, run_id, team)
    if kind == "tensorboard":
        from runvitals.readers.importers.tensorboard.importer import import_tensorboard

        return import_tensorboard(address, folder, project, run_id, team)
    if kind == "mlflow":
        from runvitals.readers.importers.mlflow.importer import import_mlflow
        from runvitals.readers.importers.mlflow.stores import store_of

        store = store_of(address, os.environ, os.getcwd(), arguments.artifacts)
        return import_mlflow(store, folder, project, run_id, team)
    from runvitals.readers.importers.wandb_server.importer import import_wandb
    from runvitals.readers.importers.wandb_server.server import WandbServer

    server = WandbServer.of(arguments.server, os.environ)
    return import_wandb(server, address, folder, project, run_id, team)


def _team(arguments: argparse.Namespace) -> str:
    """Return the team that gets the runs, "" for none; raise ValueError for an invalid name."""
    return SETTINGS["entity"].parse_strictly(arguments.entity, "--entity") if arguments.entity else ""


def _import_files(paths: list[str], arguments: argparse.Namespace) -> tuple[list[str], int]:
    """Import `.wandb` files; return the ids, and the number of failures."""
    from runvitals.readers.wandb_files.importer import import_file

    to_import = [file for path in paths for file in files(path)]
    if arguments.run and len(to_import) > 1:
        raise WrongUsage(
            f"--run {arguments.run} applies to a single file, but {len(to_import)} files were found"
        )
    team = _team(arguments)
    ids = []
    with nullcontext() if arguments.quiet else WorkProgress("importing", len(to_import), "files") as progress:
        for file in to_import:
            try:
                done = import_file(file, directory(arguments), arguments.run, arguments.project, team)
            except (OSError, ValueError) as error:
                prefix = "" if file in str(error) else f"{file}: "
                print(inert(f"{prefix}{error}"), file=sys.stderr)
            else:
                ids.append(done.run)
                if progress is not None:
                    progress.print(inert(f"{done.run} of project {done.project}: {_counts(done)}"))
            if progress is not None:
                progress.add()
    return ids, len(to_import) - len(ids)


def _counts(done: ImportResult) -> str:
    """Say what of a `.wandb` file was imported, and what was not."""
    text = f"{done.samples} samples, {done.rows} log() rows, {done.console_records} console records"
    if done.damaged:
        text += f"; skipped {done.damaged} damaged records"
    return text + "; the file ends in the middle of a record" * done.cut


def _deliver(ids: list[str], arguments: argparse.Namespace) -> int:
    """Deliver runs; return how many destinations of runs failed."""
    from runvitals.cli.sync import deliver

    return len(deliver(ids, arguments.to, directory(arguments), arguments.quiet))


def files(path: str) -> Iterator[str]:
    """Yield the `.wandb` files at a path, sorted by name.

    Raises:
        FileNotFoundError: no such file.
        ValueError: a file of another kind.
    """
    from runvitals.readers.importers.sources import REFUSED, checked_file, files_below

    if not os.path.isdir(path):
        if not path.endswith(".wandb") and (os.path.exists(path) or ":" in path):
            raise ValueError(f"{path}: {_other_kind(path)}")
        yield checked_file(path)
        return
    refused: list[str] = []
    folders = files_below(path, lambda name: name.endswith(".wandb"), refused)  # not those of `latest-run`
    paths = [os.path.join(folder, name) for folder, names in folders for name in names]
    if refused:
        print(f"not imported: {len(refused)} × {REFUSED}")
    if not paths:
        raise FileNotFoundError(f"{path}: no .wandb file found; {_other_kind(path)}")
    yield from sorted(paths)


def _other_kind(path: str) -> str:
    """Return the command that imports what is at a path."""
    name = os.path.basename(path.rstrip("/"))
    inside = os.listdir(path) if os.path.isdir(path) else [name]
    if any("tfevents" in name for name in inside):
        folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
        return f"use tensorboard:{folder} for the event files of TensorBoard"
    if name.lower().endswith((".csv", ".tsv")):
        return f"use csv:{path} for a CSV file"
    if name == "mlruns" or "mlruns" in inside or name.endswith((".db", ".sqlite")):
        return f"use mlflow:{path} for a store of MLflow"
    others = ", ".join(_FORMS)
    return f"expected a .wandb file, a folder of them, or one of {others}"
