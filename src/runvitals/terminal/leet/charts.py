"""The charts of a run.

There is one for each logged name, one for each chart of the metric definitions, and one for each key without
a definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from runvitals.base.terminal_text import inert
from runvitals.model.defined_metrics import definition_of
from runvitals.model.metrics import DEFINITIONS
from runvitals.readers.journals.rates import rate_of


class SeriesName(NamedTuple):
    """A series of system metrics: its key, its host, and the role of its writer."""

    key: str
    origin: str
    role: str


class Chart(NamedTuple):
    """A chart: its title, unit and lines. All texts are as recorded, and not safe for a terminal.

    Args:
        axis: the logged metric that it is drawn over, where others are over steps; "": none.
        is_hidden: whether it is shown only if a filter matches it.
    """

    title: str
    unit: str
    lines: tuple[SeriesName, ...]
    axis: str = ""
    is_hidden: bool = False

    @property
    def is_percent(self) -> bool:
        """Whether the values are percentages."""
        return self.unit == "%"


_ORDER = {metric.key: index for index, metric in enumerate(DEFINITIONS.metrics)}
_UNKNOWN = len(_ORDER)


def system_charts(keys: Mapping[tuple[str, str], Iterable[str]]) -> list[Chart]:
    """Return the charts of system metrics in the order of the definitions, unknown keys last.

    Args:
        keys: the keys of each (host, role). A counter that has a rate is shown as that rate.

    Example:
        >>> [(chart.title, chart.unit) for chart in system_charts({("node1", "monitor"): ["cpu", "my.key"]})]
        [('CPU', '%'), ('my.key', '')]
    """
    groups: dict[tuple[int, str, str], list[tuple[tuple[int, str], SeriesName]]] = {}
    for (host, role), names in keys.items():
        for name in names:
            rate = rate_of(name)
            key = name if rate is None else rate.key
            match = DEFINITIONS.find(key)
            if match is None:
                group, order = (_UNKNOWN, key, ""), _UNKNOWN
            else:
                order = _ORDER[match.metric.key]
                group = (-1, match.metric.chart, match.metric.unit)
            groups.setdefault(group, []).append(((order, key), SeriesName(key, host, role)))
    charts = []
    for (_, title, unit), lines in groups.items():
        lines.sort(key=lambda entry: (entry[0][0], entry[1].origin, natural(entry[0][1])))
        charts.append((lines[0][0], Chart(title, unit, tuple(line for _, line in lines))))
    charts.sort(key=lambda entry: (entry[0][0], natural(entry[0][1])))
    return [chart for _, chart in charts]


def metric_charts(
    names: Iterable[str], defined: Mapping[str, Mapping[str, Any]] | None = None
) -> list[Chart]:
    """Return the charts of logged values, ordered by name. Their lines are known once they are read.

    Args:
        defined: definitions of `define_metric` by name. An axis that nobody logged does not count.
    """
    logged = set(names)
    charts = []
    for name in sorted(logged, key=natural):
        how = definition_of(defined, name) if defined else {}
        axis = how.get("x", "")
        has_axis = axis != name and axis in logged
        charts.append(Chart(name, "", (), axis if has_axis else "", bool(how.get("hidden"))))
    return charts


def natural(key: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key with numbers in numeric order: `gpu.2` before `gpu.10`."""
    return tuple(
        (0, int(part), "") if part.isdecimal() and len(part) < 16 else (1, 0, part)
        for part in key.replace("/", ".").split(".")
    )


def line_names(chart: Chart) -> list[str]:
    """Return the names of the lines of a system chart, safe for a terminal.

    They are the labels of the keys, or the keys if labels do not tell them apart; with several hosts, also
    the host.

    Example:
        >>> keys = ("gpu.0.powerWatts", "gpu.1.powerWatts")
        >>> line_names(Chart("GPU power", "W", tuple(SeriesName(key, "node1", "monitor") for key in keys)))
        ['0', '1']
    """
    matches = [DEFINITIONS.find(line.key) for line in chart.lines]
    templates = {None if match is None else match.metric.key for match in matches}
    hosts = {line.origin for line in chart.lines}
    names = []
    for line, match in zip(chart.lines, matches, strict=True):
        labels = "" if match is None or len(templates) > 1 else " ".join(match.labels.values())
        name = labels or ("" if len(templates) == 1 and len(hosts) > 1 else line.key)
        names.append(inert(f"{line.origin} {name}".strip() if len(hosts) > 1 else name))
    return names


def metrics_of(chart: Chart) -> int:
    """Return how many metrics a chart has, each for several devices, hosts or processes.

    Example:
        >>> keys = ("gpu.0.temp", "gpu.1.temp", "gpu.0.memoryTemp")
        >>> metrics_of(Chart("GPU temperature", "°C", tuple(SeriesName(key, "node1", "") for key in keys)))
        2
    """
    matches = ((line.key, DEFINITIONS.find(line.key)) for line in chart.lines)
    return max(len({key if match is None else match.metric.key for key, match in matches}), 1)


def matching(charts: Sequence[Chart], is_wanted: Callable[[str], bool]) -> list[Chart]:
    """Return the charts whose title or one of whose keys is wanted."""
    return [
        chart
        for chart in charts
        if is_wanted(chart.title) or any(is_wanted(line.key) for line in chart.lines)
    ]
