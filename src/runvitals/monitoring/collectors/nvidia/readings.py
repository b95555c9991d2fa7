"""The readings of one GPU. Each fails and is retried independently of the others."""

from __future__ import annotations

import ctypes

from runvitals.monitoring.collectors.nvidia import throttling
from runvitals.monitoring.collectors.nvidia.field_values import ALL_LINKS, FieldValues
from runvitals.monitoring.collectors.nvidia.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNINITIALIZED,
    NvmlError,
)
from runvitals.monitoring.collectors.nvidia.pacing import Paced, Retries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.monitoring.collectors.nvidia.nvml import Nvml

    Read = Callable[["NvmlReadings"], None]

FOR_GOOD = frozenset((NOT_SUPPORTED, FUNCTION_NOT_FOUND, NO_PERMISSION))
# After one of these codes, no other reading of the device can succeed either.
DEVICE_GONE = frozenset((GPU_IS_LOST, UNINITIALIZED))
# Readings that rarely change or are expensive: 0.1 % of the time, and not more often than this.
SLOW_EVERY_S = 10.0
SLOW_SHARE = 0.001

MEMORY_TEMPERATURE = 82
ENERGY_MILLIJOULES = 83
PCIE_REPLAYS = 94
POWER_AVERAGE, POWER_INSTANT = 185, 186
RECOVERY_ACTION = 230
LINK_KIB_SENT, LINK_KIB_RECEIVED = 138, 139
REMAPPED_CORRECTABLE, REMAPPED_UNCORRECTABLE, REMAP_PENDING, REMAP_FAILED = 142, 143, 144, 145
PCIE_BYTES_SENT, PCIE_BYTES_RECEIVED = 197, 198
LINK_BYTES_SENT, LINK_BYTES_RECEIVED = 202, 204
FAST_FIELDS = (
    (MEMORY_TEMPERATURE, 0), (ENERGY_MILLIJOULES, 0),
    *((field, 0) for field in throttling.FIELDS),
)  # fmt: skip
LINK_FIELDS = (
    (PCIE_BYTES_SENT, 0), (PCIE_BYTES_RECEIVED, 0),
    (LINK_KIB_SENT, ALL_LINKS), (LINK_KIB_RECEIVED, ALL_LINKS),
    (LINK_BYTES_SENT, ALL_LINKS), (LINK_BYTES_RECEIVED, ALL_LINKS),
)  # fmt: skip
SLOW_FIELDS = (
    (PCIE_REPLAYS, 0), (REMAPPED_CORRECTABLE, 0), (REMAPPED_UNCORRECTABLE, 0), (REMAP_PENDING, 0),
    (REMAP_FAILED, 0), (RECOVERY_ACTION, 0),
)  # fmt: skip
# For devices without the usual reading.
POWER_FIELDS = ((POWER_INSTANT, 0), (POWER_AVERAGE, 0))
# Field, unit of the field in bytes, key of its growth per second.
_FLOWS = (
    (PCIE_BYTES_SENT, 1.0, "pcieTxBytes"), (PCIE_BYTES_RECEIVED, 1.0, "pcieRxBytes"),
    (LINK_KIB_SENT, 1024.0, "nvlinkTxBytes"), (LINK_KIB_RECEIVED, 1024.0, "nvlinkRxBytes"),
    (LINK_BYTES_SENT, 1.0, "nvlinkTxBytes"), (LINK_BYTES_RECEIVED, 1.0, "nvlinkRxBytes"),
)  # fmt: skip

_SLOW_COUNTERS = ((PCIE_REPLAYS, "pcieReplays"),)
_SLOW_GAUGES = (
    (REMAPPED_CORRECTABLE, "remappedRowsCorrectable"),
    (REMAPPED_UNCORRECTABLE, "remappedRowsUncorrectable"),
    (REMAP_PENDING, "remapPending"),
    (REMAP_FAILED, "remapFailed"),
    (RECOVERY_ACTION, "recoveryAction"),
)
_PCIE_LINK = (
    ("nvmlDeviceGetCurrPcieLinkGeneration", "pcieLinkGen"),
    ("nvmlDeviceGetCurrPcieLinkWidth", "pcieLinkWidth"),
    ("nvmlDeviceGetMaxPcieLinkGeneration", "maxPcieLinkGen"),
    ("nvmlDeviceGetMaxPcieLinkWidth", "maxPcieLinkWidth"),
)
THROTTLING = "throttle"
_FAST_KEYS = (("energyJoules", (ENERGY_MILLIJOULES,)), ("memoryTemp", (MEMORY_TEMPERATURE,)))
_SLOW_KEYS = tuple((key, (field,)) for field, key in (*_SLOW_COUNTERS, *_SLOW_GAUGES))
_LINK_KEYS = (
    ("nvlinkTxBytes", (LINK_KIB_SENT, LINK_BYTES_SENT)),
    ("nvlinkRxBytes", (LINK_KIB_RECEIVED, LINK_BYTES_RECEIVED)),
)

_GRAPHICS_CLOCK, _SM_CLOCK, _MEMORY_CLOCK = (ctypes.c_uint(clock) for clock in (0, 1, 2))
_CORRECTED, _UNCORRECTED = ctypes.c_uint(0), ctypes.c_uint(1)
_VOLATILE = ctypes.c_uint(0)
_DEVICE_MEMORY = ctypes.c_uint(2)
_SENT, _RECEIVED = ctypes.c_uint(0), ctypes.c_uint(1)
_GPU_CORE = ctypes.c_uint(0)


class NvmlUtilization(ctypes.Structure):
    """`nvmlUtilization_t`."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class NvmlMemory(ctypes.Structure):
    """Version 1: memory reserved by the driver counts as used."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class NvmlMemory2(ctypes.Structure):
    """Version 2, which reports memory reserved by the driver separately."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    ]


MEMORY_2 = 2 << 24 | ctypes.sizeof(NvmlMemory2)


def memory_of(nvml: Nvml, handle: object) -> tuple[int, int]:
    """(used, total) bytes of a device or of a MIG slice.

    Raises:
        NvmlError: also if the device has no memory of its own and reports 0.
    """
    second = NvmlMemory2(MEMORY_2)
    code = nvml.code("nvmlDeviceGetMemoryInfo_v2", handle, ctypes.byref(second))
    if code == 0:
        used, total = second.used, second.total
    elif code == GPU_IS_LOST:
        raise NvmlError(code, "nvmlDeviceGetMemoryInfo_v2")
    else:
        first = NvmlMemory()
        nvml.call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(first))
        used, total = first.used, first.total
    if not 0 < total < 1 << 60:
        raise NvmlError(NOT_SUPPORTED, "nvmlDeviceGetMemoryInfo")
    return used, total


def try_read(read: Callable[[float], dict[str, float]], backoff: Retries, mono_s: float) -> dict[str, float]:
    """Call `read`; return {} if it fails, or if it has failed recently.

    Raises:
        NvmlError: with a code in DEVICE_GONE.
    """
    if not backoff.due(mono_s):
        return {}
    try:
        values = read(mono_s)
    except NvmlError as error:
        if error.code in DEVICE_GONE:
            raise
        backoff.note_failure(mono_s, error, for_good=error.code in FOR_GOOD)
        return {}
    backoff.note_success()
    return values


class NvmlReadings:
    """The readings of one GPU.

    Args:
        nvml: the library.
        handle: the device.
        has_profile: whether profiling counters measure its link traffic.

    `sample` fills `values` and `counters`, by the last part of the key: `temp`.
    """

    __slots__ = (
        "_backoffs", "_fields", "_limit_watts", "_link_totals", "_links", "_power_fields", "_slow",
        "_slow_fields", "_windows", "counters", "handle", "mono_s", "nvml", "throttled", "values",
    )  # fmt: skip

    def __init__(self, nvml: Nvml, handle: object, has_profile: bool) -> None:
        self.nvml = nvml
        self.handle = handle
        self.values: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self.mono_s = 0.0
        self._backoffs = {name: Retries() for name, _ in (*_FAST, *_SLOW)}
        self._slow = Paced(SLOW_SHARE, SLOW_EVERY_S)
        self._windows = Paced(SLOW_SHARE * 2, SLOW_EVERY_S)
        self._fields = FieldValues(FAST_FIELDS)
        self._links = None if has_profile else FieldValues(LINK_FIELDS)
        self._slow_fields = FieldValues(SLOW_FIELDS)
        self._power_fields = FieldValues(POWER_FIELDS)
        self._link_totals: dict[int, tuple[float, float]] = {}
        self._limit_watts: float | None = None
        self.throttled = throttling.ThrottledTime()

    def sample(self, mono_s: float) -> None:
        """Read what is due. A reading that fails is left out and retried later.

        Raises:
            NvmlError: with a code in DEVICE_GONE.
        """
        self.mono_s = mono_s
        self.values = {}
        self.counters = {}
        self._read(_FAST)
        if self._slow.due(mono_s):
            began_ns = self._slow.begin()
            self._read(_SLOW)
            self._slow.end(mono_s, began_ns)
        self.counters.update(self.throttled.seconds())
        if "powerWatts" in self.values and self._limit_watts:
            self.values["powerPercent"] = self.values["powerWatts"] * 100.0 / self._limit_watts

    def missing(self) -> dict[str, str]:
        """Reading -> why it is missing, or that its value comes from samples."""
        missing: dict[str, str] = {}
        for names, backoff in self._backoffs.items():
            if backoff.reason and names != THROTTLING:
                missing.update(dict.fromkeys(names.split(", "), backoff.reason))
        missing = {
            **self._fields.explain(_FAST_KEYS),
            **self._slow_fields.explain(_SLOW_KEYS),
            **({} if self._links is None else self._links.explain(_LINK_KEYS)),
            **missing,
        }
        missing.update(self.throttled.explain(self._backoffs[THROTTLING].reason))
        if "enforcedPowerLimitWatts" in missing or "powerWatts" in missing:
            missing["powerPercent"] = "needs the power and its limit"
        return missing

    def _read(self, table: tuple[tuple[str, Read], ...]) -> None:
        for name, read in table:
            backoff = self._backoffs[name]
            if not backoff.due(self.mono_s):
                continue
            try:
                read(self)
            except NvmlError as error:
                if error.code in DEVICE_GONE:
                    raise
                backoff.note_failure(self.mono_s, error, for_good=error.code in FOR_GOOD)
            else:
                backoff.note_success()

    # -- read at every sample

    def _utilization(self) -> None:
        busy = NvmlUtilization()
        self.nvml.call("nvmlDeviceGetUtilizationRates", self.handle, ctypes.byref(busy))
        if busy.gpu > 100 or busy.memory > 100:  # a GPU with MIG enabled returns "no value"
            raise NvmlError(NOT_SUPPORTED, "nvmlDeviceGetUtilizationRates")
        self.values["gpu"] = float(busy.gpu)
        self.values["memory"] = float(busy.memory)

    def _memory(self) -> None:
        used, total = memory_of(self.nvml, self.handle)
        self.values["memoryAllocated"] = used * 100.0 / total
        self.values["memoryAllocatedBytes"] = float(used)

    def _temperature(self) -> None:
        self.values["temp"] = float(self.nvml.uint("nvmlDeviceGetTemperature", self.handle, _GPU_CORE))

    def _power(self) -> None:
        try:
            milliwatts: float = self.nvml.uint("nvmlDeviceGetPowerUsage", self.handle)
        except NvmlError as error:
            if error.code not in FOR_GOOD:
                raise
            values = self._power_fields.read(self.nvml, self.handle, self.mono_s)
            if not values:
                raise
            milliwatts = values.get(POWER_INSTANT, values.get(POWER_AVERAGE, 0.0))
        self.values["powerWatts"] = milliwatts / 1000.0

    def _sm_clock(self) -> None:
        self.values["smClock"] = float(self.nvml.uint("nvmlDeviceGetClockInfo", self.handle, _SM_CLOCK))

    def _memory_clock(self) -> None:
        clock = self.nvml.uint("nvmlDeviceGetClockInfo", self.handle, _MEMORY_CLOCK)
        self.values["memoryClock"] = float(clock)

    def _graphics_clock(self) -> None:
        clock = self.nvml.uint("nvmlDeviceGetClockInfo", self.handle, _GRAPHICS_CLOCK)
        self.values["graphicsClock"] = float(clock)

    def _encoder(self) -> None:
        self.values["encoderUtilization"] = self._engine("nvmlDeviceGetEncoderUtilization")

    def _decoder(self) -> None:
        self.values["decoderUtilization"] = self._engine("nvmlDeviceGetDecoderUtilization")

    def _engine(self, function: str) -> float:
        period_us = ctypes.c_uint()
        busy = ctypes.c_uint()
        self.nvml.call(function, self.handle, ctypes.byref(busy), ctypes.byref(period_us))
        if busy.value > 100:
            raise NvmlError(NOT_SUPPORTED, function)
        return float(busy.value)

    def _throttling(self) -> None:
        bits = self.throttled.read_bits(self.nvml, self.handle)
        self.throttled.note(bits, self.mono_s)

    def _field_values(self) -> None:
        values = self._fields.read(self.nvml, self.handle, self.mono_s)
        energy = values.get(ENERGY_MILLIJOULES)
        if energy is not None:
            self.counters["energyJoules"] = energy / 1000.0
        # Boards without a memory sensor report 0.
        if 0 < values.get(MEMORY_TEMPERATURE, 0) < 200:
            self.values["memoryTemp"] = float(values[MEMORY_TEMPERATURE])
        self.throttled.note_counters(values)

    def _link_fields(self) -> None:
        if self._links is None:
            return
        values = self._links.read(self.nvml, self.handle, self.mono_s)
        for field, unit, key in _FLOWS:
            total = values.get(field)
            if total is None:
                continue
            before_s, before = self._link_totals.get(field, (self.mono_s, total))
            self._link_totals[field] = self.mono_s, total
            # A counter may wrap, and restarts with the driver: no rate for that interval.
            if self.mono_s > before_s and total >= before:
                self.values[key] = (total - before) * unit / (self.mono_s - before_s)

    def _pcie_throughput(self) -> None:
        """For drivers without counters. Each of the two calls blocks the thread for 20 ms."""
        if self._links is None or PCIE_BYTES_SENT in self._link_totals:
            return
        if not self._windows.due(self.mono_s):
            return
        began_ns = self._windows.begin()
        try:
            for direction, key in ((_SENT, "pcieTxBytes"), (_RECEIVED, "pcieRxBytes")):
                kib = self.nvml.uint("nvmlDeviceGetPcieThroughput", self.handle, direction)
                self.values[key] = kib * 1024.0
        finally:
            self._windows.end(self.mono_s, began_ns)

    # -- read rarely

    def _power_limit(self) -> None:
        self._limit_watts = None
        limit = self.nvml.uint("nvmlDeviceGetEnforcedPowerLimit", self.handle) / 1000.0
        self._limit_watts = self.values["enforcedPowerLimitWatts"] = limit

    def _fan(self) -> None:
        self.values["fanSpeed"] = float(self.nvml.uint("nvmlDeviceGetFanSpeed", self.handle))

    def _corrected_errors(self) -> None:
        self.counters["correctedMemoryErrors"] = self._memory_errors(_CORRECTED)

    def _uncorrected_errors(self) -> None:
        self.counters["unCorrectedMemoryErrors"] = self._memory_errors(_UNCORRECTED)

    def _memory_errors(self, kind: ctypes.c_uint) -> float:
        function = "nvmlDeviceGetMemoryErrorCounter"
        return float(self.nvml.ulong(function, self.handle, kind, _VOLATILE, _DEVICE_MEMORY))

    def _slow_field_values(self) -> None:
        values = self._slow_fields.read(self.nvml, self.handle, self.mono_s)
        for field, key in _SLOW_COUNTERS:
            if field in values:
                self.counters[key] = float(values[field])
        for field, key in _SLOW_GAUGES:
            if field in values:
                self.values[key] = float(values[field])

    def _pcie_link(self) -> None:
        for function, key in _PCIE_LINK:
            self.values[key] = float(self.nvml.uint(function, self.handle))


_FAST: tuple[tuple[str, Read], ...] = (
    ("gpu, memory", NvmlReadings._utilization),
    ("memoryAllocated, memoryAllocatedBytes", NvmlReadings._memory),
    ("temp", NvmlReadings._temperature),
    ("powerWatts", NvmlReadings._power),
    ("smClock", NvmlReadings._sm_clock),
    ("memoryClock", NvmlReadings._memory_clock),
    ("graphicsClock", NvmlReadings._graphics_clock),
    ("encoderUtilization", NvmlReadings._encoder),
    ("decoderUtilization", NvmlReadings._decoder),
    ("energyJoules, memoryTemp", NvmlReadings._field_values),
    (THROTTLING, NvmlReadings._throttling),
    ("nvlinkTxBytes, nvlinkRxBytes", NvmlReadings._link_fields),
    ("pcieTxBytes, pcieRxBytes", NvmlReadings._pcie_throughput),
)
_SLOW: tuple[tuple[str, Read], ...] = (
    ("enforcedPowerLimitWatts", NvmlReadings._power_limit),
    ("fanSpeed", NvmlReadings._fan),
    ("correctedMemoryErrors", NvmlReadings._corrected_errors),
    ("unCorrectedMemoryErrors", NvmlReadings._uncorrected_errors),
    (", ".join(key for key, _ in _SLOW_KEYS), NvmlReadings._slow_field_values),
    (", ".join(key for _, key in _PCIE_LINK), NvmlReadings._pcie_link),
)
# All that can be in `values` and `counters`.
KEYS = (
    *(key for names, _ in (*_FAST, *_SLOW) if names != THROTTLING for key in names.split(", ")),
    "powerPercent",
    *map(throttling.key_of, throttling.REASONS),
)
