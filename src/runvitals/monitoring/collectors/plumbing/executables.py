"""Find executables. A separate module, so that probes import nothing else."""

from __future__ import annotations

import os


def find(name: str, *fallbacks: str) -> str | None:
    """Find an executable.

    The first of that name on PATH, else the first of the absolute `fallbacks` that exists, else None.

    The PATH of batch jobs often lacks /usr/local/bin and /opt/…. Relative folders in PATH are not searched.

    Example:
        >>> find("rocm-smi", "/opt/rocm/bin/rocm-smi")
        '/opt/rocm/bin/rocm-smi'
    """
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    on_path = [os.path.join(folder, name) for folder in folders if os.path.isabs(folder)]
    for path in (*on_path, *fallbacks):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
