"""The filter of nodes, ranks and devices, which is edited like that of a pane."""

from __future__ import annotations

from collections.abc import Callable

from runvitals.terminal.leet.line_filter import LineFilter
from runvitals.terminal.leet.run_data import RunData


class LinesPane:
    """The filter of nodes, ranks and devices, as if it were a pane.

    Args:
        data: whose lines it filters.
        redraw: shows them.
    """

    title = "Lines"

    def __init__(self, data: RunData, redraw: Callable[[], None]) -> None:
        self._data = data
        self._redraw = redraw

    @property
    def pattern(self) -> str:
        """The text of the filter."""
        return self._data.only.text

    def set_filter(self, pattern: str) -> None:
        """Show only some nodes, ranks and devices.

        Raises:
            ValueError: not a filter.
        """
        self._data.only = LineFilter.parse(pattern)
        self._redraw()
