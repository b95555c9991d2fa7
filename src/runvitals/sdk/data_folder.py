"""The folder that a run is kept in: the one that was asked for, or another one that can be written."""

from __future__ import annotations

import os

from runvitals.journal import paths
from runvitals.journal.writer import NO_ROOM
from runvitals.sdk.messages import tell
from runvitals.sdk.setting_definition import SettingError


class NoFolder(OSError):
    """There is no folder to keep a run in; the text says why, and what to do."""


def working_folder() -> str:
    """The current folder; the root where it was deleted or cannot be seen."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def usable_directory(named: str | None, run_id: str, resume: str) -> str:
    """The data folder, checked: writable, and fitting to `resume`. A folder that cannot be written is
    replaced by one that can, loudly. One on a full disk stays: there may be room soon, and the processes of a
    run must come to the same one.

    Args:
        named: the folder that was asked for; None: the user's.

    Raises:
        SettingError: `resume` forbids what is there (or is not).
        NoFolder: none can be written.
    """
    try:
        directory = os.path.abspath(os.path.expanduser(named)) if named else paths.data_dir()
    except OSError as error:  # relative to a working folder that was deleted
        directory, problem = "", f"the data folder {named or ''} cannot be found ({error.strerror})"
    else:
        _check_resume(directory, run_id, resume)
        problem = _cannot_write(directory)
    if not problem:
        return directory
    import tempfile  # 6 ms, which only this way out has to pay

    try:
        fallback = os.path.join(
            tempfile.gettempdir(), f"runvitals-data-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
        )
        paths.make_private(fallback)
        usable = _is_ours(fallback) and not _cannot_write(fallback)
    except OSError:
        fallback, usable = "the folder for temporary files", False
    if not usable:
        raise NoFolder(
            f"no folder to keep run {run_id} in: {problem}; nor can {fallback} be used. Set RUNVITALS_DIR"
        )
    tell(f"{problem}; run {run_id} is kept in {fallback} instead. Set RUNVITALS_DIR to one that can be")
    return fallback


def _check_resume(directory: str, run_id: str, resume: str) -> None:
    exists = os.path.isdir(paths.run_dir(run_id, directory))
    if exists and resume == "never":
        raise SettingError(f"run {run_id} exists in {directory}, and resume = 'never'")
    if not exists and resume == "must":
        raise SettingError(f"run {run_id} does not exist in {directory}, and resume = 'must'")


def _cannot_write(directory: str) -> str:
    """Why nothing can be kept in a folder, or ""."""
    folder = paths.runs_dir(directory)
    trial = os.path.join(folder, f".{os.getpid():x}-{os.urandom(4).hex()}.trial")
    try:
        paths.make_private(folder)
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(trial)
    except OSError as error:
        return "" if error.errno in NO_ROOM else f"{directory} cannot be written ({error.strerror})"
    return ""


def _is_ours(directory: str) -> bool:
    """A folder in a place that everybody writes to must be our own, and no link."""
    status = os.lstat(directory)
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not os.path.islink(directory))
