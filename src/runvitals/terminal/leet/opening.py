"""Finds what `runvitals leet` opens: journals, W&B's files, or a server."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from runvitals.journal import paths
from runvitals.model.errors import UnknownRun
from runvitals.readers.journals.run_handle import find_run
from runvitals.readers.journals.runs import RunList
from runvitals.readers.wandb_files.transaction_log import SUFFIX, files_below
from runvitals.terminal.leet.sources.journal_catalogue import JournalCatalogue
from runvitals.terminal.leet.sources.run_source import RunCatalogue, now_ms

if TYPE_CHECKING:
    from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue

_ASKING_S: Final = 5.0
_NEEDS_KEY: Final = 401
_MOST_PARTS: Final = 8
"""Parts of an address at whose end a server is looked for."""


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
    base, project, run_id = parse_address(url, _is_server)
    return OpeningTarget(_server(base, environ, project), run_id)


def _is_server(url: str) -> bool | None:
    """Ask, without a key, whether a server of runvitals is at an address; None: nothing answers there."""
    from runvitals.readers.servers.connection import ApiConnection, ServerError

    connection = ApiConnection(url, None, _ASKING_S)
    try:
        connection.get("/runs", [("limit", 1)])
    except ServerError as error:
        return None if error.status is None else error.status == _NEEDS_KEY and "error" in error.content
    finally:
        connection.close()
    return True


def _server(url: str, environ: Mapping[str, str], project: str | None = None) -> ServerCatalogue:
    """Return the runs of a server. The HTTP client takes 80 ms to load."""
    from runvitals.terminal.leet.sources.server_catalogue import ServerCatalogue

    return ServerCatalogue(url, environ, project)


def parse_address(url: str, is_server: Callable[[str], bool | None]) -> tuple[str, str | None, str | None]:
    """Return the URL of the server, and the project and the run that an address names.

    A server may be below a path: only it knows whether `/proxy/8900/runs/abc` is a run of a server at
    `/proxy/8900`, or of the project 8900.

    Args:
        is_server: tells whether one is at a URL; None if nothing answers at this host. Then a run of a
            project, or else of none, is assumed.

    Example:
        >>> parse_address("https://runs.example.org/team/digits/runs/abc/charts", lambda url: True)
        ('https://runs.example.org', None, 'abc')
    """
    split = urlsplit(url)
    parts = [unquote(part) for part in split.path.split("/") if part]
    bases = [f"{split.scheme}://{split.netloc}"]
    for part in parts[:_MOST_PARTS]:
        bases.append(f"{bases[-1]}/{quote(part)}")
    for count, base in enumerate(bases):
        is_here = is_server(base)
        if is_here:
            return base, *_named(parts[count:])
        if is_here is None:
            break
    count = _guessed_count(parts)
    return bases[min(count, _MOST_PARTS)], *_named(parts[count:])


def _named(parts: list[str]) -> tuple[str | None, str | None]:
    """Return the project and the run that an address names, by its parts after that of the server."""
    if parts[:1] == ["runs"]:
        return None, parts[1] if len(parts) > 1 else None
    if parts[2:3] == ["runs"] and len(parts) > 3:
        return None, parts[3]
    return (parts[1] if len(parts) > 1 else None), None


def _guessed_count(parts: list[str]) -> int:
    """Return how many parts of an address are probably those of the server."""
    if "runs" in parts:
        at = len(parts) - 1 - parts[::-1].index("runs")
        return at - 2 if at >= 2 else at
    return max(len(parts) - 2, 0) if parts[-2:-1] == ["projects"] else len(parts)


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
