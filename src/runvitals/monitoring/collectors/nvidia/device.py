"""One NVIDIA GPU: its identity and all its readings."""

from __future__ import annotations

import ctypes

from runvitals.monitoring.collectors.nvidia import gpm, mig
from runvitals.monitoring.collectors.nvidia.field_values import NO_VALUE
from runvitals.monitoring.collectors.nvidia.nvml import NOT_SUPPORTED, NvmlError
from runvitals.monitoring.collectors.nvidia.pacing import Retries
from runvitals.monitoring.collectors.nvidia.processes import GpuProcessUsage, RunGpuProcesses
from runvitals.monitoring.collectors.nvidia.readings import KEYS, NvmlReadings, memory_of, try_read
from runvitals.monitoring.collectors.nvidia.recovery import recovery_events
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada", 9: "Hopper",
    10: "Blackwell", 13: "Rubin",
}  # fmt: skip
# NVML has no readings of these for single processes. The value of the whole GPU is written instead, while a
# process of the run is on it.
SHARED = ("temp", "powerWatts", "powerPercent", "smClock", "memoryClock", "graphicsClock")
SHARED_COUNTERS = ("correctedMemoryErrors", "unCorrectedMemoryErrors")
# Fact, and the function that returns it.
_NUMBERS = (
    ("cuda_cores", "nvmlDeviceGetNumGpuCores"),
    ("minor", "nvmlDeviceGetMinorNumber"),
    ("max_sm_clock_mhz", "nvmlDeviceGetMaxClockInfo", ctypes.c_uint(1)),
)
# Some readings are rare, and those that fail have a reason at once.
PATIENCE_S = 300.0
_PROFILING_KEYS = tuple(key for _, _, key in gpm.SLICE_METRICS)


class NvmlPciInfo(ctypes.Structure):
    """nvmlPciInfo_t, third version."""

    _fields_ = [
        ("old_bus_id", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("ids", ctypes.c_uint),
        ("subsystem_ids", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    ]


class NvidiaGpu:
    """A GPU with its MIG slices. If it is unified, its memory is that of the host.

    Args:
        position: index in the driver's list, which is in PCI bus order.
        members: the processes of the run.

    ``index`` is the number in its keys: its place when it was first seen.

    Raises:
        NvmlError: it cannot be opened.
    """

    __slots__ = (
        "_expected", "_nvml", "_prefix", "_process_prefix", "_profile", "_profile_backoff", "_readings",
        "_recovery", "_usage", "handle", "index", "is_unified", "memory_bytes", "name", "pci", "position",
        "slice_problems", "slices", "uuid",
    )  # fmt: skip

    def __init__(self, nvml: Nvml, position: int, members: RunGpuProcesses) -> None:
        self._nvml = nvml
        self.position = position
        self.index = position
        self.handle = ctypes.c_void_p()
        nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(position), ctypes.byref(self.handle))
        self.uuid = nvml.text("nvmlDeviceGetUUID", self.handle)
        self.name = _text_or_none(nvml, "nvmlDeviceGetName", self.handle) or "NVIDIA GPU"
        self.pci = _pci(nvml, self.handle)
        self.is_unified = False
        try:
            self.memory_bytes = memory_of(nvml, self.handle)[1]
        except NvmlError as error:
            self.is_unified = error.code == NOT_SUPPORTED
            self.memory_bytes = members.host_memory_bytes if self.is_unified else 0
        self._profile = gpm.open_profile(nvml, self.handle)
        self._profile_backoff = Retries()
        self._readings = NvmlReadings(nvml, self.handle, self._profile is not None)
        self._usage = GpuProcessUsage(nvml, self.handle, members, self.memory_bytes, self.is_unified)
        self._expected = ExpectedReadings((*KEYS, *_PROFILING_KEYS), PATIENCE_S)
        self._recovery = 0
        self.slices, self.slice_problems = mig.slices(nvml, self.handle)
        self.number(position)

    def number(self, index: int) -> None:
        """Set the number used in its keys."""
        self.index = index
        self._prefix = f"gpu.{index}."
        self._process_prefix = f"gpu.process.{index}."

    def state(self) -> dict[str, object]:
        """List the facts about it that may change."""
        sampled = self._readings.throttled.sampled_reasons()
        return {
            **({"throttle_sampled": sampled} if sampled else {}),
            **({"other_processes": self._usage.others} if self._usage.others else {}),
        }

    @property
    def in_use(self) -> bool | None:
        """Whether a process of the run uses it; None if not known yet."""
        return self._usage.in_use

    def sample(self, tick: Tick) -> None:
        """Write its readings into the tick.

        Raises:
            NvmlError: the GPU is lost (a code in DEVICE_GONE).
        """
        readings = self._readings
        readings.sample(tick.mono_s)
        values = readings.values
        if self._profile is not None:
            values.update(try_read(self._profile.read, self._profile_backoff, tick.mono_s))
        for slice in self.slices:
            values.update(slice.sample(tick.mono_s))
        self._usage.sample(tick.mono_s)
        values.update(self._usage.device_values)
        if "recoveryAction" in values:
            action = int(values["recoveryAction"])
            tick.events += recovery_events(self.index, self._recovery, action)
            self._recovery = action
        self._expected.note(self.index, values, tick.mono_s)
        self._expected.note(self.index, readings.counters, tick.mono_s)
        prefix = self._prefix
        for name, value in values.items():
            tick.gauges[prefix + name] = value
        for name, total in readings.counters.items():
            tick.counters[prefix + name] = total
        if self._usage.in_use:
            self._write_usage(tick)

    def _write_usage(self, tick: Tick) -> None:
        prefix = self._process_prefix
        for name in SHARED:
            if name in self._readings.values:
                tick.gauges[prefix + name] = self._readings.values[name]
        for name in SHARED_COUNTERS:
            if name in self._readings.counters:
                tick.counters[prefix + name] = self._readings.counters[name]
        for name, value in self._usage.values.items():
            tick.gauges[prefix + name] = value

    def missing(self) -> dict[str, str]:
        """Reading -> why it is missing."""
        missing = dict.fromkeys(self._expected.missing(self.index), NO_VALUE)
        missing.update(self._readings.missing())
        if self.is_unified:  # only the processes say how much it uses
            for key in ("memoryAllocated", "memoryAllocatedBytes"):
                missing.pop(key, None)
        missing.update(self._usage.missing())
        profile = gpm.NO_PROFILE if self._profile is None else self._profile_backoff.reason
        if profile is not None:
            missing.update(dict.fromkeys(_PROFILING_KEYS, profile))
        for slice in self.slices:
            missing.update(slice.missing())
        for position, reason in self.slice_problems.items():
            missing[f"slice {position}"] = reason
        return missing

    def facts(self) -> dict[str, object]:
        """Identity and properties, for the facts about the machine."""
        nvml, handle = self._nvml, self.handle
        about: dict[str, object] = {
            "index": self.index,
            "name": self.name,
            "uuid": self.uuid,
            "pci": self.pci,
        }
        if self.memory_bytes:
            about["memory_bytes"] = self.memory_bytes
        if self.is_unified:
            about["unified"] = True
        for name, function, *arguments in _NUMBERS:
            number = _uint_or_none(nvml, function, handle, *arguments)
            if number is not None:
                about[name] = number
        milliwatts = _uint_or_none(nvml, "nvmlDeviceGetPowerManagementDefaultLimit", handle)
        if milliwatts is not None:
            about["default_power_limit_watts"] = milliwatts / 1000.0
        architecture = _uint_or_none(nvml, "nvmlDeviceGetArchitecture", handle)
        if architecture in ARCHITECTURES:
            about["architecture"] = ARCHITECTURES[architecture]
        major, minor = ctypes.c_int(), ctypes.c_int()
        capability = "nvmlDeviceGetCudaComputeCapability"
        if nvml.code(capability, handle, ctypes.byref(major), ctypes.byref(minor)) == 0:
            about["compute_capability"] = f"{major.value}.{minor.value}"
        if self.slices:
            about["slices"] = [slice.facts() for slice in self.slices]
        return about

    def free(self) -> None:
        """Free the library's resources."""
        if self._profile is not None:
            self._profile.free()
        for slice in self.slices:
            slice.free()


def _pci(nvml: Nvml, handle: object) -> str:
    """Return the PCI address in sysfs notation (`0000:3b:00.0`).

    The driver uses an 8-digit domain and upper case.
    """
    info = NvmlPciInfo()
    if nvml.code("nvmlDeviceGetPciInfo_v3", handle, ctypes.byref(info)):
        return ""
    text: str = info.bus_id.decode("ascii", "replace").lower()
    return text[4:] if text.startswith("0000") and len(text) > 12 else text


def _text_or_none(nvml: Nvml, function: str, handle: object) -> str | None:
    try:
        return nvml.text(function, handle)
    except NvmlError:
        return None


def _uint_or_none(nvml: Nvml, function: str, *arguments: object) -> int | None:
    try:
        return nvml.uint(function, *arguments)
    except NvmlError:
        return None
