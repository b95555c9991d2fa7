"""Chooses the data folder of a run: the requested one, or a writable fallback."""

from __future__ import annotations

import os

from runvitals.base.private_folders import make_private
from runvitals.journal import paths
from runvitals.journal.writer import TEMPORARY_ERRORS
from runvitals.monitoring.settings.messages import notify
from runvitals.monitoring.settings.setting_definition import SettingError


class NoWritableFolder(OSError):
    """No folder can store the run. The message says why and what to do."""


def working_folder() -> str:
    """Return the current directory, or the root if it was deleted or is not accessible."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


def usable_directory(folder: str | None, run_id: str, resume: str) -> str:
    """Return the data folder, after checking that it is writable and consistent with `resume`.

    A folder that is not writable is replaced by a fallback, with a warning. A folder on a full disk is kept:
    space may be freed, and all processes of a run must choose the same folder.

    Args:
        folder: the requested folder; None for the user's data home.

    Raises:
        SettingError: the run exists and `resume` is `never`, or it does not and `resume` is `must`.
        NoWritableFolder: no folder is writable.
    """
    try:
        directory = os.path.abspath(os.path.expanduser(folder)) if folder else paths.data_dir()
    except OSError as error:  # relative to a current directory that was deleted
        directory, problem = "", f"data folder {folder or ''} could not be resolved ({error.strerror})"
    else:
        _check_resume(directory, run_id, resume)
        problem = _cannot_write(directory)
    if not problem:
        return directory
    try:
        fallback = fallback_folder()
        make_private(fallback)
        usable = _is_ours(fallback) and not _cannot_write(fallback)
    except OSError:
        fallback, usable = "the folder for temporary files", False
    if not usable:
        raise NoWritableFolder(
            f"no writable folder for run {run_id}: {problem}, and {fallback} is not usable either. "
            "Set RUNVITALS_DIR to a writable folder"
        )
    notify(
        f"{problem}; run {run_id} is recorded in {fallback} instead. Set RUNVITALS_DIR to a writable folder"
    )
    return fallback


def fallback_folder() -> str:
    """Return the data folder of runs whose requested folder is not writable.

    Raises:
        OSError: the system has no folder for temporary files.
    """
    import tempfile  # 6 ms, paid only for the fallback

    user = os.getuid() if hasattr(os, "getuid") else "user"
    return os.path.join(tempfile.gettempdir(), f"runvitals-data-{user}")


def runs_kept_elsewhere(directory: str) -> str | None:
    """Return the fallback folder if this user has runs there that are not in `directory`, else None."""
    try:
        fallback = fallback_folder()
        if fallback != directory and _is_ours(fallback) and os.listdir(paths.runs_dir(fallback)):
            return fallback
    except OSError:
        return None
    return None


def _check_resume(directory: str, run_id: str, resume: str) -> None:
    exists = os.path.isdir(paths.run_dir(run_id, directory))
    if exists and resume == "never":
        raise SettingError(f"run {run_id} already exists in {directory}, but resume = 'never'")
    if not exists and resume == "must":
        raise SettingError(f"run {run_id} does not exist in {directory}, but resume = 'must'")


def _cannot_write(directory: str) -> str:
    """Return the reason why the folder is not writable, or ""."""
    folder = paths.runs_dir(directory)
    trial = os.path.join(folder, f".{os.getpid():x}-{os.urandom(4).hex()}.trial")
    try:
        make_private(folder)
        os.close(os.open(trial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(trial)
    except OSError as error:
        return "" if error.errno in TEMPORARY_ERRORS else f"{directory} is not writable ({error.strerror})"
    return ""


def _is_ours(directory: str) -> bool:
    """Return whether a folder in a world-writable place is this user's, and not a symbolic link."""
    status = os.lstat(directory)
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not os.path.islink(directory))
