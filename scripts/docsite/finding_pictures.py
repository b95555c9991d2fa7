"""Pictures of findings: the series that decided one over a labelled run, with its time shaded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil
from typing import Any

import numpy as np
from tests.findings.scenarios.course import Build, Course
from tests.findings.scenarios.healthy import healthy
from tests.findings.scenarios.sick import sick

from runvitals.findings.finding import Evidence, Finding
from runvitals.findings.judge import judge
from runvitals.findings.observed_run import ObservedRun
from runvitals.findings.windows import Floats, HostColumns
from runvitals.model.metrics import DEFINITIONS

MAX_SERIES = 3
_POINTS = 180
_WIDTH, _HEIGHT, _GAP = 640, 50, 30


def _wrong_power(vendor: str, **more: Any) -> Course:
    """A run with a device whose power is far above its limit for some time."""
    course = Course(vendor, **more)
    course.power[2, course.between(20, 40)] = 260
    return course


_OTHER_RUNS: dict[str, Build] = {
    "compute_bound": healthy["plain"][0],
    "memory_bound": healthy["memory_bound_work"][0],
    "power_capped": healthy["power_capped"][0],
    "missing_samples": healthy["asleep"][0],
    "sensor_implausible": _wrong_power,
}
"""Runs with findings that accuse nobody."""


@dataclass(frozen=True, slots=True)
class DrawnSeries:
    """A series in a picture.

    Args:
        minutes: since the start of the run.
        normal: what the values are compared with; None if there is nothing to compare.
    """

    name: str
    unit: str
    minutes: Floats
    values: Floats
    normal: float | None


def picture(rule_id: str) -> str:
    """Return the picture of a finding as SVG.

    Raises:
        ValueError: no labelled run has the finding with a series to draw.
    """
    build = sick[rule_id][0] if rule_id in sick else _OTHER_RUNS.get(rule_id)
    if build is None:
        raise ValueError(f"no labelled run has the finding {rule_id}: add one to the scenarios")
    run = build("h100", seed=1, interval_s=15.0).run()
    finding = next((each for each in judge(run).findings if each.id == rule_id), None)
    if finding is None:
        raise ValueError(f"the labelled run of {rule_id} does not have the finding")
    busy = run.devices[0].key("busy")
    drawn = [series for each in finding.evidence if (series := _series_of(run, each)) is not None]
    if not drawn and busy:  # where samples are missing, any series shows it
        series = _series_of(run, Evidence(busy, run.hosts[0].name, 0.0, "%"))
        drawn = [series] if series else []
    if not drawn:
        raise ValueError(f"the finding {rule_id} has no series to draw")
    return _svg(run, finding, drawn[:MAX_SERIES])


def _series_of(run: ObservedRun, evidence: Evidence) -> DrawnSeries | None:
    """Return the values of a series over a run; None if the run has none of it."""
    logged = run.training.logged.get(evidence.key)
    if logged is not None:
        minutes = (logged.time_ms - run.started_ms) / 60_000
        return _drawn(evidence, minutes, logged.values)
    host = next((each for each in run.hosts if each.name == evidence.host), None)
    if host is None:
        return None
    values = host.columns.mean(evidence.key)
    if not host.columns.has(evidence.key):
        rated = _rate(host.columns, evidence.key)
        if rated is None:
            return None
        values = rated
    begin_ms = run.windows.start_ms + np.arange(run.windows.count) * run.windows.width_ms
    return _drawn(evidence, (begin_ms - run.started_ms) / 60_000, values)


def _rate(columns: HostColumns, key: str) -> Floats | None:
    """Return the rate of a counter, as its definition has it; None if the host has no such counter."""
    for counter in columns.columns:
        match = DEFINITIONS.find(counter)
        rate = DEFINITIONS.rate_of.get(match.metric.key) if match else None
        if match and rate and rate.key.format(**match.labels) == key:
            return columns.per_second(counter) * rate.factor
    return None


def _drawn(evidence: Evidence, minutes: Floats, values: Floats) -> DrawnSeries | None:
    """Return a series with fewer points: the mean of neighbours, NaN where one is not a number."""
    size = max(1, ceil(len(values) / _POINTS))
    count = len(values) // size
    values = values[: count * size].reshape(count, size).mean(axis=1)
    if not np.isfinite(values).any():
        return None
    minutes = minutes[: count * size].reshape(count, size)[:, 0]
    unit = "" if evidence.unit == "1" else evidence.unit
    return DrawnSeries(evidence.key, unit, minutes, values, evidence.normal)


def _svg(run: ObservedRun, finding: Finding, drawn: Sequence[DrawnSeries]) -> str:
    """Draw series below each other, with the time of a finding shaded and times at the bottom."""
    length = run.duration_ms / 60_000
    scale = _WIDTH / length
    height = len(drawn) * (_HEIGHT + _GAP) + 18
    from_min = (finding.from_ms - run.started_ms) / 60_000
    to_min = length if finding.to_ms is None else (finding.to_ms - run.started_ms) / 60_000
    keys = ", ".join(series.name for series in drawn)
    label = escape(f"{finding.id}: {keys} over a run of {length:.0f} minutes. {finding.text}")
    parts = [
        f'<svg class="finding" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{label}">',
        f'<rect x="{from_min * scale:.1f}" width="{max((to_min - from_min) * scale, 3):.1f}" '
        f'height="{height - 18}" class="time"/>',
    ]
    for place, series in enumerate(drawn):
        parts += _lines(series, scale, place * (_HEIGHT + _GAP))
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        parts.append(
            f'<text x="{share * _WIDTH:.0f}" y="{height - 4}" text-anchor="{anchor}">'
            f"{share * length:.0f} min</text>"
        )
    return "".join([*parts, "</svg>"])


def _lines(series: DrawnSeries, scale: float, top: float) -> Iterator[str]:
    """Draw one series: its name, its highest and lowest value, what is normal, and its line."""
    finite = series.values[np.isfinite(series.values)]
    most = max(float(finite.max()), series.normal or 0.0)
    least = min(float(finite.min()), 0.0)
    if series.unit == "%":
        most = max(most, 100.0)
    extent = most - least or 1.0
    bottom = top + _GAP - 8 + _HEIGHT

    def height_of(value: float) -> str:
        """Where a value is drawn."""
        return f"{bottom - (value - least) / extent * _HEIGHT:.1f}"

    unit = f" {escape(series.unit)}" if series.unit else ""
    normal = "" if series.normal is None else f", normally {series.normal:,.4g}{unit}"
    yield f'<text x="0" y="{top + 14}">{escape(series.name)}{normal}</text>'
    yield f'<text x="{_WIDTH}" y="{top + 14}" text-anchor="end">{least:,.4g} to {most:,.4g}{unit}</text>'
    yield f'<path class="axis" d="M0 {bottom}H{_WIDTH}"/>'
    if series.normal is not None:
        yield f'<path class="normal" d="M0 {height_of(series.normal)}H{_WIDTH}"/>'
    path, is_drawn = [], False
    for minute, value in zip(series.minutes, series.values, strict=True):
        if np.isfinite(value):
            path.append(f"{'L' if is_drawn else 'M'}{max(minute, 0) * scale:.1f} {height_of(float(value))}")
        is_drawn = bool(np.isfinite(value))
    yield f'<path class="values" d="{"".join(path)}"/>'
