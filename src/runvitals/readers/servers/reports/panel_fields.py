"""Runs by their fields: what panels of parallel coordinates and scatter plots of fields show."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from runvitals.readers.servers.reports.panel_tables import MarkedValue, run_color, run_name, shown_text

_FIELD: Final = re.compile(r"(config|summary|system)\.")
_MAX_AXES: Final = 8


class FieldAxis(NamedTuple):
    """A field with the value of each run; None: it has none."""

    name: str
    values: list[Any]

    @property
    def numbers(self) -> list[float | None] | None:
        """The values, if all are finite numbers; otherwise None."""
        present = [value for value in self.values if value is not None]
        if all(_is_number(value) for value in present):
            return [None if value is None else float(value) for value in self.values]
        return None


def field_axes(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[FieldAxis]:
    """Return the axes of parallel coordinates: those that the panel names, or in which its runs differ."""
    fields = _fields(answer)
    chosen = [_field(text) for text in (panel.get("settings") or {}).get("metrics") or ()]
    axes = [fields[name] for name in chosen if name in fields]
    usual = [axis for axis in fields.values() if len({repr(value) for value in axis.values}) > 1]
    return axes or usual[:_MAX_AXES]


def named_runs(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and colour of the runs whose fields an answer has."""
    return [(run_name(answer, run), run_color(answer, run)) for run in answer["differences"]["runs"]]


def field_marks(panel: Mapping[str, Any], answer: Mapping[str, Any]) -> list[MarkedValue]:
    """Return the runs of a scatter plot of two fields that have both as numbers."""
    settings, fields = panel.get("settings") or {}, _fields(answer)
    metrics = settings.get("metrics") or [""]
    axes = [fields.get(_field(text)) for text in (settings.get("across") or "", metrics[0])]
    numbers = [None if axis is None else axis.numbers for axis in axes]
    across, up = numbers
    if across is None or up is None:
        return []
    return [
        MarkedValue(name, color, y, x)
        for (name, color), x, y in zip(named_runs(answer), across, up, strict=True)
        if x is not None and y is not None
    ]


def _fields(answer: Mapping[str, Any]) -> dict[str, FieldAxis]:
    differences = answer["differences"]
    axes = [
        FieldAxis(
            f"{fact['section']}.{fact['name']}",
            [None if index in fact["absent"] else value for index, value in enumerate(fact["values"])],
        )
        for fact in differences["facts"]
    ]
    axes += [FieldAxis(row["name"], list(row["values"])) for row in differences["statistics"]]
    return {axis.name: axis for axis in axes}


def _field(text: str) -> str:
    """Return the field that a text of a panel names: what is logged is in the summary."""
    name = shown_text(text)
    return name if _FIELD.match(name) else f"summary.{name}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
