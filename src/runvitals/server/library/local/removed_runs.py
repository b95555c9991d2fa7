"""Deletes runs of this machine for good."""

from __future__ import annotations

import os
import shutil
from typing import Final

from runvitals.model.errors import CannotWrite
from runvitals.model.run import Run
from runvitals.model.state import RUNNING

_LEFTOVER: Final = ".removed-"
"""The beginning of the name of a folder that is being deleted. No run is called so."""


def check_removable(run: Run) -> None:
    """Raise ValueError for a run that must be kept."""
    if run.deleted_ms is None:
        raise ValueError(f"run {run.id!r} is not in the trash")
    if run.state == RUNNING:
        raise ValueError(f"run {run.id!r} is still running")


def remove_folder(folder: str) -> None:
    """Delete the folder of a run. It is no run any more before the first file is deleted.

    Raises:
        CannotWrite: it cannot be renamed or deleted.
    """
    runs, run_id = os.path.split(folder)
    leftover = os.path.join(runs, f"{_LEFTOVER}{run_id}-{os.urandom(4).hex()}")
    try:
        os.rename(folder, leftover)
        if os.path.islink(leftover):
            os.unlink(leftover)
        else:
            shutil.rmtree(leftover)
    except FileNotFoundError:
        return
    except OSError as error:
        raise CannotWrite(
            f"{error.filename or folder}: {error.strerror}: the run cannot be deleted; a user who may write "
            f"to {runs} can"
        ) from error
