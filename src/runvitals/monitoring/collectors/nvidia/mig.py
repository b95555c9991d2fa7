"""MIG slices of a GPU (multi-instance GPU). Each is a device with its own memory and counters.

Temperature, power and clocks exist for the whole board only. The load of a slice comes from the profiling
counters (Hopper and newer): NVML's utilization has no value on a GPU with MIG enabled.
"""

from __future__ import annotations

import ctypes

from runvitals.monitoring.collectors.nvidia import gpm
from runvitals.monitoring.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    NOT_FOUND,
    NOT_SUPPORTED,
    NvmlError,
)
from runvitals.monitoring.collectors.nvidia.pacing import Retries
from runvitals.monitoring.collectors.nvidia.readings import memory_of, try_read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml


class MigAttributes(ctypes.Structure):
    """`nvmlDeviceAttributes_t`."""

    _fields_ = [
        ("multiprocessors", ctypes.c_uint),
        ("copy_engines", ctypes.c_uint),
        ("decoders", ctypes.c_uint),
        ("encoders", ctypes.c_uint),
        ("jpeg_engines", ctypes.c_uint),
        ("optical_flow_engines", ctypes.c_uint),
        ("gpu_slices", ctypes.c_uint),
        ("compute_slices", ctypes.c_uint),
        ("memory_mib", ctypes.c_ulonglong),
    ]


class MigSlice:
    """One slice.

    Args:
        parent: handle of the GPU.
        handle: handle of the slice.
        gpu_instance, compute_instance: its ids, as in `nvidia-smi -L` and the exporters.
    """

    __slots__ = (
        "_key", "_memory_backoff", "_nvml", "_profile", "_profile_backoff", "compute_instance",
        "gpu_instance", "handle", "name", "uuid",
    )  # fmt: skip

    def __init__(
        self, nvml: Nvml, parent: object, handle: object, gpu_instance: int, compute_instance: int
    ) -> None:
        self._nvml = nvml
        self.handle = handle
        self.gpu_instance = gpu_instance
        self.compute_instance = compute_instance
        self.uuid = nvml.text("nvmlDeviceGetUUID", handle)
        self.name = _profile_name(nvml, handle)
        self._key = f"mig.{gpu_instance}.{compute_instance}."
        self._memory_backoff = Retries()
        self._profile_backoff = Retries()
        self._profile = gpm.open_profile(nvml, parent, gpu_instance)

    def sample(self, mono_s: float) -> dict[str, float]:
        """Return values by the end of the key (`mig.1.0.power`); raise NvmlError if the device is gone."""
        values = try_read(self._memory, self._memory_backoff, mono_s)
        values.update(try_read(self._profile_values, self._profile_backoff, mono_s))
        return {self._key + name: value for name, value in values.items()}

    def missing(self) -> dict[str, str]:
        """Return the end of the key -> why it has no value."""
        missing: dict[str, str] = {}
        memory, profile = self._memory_backoff.reason, self._profile_backoff.reason
        if memory is not None:
            missing.update(dict.fromkeys(("memoryAllocated", "memoryAllocatedBytes"), memory))
        if self._profile is None:
            profile = gpm.NO_PROFILE
        if profile is not None:
            missing.update(dict.fromkeys((key for _, _, key in gpm.SLICE_METRICS), profile))
        return {self._key + name: why for name, why in missing.items()}

    def _memory(self, mono_s: float) -> dict[str, float]:
        used, total = memory_of(self._nvml, self.handle)
        return {"memoryAllocated": used * 100.0 / total, "memoryAllocatedBytes": float(used)}

    def _profile_values(self, mono_s: float) -> dict[str, float]:
        return {} if self._profile is None else self._profile.read(mono_s)

    def facts(self) -> dict[str, object]:
        """Describe the slice."""
        about: dict[str, object] = {
            "gpu_instance": self.gpu_instance,
            "compute_instance": self.compute_instance,
            "uuid": self.uuid,
            "name": self.name,
        }
        attributes = MigAttributes()
        if self._nvml.code("nvmlDeviceGetAttributes_v2", self.handle, ctypes.byref(attributes)) == 0:
            about["memory_bytes"] = attributes.memory_mib << 20
            about["multiprocessors"] = attributes.multiprocessors
        return about

    def free(self) -> None:
        """Free the profile."""
        if self._profile is not None:
            self._profile.free()


def is_enabled(nvml: Nvml, handle: object) -> bool:
    """Return whether MIG is enabled on a GPU."""
    current, pending = ctypes.c_uint(), ctypes.c_uint()
    code = nvml.code("nvmlDeviceGetMigMode", handle, ctypes.byref(current), ctypes.byref(pending))
    return code == 0 and current.value == 1


def slices(nvml: Nvml, handle: object) -> tuple[list[MigSlice], dict[int, str]]:
    """Return the slices of a GPU, and place -> error for those that could not be opened.

    Empty places are normal.
    """
    opened: list[MigSlice] = []
    problems: dict[int, str] = {}
    if not is_enabled(nvml, handle):
        return opened, problems
    try:
        count = nvml.uint("nvmlDeviceGetMaxMigDeviceCount", handle)
    except NvmlError as error:
        return opened, {0: error.reason}
    for position in range(count):
        child = ctypes.c_void_p()
        try:
            nvml.call(
                "nvmlDeviceGetMigDeviceHandleByIndex", handle, ctypes.c_uint(position), ctypes.byref(child)
            )
            gpu_instance = nvml.uint("nvmlDeviceGetGpuInstanceId", child)
            compute_instance = nvml.uint("nvmlDeviceGetComputeInstanceId", child)
            opened.append(MigSlice(nvml, handle, child, gpu_instance, compute_instance))
        except NvmlError as error:
            if error.code not in (NOT_FOUND, NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                problems[position] = error.reason
    return opened, problems


def _profile_name(nvml: Nvml, handle: object) -> str:
    """`NVIDIA H100 80GB HBM3 MIG 1g.10gb` → `1g.10gb` ; the whole name if it has no " MIG "."""
    name = nvml.text("nvmlDeviceGetName", handle)
    return name.partition(" MIG ")[2] or name
