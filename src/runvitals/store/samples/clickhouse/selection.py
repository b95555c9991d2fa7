"""Conditions of SQL on series and times, and the tables with replaced rows left out."""

from __future__ import annotations

from collections.abc import Iterable

from runvitals.store.samples.clickhouse.rows import month_number
from runvitals.store.samples.interface import END_OF_TIME_MS

SAMPLES = "samples FINAL"
"""FINAL leaves out rows that others replace and that were not merged yet."""


def id_list(ids: Iterable[int]) -> str:
    """Write ids for an SQL list."""
    return ",".join(map(str, ids))


def in_range(t0_ms: int, t1_ms: int) -> str:
    """Rows of `samples` in a range that includes both ends."""
    t0_ms, t1_ms = max(t0_ms, 0), min(t1_ms, END_OF_TIME_MS - 1)
    if t1_ms < t0_ms:
        return "0"
    months = f"month >= {month_number(t0_ms)} AND month <= {month_number(t1_ms)}"
    return f"{months} AND t >= {t0_ms} AND t <= {t1_ms}"


def of_series(runs: Iterable[int], metrics: Iterable[int] | None) -> str:
    """Rows of these runs and metrics; None: all metrics. There must be at least one of each."""
    condition = f"run IN ({id_list(runs)})"
    return condition if metrics is None else f"{condition} AND metric IN ({id_list(metrics)})"
