"""The processes of this machine that use a GPU, and how much GPU memory each of them uses."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from dataclasses import dataclass

from runvitals.monitoring.collectors.amd.processes import parse_fdinfo
from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.nvidia.nvml import Nvml, NvmlError, load
from runvitals.monitoring.collectors.nvidia.processes import (
    COMPUTE_LISTS,
    GRAPHICS_LISTS,
    UNKNOWN_MEMORY,
    NvmlProcessInfo,
)
from runvitals.monitoring.collectors.plumbing.run_processes import total_of

_MAX_PROCESSES = 512
# Listing processes holds a lock of the driver, and reading the open files of all processes takes a while.
_EVERY_S = 4.0


@dataclass(frozen=True, slots=True)
class GpuUse:
    """The GPUs of a process, and its memory on them; None if the driver does not say it of all."""

    devices: tuple[str, ...]
    memory_bytes: float | None


class GpuProcesses:
    """The processes that use a GPU.

    NVIDIA's driver lists them. For AMD's cards they come from the files of those processes that this user may
    read.

    Args:
        proc: mount point of procfs.
        nvml: the driver's library, initialized; None without one (`open_nvml`).

    Example:
        >>> GpuProcesses("/proc", open_nvml()).read([4711], 100.0)
        {4711: GpuUse(devices=('0', '1'), memory_bytes=68719476736.0)}
    """

    def __init__(self, proc: str, nvml: Nvml | None) -> None:
        self._proc = proc
        self._read_s = float("-inf")
        self._uses: dict[int, GpuUse] = {}
        self._nvml = nvml

    def read(self, pids: Iterable[int], mono_s: float) -> dict[int, GpuUse]:
        """Use by PID. It is read again every 4 s."""
        if mono_s - self._read_s >= _EVERY_S:
            self._read_s = mono_s
            self._uses = {**self._of_amd(pids), **self._of_nvidia()}
        return self._uses

    def close(self) -> None:
        """Release the driver."""
        if self._nvml is not None:
            self._nvml.code("nvmlShutdown")

    def _of_nvidia(self) -> dict[int, GpuUse]:
        used: dict[int, dict[str, float | None]] = {}
        nvml = self._nvml
        if nvml is None:
            return {}
        try:
            count = nvml.uint("nvmlDeviceGetCount_v2")
        except NvmlError:
            return {}
        for gpu in range(count):
            for pid, memory in _memory_by_pid(nvml, gpu).items():
                used.setdefault(pid, {})[str(gpu)] = memory
        return {pid: _use(devices) for pid, devices in used.items()}

    def _of_amd(self, pids: Iterable[int]) -> dict[int, GpuUse]:
        if not os.path.isdir("/sys/module/amdgpu"):
            return {}
        used = {}
        for pid in pids:
            cards: dict[tuple[str, str], float | None] = {}
            for descriptor in self._cards(pid):
                text = read_text(f"{self._proc}/{pid}/fdinfo/{descriptor}")
                entry = parse_fdinfo(text) if text is not None else None
                if entry is not None:
                    cards[entry[0], entry[1]] = entry[2].vram_bytes
            if cards:
                addresses = tuple(sorted({pci for pci, _ in cards}))
                used[pid] = GpuUse(addresses, total_of(cards.values()))
        return used

    def _cards(self, pid: int) -> list[str]:
        """Return the descriptors of a process that are open cards."""
        folder = f"{self._proc}/{pid}/fd"
        try:
            return [
                name for name in os.listdir(folder) if os.readlink(f"{folder}/{name}").startswith("/dev/dri/")
            ]
        except OSError:  # it has ended, or belongs to another user
            return []


def _use(devices: dict[str, float | None]) -> GpuUse:
    return GpuUse(tuple(devices), total_of(devices.values()))


def open_nvml() -> Nvml | None:
    """Return the driver's library, initialized; None without one."""
    try:
        nvml = Nvml(load())
        nvml.first(("nvmlInit_v2", "nvmlInit"))
    except (OSError, NvmlError):
        return None
    return nvml


def _memory_by_pid(nvml: Nvml, gpu: int) -> dict[int, float | None]:
    """Return the memory by PID on one GPU; none for a GPU that does not respond."""
    memory: dict[int, float | None] = {}
    handle = ctypes.c_void_p()
    for functions in (GRAPHICS_LISTS, COMPUTE_LISTS):
        processes = (NvmlProcessInfo * _MAX_PROCESSES)()
        count = ctypes.c_uint(_MAX_PROCESSES)
        try:
            nvml.call("nvmlDeviceGetHandleByIndex_v2", gpu, ctypes.byref(handle))
            nvml.first(functions, handle, ctypes.byref(count), processes)
        except NvmlError:
            continue
        listed: dict[int, float | None] = {}
        for process in processes[: count.value]:
            used = None if process.memory_bytes == UNKNOWN_MEMORY else float(process.memory_bytes)
            # With MIG, a process is listed once for each slice that it uses.
            listed[process.pid] = total_of((listed.get(process.pid, 0.0), used))
        memory |= listed  # a process that computes and draws is in both lists, with the same memory
    return memory
