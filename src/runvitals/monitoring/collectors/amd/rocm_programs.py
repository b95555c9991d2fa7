"""The folders where ROCm's programs are installed."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.plumbing.executables import find

ROCM_BIN = "/opt/rocm/bin/"


def find_rocm_program(name: str) -> list[str]:
    """Return the paths of a ROCm program: the one on PATH, and the one in /opt/rocm/bin if they differ.

    Hygon's toolkit has a `rocm-smi` for Hygon's cards, which have another collector; it is left out.
    """
    paths = (find(name, ROCM_BIN + name), find(ROCM_BIN + name))
    return list(dict.fromkeys(path for path in paths if path is not None and not _is_hygon(path)))


def _is_hygon(path: str) -> bool:
    real = os.path.realpath(path)
    return "/dtk" in real or os.path.basename(real).startswith("hy-smi")
