"""The device view: what any accelerator has, whatever its vendor calls it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from runvitals.findings.windows import Floats, HostColumns

SIGNALS: Mapping[str, tuple[str, ...]] = {
    "busy": (
        "gpu.{i}.gpu",
        "gpu.{i}.graphicsActive",
        "tpu.{i}.dutyCycle",
        "trn.{i}.neuroncore_utilization",
        "ipu.{i}.ipu utilisation (%)",
    ),
    "active": ("gpu.{i}.smActive", "tpu.{i}.tensorcoreUtilization"),
    "occupied": ("gpu.{i}.graphicsActive", "gpu.{i}.gpu"),
    "tensor": ("gpu.{i}.pipeTensorActive",),
    "fp64": ("gpu.{i}.pipeFp64Active",),
    "dram": ("gpu.{i}.dramActive",),
    "transfers": ("gpu.{i}.memory",),
    "watts": ("gpu.{i}.powerWatts", "ipu.{i}.ipu power (W)"),
    "power": ("gpu.{i}.powerPercent", "trn.device.{i}.power_utilization"),
    "limit": ("gpu.{i}.enforcedPowerLimitWatts",),
    "memory": ("gpu.{i}.memoryAllocated", "tpu.{i}.memoryUsage"),
    "memory_bytes": ("gpu.{i}.memoryAllocatedBytes", "tpu.{i}.memoryUsageBytes"),
    "other_bytes": ("gpu.{i}.otherMemoryBytes",),
    "own_bytes": ("gpu.process.{i}.memoryAllocatedBytes",),
    "clock": ("gpu.{i}.smClock", "gpu.{i}.graphicsClock", "ipu.{i}.clock (MHz)"),
    "temp": ("gpu.{i}.temp", "ipu.{i}.average die temp (C)"),
}
"""The keys of a signal, the first that a device has counts. Units: %, W, bytes, MHz and °C."""

COUNTERS: Mapping[str, tuple[str, ...]] = {
    "uncorrected": (
        "gpu.{i}.unCorrectedMemoryErrors",
        "trn.device.{i}.mem_ecc_uncorrected",
        "trn.device.{i}.sram_ecc_uncorrected",
    ),
    "critical": ("gpu.{i}.criticalErrors",),
    "nvlink": ("gpu.{i}.nvlinkBytes",),
    "replays": ("gpu.{i}.pcieReplays",),
}

_KEY = re.compile(r"(gpu|tpu|trn|ipu)\.(\d+)\.")
_SLICE = re.compile(r"gpu\.(\d+)\.mig\.(\d+)\.(\d+)\.")
_NAMES = {"gpu": "GPU", "tpu": "TPU", "trn": "NeuronCore", "ipu": "IPU"}
_SHARED_MEMORY = re.compile(
    r"GB10|DGX Spark|Jetson|Tegra|Orin|Thor|Apple|\bM[1-9]\b|Radeon (8060S|\d{3}M)|Iris|UHD|Arc .*Graphics",
    re.I,
)


@dataclass(frozen=True, eq=False)
class Device:
    """A device of a run on one of its hosts, or a slice (MIG) of one.

    Args:
        host: its columns.
        kind: `gpu`, `tpu`, `trn` or `ipu`.
        index: on the host.
        slice: GPU and compute instance, for a slice.
        facts: what the host's facts say about it.
        rank: of the process that uses it; None if unknown.
    """

    host: HostColumns
    kind: str
    index: int
    slice: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    rank: int | None = None
    _keys: dict[str, str | None] = field(default_factory=dict, repr=False)

    @property
    def prefix(self) -> str:
        """The beginning of its metrics' keys, such as `gpu.0.`."""
        return f"{self.kind}.{self.index}." + (f"mig.{self.slice}." if self.slice else "")

    @property
    def label(self) -> str:
        """Its name in a sentence: `GPU 3`, or `GPU 3 of node0` where a run has several hosts."""
        return f"{_NAMES[self.kind]} {self.index}" + (f" slice {self.slice}" if self.slice else "")

    @property
    def plural(self) -> str:
        """The name of several of its kind."""
        return f"{_NAMES[self.kind]}s"

    def key(self, signal: str) -> str | None:
        """The key of a signal or counter that the device has; None without."""
        if signal not in self._keys:
            templates = SIGNALS.get(signal) or COUNTERS[signal]
            self._keys[signal] = next(
                (key for template in templates if self.host.has(key := self._key_of(template))), None
            )
        return self._keys[signal]

    def _key_of(self, template: str) -> str:
        key = template.replace("{i}", str(self.index))
        return key.replace(f"gpu.{self.index}.", self.prefix, 1) if self.slice else key

    def has(self, *signals: str) -> bool:
        """Whether it has all these signals."""
        return all(self.key(signal) is not None for signal in signals)

    def mean(self, signal: str) -> Floats:
        """The mean of a signal per window; NaN without."""
        key = self.key(signal)
        return self.host.nothing() if key is None else self.host.mean(key)

    def low(self, signal: str) -> Floats:
        """The smallest value of a signal per window."""
        key = self.key(signal)
        return self.host.nothing() if key is None else self.host.low(key)

    def high(self, signal: str) -> Floats:
        """The largest value of a signal per window."""
        key = self.key(signal)
        return self.host.nothing() if key is None else self.host.high(key)

    def growth(self, counter: str) -> Floats:
        """By how much a counter grew per window."""
        key = self.key(counter)
        return self.host.nothing() if key is None else self.host.growth(key)

    def value(self, name: str) -> Floats:
        """The mean of one of its own keys, such as `pcieLinkGen`, per window."""
        return self.host.mean(self.prefix + name)

    def high_of(self, name: str) -> Floats:
        """The largest value of one of its own keys per window."""
        return self.host.high(self.prefix + name)

    def throttle_share(self, *reasons: str) -> tuple[Floats, str | None]:
        """The share of each window, 0 to 1, that was throttled for a reason, and the key it follows from.

        It follows from the counter of the time; the largest of several reasons counts. NaN where unknown.
        """
        best, best_key, most = self.host.nothing(), None, -1.0
        for reason in reasons:
            key = f"{self.prefix}throttle.{reason}Seconds"
            if not self.host.has(key):
                continue
            share = np.minimum(self.host.per_second(key), 1.0)
            total = float(np.nansum(share))
            if total > most:
                best, best_key, most = share, key, total
        return best, best_key

    @cached_property
    def max_clock(self) -> float | None:
        """The highest clock in MHz, by its facts; None if unknown."""
        for name in ("max_sm_clock_mhz", "max_clock_mhz", "max_graphics_clock_mhz"):
            value = self.facts.get(name)
            if isinstance(value, int | float) and 0 < value < inf:
                return float(value)
        return None

    @cached_property
    def shares_host_memory(self) -> bool:
        """Whether it has no memory of its own, as in SoCs and processors with graphics."""
        name = str(self.facts.get("name") or "")
        return bool(_SHARED_MEMORY.search(name)) or self.facts.get("unified_memory") is True

    @cached_property
    def work(self) -> Floats:
        """How much it worked in each window, 0 to 1.

        Utilisation tells that some kernel ran. A device that only waits in a kernel, or whose firmware counts
        an idle queue, draws little power: it does not count as at work.
        """
        busy = self.mean("busy") / 100
        if self.host.has(self.prefix + "busySuspect"):
            suspect = self.host.high(self.prefix + "busySuspect") >= 1
            busy = np.where(suspect, np.nan, busy)
        return busy


def devices_of(
    host: HostColumns, machine: Mapping[str, Any], ranks: Mapping[int, int] | None = None
) -> list[Device]:
    """Return the devices of a host that the run may use; all that have values if its facts name none.

    Args:
        machine: the facts about the host.
        ranks: rank by the number of a process on the host.
    """
    facts = _facts_by_index(machine)
    used = [index for index, about in facts.items() if about.get("used") is True]
    visible = [index for index, about in facts.items() if about.get("visible") is not False]
    kept = set(visible) or set(used)
    by_identity: dict[tuple[str, int, str], Device] = {}
    for key in host.columns:
        part = _SLICE.match(key)
        if part:
            identity = ("gpu", int(part[1]), f"{part[2]}.{part[3]}")
        else:
            match = _KEY.match(key)
            if match is None:
                continue
            identity = (match[1], int(match[2]), "")
        if identity in by_identity or (identity[0] == "gpu" and facts and identity[1] not in kept):
            continue
        about = facts.get(identity[1], {}) if identity[0] == "gpu" else {}
        by_identity[identity] = Device(host, *identity, about)
    sliced = {(kind, index) for kind, index, part in by_identity if part}
    devices = [
        device
        for identity, device in sorted(by_identity.items())
        if identity[2] or identity[:2] not in sliced
    ]
    return _with_ranks(devices, ranks or {})


def _with_ranks(devices: Sequence[Device], ranks: Mapping[int, int]) -> list[Device]:
    return [
        Device(device.host, device.kind, device.index, device.slice, device.facts, ranks.get(position))
        for position, device in enumerate(devices)
    ]


def _facts_by_index(machine: Mapping[str, Any]) -> dict[int, Mapping[str, Any]]:
    return {
        about["index"]: about
        for name, listed in machine.items()
        if isinstance(listed, list)
        for about in listed
        if isinstance(about, Mapping) and isinstance(about.get("index"), int) and name.startswith("gpu")
    }
