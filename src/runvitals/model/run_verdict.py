"""The verdict about a run as lists show it, and the ids and fields by which lists are filtered and sorted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SECTION: Final = "findings"
SEVERITY: Final = f"{SECTION}.severity"
"""The field of the severity as a number: see `SEVERITIES`."""
LOST_HOURS: Final = f"{SECTION}.lost_hours"
"""The field of the lost device-hours."""
FINDING_FIELDS: Final = (SEVERITY, LOST_HOURS)
SPELLINGS: Final = {"verdict": SEVERITY, "severity": SEVERITY, "lost_hours": LOST_HOURS}
"""Other names of the fields in sort orders; filters accept all but `verdict`, which is a label."""

FINDING_IDS: Final = (
    "checkpoint_stalls",
    "clock_limited",
    "communication_bound",
    "compute_bound",
    "cpu_limit",
    "device_needs_reset",
    "device_used_by_others",
    "disk_full_soon",
    "hang",
    "held_memory_without_process",
    "hw_slowdown",
    "idle",
    "idle_devices",
    "idle_tail",
    "input_bound_cpu",
    "input_bound_disk",
    "input_bound_network",
    "launch_bound",
    "loss_diverged",
    "loss_not_finite",
    "memory_bound",
    "memory_errors",
    "memory_growth",
    "missing_samples",
    "noisy_neighbour",
    "out_of_memory_near",
    "pcie_degraded",
    "power_capped",
    "sensor_implausible",
    "slow_start",
    "straggler",
    "swapping",
    "thermal_throttling",
)
"""The ids of all rules of `findings.rules`."""
HEALTHY, UNKNOWN = "healthy", "unknown"
VERDICT_IDS: Final = (*FINDING_IDS, HEALTHY, UNKNOWN)

RunSeverity = Literal["critical", "warning", "healthy", "unknown"]
SEVERITIES: Final[tuple[RunSeverity, ...]] = ("unknown", "healthy", "warning", "critical")
"""Of whole runs, in ascending order; the place of each is its number as a field."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """What a list of runs shows of the findings about a run.

    Args:
        id: of the finding that costs most, `healthy` or `unknown`.
        text: the verdict as a sentence.
        severity: of the worst finding; `healthy` if there is none but information.
        lost_device_hours: of all findings but information, at most those that the run had.
        findings: the ids of all findings, the most important first.
        judged_ms: when the run was judged, ms UTC.
    """

    id: str
    text: str
    severity: RunSeverity
    lost_device_hours: float
    findings: tuple[str, ...] = ()
    judged_ms: int = 0

    @property
    def fields(self) -> dict[str, float]:
        """The values of `FINDING_FIELDS`."""
        return {SEVERITY: float(SEVERITIES.index(self.severity)), LOST_HOURS: self.lost_device_hours}


def finding_field(name: str) -> str | None:
    """Return the field by any of its names; None if it is not one of findings.

    Example:
        >>> finding_field("lost_hours")
        'findings.lost_hours'
    """
    return SPELLINGS.get(name) or (name if name in FINDING_FIELDS else None)
