"""The use of each GPU by the processes of a run: memory and share of its time.

NVML reports the PIDs of the host. If the monitor runs in another PID namespace (as in most containers), the
same PID there is another process. A PID is attributed to the run only if that is certain.
"""

from __future__ import annotations

import ctypes
import os

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_FOUND,
    NOT_SUPPORTED,
    NvmlError,
)
from runvitals.monitoring.collectors.nvidia.pacing import Paced, Retries
from runvitals.monitoring.collectors.nvidia.readings import try_read
from runvitals.monitoring.collectors.plumbing.run_processes import UNKNOWN_SUM, RunProcesses, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

# Listing processes holds a driver lock that blocks the application: 1 % of the time for compute processes,
# 0.1 % for graphics processes, which a run rarely has.
COMPUTE_SHARE = 0.01
GRAPHICS_SHARE = 0.001
GRAPHICS_EVERY_S = 10.0

COMPUTE_LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
GRAPHICS_LISTS = ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")
UNKNOWN_MEMORY = 0xFFFFFFFFFFFFFFFF
# The inode of the initial PID namespace, that of the host (PROC_PID_INIT_INO).
HOST_NAMESPACE = "pid:[4026531836]"

# Other processes that the facts list, at most.
MAX_OTHERS = 32
_MEMORY_KEYS = "process.memoryAllocatedBytes, process.memoryAllocated"
_SHARE_KEYS = "process.gpu, process.memory, process.encoderUtilization, process.decoderUtilization"
UNKNOWN_SIZE = "the size of the memory is unknown"
HIDDEN = (
    "the driver reports the PIDs of the host, which are not visible in this PID namespace; start the "
    "container with --pid=host (in Kubernetes hostPID: true)"
)


class NvmlProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t, version 2 and later."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class NvmlProcessUtilization(ctypes.Structure):
    """nvmlProcessUtilizationSample_t: percent of an interval that ended at `time_us`."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("time_us", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    ]


class RunGpuProcesses:
    """The processes of a run, and which PIDs reported by the driver belong to them.

    Args:
        proc: procfs of our own PID namespace.
        host_proc: procfs of the host if it is mounted, else `proc`.
    """

    __slots__ = ("_host_proc", "_is_host", "_namespace", "_proc", "_processes", "pids")

    def __init__(self, scope: Scope, proc: str, host_proc: str) -> None:
        self._processes = RunProcesses(scope, proc)
        self._proc = proc
        self._host_proc = host_proc
        self._namespace = _link(f"{proc}/self/ns/pid")
        # Without a procfs (Windows) there are no namespaces either.
        self._is_host = self._namespace == HOST_NAMESPACE or not os.path.exists(proc)
        self.pids: set[int] = set()

    @property
    def knows_others(self) -> bool:
        """Whether a PID that is not ours certainly belongs to a process outside of the run."""
        return self._is_host or self._host_proc != self._proc

    @property
    def host_memory_bytes(self) -> int:
        """The memory of the host, which some GPUs share; 0 if it is unknown."""
        words = (read_text(f"{self._host_proc}/meminfo") or "").split(None, 2)
        return int(words[1]) * 1024 if words[:1] == ["MemTotal:"] and words[1].isdigit() else 0

    def refresh(self, mono_s: float) -> None:
        """Update the list of the run's processes."""
        self.pids = self._processes.pids(mono_s)

    def has(self, number: int) -> bool:
        """Return whether a PID reported by the driver belongs to the run.

        Outside the host's PID namespace an equal PID counts only if that process has a GPU open: some drivers
        translate PIDs, most do not.
        """
        if number in self.pids and (self._is_host or opens_gpu(self._proc, number)):
            return True
        return self._is_ours_on_host(number)

    def may_be_hidden(self) -> bool:
        """Return whether the driver may list a process of the run under a PID of another namespace."""
        return not self._is_host and any(opens_gpu(self._proc, pid) for pid in self.pids)

    def _is_ours_on_host(self, number: int) -> bool:
        """Look the PID up in the host's procfs: `NSpid:` lists the PIDs of a process, the host's first."""
        if self._host_proc == self._proc:
            return False
        text = read_text(f"{self._host_proc}/{number}/status") or ""
        numbers = text.partition("\nNSpid:")[2].partition("\n")[0].split()
        if not numbers or int(numbers[-1]) not in self.pids:
            return False
        # Several containers may have a process 7. It is ours only in our own namespace.
        return _link(f"{self._host_proc}/{number}/ns/pid") == self._namespace


class GpuProcessUsage:
    """The use of one GPU: by the processes of the run, and by all others together.

    Args:
        total_bytes: the memory of the GPU; 0 if it is unknown.
        is_unified: whether it is the host's, so that only the processes tell how much of it the GPU uses.

    `sample` fills `values` and `device_values`, by the end of the keys `gpu.process.{i}.…` and `gpu.{i}.…`.
    It sets `in_use`: whether a process of the run uses the GPU (None if not known yet), and `others`: the
    PIDs of the other processes on it (None if not known).
    """

    __slots__ = (
        "_backoffs", "_drawing", "_graphics", "_handle", "_is_unified", "_last_us", "_members", "_nvml",
        "_paced", "_processes", "_shares", "_total_bytes", "_unknown", "device_values", "in_use", "others",
        "values",
    )  # fmt: skip

    def __init__(
        self, nvml: Nvml, handle: object, members: RunGpuProcesses, total_bytes: int, is_unified: bool
    ) -> None:
        self.in_use: bool | None = None
        self.others: list[int] | None = None
        self.values: dict[str, float] = {}
        self.device_values: dict[str, float] = {}
        self._nvml = nvml
        self._handle = handle
        self._members = members
        self._total_bytes = total_bytes
        self._is_unified = is_unified
        self._paced = Paced(COMPUTE_SHARE)
        self._graphics = Paced(GRAPHICS_SHARE, GRAPHICS_EVERY_S)
        self._drawing: dict[int, float | None] = {}
        self._backoffs = {_MEMORY_KEYS: Retries(), _SHARE_KEYS: Retries()}
        self._unknown: dict[str, str] = {}
        self._last_us = 0
        self._processes = (NvmlProcessInfo * 32)()
        self._shares = (NvmlProcessUtilization * 128)()

    def sample(self, mono_s: float) -> None:
        """Read what is due.

        Raises:
            NvmlError: with a code in DEVICE_GONE.
        """
        self.values = {}
        self.device_values = {}
        if not self._paced.due(mono_s):
            return
        began_ns = self._paced.begin()
        try:
            self.values.update(try_read(self._memory, self._backoffs[_MEMORY_KEYS], mono_s))
            if self.in_use:
                self.values.update(try_read(self._busy, self._backoffs[_SHARE_KEYS], mono_s))
        finally:
            self._paced.end(mono_s, began_ns)

    def missing(self) -> dict[str, str]:
        """Reading -> why it is missing."""
        missing = dict(self._unknown)
        for names, backoff in self._backoffs.items():
            if backoff.reason:
                missing.update(dict.fromkeys(names.split(", "), backoff.reason))
        reason = self._backoffs[_MEMORY_KEYS].reason
        if reason:
            missing["otherMemoryBytes"] = reason
        elif not self._members.knows_others:
            missing["otherMemoryBytes"] = HIDDEN
        return missing

    def _memory(self, mono_s: float) -> dict[str, float]:
        if self._graphics.due(mono_s):
            began_ns = self._graphics.begin()
            try:
                self._drawing = self._list(GRAPHICS_LISTS)
            except NvmlError as error:
                if error.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    raise
            finally:
                self._graphics.end(mono_s, began_ns)
        # A process that computes and draws is in both lists, with the same memory.
        listed = {**self._drawing, **self._list(COMPUTE_LISTS)}
        ours = {pid: used for pid, used in listed.items() if self._members.has(pid)}
        others = {pid: used for pid, used in listed.items() if pid not in ours}
        self.in_use = bool(ours)
        self._unknown = {}
        if self._is_unified:
            self.device_values = self._sum_sizes(listed.values(), "")
        if self._members.knows_others:
            self.others = sorted(others)[:MAX_OTHERS]
            memory = total_of(others.values())
            if memory is not None:
                self.device_values["otherMemoryBytes"] = memory
            else:
                self._unknown["otherMemoryBytes"] = UNKNOWN_SUM
        return self._sum_sizes(ours.values(), "process.") if ours else {}

    def _sum_sizes(self, sizes: Iterable[float | None], prefix: str) -> dict[str, float]:
        """Bytes used, and their share of the GPU's memory; nothing if one of the sizes is unknown."""
        used = total_of(sizes)
        if used is None:
            self._unknown[prefix + "memoryAllocatedBytes"] = UNKNOWN_SUM
            self._unknown[prefix + "memoryAllocated"] = UNKNOWN_SUM
            return {}
        if not self._total_bytes:
            self._unknown[prefix + "memoryAllocated"] = UNKNOWN_SIZE
            return {"memoryAllocatedBytes": used}
        return {"memoryAllocatedBytes": used, "memoryAllocated": used * 100.0 / self._total_bytes}

    def _list(self, functions: tuple[str, ...]) -> dict[int, float | None]:
        """PID -> bytes; None if the driver does not report them (Windows, WSL)."""
        for _ in range(3):
            count = ctypes.c_uint(len(self._processes))
            try:
                self._nvml.first(functions, self._handle, ctypes.byref(count), self._processes)
            except NvmlError as error:
                if error.code != INSUFFICIENT_SIZE:
                    raise
                self._processes = (NvmlProcessInfo * (count.value + 16))()
                continue
            sizes: dict[int, float | None] = {}
            for process in self._processes[: count.value]:
                used = None if process.memory_bytes == UNKNOWN_MEMORY else process.memory_bytes
                # With MIG, a process is listed once for each slice that it uses.
                sizes[process.pid] = total_of((sizes.get(process.pid, 0.0), used))
            return sizes
        raise NvmlError(INSUFFICIENT_SIZE, functions[0])

    def _busy(self, mono_s: float) -> dict[str, float]:
        """The run's share of the GPU: each process' mean since the last call, added up, at most 100."""
        of_ours: dict[int, list[tuple[int, ...]]] = {}
        for sample in self._samples():
            self._last_us = max(self._last_us, sample.time_us)
            shares = (sample.sm, sample.memory, sample.encoder, sample.decoder)
            if max(shares) <= 100 and self._members.has(sample.pid):
                of_ours.setdefault(sample.pid, []).append(shares)
        totals = dict.fromkeys(_SHARES, 0.0)
        for samples in of_ours.values():
            for name, *shares_of_one in zip(_SHARES, *samples, strict=True):
                totals[name] += sum(shares_of_one) / len(samples)
        return {name: min(total, 100.0) for name, total in totals.items()}

    def _samples(self) -> list[NvmlProcessUtilization]:
        """Samples of the processes that used this GPU since the last call. Idle ones are not listed."""
        function = "nvmlDeviceGetProcessUtilization"
        since = ctypes.c_ulonglong(self._last_us)
        for _ in range(3):
            count = ctypes.c_uint(len(self._shares))
            code = self._nvml.code(function, self._handle, self._shares, ctypes.byref(count), since)
            if code == 0:
                return self._shares[: count.value]
            if code == NOT_FOUND:
                return []
            if code != INSUFFICIENT_SIZE:
                raise NvmlError(code, function)
            self._shares = (NvmlProcessUtilization * (count.value + 64))()
        raise NvmlError(INSUFFICIENT_SIZE, function)


def opens_gpu(proc: str, pid: int) -> bool:
    """Return whether a process has an NVIDIA device open."""
    folder = f"{proc}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # the process has ended, or belongs to another user
        return False
    return any(_link(f"{folder}/{name}").startswith("/dev/nvidia") for name in names)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # ended, no permission, or a sandbox without /proc/PID/ns
        return ""


_SHARES = ("gpu", "memory", "encoderUtilization", "decoderUtilization")
