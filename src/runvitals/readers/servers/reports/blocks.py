"""Blocks of reports as objects: text is Markdown in a `str`; images and grids of panels are here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from runvitals.model.report_panels import (
    MAX_COLUMNS,
    PANEL_KINDS,
    SMALL_PANEL_SIZE,
    USUAL_PANEL_SIZE,
    metric_expression,
    new_id,
    panel_settings,
)

_SYSTEM: Final = "system:"
_SMALL_KINDS: Final = ("scalar",)


@dataclass
class RunSet:
    """The runs that panels show: those that a filter selects, or chosen ones.

    Args:
        filter: as in the search field of the page: `"state:finished config.lr>1e-3"`.
        name: shown above the panels, if there are several run sets.
        project: `entity/project`. None: that of the report.
        runs: ids of chosen runs, instead of the filter.
        group: fields by which runs are combined: `("config.model",)`.
        sort: `"-summary.loss"`.
        limit: show at most this many runs, up to 100.
        hidden: ids of runs that are left out.
        colors: the place in the palette, by run id.

    Example:
        >>> RunSet("tag:baseline", sort="-summary.acc", limit=5)
        RunSet(filter='tag:baseline', sort='-summary.acc', limit=5)
    """

    filter: str = ""
    name: str = field(default="", repr=False)
    project: str | None = field(default=None, repr=False)
    runs: Sequence[str] | None = field(default=None, repr=False)
    group: Sequence[str] = field(default=(), repr=False)
    sort: str = ""
    limit: int = 10
    hidden: Sequence[str] = field(default=(), repr=False)
    colors: Mapping[str, int] = field(default_factory=dict, repr=False)
    id: str = field(default_factory=new_id, repr=False)

    def as_json(self, entity: str, project: str) -> dict[str, Any]:
        """Return the run set as reports store it.

        Args:
            entity: the entity of the report, for a run set that names no project.
            project: the project of the report.

        Raises:
            ValueError: `project` is not `entity/project`.
        """
        if self.project is not None:
            entity, slash, project = self.project.partition("/")
            if not (entity and slash and project):
                raise ValueError(f"invalid project {self.project!r} of a run set: expected entity/project")
        return {
            "id": self.id,
            "name": self.name,
            "entity": entity,
            "project": project,
            "filter": self.filter,
            "group": list(self.group),
            "sort": self.sort,
            "limit": self.limit,
            "runs": None if self.runs is None else list(self.runs),
            "hidden": list(self.hidden),
            "colors": dict(self.colors),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunSet:
        """Return a run set as a report has it."""
        names = ("filter", "name", "runs", "group", "sort", "limit", "hidden", "colors", "id")
        project = f"{stored['entity']}/{stored['project']}"
        return cls(project=project, **{name: stored[name] for name in names if name in stored})


@dataclass
class Panel:
    """A live panel.

    Args:
        kind: `line`, `bar`, `scatter`, `histogram`, `percentile`, `scalar`, `table`, `text`, `parallel`,
            `importance`, `media`, `system`, `findings`, `config_diff`, `code_diff` or `console`.
        metrics: names of logged metrics, one or several. `system:gpu.*.gpu` is a system metric; `*` stands
            for each device.
        title: empty: named after the metrics.
        pattern: all logged metrics whose names match this regular expression, instead of `metrics`.
        x: `step`, `relative`, `wall` or `metric:NAME`.
        across: the metric across, of a scatter panel.
        zoom: the part of the x-axis that is shown: `(100, 2000)`.
        columns, rows: the size in the grid of 12 columns. None: the usual one.
        run_sets: ids of run sets. Empty: all of the block.
        settings: further settings of the page's panels: `{"y": "log"}`.

    Raises:
        ValueError: an unknown kind or setting, or metrics together with a pattern.

    Example:
        >>> Panel("line", "train/loss", x="relative", settings={"y": "log"})
        Panel(kind='line', metrics=('train/loss',), title='')
    """

    kind: str
    metrics: str | Sequence[str] = ()
    title: str = ""
    pattern: str = field(default="", repr=False)
    x: str = field(default="step", repr=False)
    across: str = field(default="", repr=False)
    zoom: tuple[float, float] | None = field(default=None, repr=False)
    columns: int | None = field(default=None, repr=False)
    rows: int | None = field(default=None, repr=False)
    run_sets: Sequence[str] = field(default=(), repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    id: str = field(default_factory=new_id, repr=False)
    frozen_ms: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in PANEL_KINDS:
            raise ValueError(f"unknown kind of panel {self.kind!r}; expected one of {', '.join(PANEL_KINDS)}")
        self.metrics = (self.metrics,) if isinstance(self.metrics, str) else tuple(self.metrics)
        if self.metrics and self.pattern:
            raise ValueError("a panel has metrics or a pattern, not both")

    def as_json(self, run_sets: Sequence[str]) -> dict[str, Any]:
        """Return the panel as reports store it.

        Args:
            run_sets: the ids of all run sets of its block.
        """
        columns, rows = SMALL_PANEL_SIZE if self.kind in _SMALL_KINDS else USUAL_PANEL_SIZE
        settings = {"x": self.x, "across": _expression(self.across), **self.settings}
        return {
            "id": self.id,
            "kind": self.kind,
            "title": self.title,
            "columns": min(MAX_COLUMNS, self.columns or columns),
            "rows": self.rows or rows,
            "run_sets": list(self.run_sets or run_sets),
            "settings": panel_settings(
                self.kind,
                metrics=[_expression(name) for name in self.metrics],
                pattern=self.pattern,
                **settings,
            ),
            "queries": self._queries(),
            "zoom": None if self.zoom is None else {"min": self.zoom[0], "max": self.zoom[1]},
            "frozen_ms": self.frozen_ms,
        }

    def _queries(self) -> list[dict[str, str]]:
        if self.pattern:
            return [{"source": "logged", "pattern": self.pattern}]
        names = [*self.metrics, *([self.across] if self.across else [])]
        if self.x.startswith("metric:"):
            names.append(self.x.removeprefix("metric:"))
        return [_query(name) for name in dict.fromkeys(names)]

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Panel:
        """Return a panel as a report has it.

        Its metrics are those that it reads; expressions over them stay in `settings`.
        """
        settings = dict(stored["settings"])
        pattern, x = settings.pop("pattern", ""), settings.pop("x", "step")
        across = _name(settings.get("across", ""))
        zoom = stored.get("zoom")
        panel = cls(
            stored["kind"],
            () if pattern else [_name(text) for text in settings.get("metrics", [])],
            stored.get("title", ""),
            pattern,
            x,
            across,
            None if zoom is None else (zoom["min"], zoom["max"]),
            stored["columns"],
            stored["rows"],
            stored["run_sets"],
            {},
            stored["id"],
            stored.get("frozen_ms"),
        )
        defaults = panel.as_json(())
        queries = [{name: text for name, text in query.items() if text} for query in stored["queries"]]
        if defaults["queries"] == queries:
            settings = {
                name: value for name, value in settings.items() if defaults["settings"].get(name) != value
            }
        panel.settings = settings
        return panel


@dataclass
class Panels:
    """A grid of panels over run sets.

    Example:
        >>> Panels([Panel("line", "loss"), Panel("bar", "acc")], [RunSet("tag:baseline", limit=5)])
        ... # doctest: +ELLIPSIS
        Panels(panels=[Panel(kind='line', metrics=('loss',), title=''), ...
    """

    panels: Sequence[Panel]
    run_sets: Sequence[RunSet] = field(default_factory=lambda: [RunSet()])
    id: str = field(default_factory=new_id, repr=False)

    def as_json(self, entity: str, project: str) -> dict[str, Any]:
        """Return the block as reports store it."""
        ids = [run_set.id for run_set in self.run_sets]
        return {
            "id": self.id,
            "kind": "panels",
            "run_sets": [run_set.as_json(entity, project) for run_set in self.run_sets],
            "panels": [panel.as_json(ids) for panel in self.panels],
        }


@dataclass
class Picture:
    """An image: a file to upload (PNG, JPEG, WebP or GIF, up to 10 MB), or one that the report has.

    Example:
        >>> Picture("confusion.png", "Confusion matrix", width_percent=60)
        Picture(path='confusion.png', alt='Confusion matrix', width_percent=60)
    """

    path: str | Path | None = None
    alt: str = ""
    caption: str = field(default="", repr=False)
    width_percent: int = 100
    file: str | None = field(default=None, repr=False)
    id: str = field(default_factory=new_id, repr=False)


@dataclass
class Markdown:
    """Text with the id that it has in a report. In a new report, a `str` is enough."""

    text: str
    id: str = field(default_factory=new_id, repr=False)


Block = str | Markdown | Picture | Panels


def block_from_json(stored: Mapping[str, Any]) -> Block:
    """Return a block as a report has it.

    Raises:
        ValueError: a kind that this version does not know.
    """
    kind = stored["kind"]
    if kind == "text":
        return Markdown(stored["text"], stored["id"])
    if kind == "image":
        return Picture(
            None, stored["alt"], stored["caption"], stored["width_percent"], stored["file"], stored["id"]
        )
    if kind == "panels":
        return Panels(
            [Panel.from_json(panel) for panel in stored["panels"]],
            [RunSet.from_json(run_set) for run_set in stored["run_sets"]],
            stored["id"],
        )
    raise ValueError(f"unknown kind of block {kind!r}; use a newer version of runvitals")


def _query(name: str) -> dict[str, str]:
    if name.startswith(_SYSTEM):
        return {"source": "system", "name": name.removeprefix(_SYSTEM)}
    return {"source": "logged", "name": name}


def _expression(name: str) -> str:
    """Return the expression of a panel that is a metric's value, with its source.

    Example:
        >>> _expression("train/loss"), _expression("system:gpu.*.gpu")
        ('logged:"train/loss"', 'system:"gpu.*.gpu"')
    """
    return metric_expression(_query(name)) if name else ""


def _name(expression: str) -> str:
    """Return the metric of an expression that `_expression` made; any other stays as it is."""
    for prefix, replacement in (("logged:", ""), (_SYSTEM, _SYSTEM)):
        if expression.startswith(f'{prefix}"'):
            try:
                name = json.loads(expression.removeprefix(prefix))
            except ValueError:  # an expression that only begins like one name
                return expression
            return f"{replacement}{name}"
    return expression
