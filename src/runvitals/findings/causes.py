"""Which findings explain others, and which cause others."""

from __future__ import annotations

from collections.abc import Mapping

EXPLAINED_BY: Mapping[str, tuple[str, ...]] = {
    "hang": (
        "idle",
        "idle_devices",
        "idle_tail",
        "launch_bound",
        "communication_bound",
        "straggler",
        "clock_limited",
    ),
    "device_needs_reset": ("idle_devices", "straggler", "clock_limited", "launch_bound"),
    "held_memory_without_process": ("idle_devices",),
    "idle": ("slow_start", "idle_devices", "idle_tail"),
    "idle_devices": ("input_bound_cpu", "input_bound_disk", "input_bound_network", "launch_bound"),
    "cpu_limit": ("input_bound_cpu",),
    "thermal_throttling": ("clock_limited",),
    "hw_slowdown": ("clock_limited", "thermal_throttling"),
    "straggler": ("clock_limited",),
    "swapping": ("input_bound_disk",),
    "checkpoint_stalls": ("input_bound_disk",),
    "loss_not_finite": ("loss_diverged",),
}
"""Findings that another explains, at the same time and on the same devices, are left out."""

CAUSED_BY: Mapping[str, tuple[str, ...]] = {
    "device_needs_reset": ("hang", "idle", "idle_devices"),
    "memory_errors": ("hang", "idle", "idle_devices"),
    "held_memory_without_process": ("idle",),
    "thermal_throttling": ("straggler",),
    "hw_slowdown": ("straggler",),
    "swapping": ("out_of_memory_near", "input_bound_disk"),
}
"""Both are findings, but the cause is the headline, whatever the consequence costs."""
CAUSE_S = 30 * 60
"""What begins so much before its cause is no consequence of it."""
