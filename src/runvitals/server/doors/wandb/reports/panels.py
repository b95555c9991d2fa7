"""Panels and run sets: those of W&B's reports as ours, and the other way."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from runvitals.model.report_panels import metric_expression, panel_settings
from runvitals.server.doors.wandb.executor import InvalidArgument
from runvitals.server.doors.wandb.reports import run_filters

_COLUMNS: Final = (2, 12)
_ROWS: Final = (2, 16)
_MAX_RUNS: Final = 100
_USUAL_RUNS: Final = 10
_AXES: Final[Mapping[str, str]] = {
    "_step": "step",
    "Step": "step",
    "_runtime": "relative",
    "_absolute_runtime": "relative",
    "_timestamp": "wall",
}
_SMOOTHING: Final[Mapping[str, str]] = {
    "exponential": "ema",
    "exponentialTimeWeighted": "ema",
    "gaussian": "gaussian",
    "average": "mean",
}
_SHARE: Final = 20.0
"""The share of the x-axis, in percent, that a smoothing weight of 1 is drawn with."""
_SYSTEM: Final = re.compile(r"^system[./](.+)$")
_VARIABLE: Final = re.compile(r"\$\{([^}]+)\}")
_VIEW_TYPES: Final[Mapping[str, str]] = {
    "Run History Line Plot": "line",
    "Bar Chart": "bar",
    "Scalar Chart": "scalar",
    "Scatter Plot": "scatter",
    "Parallel Coordinates Plot": "parallel",
    "Parameter Importance": "importance",
    "Media Browser": "media",
    "Run Comparer": "config_diff",
    "Code Comparer": "code_diff",
    "Markdown Panel": "text",
}
_KINDS: Final = {kind: view_type for view_type, kind in _VIEW_TYPES.items()}


def panels_of(block: Mapping[str, Any], entity: str, project: str) -> dict[str, Any]:
    """Return a grid of panels of a W&B report as our block, without its id.

    Args:
        entity, project: those of the report, for run sets that name none.

    Raises:
        InvalidArgument: not such a grid, or a run set has a filter that ours cannot express.
    """
    metadata = _mapping(block.get("metadata"), "metadata of a panel grid")
    run_sets = [
        _run_set(_mapping(each, "run set"), entity, project, metadata.get("customRunColors") or {})
        for each in metadata.get("runSets") or ()
    ]
    section = _mapping(metadata.get("panelBankSectionConfig") or {}, "panels of a panel grid")
    panels = sorted(
        (_mapping(each, "panel") for each in section.get("panels") or ()),
        key=lambda panel: _position_and_size(panel)[:2],
    )
    _distinguish(run_sets)
    ids = [run_set["id"] for run_set in run_sets]
    return {"kind": "panels", "run_sets": run_sets, "panels": [_panel(panel, ids) for panel in panels]}


def grid_of(block: Mapping[str, Any]) -> dict[str, Any]:
    """Return our block of panels as a grid of a W&B report."""
    x = y = height = 0
    panels = []
    for panel in block["panels"]:
        width, rows = 2 * panel["columns"], max(2, round(panel["rows"] * 1.5))
        if x + width > 2 * _COLUMNS[1]:
            x, y, height = 0, y + height, 0
        layout = {"x": x, "y": y, "w": width, "h": rows}
        panels.append({"__id__": panel["id"], "layout": layout, **_config(panel)})
        x, height = x + width, max(height, rows)
    return {
        "type": "panel-grid",
        "children": [{"text": ""}],
        "metadata": {
            "runSets": [_wandb_run_set(run_set) for run_set in block["run_sets"]],
            "panelBankSectionConfig": {"name": "Report Panels", "panels": panels, "type": "grid"},
            "customRunColors": {},
        },
    }


def report_id(text: object) -> str:
    """Return an id that blocks and panels may have, for one of W&B's.

    Example:
        >>> report_id("44qsingjbe6"), report_id("A-b")
        ('44qsingjbe6', 'xb05dd069d0')
    """
    name = str(text or "")
    if re.fullmatch("[a-z0-9]{4,24}", name):
        return name
    return "x" + hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:10]


def _distinguish(run_sets: list[dict[str, Any]]) -> None:
    """Give each run set an id of its own: W&B's client gives all of a process the same."""
    ids: set[str] = set()
    for number, run_set in enumerate(run_sets):
        if run_set["id"] in ids:
            run_set["id"] = report_id(f"{run_set['id']}-{number}")
        ids.add(run_set["id"])


def _run_set(sent: Mapping[str, Any], entity: str, project: str, colors: Mapping[str, Any]) -> dict[str, Any]:
    sent_project = sent.get("project") or {}
    selections = sent.get("selections") or {}
    runs = [_selected(each) for each in selections.get("tree") or ()]
    shows_only_chosen = selections.get("root") == 0
    try:
        filter_text = run_filters.filter_text(
            sent.get("filters"), str((sent.get("search") or {}).get("query") or "")
        )
    except InvalidArgument as error:
        raise InvalidArgument(f"run set {str(sent.get('name'))[:60]!r}: {error}") from None
    limit = (sent.get("runFeed") or {}).get("pageSize")
    return {
        "id": report_id(sent.get("id")),
        "name": str(sent.get("name") or "")[:128],
        "entity": sent_project.get("entityName") or entity,
        "project": sent_project.get("name") or project,
        "filter": filter_text,
        "group": run_filters.group_fields(sent.get("grouping") or ()),
        "sort": run_filters.sort_text((sent.get("sort") or {}).get("keys") or ()),
        "limit": min(_MAX_RUNS, max(1, limit)) if isinstance(limit, int) else _USUAL_RUNS,
        "runs": runs if shows_only_chosen else None,
        "hidden": [] if shows_only_chosen else runs,
        "colors": {},
    }


def _selected(entry: object) -> str:
    return str(entry.get("value")) if isinstance(entry, dict) else str(entry)


def _wandb_run_set(run_set: Mapping[str, Any]) -> dict[str, Any]:
    chosen = run_set["runs"]
    tree = run_set["hidden"] if chosen is None else chosen
    filters, search = run_filters.run_filter(run_set["filter"])
    return {
        "id": run_set["id"],
        "name": run_set["name"] or "Run set",
        "enabled": True,
        "project": {"name": run_set["project"], "entityName": run_set["entity"]},
        "search": {"query": search},
        "filters": filters,
        "grouping": [_wandb_key(name) for name in run_set["group"]],
        "sort": {"keys": [_wandb_sort(name) for name in run_set["sort"].split(",") if name]},
        "selections": {"root": 1 if chosen is None else 0, "bounds": [], "tree": tree},
        "runFeed": {"version": 2, "pageSize": run_set["limit"]},
    }


def _wandb_key(name: str) -> dict[str, str]:
    section, dot, field = name.partition(".")
    return {"section": section, "name": field} if dot else {"section": "run", "name": name}


def _wandb_sort(name: str) -> dict[str, Any]:
    return {"key": _wandb_key(name.lstrip("-")), "ascending": not name.startswith("-")}


def _panel(sent: Mapping[str, Any], run_sets: list[str]) -> dict[str, Any]:
    kind = _VIEW_TYPES.get(str(sent.get("viewType")), "text")
    config = _mapping(sent.get("config") or {}, "config of a panel")
    y, x, width, height = _position_and_size(sent)
    settings, queries = _settings(kind, config, str(sent.get("viewType")))
    low, high = _number(config.get("xAxisMin")), _number(config.get("xAxisMax"))
    zoom = {"min": low, "max": high} if kind == "line" and low is not None and high is not None else None
    return {
        "id": report_id(sent.get("__id__") or json.dumps([x, y, config], sort_keys=True)),
        "kind": kind,
        "title": str(config.get("chartTitle") or "")[:200],
        "columns": _clamped(round(width / 2), _COLUMNS),
        "rows": _clamped(round(height * 2 / 3), _ROWS),
        "run_sets": run_sets,
        "settings": settings,
        "queries": queries,
        "zoom": zoom if zoom is None or low is None or high is None or low < high else None,
        "frozen_ms": None,
    }


def _settings(
    kind: str, config: Mapping[str, Any], view_type: str
) -> tuple[dict[str, Any], list[dict[str, str]]]:
    names = _names(kind, config)
    pattern = str(config.get("metricRegex") or "") if config.get("useMetricRegex") else ""
    expressions = [str(text) for text in config.get("expressions") or () if text]
    settings: dict[str, Any] = {}
    if kind == "text":
        notice = f"A panel of W&B ({view_type[:40]}) is not shown here."
        settings["text"] = str(config.get("value") or "") if view_type == "Markdown Panel" else notice
    if kind == "line":
        axis = str(config.get("xAxis") or "_step")
        settings["x"] = _AXES.get(axis, f"metric:{axis}")
        settings["logx"] = bool(config.get("xLogScale"))
        settings["y"] = "log" if config.get("yLogScale") else "auto"
        settings["smoothing"] = _smoothing(config)
    metrics = [metric_expression(_query(name)) for name in names]
    if kind == "scatter":
        metrics, settings["across"] = metrics[1:], metrics[0] if metrics else ""
    if expressions:
        metrics = [_VARIABLE.sub(_expression_of, text) for text in expressions]
        names = [name for text in expressions for name in _VARIABLE.findall(text)]
    queries = [{"source": "logged", "pattern": pattern}] if pattern else [_query(name) for name in names]
    if str(settings.get("x", "")).startswith("metric:"):
        queries.append(_query(settings["x"].removeprefix("metric:")))
    unique = list({json.dumps(query, sort_keys=True): query for query in queries}.values())
    return panel_settings(kind, metrics=[] if pattern else metrics, pattern=pattern, **settings), unique


def _names(kind: str, config: Mapping[str, Any]) -> list[str]:
    if kind == "media":
        return [str(name) for name in config.get("mediaKeys") or ()]
    if kind == "importance":
        return [_accessor(config.get("targetKey"))] if config.get("targetKey") else []
    if kind == "parallel":
        columns = (
            column.get("accessor") for column in config.get("columns") or () if isinstance(column, dict)
        )
        return [_accessor(name) for name in columns if name]
    if kind == "scatter":
        return [_accessor(config[axis]) for axis in ("xAxis", "yAxis") if config.get(axis)]
    return [str(name) for name in config.get("metrics") or () if name]


def _accessor(text: object) -> str:
    """Return the name of a column: `config:lr.value` is `config.lr`, `summary:c::lr` too; a metric is itself.

    Example:
        >>> _accessor("config:lr.value"), _accessor("summary:c::lr"), _accessor("summary:loss")
        ('config.lr', 'config.lr', 'loss')
    """
    name = str(text)
    section, colon, rest = name.partition(":")
    if colon and section in ("config", "summary", "run"):
        name = f"config.{rest.removesuffix('.value')}" if section == "config" else rest
    return f"config.{name.removeprefix('c::')}" if name.startswith("c::") else name


def _query(name: str) -> dict[str, str]:
    system = _SYSTEM.match(name)
    return {"source": "system", "name": system[1]} if system else {"source": "logged", "name": name}


def _expression_of(variable: re.Match[str]) -> str:
    return metric_expression(_query(variable[1]))


def _smoothing(config: Mapping[str, Any]) -> dict[str, Any] | None:
    weight, kind = _number(config.get("smoothingWeight")), _SMOOTHING.get(str(config.get("smoothingType")))
    if not weight or kind is None or weight < 0:
        return None
    return {"kind": kind, "share": round(min(weight, 1.0) * _SHARE, 2)}


def _config(panel: Mapping[str, Any]) -> dict[str, Any]:
    kind, settings = panel["kind"], panel["settings"]
    names = [query["name"] for query in panel["queries"] if query.get("name")]
    config: dict[str, Any] = {"chartTitle": panel["title"]} if panel["title"] else {}
    if kind in ("line", "bar", "scalar"):
        config["metrics"] = names
    if kind == "line":
        axes = {ours: theirs for theirs, ours in reversed(list(_AXES.items()))}
        config["xAxis"] = axes.get(settings["x"], settings["x"].removeprefix("metric:"))
        config["xLogScale"] = settings.get("logx") is True
        config["yLogScale"] = settings["y"] == "log"
        if settings["pattern"]:
            config |= {"metricRegex": settings["pattern"], "useMetricRegex": True}
        if panel["zoom"]:
            config |= {"xAxisMin": panel["zoom"]["min"], "xAxisMax": panel["zoom"]["max"]}
    if kind == "scatter":
        across = _plain_name(settings["across"])
        config["xAxis"] = _wandb_accessor(across)
        config["yAxis"] = next((_wandb_accessor(name) for name in names if name != across), "")
    if kind == "media":
        config["mediaKeys"] = names
    if kind == "importance":
        config["targetKey"] = names[0] if names else ""
    if kind == "parallel":
        config["columns"] = [{"accessor": _wandb_accessor(name)} for name in names]
    if kind not in _KINDS:
        config = {"value": f"A panel of runvitals ({kind}) that W&B's reports have no counterpart of."}
    elif kind == "text":
        config["value"] = settings["text"]
    return {"viewType": _KINDS.get(kind, "Markdown Panel"), "config": config}


def _wandb_accessor(name: str) -> str:
    section, dot, field = name.partition(".")
    return f"config:{field}.value" if dot and section == "config" else f"summary:{name}"


def _plain_name(expression: str) -> str:
    """Return the metric of an expression that is one metric; any other expression as it is."""
    match = re.fullmatch(r'(?:logged:|system:)?"((?:[^"\\]|\\.)*)"', expression)
    return str(json.loads(f'"{match[1]}"')) if match else expression


def _position_and_size(panel: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """The y, x, width and height of a panel."""
    layout = panel.get("layout") or {}
    usual = {"y": 0, "x": 0, "w": 8, "h": 6}
    y, x, width, height = (_number(layout.get(name)) or usual[name] for name in usual)
    return y, x, width, height


def _clamped(value: int, bounds: tuple[int, int]) -> int:
    return min(bounds[1], max(bounds[0], value))


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return value


def _mapping(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidArgument(f"invalid {what}: expected an object")
    return value
