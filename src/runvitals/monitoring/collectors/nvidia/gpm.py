"""Profiling counters of Hopper and newer GPUs (GPM in NVML): how busy the units of the chip are.

A reading compares two samples of the counters. The sample of each tick is kept for the next, so no call
waits.
"""

from __future__ import annotations

import ctypes

from runvitals.monitoring.collectors.base import MIB
from runvitals.monitoring.collectors.nvidia.nvml import NvmlError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

# Metric id, factor to our unit, end of the key.
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
# A slice has no links.
SLICE_METRICS = METRICS[:9]
NO_PROFILE = "profiling counters need a Hopper or newer GPU, or DCGM"
# NVML's header requires at least 100 ms between samples; shorter intervals are too coarse.
MIN_INTERVAL_S = 0.09
# An older sample says little about the present: the monitor was suspended, or the device was unavailable.
OLDEST_S = 120.0
# A later library may read as many entries as there can be (334 today).
_ROOM = 512


class GpmMetric(ctypes.Structure):
    """nvmlGpmMetric_t. Its last three pointers are names, which are not used here."""

    _fields_ = [
        ("number", ctypes.c_uint),
        ("code", ctypes.c_uint),
        ("value", ctypes.c_double),
        ("names", ctypes.c_void_p * 3),
    ]


class GpmMetricsGet(ctypes.Structure):
    """nvmlGpmMetricsGet_t: two samples, and the metrics to compute from them."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("older", ctypes.c_void_p),
        ("newer", ctypes.c_void_p),
        ("metrics", GpmMetric * _ROOM),
    ]


class GpmSupport(ctypes.Structure):
    """`nvmlGpmSupport_t`."""

    _fields_ = [("version", ctypes.c_uint), ("is_supported", ctypes.c_uint)]


def open_profile(nvml: Nvml, handle: object, gpu_instance: int | None = None) -> GpmProfile | None:
    """Return the profiling counters of a GPU or of one of its slices; None if it has none."""
    support = GpmSupport(1, 0)
    code = nvml.code("nvmlGpmQueryDeviceSupport", handle, ctypes.byref(support))
    if code or not support.is_supported:
        return None
    try:
        return GpmProfile(nvml, handle, gpu_instance)
    except NvmlError:
        return None  # the library could not allocate the samples


class GpmProfile:
    """The profiling counters of one GPU or of one of its slices.

    Args:
        gpu_instance: the slice's GPU instance id; None for a whole GPU.

    Raises:
        NvmlError: the samples could not be allocated.
    """

    __slots__ = ("_handle", "_instance", "_newer", "_newer_s", "_nvml", "_older", "_request")

    def __init__(self, nvml: Nvml, handle: object, gpu_instance: int | None = None) -> None:
        self._nvml = nvml
        self._handle = handle
        self._instance = gpu_instance
        self._older = ctypes.c_void_p()
        self._newer = ctypes.c_void_p()
        self._newer_s: float | None = None
        nvml.call("nvmlGpmSampleAlloc", ctypes.byref(self._older))
        nvml.call("nvmlGpmSampleAlloc", ctypes.byref(self._newer))
        metrics = METRICS if gpu_instance is None else SLICE_METRICS
        self._request = GpmMetricsGet(1, len(metrics))
        for entry, (number, _, _) in zip(self._request.metrics, metrics, strict=False):
            entry.number = number

    def read(self, mono_s: float) -> dict[str, float]:
        """Values by the end of the key, over the time since the last call; {} at the first call.

        Raises:
            NvmlError: the device reports an error.
        """
        before_s = self._newer_s
        if before_s is not None and mono_s - before_s < MIN_INTERVAL_S:
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
        """Free the samples. NVML must still be initialized."""
        for sample in (self._older, self._newer):
            self._nvml.code("nvmlGpmSampleFree", sample)

    def _compare(self) -> dict[str, float]:
        request = self._request
        request.older = self._older
        request.newer = self._newer
        self._nvml.call("nvmlGpmMetricsGet", ctypes.byref(request))
        metrics = METRICS if self._instance is None else SLICE_METRICS
        values = {}
        for entry, (_, factor, key) in zip(request.metrics, metrics, strict=False):
            value = entry.value
            # The comparison also drops NaN.
            if entry.code == 0 and 0.0 <= value < 1e12:
                values[key] = value * factor
        return values
