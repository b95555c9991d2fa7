"""Runs of one host, made of series and rows, judged as a whole or up to a moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from runvitals.findings.finding import Finding, Findings
from runvitals.findings.judge import judge
from runvitals.findings.observation import HostSamples, observe
from runvitals.findings.training import LoggedColumn, Mark

START_MS = 1_790_000_000_000
GIB, HOUR = 2.0**30, 3600.0


def judged(
    seconds: Any,
    series: Mapping[str, Any],
    *,
    rows: Mapping[str, tuple[Any, Any]] | None = None,
    devices: Sequence[Mapping[str, Any]] = (),
    marks: Sequence[Mark] = (),
    state: str = "running",
    until_s: float | None = None,
    out_of_memory: bool | None = None,
) -> Findings:
    """Judge a run whose values are constant or given for each sample.

    Args:
        rows: seconds and values by logged name; its steps count from 0.
        until_s: what comes later has not happened yet.
    """
    seconds = np.asarray(seconds, dtype=np.float64)
    kept = seconds <= (np.inf if until_s is None else until_s)
    times = START_MS + (seconds[kept] * 1000).astype(np.int64)
    columns = {
        key: (times, np.broadcast_to(np.asarray(values, dtype=np.float64), seconds.shape)[kept].copy())
        for key, values in series.items()
    }
    logged = {}
    for name, (at, values) in (rows or {}).items():
        at = np.asarray(at, dtype=np.float64)
        early = at <= (np.inf if until_s is None else until_s)
        steps = np.arange(len(at), dtype=np.int64)
        values = np.broadcast_to(np.asarray(values, dtype=np.float64), at.shape)
        logged[name] = LoggedColumn(
            START_MS + (at[early] * 1000).astype(np.int64), steps[early], values[early]
        )
    machine = {"gpu_nvidia": list(devices), "cpu": {"available": 32.0}}
    run = observe(
        [HostSamples("node0", columns, machine=machine)],
        logged,
        marks,
        state=state,
        started_ms=START_MS,
        ended_ms=None if state == "running" else int(times[-1]),
        now_ms=int(times[-1]),
        out_of_memory=out_of_memory,
    )
    return judge(run)


def accusing(findings: Findings) -> set[str]:
    """The ids of findings that are no mere information."""
    return {each.id for each in findings.findings if each.severity != "info"}


def the(findings: Findings, name: str) -> Finding:
    """The only finding with an id."""
    (found,) = [each for each in findings.findings if each.id == name]
    return found


def minutes(finding: Finding) -> tuple[float, float | None]:
    """When a finding began and ended, in minutes from the start of its run."""
    end = None if finding.to_ms is None else (finding.to_ms - START_MS) / 60_000
    return (finding.from_ms - START_MS) / 60_000, end
