"""Rules that are ready to be used: off until somebody chooses them."""

from __future__ import annotations

from typing import Any, Final

from runvitals.model.durations import MINUTE_MS

HUNG_ABOVE_PERCENT: Final = 94.0
HUNG_MS: Final = 15 * MINUTE_MS
"""A device is hung in stretches of at least this time in which its utilisation is above this, and its run
logs no step. Usage counts them with the same values."""
READY_RULES: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "GPU idle for 15 minutes",
        "description": "The mean utilization of a GPU was below 5 % for 15 minutes.",
        "severity": "warning",
        "for": "15m",
        "condition": {
            "kind": "threshold",
            "metric": "gpu.*.gpu",
            "statistic": "mean",
            "window": "1m",
            "operator": "<",
            "value": 5,
            "clear": 10,
        },
    },
    {
        "name": "GPU idle for an hour",
        "description": "The mean utilization of a GPU was below 5 % for an hour.",
        "severity": "error",
        "for": "1h",
        "condition": {
            "kind": "threshold",
            "metric": "gpu.*.gpu",
            "statistic": "mean",
            "window": "1m",
            "operator": "<",
            "value": 5,
            "clear": 10,
        },
    },
    {
        "name": "Hung: busy without a step",
        "description": f"A GPU of the run is more than {HUNG_ABOVE_PERCENT:.0f} % busy, "
        f"and no step was logged for {HUNG_MS // MINUTE_MS} minutes.",
        "severity": "error",
        "for": f"{HUNG_MS // MINUTE_MS}m",
        "condition": {
            "kind": "silence",
            "of": "steps",
            "busy_metric": "gpu.*.gpu",
            "busy_value": int(HUNG_ABOVE_PERCENT),
        },
    },
    {
        "name": "GPU throttled by heat",
        "description": "A GPU reduced its clocks because of heat for more than 5 % of the last 10 minutes.",
        "severity": "warning",
        "condition": {
            "kind": "threshold",
            "metric": "gpu.*.throttle.*hermalPercent",
            "statistic": "mean",
            "window": "10m",
            "operator": ">",
            "value": 5,
            "clear": 2,
        },
    },
    {
        "name": "GPU almost out of memory",
        "description": "At least 97 % of a GPU's memory was used for 5 minutes.",
        "severity": "warning",
        "for": "5m",
        "condition": {
            "kind": "threshold",
            "metric": "gpu.*.memoryAllocated",
            "operator": ">=",
            "value": 97,
            "clear": 92,
        },
    },
    {
        "name": "Memory almost exhausted",
        "description": "At least 95 % of the memory of a host was used for 2 minutes.",
        "severity": "warning",
        "for": "2m",
        "condition": {
            "kind": "threshold",
            "metric": "memory_percent",
            "operator": ">=",
            "value": 95,
            "clear": 90,
        },
    },
    {
        "name": "Disk almost full",
        "description": "At least 95 % of a file system was used for 5 minutes.",
        "severity": "error",
        "for": "5m",
        "condition": {
            "kind": "threshold",
            "metric": "disk.*.usagePercent",
            "operator": ">=",
            "value": 95,
            "clear": 90,
        },
    },
    {
        "name": "Straggler",
        "description": "A GPU drew 15 % less power than the median of the run for 10 minutes.",
        "severity": "warning",
        "for": "10m",
        "condition": {
            "kind": "spread",
            "metric": "gpu.*.powerWatts",
            "window": "2m",
            "by": 15,
            "clear": 8,
            "direction": "down",
        },
    },
    {
        "name": "Uncorrected memory errors",
        "description": "A GPU counted memory errors that could not be corrected: results may be wrong.",
        "severity": "error",
        "resolve": False,
        "condition": {
            "kind": "threshold",
            "metric": "gpu.*.unCorrectedMemoryErrors",
            "operator": ">",
            "value": 0,
        },
    },
    {
        "name": "GPU memory cannot be repaired",
        "description": "Remapping a damaged row of a GPU's memory failed: the GPU should be replaced.",
        "severity": "error",
        "resolve": False,
        "condition": {"kind": "threshold", "metric": "gpu.*.remapFailed", "operator": ">", "value": 0},
    },
    {
        "name": "GPU error reported by the driver",
        "description": "The driver reported a critical error of a GPU (Xid), or lost it.",
        "severity": "error",
        "resolve": False,
        "condition": {"kind": "threshold", "metric": "gpu.*.criticalErrors", "operator": ">", "value": 0},
    },
    {
        "name": "Host silent",
        "description": "Nothing was heard of a host of a run for 5 minutes.",
        "severity": "error",
        "for": "5m",
        "condition": {"kind": "silence", "of": "host"},
    },
    {
        "name": "Loss is not a number",
        "description": "A logged loss was NaN or infinite.",
        "severity": "error",
        "resolve": False,
        "condition": {"kind": "not_finite", "metric": "*loss*"},
    },
    {
        "name": "Training hangs",
        "description": "A run makes no steps any more, or its ranks wait for each other, for 5 minutes.",
        "severity": "error",
        "for": "5m",
        "condition": {"kind": "finding", "findings": ["hang"], "severity": "warning"},
    },
    {
        "name": "Devices of a run are idle",
        "description": "A run has left its devices idle, all or some of them, for 15 minutes.",
        "severity": "warning",
        "for": "15m",
        "condition": {
            "kind": "finding",
            "findings": ["idle", "idle_devices", "idle_tail", "held_memory_without_process"],
            "severity": "warning",
        },
    },
    {
        "name": "Devices wait for data",
        "description": "The devices of a run have waited for its data loader for 15 minutes: for processors, "
        "a disk, the network, or because a container's limit slows it down.",
        "severity": "warning",
        "for": "15m",
        "condition": {
            "kind": "finding",
            "findings": ["input_bound_cpu", "input_bound_disk", "input_bound_network", "cpu_limit"],
            "severity": "warning",
        },
    },
    {
        "name": "Hardware slows a run down",
        "description": "A device of a run is throttled, has a degraded link or memory errors, or needs a "
        "reset.",
        "severity": "error",
        "for": "2m",
        "condition": {
            "kind": "finding",
            "findings": [
                "thermal_throttling",
                "hw_slowdown",
                "clock_limited",
                "pcie_degraded",
                "memory_errors",
                "device_needs_reset",
            ],
            "severity": "warning",
        },
    },
)
