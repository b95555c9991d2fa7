"""`restore`: a saved file of a run, as W&B's function of this name gets it."""

from __future__ import annotations

import io
import os
import shutil

from runvitals.readers.servers.wandb.api import Api
from runvitals.sdk.start import current_run


def restore(
    name: str, run_path: str | None = None, replace: bool = False, root: str | None = None
) -> io.TextIOWrapper:
    """Copy a file that a run saved into a folder, and return it, open for reading.

    Args:
        name: under which it was saved.
        run_path: `id`, `project/id` or `entity/project/id` of a run on the server; default: the open run.
        replace: replace a file that is there; else that one is returned.
        root: the folder; default: the working directory.

    Raises:
        ValueError: no `run_path`, and no run is open.
        FileNotFoundError: the open run has saved no such file.
        RunNotFound, ServerError: see `Api`.

    Example:
        >>> weights = runvitals.restore("model.pt", run_path="team/digits/ab12cd34")
    """
    folder = os.getcwd() if root is None else root
    path = os.path.join(folder, name)
    run = current_run()
    if run_path is None and run is None:
        raise ValueError("restore(): no run is open; expected run_path")
    if not os.path.exists(path) or replace:
        if run_path is None and run is not None:
            saved = next((file for file in run.files() if file.name == name), None)
            if saved is None or saved.path is None:
                raise FileNotFoundError(f"run {run.id} has saved no file {name!r}")
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            shutil.copyfile(saved.path, path)
        elif run_path is not None:
            Api().run(run_path).file(name).download(root=folder, replace=replace)
    return open(path)
