"""What lists of runs show."""

from __future__ import annotations

from dataclasses import dataclass, field

from runvitals.model.run import Run


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """What a list shows of each run besides the usual.

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
