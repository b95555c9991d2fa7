"""Errors of a GPU that the driver reports (Xid), and other critical events, as events of the run."""

from __future__ import annotations

import ctypes

from runvitals.monitoring.collectors.nvidia.nvml import TIMEOUT, NvmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

_DOUBLE_BIT_ERROR = 0x2
_XID = 0x8
_MEMORY_RETIRED, _MEMORY_RETIREMENT_FAILED = 0x400, 0x800
_UNAVAILABLE, _RECOVERY = 0x4000, 0x8000
# Newer kinds separately: an older driver rejects a set that contains an unknown kind.
_KINDS = (
    _DOUBLE_BIT_ERROR | _XID | _MEMORY_RETIRED | _MEMORY_RETIREMENT_FAILED | _UNAVAILABLE | _RECOVERY,
    _DOUBLE_BIT_ERROR | _XID,
    _XID,
)
_TEXTS = {
    _DOUBLE_BIT_ERROR: "a memory error that could not be corrected",
    _MEMORY_RETIRED: "a part of its memory was retired",
    _MEMORY_RETIREMENT_FAILED: "a part of its memory could not be retired",
    _UNAVAILABLE: "is not available",
    _RECOVERY: "needs a recovery action (see nvidia-smi -q)",
}
# The common ones; NVIDIA's list (https://docs.nvidia.com/deploy/xid-errors/) has about a hundred more.
XIDS = {
    8: "the GPU stopped processing",
    13: "exception of the graphics engine, mostly an error in a kernel",
    31: "memory page fault, mostly an illegal address in a kernel",
    32: "invalid or corrupted command stream",
    38: "driver firmware error",
    43: "the GPU stopped processing: a program's fault, it was ended",
    45: "preemptive clean-up, after another error or a killed program",
    48: "double-bit memory error",
    61: "internal micro-controller breakpoint",
    62: "internal micro-controller halt",
    63: "a memory row is to be remapped, or a page retired",
    64: "a memory row could not be remapped, or a page not retired",
    68: "video processor exception",
    69: "exception of the graphics engine's class",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "a high rate of single-bit memory errors",
    94: "contained memory error: the program that met it was ended",
    95: "uncontained memory error: the GPU needs a reset",
    109: "time-out of a context switch",
    119: "time-out of the GPU system processor (GSP)",
    120: "error of the GPU system processor (GSP)",
    121: "error of the link between CPU and GPU (C2C)",
    140: "memory error that was not recovered",
    143: "the GPU could not be initialized",
    149: "NVLink fatal error",
    154: "the GPU needs a recovery action",
}
# Errors caused by programs; all others are the device's.
_OF_PROGRAMS = frozenset((13, 31, 43, 45, 69))
# Limit per tick: a failing GPU reports thousands.
_AT_MOST = 32


class NvmlEventData(ctypes.Structure):
    """nvmlEventData_t."""

    _fields_ = [
        ("device", ctypes.c_void_p),
        ("kind", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class XidEvents:
    """Reads the driver's queue of events without waiting.

    Raises:
        NvmlError: this driver has no events (only Linux has them).
    """

    __slots__ = ("_indices", "_nvml", "_set")

    def __init__(self, nvml: Nvml, devices: Iterable[tuple[int, ctypes.c_void_p]]) -> None:
        self._nvml = nvml
        self._set = ctypes.c_void_p()
        self._indices: dict[int | None, int] = {}
        nvml.call("nvmlEventSetCreate", ctypes.byref(self._set))
        for index, handle in devices:
            if self._register(handle):
                self._indices[handle.value] = index

    def take(self) -> list[dict[str, object]]:
        """Return the events since the last call.

        Raises:
            NvmlError: a device was lost, which invalidates the queue.
        """
        events: list[dict[str, object]] = []
        data = NvmlEventData()
        for _ in range(_AT_MOST):
            code = self._nvml.code("nvmlEventSetWait_v2", self._set, ctypes.byref(data), ctypes.c_uint(0))
            if code == TIMEOUT:
                break
            if code:
                raise NvmlError(code, "nvmlEventSetWait_v2")
            events.append(_event(self._indices.get(data.device), data.kind, data.data))
        return events

    def free(self) -> None:
        """Free the driver's queue."""
        self._nvml.code("nvmlEventSetFree", self._set)

    def _register(self, handle: ctypes.c_void_p) -> bool:
        function = "nvmlDeviceRegisterEvents"
        return any(
            self._nvml.code(function, handle, ctypes.c_ulonglong(kinds), self._set) == 0 for kinds in _KINDS
        )


class CriticalErrors:
    """`gpu.{i}.criticalErrors`: how many events of level error each GPU has had. Absent before the first."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def note(self, tick: Tick, since: int) -> None:
        """Count the tick's events from a position on, and write the numbers of all GPUs."""
        for event in tick.events[since:]:
            index = event.get("gpu")
            if event["level"] == "error" and isinstance(index, int):
                self._counts[index] = self._counts.get(index, 0) + 1
        for index, count in self._counts.items():
            tick.gauges[f"gpu.{index}.criticalErrors"] = float(count)


def xid_event(index: int | None, xid: int) -> dict[str, object]:
    """Return the event for an Xid error of a GPU (None: it is unknown which)."""
    text = f"{_gpu(index)}: Xid {xid}, {XIDS.get(xid, 'see NVIDIA’s list of Xid errors')}"
    level = "warning" if xid in _OF_PROGRAMS else "error"
    return {"name": "gpu_xid", "level": level, "text": text, "xid": xid, **_about(index)}


def _event(index: int | None, kind: int, data: int) -> dict[str, object]:
    if kind == _XID:
        return xid_event(index, data)
    text = f"{_gpu(index)}: {_TEXTS.get(kind, f'event {kind:#x}')}"
    level = "warning" if kind == _MEMORY_RETIRED else "error"
    return {"name": "gpu_event", "level": level, "text": text, **_about(index)}


def _gpu(index: int | None) -> str:
    return "a GPU" if index is None else f"GPU {index}"


def _about(index: int | None) -> dict[str, object]:
    return {} if index is None else {"gpu": index}
