"""The rows of `log()`: a list that notebooks show as a table, and that becomes data frames and plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runvitals.readers.journals import data_frames, html_views, plots
from runvitals.readers.journals.history import numbers

_NAMED = 20  # names in an error
_SHOWN_ROWS = 10


@dataclass(frozen=True, slots=True)
class LoggedRow:
    """The row of one `log()` call.

    Attributes:
        step: as logged, or None.
        time_ms: ms UTC.
        rank: of the process that logged it, or None.
        host: of that process.
        data: name → value.
    """

    step: int | None
    time_ms: int
    rank: int | None
    host: str
    data: dict[str, Any]


class LoggedCalls(list[LoggedRow]):
    """Rows of `log()`, in the order of time.

    Example:
        >>> run.history().to_pandas()[["step", "loss"]]
        >>> run.history().plot("loss")
    """

    def to_pandas(self) -> Any:
        """Return a `pandas.DataFrame`: `step`, `time`, `rank`, `host` and a column for each name.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return data_frames.to_pandas(data_frames.table_of_rows(self))

    def to_polars(self) -> Any:
        """Return a `polars.DataFrame` with the same columns.

        Raises:
            ModuleNotFoundError: polars is not installed.
        """
        return data_frames.to_polars(data_frames.table_of_rows(self))

    def plot(self, *names: str) -> Any:
        """Draw a chart over the steps for each name, by default all, with a line for each process.

        Returns:
            The axes of matplotlib, one for each chart; a figure of plotly where that is installed alone.

        Raises:
            ModuleNotFoundError: neither is installed.
            LookupError: no numbers were logged under one of these names.
        """
        charts = self._charts(names)
        missing = ", ".join(repr(name) for name in names if name not in charts)
        if missing:
            others = ", ".join(list(self._charts(()))[:_NAMED]) or "nothing"
            raise LookupError(f"no numbers were logged under {missing}; what was logged: {others}")
        return plots.plot(charts, "step")

    def _charts(self, names: Sequence[str]) -> dict[str, list[plots.PlottedLine]]:
        lines: dict[str, dict[tuple[str, int | None], tuple[list[Any], list[float]]]] = {}
        for number, row in enumerate(self):
            for name, value in numbers(row.data):
                if not names or name in names:
                    x, y = lines.setdefault(name, {}).setdefault((row.host, row.rank), ([], []))
                    x.append(number if row.step is None else row.step)
                    y.append(value)
        return {name: _labelled(of_processes) for name, of_processes in lines.items()}

    def _repr_html_(self) -> str:
        table = data_frames.table_of_rows(self[:_SHOWN_ROWS])
        return html_views.table(table, len(self))


def _labelled(lines: dict[tuple[str, int | None], tuple[list[Any], list[float]]]) -> list[plots.PlottedLine]:
    several = len(lines) > 1
    return [
        plots.PlottedLine((host if rank is None else f"{host} rank {rank}") if several else "", x, y)
        for (host, rank), (x, y) in lines.items()
    ]
