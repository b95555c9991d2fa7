"""The folders where NVIDIA's library and program are installed."""

from __future__ import annotations

import os

# Paths of nvidia-smi, which may not be on PATH.
NVIDIA_SMI = (
    "/usr/bin/nvidia-smi",
    "/usr/lib/wsl/lib/nvidia-smi",
    "/usr/local/nvidia/bin/nvidia-smi",
    "/opt/bin/nvidia-smi",
    "/mnt/c/Windows/System32/nvidia-smi.exe",
)


def windows_library() -> str | None:
    """Return the path of nvml.dll, or None. Older drivers install it outside Windows' system folder."""
    system = os.environ.get("SYSTEMROOT", r"C:\Windows")
    programs = os.environ.get("PROGRAMFILES", r"C:\Program Files")
    paths = (rf"{system}\System32\nvml.dll", rf"{programs}\NVIDIA Corporation\NVSMI\nvml.dll")
    return next((path for path in paths if os.path.exists(path)), None)
