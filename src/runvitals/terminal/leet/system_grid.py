"""The grid of a run's system metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runvitals.terminal.leet.chart_grid import ChartGrid, ChartValues
from runvitals.terminal.leet.charts import Chart
from runvitals.terminal.leet.run_data import RunData
from runvitals.terminal.leet.x_window import XWindow

_WINDOWS_MS = tuple(minutes * 60_000 for minutes in (1, 2, 5, 10, 30, 60, 180, 720))
_USUAL_WINDOW_MS = 600_000


class SystemGrid(ChartGrid):
    """The system metrics of a run, over time.

    Args:
        size: columns and rows.
        data_of: returns the run; None: there is none.
        after: called after values were asked for; a remote source may not have them yet.
    """

    def __init__(
        self,
        size: tuple[int, int],
        data_of: Callable[[], RunData | None],
        after: Callable[[], None],
        *,
        id: str,
    ) -> None:
        super().__init__("System", size, self._values, XWindow(_USUAL_WINDOW_MS, _WINDOWS_MS), id=id)
        self.usually_on_time = True
        self._data_of = data_of
        self._after = after

    def show_newest(self, is_running: bool) -> None:
        """Show the newest part of a running run, and all of another."""
        self.window.show_all()
        if is_running:
            self.window.span = _USUAL_WINDOW_MS

    def _values(self, charts: Sequence[Chart]) -> ChartValues:
        data = self._data_of()
        if not charts or data is None:
            return ChartValues([[] for _ in charts], None, True, 0.0)
        extent = data.time_range()
        lines = data.system_lines(charts, self.window.range(extent))
        self._after()
        return ChartValues(lines, extent, True, extent[0], data.is_running)
