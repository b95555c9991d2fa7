"""Whether an NVIDIA driver is here: the look that costs nothing where there is none."""

from __future__ import annotations

import os
import sys

from runvitals.collectors.base import Absent
from runvitals.collectors.nvidia.locations import NVIDIA_SMI, windows_library
from runvitals.collectors.plumbing import pci
from runvitals.collectors.plumbing.executables import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Collector, Scope

NO_DEVICE_FILE = (
    "the NVIDIA driver is loaded, but /dev/nvidiactl is not here: give the container its GPUs "
    "(docker run --gpus all; in Kubernetes the resource nvidia.com/gpu)"
)

# Makers whose cards some other tool of the name nvidia-smi may tell of; each has a source of its own.
_OTHERS = ("1002", "1d94", "1ded", "1e3e", "1ed5", "2057", "9999")


def probe(scope: Scope) -> Collector:
    """The GPUs of this machine. Absent, with the remedy, where there is neither a driver with its library nor
    nvidia-smi.

    Whether the driver answers is found out later, in the thread that asks it: it may hang.
    """
    reason = missing(scope.path("/proc"), "/dev")
    if reason is None:
        from runvitals.collectors.nvidia.collector import open_library

        return open_library(scope)
    tool = find("nvidia-smi", *NVIDIA_SMI) if sys.platform == "linux" else None
    if tool is None or any(pci.cards(scope).get(maker) for maker in _OTHERS):
        raise Absent(reason)
    from runvitals.collectors.nvidia.smi import NvidiaSmi

    return NvidiaSmi(scope, tool, reason, certain=False)


def missing(proc: str, dev: str, platform: str = sys.platform) -> str | None:
    """Why no NVIDIA GPU can be asked here, or None where one can.

    Args:
        proc: where procfs lies.
        dev: where device files lie.
    """
    if platform == "darwin":
        return "there are no NVIDIA drivers for macOS"
    if platform == "win32":
        return None if windows_library() else "there is no nvml.dll: no NVIDIA driver is installed"
    if os.path.exists(f"{dev}/nvidiactl"):
        return None
    if os.path.exists(f"{dev}/dxg"):
        # The Windows Subsystem for Linux: the driver is Windows', its library is mounted in.
        there = os.path.exists("/usr/lib/wsl/lib/libnvidia-ml.so.1")
        return None if there else "/dev/dxg is here, but no NVIDIA library in /usr/lib/wsl/lib"
    if os.path.exists(f"{proc}/driver/nvidia/version"):
        return NO_DEVICE_FILE
    return "no NVIDIA driver: neither /dev/nvidiactl nor /proc/driver/nvidia is here"
