"""Finds what `runvitals leet` opens: journals, W&B's files, or a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from runvitals.journal import paths
from runvitals.model.errors import UnknownRun
from runvitals.readers.journals.run_handle import find_run
from runvitals.readers.journals.runs import RunList
from runvitals.readers.wandb_files.names import SUFFIX, files_below
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.run_source import RunCatalogue, now_ms

if TYPE_CHECKING:
    from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue


class OpeningTarget(NamedTuple):
    """A catalogue of runs, and the id of the run to open in it; None to show the list."""

    catalogue: RunCatalogue
    run_id: str | None


class Surroundings(NamedTuple):
    """The folders, server and environment of the command.

    Args:
        directory: the data folder.
        here: the current folder.
        server: the configured server, or None.
        environ: environment variables, for tokens.
    """

    directory: str
    here: str
    server: str | None
    environ: Mapping[str, str]


def target(argument: str | None, around: Surroundings) -> OpeningTarget:
    """Return the catalogue and the run that the argument of the command names.

    Args:
        argument: a run id, a unique prefix of one, a name, `latest`, a run's folder, a data folder, a
            `.wandb` file or a folder of them, a URL, or None for the latest run that was started in the
            current folder, else the latest of all.

    Raises:
        UnknownRun: no run matches, or several do.
        ValueError: something that cannot be opened.
        OSError: it cannot be read.
    """
    if argument is None:
        return _without_argument(around)
    if argument.startswith(("http://", "https://")):
        return _address(argument, around.environ)
    path = os.path.abspath(os.path.join(around.here, os.path.expanduser(argument)))
    if argument.endswith(SUFFIX) and os.path.isfile(path):
        return _wandb(path)
    if os.sep in argument or argument in (".", "..") or argument.endswith(SUFFIX):
        return _folder(argument, path, around.directory)
    try:
        return OpeningTarget(JournalCatalogue(around.directory), find_run(argument, around.directory))
    except UnknownRun:
        if around.server is None:
            raise
    server = _server(around.server, around.environ)
    try:
        return OpeningTarget(server, server.find(argument))
    except BaseException:
        server.close()
        raise


def _without_argument(around: Surroundings) -> OpeningTarget:
    try:
        return _latest(around.directory, around.here)
    except UnknownRun:
        if files_below(around.here):
            return _wandb(around.here)
        if around.server is None:
            raise
    return OpeningTarget(_server(around.server, around.environ), None)


def _address(url: str, environ: Mapping[str, str]) -> OpeningTarget:
    """Return the target of a page's address: a run's, a project's, or that of a server."""
    base, project, run_id = parse_address(url)
    return OpeningTarget(_server(base, environ, project), run_id)


def _server(url: str, environ: Mapping[str, str], project: str | None = None) -> ServerCatalogue:
    """Return the runs of a server. The HTTP client takes 80 ms to load."""
    from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue

    return ServerCatalogue(url, environ, project)


def parse_address(url: str) -> tuple[str, str | None, str | None]:
    """Return the URL of the server, and the project and the run that an address names.

    Example:
        >>> parse_address("https://runs.example.org/team/digits/runs/abc/charts")
        ('https://runs.example.org', None, 'abc')
    """
    split = urlsplit(url)
    parts = [unquote(part) for part in split.path.split("/") if part]
    before, project, run_id = parts, None, None
    if "runs" in parts:
        at = len(parts) - 1 - parts[::-1].index("runs")
        run_id = parts[at + 1] if at + 1 < len(parts) else None
        # `/ENTITY/PROJECT/runs/RUN`, or `/runs/RUN` below the path of the server.
        before = parts[: at - 2] if at >= 2 else parts[:at]
    elif len(parts) > 1 and parts[-2] == "projects":
        before, project = parts[:-2], parts[-1]
    base = f"{split.scheme}://{split.netloc}" + "".join(f"/{part}" for part in before)
    return base, project, run_id


def _folder(argument: str, path: str, directory: str) -> OpeningTarget:
    """Return the target of a path."""
    if not os.path.isdir(path):
        what = f"neither a folder nor a {SUFFIX} file" if os.path.exists(path) else "no such file or folder"
        raise ValueError(f"cannot open {argument}: {what}")
    parent, name = os.path.split(path)
    entries = os.listdir(path)
    if os.path.basename(parent) == "runs" and any(entry.endswith(paths.SUFFIX) for entry in entries):
        return OpeningTarget(JournalCatalogue(os.path.dirname(parent)), paths.check_run_id(name))
    if any(entry.endswith(SUFFIX) for entry in entries):
        return _wandb(path)
    if os.path.isdir(paths.runs_dir(path)):
        return OpeningTarget(JournalCatalogue(path), None)
    try:
        return _latest(directory, path, only_here=True)
    except UnknownRun:
        if not files_below(path):
            raise
    return _wandb(path)


def _wandb(path: str) -> OpeningTarget:
    """Return the target of a `.wandb` file, or of a folder: its only run, else the list."""
    from runvitals.readers.wandb_files.following import summary
    from runvitals.terminal.leet.sources.wandb_catalogue import WandbCatalogue

    is_file = os.path.isfile(path)
    files = [path] if is_file else files_below(path)
    catalogue = WandbCatalogue(os.path.dirname(path) if is_file else path)
    listed, _ = catalogue.runs(now_ms(), "")
    if len(files) > 1:
        return OpeningTarget(catalogue, None)
    only = next((run.id for run in listed if catalogue.path_of(run.id) == files[0]), None)
    run_id = only or summary(files[0]).run.run  # which says why there is none
    catalogue.choose(run_id, files[0])
    return OpeningTarget(catalogue, run_id)


def _latest(directory: str, here: str, only_here: bool = False) -> OpeningTarget:
    """Return the newest run whose training started in a folder, else the newest run of all.

    Raises:
        UnknownRun: there are no runs.
    """
    newest_first = RunList(directory).runs(now_ms())
    if not newest_first:
        raise UnknownRun(f"no runs in {directory}; start one with `runvitals run -- CMD`")
    for run in newest_first:
        if any(machine.get("cwd") == here for machine in run.machines.values()):
            return OpeningTarget(JournalCatalogue(directory), run.id)
    if only_here:
        raise UnknownRun(f"no run in {here}, nor one of {directory} that was started there")
    return OpeningTarget(JournalCatalogue(directory), newest_first[0].id)
