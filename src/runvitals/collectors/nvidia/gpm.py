"""Profiling counters of Hopper and newer GPUs (NVML calls them GPM): how busy the parts of the chip are.

Two samples of counters make one reading. Each tick's sample is kept for the next one, so nothing waits.
"""

from __future__ import annotations

import ctypes

from runvitals.collectors.base import MIB
from runvitals.collectors.nvidia.nvml import NvmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.nvidia.nvml import Nvml

# Number of a metric, factor to our unit, end of the key.
METRICS = (
    (1, 1.0, "graphicsActive"),
    (2, 1.0, "smActive"),
    (3, 1.0, "smOccupancy"),
    (5, 1.0, "pipeTensorActive"),
    (7, 1.0, "pipeTensorHmmaActive"),
    (10, 1.0, "dramActive"),
    (11, 1.0, "pipeFp64Active"),
    (12, 1.0, "pipeFp32Active"),
    (13, 1.0, "pipeFp16Active"),
    (20, MIB, "pcieTxBytes"),
    (21, MIB, "pcieRxBytes"),
    (60, MIB, "nvlinkRxBytes"),
    (61, MIB, "nvlinkTxBytes"),
)
# A slice has no links of its own.
SLICE_METRICS = METRICS[:9]
# Counters of a shorter time are too coarse; the library's header asks for 100 ms.
LEAST_S = 0.09
# A sample older than this says little about now: the monitor was asleep, or the device away.
OLDEST_S = 120.0
# The library of some later driver may look at all the entries there can be (334 today).
_ROOM = 512


class GpmMetric(ctypes.Structure):
    """nvmlGpmMetric_t: its last three pointers are names, which nobody reads here."""

    _fields_ = [
        ("number", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_double),
        ("names", ctypes.c_void_p * 3),
    ]


class GpmMetricsGet(ctypes.Structure):
    """nvmlGpmMetricsGet_t: two samples, and the metrics wanted of them."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("older", ctypes.c_void_p),
        ("newer", ctypes.c_void_p),
        ("metrics", GpmMetric * _ROOM),
    ]


class GpmSupport(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("is_supported", ctypes.c_uint)]


def open_profile(nvml: Nvml, handle: object, gpu_instance: int | None = None) -> GpmProfile | None:
    """The profiling counters of a GPU, or of one slice of it; None where it has none."""
    support = GpmSupport(1, 0)
    code = nvml.code("nvmlGpmQueryDeviceSupport", handle, ctypes.byref(support))
    if code or not support.is_supported:
        return None
    try:
        return GpmProfile(nvml, handle, gpu_instance)
    except NvmlError:
        return None  # the library has no room for samples


class GpmProfile:
    """The profiling counters of one GPU, or of one slice of it.

    Args:
        gpu_instance: the slice's number; None for a whole GPU.

    Raises:
        NvmlError: no room for the samples.
    """

    __slots__ = ("_handle", "_instance", "_newer", "_newer_s", "_nvml", "_older", "_question")

    def __init__(self, nvml: Nvml, handle: object, gpu_instance: int | None = None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._instance = gpu_instance
        self._older = ctypes.c_void_p()
        self._newer = ctypes.c_void_p()
        self._newer_s: float | None = None
        nvml.call("nvmlGpmSampleAlloc", ctypes.byref(self._older))
        nvml.call("nvmlGpmSampleAlloc", ctypes.byref(self._newer))
        wanted = METRICS if gpu_instance is None else SLICE_METRICS
        self._question = GpmMetricsGet(1, len(wanted))
        for entry, (number, _, _) in zip(self._question.metrics, wanted, strict=False):
            entry.number = number

    def read(self, mono_s: float) -> dict[str, float]:
        """Value by the end of the key, over the time since the last call; nothing at the first.

        Raises:
            NvmlError: the device does not answer.
        """
        before_s = self._newer_s
        if before_s is not None and mono_s - before_s < LEAST_S:
            return {}
        self._older, self._newer = self._newer, self._older
        self._newer_s = None
        if self._instance is None:
            self._nvml.call("nvmlGpmSampleGet", self._handle, self._newer)
        else:
            instance = ctypes.c_uint(self._instance)
            self._nvml.call("nvmlGpmMigSampleGet", self._handle, instance, self._newer)
        self._newer_s = mono_s
        if before_s is None or mono_s - before_s > OLDEST_S:
            return {}
        return self._compare()

    def free(self) -> None:
        """Give the samples back, while the library is still initialized."""
        for sample in (self._older, self._newer):
            self._nvml.code("nvmlGpmSampleFree", sample)

    def _compare(self) -> dict[str, float]:
        question = self._question
        question.older = self._older
        question.newer = self._newer
        self._nvml.call("nvmlGpmMetricsGet", ctypes.byref(question))
        wanted = METRICS if self._instance is None else SLICE_METRICS
        found = {}
        for entry, (_, factor, key) in zip(question.metrics, wanted, strict=False):
            value = entry.value
            # Also what is no number; a share can come out a little over 100.
            if entry.code == 0 and 0.0 <= value < 1e12:
                found[key] = min(value, 100.0) if factor == 1.0 else value * factor
        return found
