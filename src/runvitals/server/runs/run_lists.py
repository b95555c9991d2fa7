"""Lists of runs: their pages, the columns that are shown, and sparklines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from runvitals.base.buckets import Buckets, Grid, grid
from runvitals.model.run import Run


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """Columns that a list shows of each run, besides the usual.

    Args:
        fields: values of these fields: `config.lr`, `summary.loss`, `system.gpu`.
        sparklines: logged names, and keys or globs of metrics, whose course over the run is shown.
    """

    fields: tuple[str, ...] = ()
    sparklines: tuple[str, ...] = ()


NO_COLUMNS = ShownColumns()
SPARKLINE_BUCKETS = 40


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of a list of runs.

    Args:
        total: the number of runs on all pages.
        next: the cursor of the next page; None on the last.
        columns: for each run the values of the fields it has.
        sparklines: for each run, by key: the means in equal parts of its time; NaN is a gap.
        pending: runs whose system statistics are not computed yet.
    """

    runs: list[Run]
    total: int
    next: str | None
    columns: list[dict[str, str | float]] = field(default_factory=list)
    sparklines: list[dict[str, list[float]]] = field(default_factory=list)
    pending: int = 0


def sparkline_grid(started_ms: int, last_ms: int) -> Grid:
    """Return the parts of a run's time whose means are shown."""
    return grid(started_ms, max(started_ms, last_ms), SPARKLINE_BUCKETS)


def sparkline(on: Grid, lines: Sequence[Buckets]) -> list[float]:
    """Return the mean of some series in each part of the time.

    NaN is a gap. The list is empty if there is no value at all.

    With few values the parts are longer, so that they are not gaps to each other.
    """
    total, count = np.zeros(on.count), np.zeros(on.count)
    for line in lines:
        has_values = line.n > 0
        positions = (line.t[has_values] - on.t0_ms) // on.width_ms
        np.add.at(total, positions, line.mean[has_values] * line.n[has_values])
        np.add.at(count, positions, line.n[has_values])
    values = max((int(line.n.sum()) for line in lines), default=0)
    if not values:
        return []
    if (longer := -(-on.count // values)) > 1:
        starts = np.arange(0, on.count, longer)
        total, count = np.add.reduceat(total, starts), np.add.reduceat(count, starts)
    means = np.full(len(total), np.nan)
    np.divide(total, count, out=means, where=count > 0)
    return [float(mean) for mean in means]
