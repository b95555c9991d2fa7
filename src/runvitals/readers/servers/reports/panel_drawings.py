"""What a panel of a report draws, in files of each format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from runvitals.readers.servers.reports.drawings import Drawing, bars_of, chart_of, dots_of, parallel_of
from runvitals.readers.servers.reports.panel_fields import field_axes, field_marks, named_runs
from runvitals.readers.servers.reports.panel_tables import (
    chart_lines,
    has_lines,
    marked_values,
    shown_text,
    title_of,
)

_CHARTS: Final = ("line", "system", "percentile")


def drawings_of(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Drawing]:
    """Return the drawings of a panel that nothing is wrong with; of one that has none, there are tables."""
    kind, title, settings = panel["kind"], title_of(panel), panel.get("settings") or {}
    if has_lines(answer):
        if kind in _CHARTS:
            chart = chart_of(chart_lines(panel, answer), title, settings.get("y") == "log")
            return [] if chart is None else [chart]
        marks = marked_values(panel, answer) if kind in ("bar", "scatter") else []
        if kind == "bar":
            return bars_of(marks, title)
    elif answer.get("differences") and kind == "parallel":
        axes = field_axes(panel, answer)
        return [parallel_of(axes, named_runs(answer), title)] if axes else []
    else:
        marks = field_marks(panel, answer) if answer.get("differences") and kind == "scatter" else []
    return [dots_of(marks, title, shown_text(settings["across"]))] if marks else []
