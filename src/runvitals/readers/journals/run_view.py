"""How a run shows itself in a notebook: its state, small charts of its newest values, and links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runvitals.model.durations import duration_text
from runvitals.readers.journals import html_views
from runvitals.readers.journals.html_views import ShownRun, SmallChart

if TYPE_CHECKING:
    from runvitals.readers.journals.history import History
    from runvitals.readers.journals.series import Columns

KEYS = ("cpu", "memory_percent", "gpu.*.gpu", "gpu.*.memoryAllocated")
"""What is shown of the machines."""
POINTS = 120
_LOGGED = 8
_SAMPLED = 6


def logged_names(summary: Mapping[str, Any]) -> list[str]:
    """Return the logged names that are shown: the first numbers of the summary."""
    numbers = [
        name for name, value in summary.items() if isinstance(value, (int, float)) and value is not True
    ]
    return numbers[:_LOGGED]


def small_charts(columns: Columns) -> list[SmallChart]:
    """Return a chart for each of the first series."""
    several = len(columns.hosts) > 1
    return [
        SmallChart(f"{each.key} on {each.host}" if several else each.key, each.unit, list(each.values))
        for each in columns.series[:_SAMPLED]
    ]


def logged_charts(histories: Mapping[int | None, Sequence[History]]) -> list[SmallChart]:
    """Return a chart for each of the first names, of the first rank that logged it.

    Args:
        histories: by rank: of its processes, one after the other if it was restarted.
    """
    charts: dict[str, SmallChart] = {}
    for of_rank in histories.values():
        names = dict.fromkeys(name for history in of_rank for name in history.keys)
        for name in names:
            if name not in charts and len(charts) < _LOGGED:
                parts = [history.column(name)[2] for history in of_rank if name in history.keys]
                charts[name] = SmallChart(name, "", [value for part in parts for value in part])
    return list(charts.values())


def html(
    row: Mapping[str, Any], links: Mapping[str, str], charts: Sequence[SmallChart], problem: str = ""
) -> str:
    """Return the HTML of a run. `row`: what a list of runs has of it."""
    return html_views.run(
        ShownRun(
            str(row["id"]),
            str(row["name"]),
            str(row["project"]),
            str(row["state"]),
            duration_text(int(row["duration_ms"])),
            row["summary"],
            charts,
            links,
            problem,
        )
    )
