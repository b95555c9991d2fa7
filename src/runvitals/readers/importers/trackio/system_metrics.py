"""The system metrics of trackio under our keys and in our units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_GIB: Final = float(1 << 30)
_OURS: Final[Mapping[str, tuple[str, float]]] = {
    "cpu/utilization": ("cpu.mean", 1.0),
    "memory/percent": ("memory_percent", 1.0),
    "memory/used": ("memory.usedMB", 1024.0),
    "network/sent_bytes": ("network.sent", 1.0),
    "network/recv_bytes": ("network.recv", 1.0),
}
_OF_CORE: Final = re.compile(r"cpu/(\d+)/utilization", re.ASCII)
_OF_GPU: Final = re.compile(r"gpu/(\d+)/(\w+)", re.ASCII)
_GPU: Final[Mapping[str, tuple[str, float]]] = {
    "utilization": ("gpu", 1.0),
    "memory_utilization": ("memory", 1.0),
    "allocated_memory": ("memoryAllocatedBytes", _GIB),
    "memory_usage": ("memoryAllocated", 100.0),
    "power": ("powerWatts", 1.0),
    "power_percent": ("powerPercent", 1.0),
    "power_limit": ("enforcedPowerLimitWatts", 1.0),
    "temp": ("temp", 1.0),
    "sm_clock": ("smClock", 1.0),
    "memory_clock": ("memoryClock", 1.0),
    "fan_speed": ("fanSpeed", 1.0),
    "energy_consumed": ("energyJoules", 1.0),
    "corrected_memory_errors": ("correctedMemoryErrors", 1.0),
    "uncorrected_memory_errors": ("unCorrectedMemoryErrors", 1.0),
}


def our_metrics(values: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the samples that we have a metric for, and all other values under their own names.

    Example:
        >>> our_metrics({"gpu/0/allocated_memory": 1.0, "disk/read_iops": 5})
        ({'gpu.0.memoryAllocatedBytes': 1073741824.0}, {'disk/read_iops': 5})
    """
    samples: dict[str, float] = {}
    others: dict[str, Any] = {}
    for name, value in values.items():
        ours = _our_metric(name)
        if ours is None or isinstance(value, bool) or not isinstance(value, (int, float)):
            others[name] = value
        else:
            key, factor = ours
            samples[key] = value * factor
    return samples, others


def _our_metric(name: str) -> tuple[str, float] | None:
    """Return our key and the factor to our unit; None if we have no such metric."""
    if name in _OURS:
        return _OURS[name]
    core = _OF_CORE.fullmatch(name)
    if core is not None:
        return f"cpu.{core[1]}.cpu_percent", 1.0
    gpu = _OF_GPU.fullmatch(name)
    if gpu is None or gpu[2] not in _GPU:
        return None
    key, factor = _GPU[gpu[2]]
    return f"gpu.{gpu[1]}.{key}", factor
