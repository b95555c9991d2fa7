"""The exporter's metrics: our keys and units for them."""

from __future__ import annotations

from runvitals.monitoring.collectors.nvidia.throttling import REASONS, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MIB = 1048576.0

# Readings of a whole board: name without DCGM_FI_, end of our key, factor to our unit.
GAUGES = {
    "DEV_GPU_UTIL": ("gpu", 1.0),
    "DEV_MEM_COPY_UTIL": ("memory", 1.0),
    "DEV_GPU_TEMP": ("temp", 1.0),
    "DEV_MEMORY_TEMP": ("memoryTemp", 1.0),
    "DEV_GPU_MAX_OP_TEMP": ("maxOpTemp", 1.0),
    "DEV_MEM_MAX_OP_TEMP": ("memoryMaxOpTemp", 1.0),
    "DEV_POWER_USAGE": ("powerWatts", 1.0),
    "DEV_POWER_USAGE_INSTANT": ("powerWatts", 1.0),
    "DEV_POWER_MGMT_LIMIT": ("enforcedPowerLimitWatts", 1.0),
    "DEV_ENFORCED_POWER_LIMIT": ("enforcedPowerLimitWatts", 1.0),
    "DEV_SM_CLOCK": ("smClock", 1.0),
    "DEV_MEM_CLOCK": ("memoryClock", 1.0),
    "DEV_ENC_UTIL": ("encoderUtilization", 1.0),
    "DEV_DEC_UTIL": ("decoderUtilization", 1.0),
    "DEV_FAN_SPEED": ("fanSpeed", 1.0),
    "DEV_CORRECTABLE_REMAPPED_ROWS": ("remappedRowsCorrectable", 1.0),
    "DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remappedRowsUncorrectable", 1.0),
    "DEV_ROW_REMAP_PENDING": ("remapPending", 1.0),
    "DEV_ROW_REMAP_FAILURE": ("remapFailed", 1.0),
    "DEV_GPU_RECOVERY_ACTION": ("recoveryAction", 1.0),
    # KiB in the driver's last 20 ms, although exporters call it a counter.
    "DEV_PCIE_TX_THROUGHPUT": ("pcieTxBytes", 1024.0),
    "DEV_PCIE_RX_THROUGHPUT": ("pcieRxBytes", 1024.0),
}
COUNTERS = {
    "DEV_TOTAL_ENERGY_CONSUMPTION": ("energyJoules", 1e-3),
    "DEV_PCIE_REPLAY_COUNTER": ("pcieReplays", 1.0),
    "DEV_ECC_SBE_VOL_DEV": ("correctedMemoryErrors", 1.0),
    "DEV_ECC_DBE_VOL_DEV": ("unCorrectedMemoryErrors", 1.0),
    # Of all memories: device memory, caches and registers.
    "DEV_ECC_SBE_VOL_TOTAL": ("correctedMemoryErrors", 1.0),
    "DEV_ECC_DBE_VOL_TOTAL": ("unCorrectedMemoryErrors", 1.0),
    # KiB sent and received over all links.
    "DEV_NVLINK_BANDWIDTH_TOTAL": ("nvlinkBytes", 1024.0),
    "DEV_NVLINK_THROUGHPUT_TOTAL": ("nvlinkBytes", 1024.0),
    "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": ("nvlinkCrcFlitErrors", 1.0),
    "DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": ("nvlinkCrcDataErrors", 1.0),
    "DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": ("nvlinkReplayErrors", 1.0),
    "DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": ("nvlinkRecoveryErrors", 1.0),
}
# Metric -> the one that is used instead, if the exporter reports both.
PREFERRED = {
    "DEV_PCIE_TX_THROUGHPUT": "PROF_PCIE_TX_BYTES",
    "DEV_PCIE_RX_THROUGHPUT": "PROF_PCIE_RX_BYTES",
    "DEV_ECC_SBE_VOL_TOTAL": "DEV_ECC_SBE_VOL_DEV",
    "DEV_ECC_DBE_VOL_TOTAL": "DEV_ECC_DBE_VOL_DEV",
    "DEV_POWER_USAGE_INSTANT": "DEV_POWER_USAGE",
    "DEV_POWER_MGMT_LIMIT": "DEV_ENFORCED_POWER_LIMIT",
    "PROF_GR_ENGINE_UTIL_RATIO": "PROF_GR_ENGINE_ACTIVE",
}
_PREFERRED = frozenset(PREFERRED.values())
# Readings that exist for slices. The others are those of the board, even in series of a slice: exporters
# repeat them for each slice.
OF_SLICES = frozenset((
    "DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL", "DEV_ENC_UTIL", "DEV_DEC_UTIL", "DEV_ECC_SBE_VOL_DEV",
    "DEV_ECC_DBE_VOL_DEV",
))  # fmt: skip
# Nanoseconds during which clocks were throttled, by reason. (The exporter's help says "us", which is wrong.)
THROTTLED = {
    "DEV_POWER_VIOLATION": "swPowerCap",
    "DEV_THERMAL_VIOLATION": "thermal",
    "DEV_SYNC_BOOST_VIOLATION": "syncBoost",
    "DEV_BOARD_LIMIT_VIOLATION": "boardLimit",
    "DEV_LOW_UTIL_VIOLATION": "lowUtilization",
    "DEV_RELIABILITY_VIOLATION": "reliability",
    "DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS": "swPowerCap",
    "DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS": "syncBoost",
    "DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS": "swThermal",
    "DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS": "hwThermal",
    "DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS": "hwPowerBrake",
}
# Bits of the active throttling reasons.
THROTTLE_REASONS = ("DEV_CLOCK_THROTTLE_REASONS", "DEV_CLOCKS_EVENT_REASONS")
# Profiling ratios of a board or slice, 0 to 1; percent in our keys. Values above 1 are a known fault of
# slices.
RATIOS = {
    "PROF_GR_ENGINE_ACTIVE": "graphicsActive",
    "PROF_GR_ENGINE_UTIL_RATIO": "graphicsActive",
    "PROF_SM_ACTIVE": "smActive",
    "PROF_SM_OCCUPANCY": "smOccupancy",
    "PROF_PIPE_TENSOR_ACTIVE": "pipeTensorActive",
    "PROF_PIPE_TENSOR_HMMA_ACTIVE": "pipeTensorHmmaActive",
    "PROF_DRAM_ACTIVE": "dramActive",
    "PROF_PIPE_FP64_ACTIVE": "pipeFp64Active",
    "PROF_PIPE_FP32_ACTIVE": "pipeFp32Active",
    "PROF_PIPE_FP16_ACTIVE": "pipeFp16Active",
}
# Bytes per second; total bytes if the exporter declares the metric as a counter.
FLOWS = {
    "PROF_PCIE_TX_BYTES": "pcieTxBytes",
    "PROF_PCIE_RX_BYTES": "pcieRxBytes",
    "PROF_NVLINK_TX_BYTES": "nvlinkTxBytes",
    "PROF_NVLINK_RX_BYTES": "nvlinkRxBytes",
}
MEMORY = frozenset(("DEV_FB_USED", "DEV_FB_FREE", "DEV_FB_TOTAL", "DEV_FB_RESERVED"))
XID = "DEV_XID_ERRORS"
# Properties of a board: the name of the fact.
FACTS = {"DEV_POWER_MGMT_LIMIT_DEF": "default_power_limit_watts", "DEV_MAX_SM_CLOCK": "max_sm_clock_mhz"}
# DCGM's codes for "no value": the last sixteen 32-bit and 64-bit numbers, and sixteen numbers from 2⁴⁷ for
# fractions. As floats the 64-bit ones are all 2⁶³.
_BLANK_32 = range(0x7FFFFFF0, 0x80000000)
_BLANK_FRACTION = range(1 << 47, (1 << 47) + 16)
_BLANK_64 = 9.2e18


class DcgmSeries:
    """One number: its metric without ``DCGM_FI_``, its labels, and whether it is a running total."""

    __slots__ = ("is_total", "labels", "name", "value")

    def __init__(self, name: str, labels: Mapping[str, str], value: float, is_total: bool) -> None:
        self.name = name
        self.labels = labels
        self.value = value
        self.is_total = is_total

    @property
    def index(self) -> int | None:
        """The GPU's index: label ``gpu``, or ``device`` (nvidia0)."""
        for text in (self.labels.get("gpu", ""), self.labels.get("device", "").removeprefix("nvidia")):
            if text.isdigit():
                return int(text)
        return None

    @property
    def slice(self) -> str:
        """`mig.7.0.` for GPU instance 7, "" for a whole GPU. Compute instances are not distinguished."""
        instance = self.labels.get("GPU_I_ID", "")
        return f"mig.{instance}.0." if instance.isdigit() else ""

    @property
    def is_of_slice(self) -> bool:
        """Whether this metric exists for slices."""
        return self.name in OF_SLICES or self.name in RATIOS or self.name in MEMORY

    def of_board(self) -> DcgmSeries:
        """Return the same value, as that of the board."""
        labels = {name: text for name, text in self.labels.items() if name != "GPU_I_ID"}
        return DcgmSeries(self.name, labels, self.value, self.is_total)

    @property
    def host(self) -> str:
        """The host that the labels name."""
        labels = self.labels
        return labels.get("Hostname") or labels.get("hostname") or labels.get("node") or ""


def is_blank(value: float) -> bool:
    """Return whether a number is a code for "no value".

    >>> is_blank(9223372036854775794.0), is_blank(2147483632.0), is_blank(140737488355330.0)
    (True, True, True)
    >>> is_blank(float("nan")), is_blank(55.0)
    (True, False)
    """
    if not -_BLANK_64 < value < _BLANK_64:
        return True
    return value.is_integer() and (int(value) in _BLANK_32 or int(value) in _BLANK_FRACTION)


def ends_of(name: str) -> tuple[str, ...]:
    """Return the ends of the keys that a metric becomes.

    >>> ends_of("DEV_GPU_TEMP"), ends_of("DEV_POWER_VIOLATION"), ends_of("DEV_SERIAL")
    (('temp',), ('throttle.swPowerCapSeconds',), ())
    """
    if name in GAUGES or name in COUNTERS:
        return ((GAUGES.get(name) or COUNTERS[name])[0],)
    if name in THROTTLED:
        return (key_of(THROTTLED[name]),)
    if name in THROTTLE_REASONS:
        return tuple(map(key_of, REASONS))
    if name == "DEV_FB_USED":
        return ("memoryAllocatedBytes", "memoryAllocated")
    end = RATIOS.get(name) or FLOWS.get(name)
    return () if end is None else (end,)


ENDS = tuple(
    dict.fromkeys(
        end
        for table in (GAUGES, COUNTERS, RATIOS, FLOWS, ("DEV_FB_USED", *THROTTLE_REASONS))
        for name in table
        for end in ends_of(name)
    )
)


class Preferences:
    """Selects among metrics of the same reading.

    A device that ever had the preferred one keeps to it, so that a reading does not change between two
    sources.
    """

    __slots__ = ("_preferred",)

    def __init__(self) -> None:
        self._preferred: set[tuple[int | None, str, str | None]] = set()

    def select(self, series: Sequence[DcgmSeries]) -> list[DcgmSeries]:
        """Return the series without those for which the same device has a preferred one."""
        self._preferred.update(
            (each.index, each.slice, each.name) for each in series if each.name in _PREFERRED
        )
        return [
            each
            for each in series
            if (each.index, each.slice, PREFERRED.get(each.name)) not in self._preferred
        ]


def of_host(series: Iterable[DcgmSeries], hostname: str) -> list[DcgmSeries]:
    """Return the series of our host, and those without a host.

    If all are of one host, it is ours under any name: in Kubernetes it is the name of the exporter's pod.

    Raises:
        ValueError: they are of several hosts, none of which is ours.
    """
    all_series = list(series)
    hosts = {each.host for each in all_series} - {""}
    if len(hosts) <= 1:
        return all_series
    short = hostname.partition(".")[0]
    ours = [each for each in all_series if each.host.partition(".")[0] in (short, "")]
    if not any(each.host for each in ours):
        names = ", ".join(sorted(hosts)[:5])
        raise ValueError(f"no series of host {hostname}; there are series of {len(hosts)} hosts ({names} …)")
    return ours
