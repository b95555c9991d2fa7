"""Finds the run that `runvitals leet` opens."""

from __future__ import annotations

import os
from typing import NamedTuple

from runvitals.journal import paths
from runvitals.leet.run_data import now_ms
from runvitals.model.errors import UnknownRun
from runvitals.query.run_handle import find_run
from runvitals.query.runs import RunList


class OpeningTarget(NamedTuple):
    """What to open: a data folder, and a run in it, or None for the list of its runs."""

    directory: str
    run_id: str | None


def target(wanted: str | None, directory: str, here: str) -> OpeningTarget:
    """What the argument of the command names.

    Args:
        wanted: a run id, a unique prefix of one, a name, `latest`, a run's folder, a data folder, or None for
            the latest run that was started in `here`, else the latest of all.
        directory: the data folder.
        here: the current folder.

    Raises:
        UnknownRun: no run matches, or several do.
        ValueError: something that cannot be opened.
    """
    if wanted is None:
        return OpeningTarget(directory, latest(directory, here))
    if wanted.startswith(("http://", "https://")):
        raise ValueError(
            f"cannot open {wanted}: leet reads the runs of this machine; open a server in a browser"
        )
    path = os.path.abspath(os.path.expanduser(wanted))
    if wanted.endswith(".wandb") and os.path.isfile(path):
        raise ValueError(f"cannot open {wanted}: import it first with `runvitals import`")
    if os.sep in wanted or wanted in (".", ".."):
        return _folder(wanted, path, directory)
    return OpeningTarget(directory, find_run(wanted, directory))


def _folder(wanted: str, path: str, directory: str) -> OpeningTarget:
    """The target of a path."""
    if not os.path.isdir(path):
        raise ValueError(f"cannot open {wanted}: no such folder")
    parent, name = os.path.split(path)
    if os.path.basename(parent) == "runs" and any(entry.endswith(paths.SUFFIX) for entry in os.listdir(path)):
        return OpeningTarget(os.path.dirname(parent), paths.check_run_id(name))
    if os.path.isdir(paths.runs_dir(path)):
        return OpeningTarget(path, None)
    return OpeningTarget(directory, latest(directory, path))


def latest(directory: str, here: str) -> str:
    """The newest run whose training started in a folder, else the newest run of all.

    Raises:
        UnknownRun: there are no runs.
    """
    newest_first = RunList(directory).runs(now_ms())
    if not newest_first:
        raise UnknownRun(f"no runs in {directory}; start one with `runvitals run -- CMD`")
    for run in newest_first:
        if any(machine.get("cwd") == here for machine in run.machines.values()):
            return run.id
    return newest_first[0].id
