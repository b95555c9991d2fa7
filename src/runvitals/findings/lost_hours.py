"""Lost device-hours by cause, so that no hour counts twice.

Findings overlap: while the loader starves the devices, a disk may be slow too. A report that adds up what
each finding costs would then count an hour twice. So the findings take their time in the order of their
importance, the headline first: at any moment a later one counts only as far as it costs more than what
earlier ones about the same devices have taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from runvitals.findings.finding import Finding
from runvitals.model.durations import HOUR_MS

MAX_COUNTED: Final = 300
"""Findings of one run that take time; those after them, which matter least, count as 0."""


def lost_hours(findings: Sequence[Finding], up_to_ms: int, device_hours: float | None = None) -> list[float]:
    """Return how many device-hours each finding takes; together at most those of the run.

    A finding is taken to cost the same at each moment from its start to its end.

    Args:
        findings: the most important first.
        up_to_ms: the end of those that go on, ms UTC.
        device_hours: of the run; None: not known.

    Example:
        >>> lost_hours([hang, idle], up_to_ms)  # idle because hung
        [3.5, 0.0]
    """
    import numpy as np  # here: the server loads this module at its start

    hours = [0.0] * len(findings)
    accused = [at for at, each in enumerate(findings) if each.severity != "info" and each.device_hours > 0][
        :MAX_COUNTED
    ]
    if not accused:
        return hours
    chosen = [findings[at] for at in accused]
    ends = [max(up_to_ms if each.to_ms is None else each.to_ms, each.from_ms + 1) for each in chosen]
    edges = np.unique([*(each.from_ms for each in chosen), *ends])
    lengths = np.diff(edges) / HOUR_MS
    charged = np.zeros((len(chosen), len(lengths)))
    hours_left = np.inf if device_hours is None else max(device_hours, 0.0)
    for at, (each, end_ms) in enumerate(zip(chosen, ends, strict=True)):
        holds = (edges[:-1] >= each.from_ms) & (edges[1:] <= end_ms)
        devices = each.device_hours / ((end_ms - each.from_ms) / HOUR_MS)
        same = [before for before in range(at) if _have_devices_in_common(each, chosen[before])]
        charged[at] = np.where(holds, np.maximum(devices - charged[same].sum(axis=0), 0.0), 0.0)
        its_hours = min(float(charged[at] @ lengths), hours_left)
        hours[accused[at]] = its_hours
        hours_left -= its_hours
    return hours


def _have_devices_in_common(finding: Finding, other: Finding) -> bool:
    """Return whether two findings may be about the same devices; without a list, it is about all."""
    if finding.hosts and other.hosts and not set(finding.hosts) & set(other.hosts):
        return False
    return not finding.devices or not other.devices or bool(set(finding.devices) & set(other.devices))
