"""Computes the system statistics of a run from its series: those that `model.system_statistics` declares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

import numpy as np

from runvitals.base.buckets import Buckets, grid
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.system_statistics import QUANTITIES, Quantity
from runvitals.server.library.run_library import BucketedSeries, RunView, SeriesSelection

_BUCKETS: Final = 512
"""Into which a run is divided to add up its power over time."""
_GAP: Final = 3
"""After so many times the usual distance of two values there is a gap."""
_J_PER_WH: Final = 3600.0
_MS_PER_H: Final = 3_600_000.0
_PLACEHOLDER = re.compile(r"\{\w+\}")


def statistics_of(view: RunView, started_ms: int, last_ms: int) -> dict[str, float]:
    """Return the system statistics of a run, by field; those without values are left out.

    Args:
        started_ms, last_ms: the time of the run.
    """
    on = grid(started_ms, max(started_ms, last_ms), _BUCKETS)
    series = view.read_chart(SeriesSelection(_PATTERNS), started_ms, last_ms, on, 0).buckets or []
    by_metric: dict[str, list[BucketedSeries]] = {}
    for item in series:
        match = DEFINITIONS.find(item.key)
        if match is not None:
            by_metric.setdefault(match.metric.key, []).append(item)
    statistics: dict[str, float] = {}
    for quantity in QUANTITIES:
        if quantity.kind == "energy":
            statistics.update(_energy(quantity, by_metric, last_ms))
        else:
            statistics.update(_gauge(quantity, _without_doubt(quantity.metric, quantity, by_metric)))
    return {name: value for name, value in statistics.items() if isfinite(value)}


def _metrics() -> Iterable[str]:
    for quantity in QUANTITIES:
        yield quantity.metric
        yield from (metric for metric in (quantity.power, quantity.suspect) if metric is not None)


_PATTERNS: Final = tuple(dict.fromkeys(_PLACEHOLDER.sub("*", metric) for metric in _metrics()))


def _without_doubt(
    metric: str, quantity: Quantity, by_metric: Mapping[str, Sequence[BucketedSeries]]
) -> list[BucketedSeries]:
    """Return the series of a metric without the buckets in which they are in doubt."""
    doubts = {_device(item): item.buckets for item in by_metric.get(quantity.suspect or "", ())}
    series = []
    for item in by_metric.get(metric, ()):
        doubt = doubts.get(_device(item))
        if doubt is None:
            series.append(item)
            continue
        part = item.buckets
        at = ~np.isin(part.t, doubt.t[doubt.n > 0])
        undoubted = Buckets(part.t[at], part.n[at], part.min[at], part.max[at], part.mean[at], part.last[at])
        series.append(replace(item, buckets=undoubted))
    return series


def _gauge(quantity: Quantity, series: Sequence[BucketedSeries]) -> dict[str, float]:
    """Mean, min and max of all values of all series."""
    parts = [item.buckets for item in series if item.buckets.n.any()]
    if not parts:
        return {}
    n = np.concatenate([part.n for part in parts])
    mean = np.concatenate([part.mean for part in parts])
    has_values = n > 0
    lowest = min(float(np.nanmin(part.min)) for part in parts)
    highest = max(float(np.nanmax(part.max)) for part in parts)
    values = (float(np.average(mean[has_values], weights=n[has_values])), lowest, highest)
    return dict(zip(quantity.statistics, values, strict=True))


def _energy(
    quantity: Quantity,
    by_metric: Mapping[str, Sequence[BucketedSeries]],
    last_ms: int,
) -> dict[str, float]:
    """Return the energy of all devices: by their counters, or by power × time for a device without one."""
    counted = {
        _device(item): _growth(item.buckets) / _J_PER_WH for item in by_metric.get(quantity.metric, ())
    }
    energies = {device: energy for device, energy in counted.items() if isfinite(energy)}
    for item in _without_doubt(quantity.power or "", quantity, by_metric):
        if _device(item) not in energies and item.buckets.n.any():
            energies[_device(item)] = _integral(item.buckets, last_ms) / _MS_PER_H
    return {quantity.statistics[0]: sum(energies.values())} if energies else {}


def _device(series: BucketedSeries) -> tuple[str, str, tuple[str, ...]]:
    match = DEFINITIONS.find(series.key)
    return series.host, series.role, () if match is None else tuple(match.labels.values())


def _growth(buckets: Buckets) -> float:
    """Return a counter's total increase; the decrease of a reset is left out. NaN without values."""
    has_values = buckets.n > 0
    if not has_values.any():
        return float("nan")
    last = buckets.last[has_values]
    steps = np.diff(last)
    return float(last[0] - buckets.min[has_values][0] + steps[steps > 0].sum())


def _integral(buckets: Buckets, last_ms: int) -> float:
    """Return the sum of value × milliseconds.

    Each mean counts until the next one, but for a gap only briefly.
    """
    has_values = buckets.n > 0
    spans = np.diff(buckets.t[has_values], append=max(last_ms, int(buckets.t[-1])))
    longest = _GAP * float(np.median(spans)) if len(spans) else 0.0
    return float((buckets.mean[has_values] * np.minimum(spans, longest)).sum())
