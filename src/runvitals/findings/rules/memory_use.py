"""How much memory a host's run may use, and how much of it cannot be given back."""

from __future__ import annotations

import numpy as np

from runvitals.findings.observed_run import ObservedHost
from runvitals.findings.spans import known
from runvitals.findings.windows import Floats


def limit_mib(host: ObservedHost) -> float | None:
    """Return the MiB that the run may use: the container's limit, else all; None if unknown."""
    limit = host.columns.mean("cgroup.memory.limitMB")
    if known(limit).any():
        return float(np.nanmedian(limit))
    rss, percent = host.columns.mean("proc.memory.rssMB"), host.columns.mean("proc.memory.percent")
    with np.errstate(divide="ignore", invalid="ignore"):
        total = np.where(percent > 0.5, 100 * rss / percent, np.nan)
    if known(total).any():
        return float(np.nanmedian(total))
    memory = host.machine.get("memory")
    value = memory.get("total_bytes") if isinstance(memory, dict) else None
    return value / 2**20 if isinstance(value, int | float) and value > 0 else None


def used_percent(host: ObservedHost) -> tuple[Floats, str]:
    """Return how much of its memory a host uses, in percent, and the key that tells.

    A container's working set is without the cached files that the kernel gives back before it kills.
    """
    columns = host.columns
    working, limit = columns.mean("cgroup.memory.workingSetMB"), columns.mean("cgroup.memory.limitMB")
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(limit > 0, 100 * working / limit, np.nan)
    if known(share).any():
        return share, "cgroup.memory.workingSetMB"
    return columns.mean("memory_percent"), "memory_percent"


def amount_text(mib: float) -> str:
    """Write an amount of memory: `512 MiB`, `3.5 GiB`."""
    return f"{mib / 1024:.1f} GiB" if mib >= 1024 else f"{mib:.0f} MiB"
