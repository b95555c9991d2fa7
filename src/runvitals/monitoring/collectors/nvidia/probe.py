"""The probe for NVIDIA GPUs: a cheap check that imports nothing else on machines without a driver."""

from __future__ import annotations

import os
import sys

from runvitals.monitoring.collectors.base import Absent
from runvitals.monitoring.collectors.nvidia.locations import NVIDIA_SMI, windows_library
from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.plumbing.executables import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector, Scope

NO_DEVICE_FILE = (
    "the NVIDIA driver is loaded, but /dev/nvidiactl does not exist: give the container its GPUs "
    "(docker run --gpus all; in Kubernetes the resource nvidia.com/gpu)"
)

# Vendors that may ship a tool called nvidia-smi for their own cards; each has a collector.
_OTHERS = ("1002", "1d94", "1ded", "1e3e", "1ed5", "2057", "9999")


def probe(scope: Scope) -> Collector:
    """Return the collector of this machine's GPUs.

    Whether the driver responds is found out later, in the thread that calls it: it may hang.

    Raises:
        Absent: there is neither a driver with its library nor nvidia-smi; the message says what to do.
    """
    reason = missing(scope.path("/proc"), "/dev")
    if reason is None:
        from runvitals.monitoring.collectors.nvidia.collector import open_library

        return open_library(scope)
    tool = find("nvidia-smi", *NVIDIA_SMI) if sys.platform == "linux" else None
    if tool is None or any(pci.cards(scope).get(maker) for maker in _OTHERS):
        raise Absent(reason)
    from runvitals.monitoring.collectors.nvidia.smi import NvidiaSmi

    return NvidiaSmi(scope, tool, reason, certain=False)


def missing(proc: str, dev: str, platform: str = sys.platform) -> str | None:
    """Why the driver cannot be used, or None if it can.

    Args:
        proc: path of procfs.
        dev: folder of the device files.
        platform: as in `sys.platform`.
    """
    if platform == "darwin":
        return "there are no NVIDIA drivers for macOS"
    if platform == "win32":
        return None if windows_library() else "there is no nvml.dll: no NVIDIA driver is installed"
    if os.path.exists(f"{dev}/nvidiactl"):
        return None
    if os.path.exists(f"{dev}/dxg"):
        # The Windows Subsystem for Linux: the driver is Windows', its library is mounted in.
        has_library = os.path.exists("/usr/lib/wsl/lib/libnvidia-ml.so.1")
        return None if has_library else "/dev/dxg exists, but /usr/lib/wsl/lib has no NVIDIA library"
    if os.path.exists(f"{proc}/driver/nvidia/version"):
        return NO_DEVICE_FILE
    return "no NVIDIA driver: neither /dev/nvidiactl nor /proc/driver/nvidia exists"
