"""What panels of reports are: their kinds, sizes and settings, for programs that write reports.

The settings are those of the panels of the page, see `web/src/features/workspace/panels/layout.ts`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from string import ascii_lowercase, digits
from typing import Any, Final, Literal, get_args

PanelKind = Literal[
    "line",
    "bar",
    "scatter",
    "histogram",
    "percentile",
    "scalar",
    "table",
    "text",
    "parallel",
    "importance",
    "media",
    "system",
    "findings",
    "config_diff",
    "code_diff",
    "console",
]
PANEL_KINDS: Final[tuple[PanelKind, ...]] = get_args(PanelKind)
MAX_COLUMNS: Final = 12
"""Columns of the grid."""
USUAL_PANEL_SIZE: Final = (4, 4)
"""Columns and rows."""
SMALL_PANEL_SIZE: Final = (2, 2)
"""Of a panel that is one number."""
_ID_LETTERS: Final = ascii_lowercase + digits
_ID_LENGTH: Final = 10
_USUAL_SETTINGS: Final[dict[str, Any]] = {
    "metrics": [],
    "pattern": "",
    "each": False,
    "x": "step",
    "logx": False,
    "across": "",
    "scope": "runs",
    "statistic": "last",
    "points": False,
    "percentiles": [5, 25, 50, 75, 95],
    "y": "auto",
    "smoothing": None,
    "text": "",
}


def panel_settings(kind: str, *, metrics: Sequence[str], pattern: str, **settings: Any) -> dict[str, Any]:
    """Return all settings of a panel: the given ones, and the page's defaults of the others.

    Args:
        kind: one of `PANEL_KINDS`.
        metrics: expressions of metrics, see docs/guides/panels.md.
        pattern: a regular expression of names of metrics, instead of `metrics`.

    Raises:
        ValueError: an unknown setting.

    Example:
        >>> panel_settings("line", metrics=["loss"], pattern="", y="log")["y"]
        'log'
    """
    unknown = sorted(settings.keys() - _USUAL_SETTINGS.keys())
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r}; expected one of {', '.join(_USUAL_SETTINGS)}")
    usual = {**_USUAL_SETTINGS, "points": kind == "histogram"}
    return {**usual, "metrics": list(metrics), "pattern": pattern, **settings}


def new_id() -> str:
    """Return a new id for a block, panel or run set of a report."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(_ID_LENGTH))


def metric_expression(query: Mapping[str, str]) -> str:
    """Return the expression of a panel that is the value of one metric.

    Args:
        query: the `source`, `logged` or `system`, and the `name` of the metric.

    Example:
        >>> metric_expression({"source": "logged", "name": "train/loss"})
        'logged:"train/loss"'
    """
    return f"{query['source']}:{json.dumps(query['name'], ensure_ascii=False)}"
