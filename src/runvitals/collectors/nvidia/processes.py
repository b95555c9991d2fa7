"""What the processes of a run use of each GPU: their own memory and their own share of its time.

NVML names processes by the numbers of the host. Where the monitor lives in a PID namespace of its own (most
containers), those numbers are somebody else's here, and no number is taken for one of ours unless that is
certain.
"""

from __future__ import annotations

import ctypes
import os

from runvitals.collectors.base import read_text
from runvitals.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_FOUND,
    NOT_SUPPORTED,
    NvmlError,
)
from runvitals.collectors.nvidia.pacing import Paced, Retries
from runvitals.collectors.nvidia.readings import try_read
from runvitals.collectors.plumbing.run_processes import RunProcesses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.nvidia.nvml import Nvml

# Lists of processes hold the driver's lock while the application waits for it: 1 % of the time for those of
# CUDA, 0.1 % for those that draw, of which a run has none as a rule.
COMPUTE_SHARE = 0.01
GRAPHICS_SHARE = 0.001
GRAPHICS_EVERY_S = 10.0

COMPUTE_LISTS = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
GRAPHICS_LISTS = ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")
UNKNOWN_MEMORY = 0xFFFFFFFFFFFFFFFF
# The inode of the kernel's first PID namespace, the host's (PROC_PID_INIT_INO).
HOST_NAMESPACE = "pid:[4026531836]"

HIDDEN = (
    "the driver names processes by the host's numbers, which this PID namespace hides; start the container "
    "with --pid=host (in Kubernetes hostPID: true)"
)


class NvmlProcessInfo(ctypes.Structure):
    """nvmlProcessInfo_t since its second version."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory_bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class NvmlProcessUtilization(ctypes.Structure):
    """nvmlProcessUtilizationSample_t: percent of a time that ended at `time_us`."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("time_us", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    ]


class RunGpuProcesses:
    """The processes of a run, and which of them a number of the driver's means.

    Args:
        proc: procfs of our own PID namespace.
        host_proc: procfs of the host, where it is mounted; else the same as `proc`.
    """

    __slots__ = ("_host_proc", "_is_host", "_namespace", "_proc", "_processes", "pids")

    def __init__(self, scope: Scope, proc: str, host_proc: str) -> None:
        self._processes = RunProcesses(scope, proc)
        self._proc = proc
        self._host_proc = host_proc
        self._namespace = _link(f"{proc}/self/ns/pid")
        # Where there is no procfs at all (Windows), there are no namespaces either.
        self._is_host = self._namespace == HOST_NAMESPACE or not os.path.exists(proc)
        self.pids: set[int] = set()

    def refresh(self, mono_s: float) -> None:
        """Take in who has joined, and forget who has gone."""
        self.pids = self._processes.pids(mono_s)

    def has(self, number: int) -> bool:
        """Whether the process that the driver gives this number is one of ours.

        Outside the host's namespace one of the same number is only if it has a GPU open: some drivers
        translate the numbers, most do not.
        """
        if number in self.pids and (self._is_host or opens_gpu(self._proc, number)):
            return True
        return self._is_ours_on_host(number)

    def may_be_hidden(self) -> bool:
        """Whether a member has a GPU open and the driver's numbers may mean others."""
        return not self._is_host and any(opens_gpu(self._proc, pid) for pid in self.pids)

    def _is_ours_on_host(self, number: int) -> bool:
        """By the host's procfs, if it is mounted: `NSpid:` lists a process' numbers, the host's first."""
        if self._host_proc == self._proc:
            return False
        text = read_text(f"{self._host_proc}/{number}/status") or ""
        numbers = text.partition("\nNSpid:")[2].partition("\n")[0].split()
        if not numbers or int(numbers[-1]) not in self.pids:
            return False
        # Several containers have a process 7: it is ours only in our own namespace.
        return _link(f"{self._host_proc}/{number}/ns/pid") == self._namespace


class GpuProcessUsage:
    """What the run's processes use of one GPU.

    After `sample`, `in_use` is whether any is on it (None = unknown yet), and `values` holds, by the key's
    end, what was read at this moment.
    """

    __slots__ = (
        "_backoffs", "_drawing", "_graphics", "_handle", "_last_us", "_members", "_nvml", "_paced",
        "_processes", "_shares", "_total_bytes", "in_use", "values",
    )  # fmt: skip

    def __init__(self, nvml: Nvml, handle: object, members: RunGpuProcesses, total_bytes: int) -> None:
        self.in_use: bool | None = None
        self.values: dict[str, float] = {}
        self._nvml = nvml
        self._handle = handle
        self._members = members
        self._total_bytes = total_bytes
        self._paced = Paced(COMPUTE_SHARE)
        self._graphics = Paced(GRAPHICS_SHARE, GRAPHICS_EVERY_S)
        self._drawing: dict[int, int | None] = {}
        self._backoffs = {"processes": Retries(), "process gpu, memory": Retries()}
        self._last_us = 0
        self._processes = (NvmlProcessInfo * 32)()
        self._shares = (NvmlProcessUtilization * 128)()

    def sample(self, mono_s: float) -> None:
        """Read what is due.

        Raises:
            NvmlError: with a code of DEVICE_GONE.
        """
        self.values = {}
        if not self._paced.due(mono_s):
            return
        began_ns = self._paced.begin()
        try:
            self.values.update(try_read(self._memory, self._backoffs["processes"], mono_s))
            if self.in_use:
                self.values.update(try_read(self._busy, self._backoffs["process gpu, memory"], mono_s))
        finally:
            self._paced.end(mono_s, began_ns)

    def missing(self) -> dict[str, str]:
        """Why a reading is not there, by its name."""
        return {name: backoff.reason for name, backoff in self._backoffs.items() if backoff.reason}

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
        # A process may compute and draw; its memory is the same in both lists.
        listed = {**self._drawing, **self._list(COMPUTE_LISTS)}
        ours = {pid: used for pid, used in listed.items() if self._members.has(pid)}
        self.in_use = bool(ours)
        known = [used for used in ours.values() if used is not None]
        if not known:
            return {}
        values = {"memoryAllocatedBytes": float(sum(known))}
        if self._total_bytes:
            values["memoryAllocated"] = sum(known) * 100.0 / self._total_bytes
        return values

    def _list(self, functions: tuple[str, ...]) -> dict[int, int | None]:
        """Process number -> bytes, None where the driver does not tell (Windows, WSL)."""
        for _ in range(3):
            count = ctypes.c_uint(len(self._processes))
            try:
                self._nvml.first(functions, self._handle, ctypes.byref(count), self._processes)
            except NvmlError as error:
                if error.code != INSUFFICIENT_SIZE:
                    raise
                self._processes = (NvmlProcessInfo * (count.value + 16))()
                continue
            found: dict[int, int | None] = {}
            for process in self._processes[: count.value]:
                used = None if process.memory_bytes == UNKNOWN_MEMORY else process.memory_bytes
                # On a GPU in slices a process is listed once for each slice it uses.
                before = found.get(process.pid)
                found[process.pid] = used if before is None else before + (used or 0)
            return found
        raise NvmlError(INSUFFICIENT_SIZE, functions[0])

    def _busy(self, mono_s: float) -> dict[str, float]:
        """Shares of our processes, each the mean of its samples since the last call, together at most 100."""
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
        """Of processes that did anything on this GPU since the last call; none is listed that did nothing."""
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
    """Whether a process has an NVIDIA device open."""
    folder = f"{proc}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:  # gone, or another user's
        return False
    return any(_link(f"{folder}/{name}").startswith("/dev/nvidia") for name in names)


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # gone, forbidden, or a sandbox without it
        return ""


_SHARES = ("gpu", "memory", "encoderUtilization", "decoderUtilization")
