"""A panel of a report, and which part of it is requested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from runvitals.base.regular_expressions import finder
from runvitals.readers.journals.globs import glob
from runvitals.server.charts.overlay.axis import METRIC, Axis, Extract
from runvitals.server.reports.document import Document, panels_of
from runvitals.server.reports.run_sets import PanelRunSet

Source = Literal["logged", "system"]
USUAL_POINTS: Final = 300
_OF_ITEMS: Final = frozenset(
    ("media", "findings", "console", "importance", "parallel", "config_diff", "code_diff")
)
_FIELD: Final = re.compile(r"\s*(?:(?:logged:|system:)?\")?(?:config|summary|system)\..")
"""What a scatter panel of the page names instead of a metric: `config.lr`."""
_WITH_LINES: Final = frozenset(
    ("line", "bar", "scatter", "histogram", "percentile", "scalar", "table", "system")
)
MOST_MATCHES: Final = 50
"""Metrics of one pattern, as on the page."""


class PanelMetric(NamedTuple):
    """A metric that a panel reads. `id`: as answers call it: `logged:loss`."""

    source: Source
    name: str

    @property
    def id(self) -> str:
        """Source and name."""
        return f"{self.source}:{self.name}"


@dataclass(frozen=True, slots=True)
class PanelExtract:
    """Which part of a panel a reader requests; None: what its author chose."""

    first: float | None = None
    last: float | None = None
    points: int = USUAL_POINTS


WHOLE: Final = PanelExtract()


@dataclass(frozen=True, slots=True)
class ShownPanel:
    """A panel as a document has it, with its run sets.

    Attributes:
        queries: source with a name or a pattern: all that it may read.
        zoom: first and last x.
    """

    id: str
    kind: str
    run_sets: tuple[PanelRunSet, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    queries: tuple[Mapping[str, Any], ...] = ()
    zoom: tuple[float, float] | None = None
    frozen_ms: int | None = None
    rows: int = 4

    @property
    def is_by_device(self) -> bool:
        """Whether each device and rank has a line."""
        return self.settings.get("scope") == "devices"

    @property
    def is_log(self) -> bool:
        """Whether its x-axis is logarithmic. Times of day have no beginning to count from."""
        return self.settings.get("logx") is True and self.settings.get("x") != "wall"

    @property
    def is_of_fields(self) -> bool:
        """Whether it is a scatter panel of fields of runs, not of lines."""
        metrics = self.settings.get("metrics") or ()
        names = (self.settings.get("across"), *metrics[:1])
        return self.kind == "scatter" and all(isinstance(name, str) and _FIELD.match(name) for name in names)

    @property
    def has_items(self) -> bool:
        """Whether it shows something else than lines."""
        return self.kind in _OF_ITEMS or self.is_of_fields

    def shows_alike(self, other: ShownPanel) -> bool:
        """Return whether another panel shows the same runs over the same x, today's values too."""
        return (
            self.kind in _WITH_LINES
            and not self.has_items
            and self.frozen_ms is None
            and self.run_sets == other.run_sets
            and (self.is_by_device, self.is_log, self.settings.get("x") or "step")
            == (other.is_by_device, other.is_log, other.settings.get("x") or "step")
            and {query["source"] for query in self.queries} == {query["source"] for query in other.queries}
            and all(query.get("name") is not None for query in self.queries)
        )

    def axis(self, metrics: Sequence[PanelMetric]) -> Axis:
        """Return its x-axis. Samples of the system have no steps, so a panel with some is over time.

        Raises:
            ValueError: no axis has this name.
        """
        text = self.settings.get("x") or "step"
        if text != "wall" and any(metric.source == "system" for metric in metrics):
            text = "relative"
        if not isinstance(text, str):
            raise ValueError(f"x: expected a text such as step or {METRIC}NAME")
        return Axis.parse(text)

    def part(self, requested: PanelExtract, count: int) -> Extract:
        """Return the requested part of what its author shows.

        Args:
            count: of lines, so that all together have few enough points.
        """
        first, last = self.zoom if self.zoom is not None else (None, None)
        firsts = [x for x in (first, requested.first) if x is not None]
        lasts = [x for x in (last, requested.last) if x is not None]
        most = _MAX_DRAWN_POINTS if self.kind in _DRAWN else _MAX_POINTS
        points = max(2, min(requested.points, most // max(1, count)))
        return Extract(points, max(firsts, default=None), min(lasts, default=None), log=self.is_log)

    def metrics(self, logged: Sequence[str], system: Sequence[str]) -> list[PanelMetric]:
        """Return the metrics that its queries name, of those that its runs have.

        Args:
            system: names of metrics, with `*` for what differs between devices.

        Raises:
            ValueError: an invalid pattern.
        """
        metrics: dict[PanelMetric, None] = {}
        for query in self.queries:
            source: Source = query["source"]
            names = logged if source == "logged" else system
            if query.get("pattern") is not None:
                matches = finder(query["pattern"])
                metrics |= dict.fromkeys(
                    [PanelMetric(source, name) for name in names if matches(name)][:MOST_MATCHES]
                )
            elif is_recorded(source, query["name"], names):
                metrics[PanelMetric(source, query["name"])] = None
        return list(metrics)


_MAX_POINTS: Final = 1_000_000
_DRAWN: Final = frozenset(("line", "percentile", "system"))
_MAX_DRAWN_POINTS: Final = 30_000
"""Of all lines of a chart: more cost a page time, and are not seen between the others."""


def is_recorded(source: Source, name: str, names: Sequence[str]) -> bool:
    """Return whether runs have a metric; a name of the system may be one device, or a glob."""
    if name in names:
        return True
    return source == "system" and any(glob(each)(name) or glob(name)(each) for each in names)


def panels_in(document: Document) -> Iterator[ShownPanel]:
    """Iterate over the panels of a document."""
    for block, panel in panels_of(document):
        yield _panel(block, panel)


def _panel(block: Mapping[str, Any], panel: Mapping[str, Any]) -> ShownPanel:
    run_sets = {run_set["id"]: PanelRunSet.of(run_set) for run_set in block["run_sets"]}
    zoom = panel.get("zoom")
    return ShownPanel(
        panel["id"],
        panel["kind"],
        tuple(run_sets[name] for name in panel["run_sets"]),
        panel.get("settings") or {},
        tuple(panel.get("queries", ())),
        None if zoom is None else (zoom["min"], zoom["max"]),
        panel.get("frozen_ms"),
        panel.get("rows", 4),
    )
