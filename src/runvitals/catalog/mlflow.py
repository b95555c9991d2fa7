"""MLflow's names: a second view of the same readings, with MLflow's units.

MLflow writes `system/{name}`, or `system/{node}/{name}` where a node is named. It knows one file system, `/`;
its documentation also names GPU metrics without an index, which is the first GPU.
"""

from __future__ import annotations

import re
from functools import cache

from runvitals.catalog import CATALOG
from runvitals.catalog.catalog import Match
from runvitals.catalog.metric import pattern, placeholders

# What MLflow's names leave out.
_IMPLIED = {"path": "/", "i": "0"}


def to_mlflow(match: Match) -> str | None:
    """MLflow's name of a key without the prefix, or None where MLflow has none for it.

    >>> to_mlflow(CATALOG.find("gpu.3.powerWatts"))
    'gpu_3_power_usage_watts'
    """
    name = match.metric.mlflow
    if name is None:
        return None
    said = placeholders(name)
    if any(match.labels[label] != _IMPLIED[label] for label in match.labels if label not in said):
        return None
    return name.format(**match.labels)


def from_mlflow(name: str) -> Match | None:
    """The row and key of an MLflow name, with or without prefix and node; None for any other name.

    Divide the value by the row's `mlflow_factor` to have it in our unit.

    >>> from_mlflow("system/node-1/gpu_3_power_usage_watts").key
    'gpu.3.powerWatts'
    """
    last = name.rpartition("/")[2]
    for expression, key in _names():
        found = expression.fullmatch(last)
        if found is not None:
            return CATALOG.find(key.format(**(_IMPLIED | found.groupdict())))
    return None


@cache
def _names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of MLflow's names, indexed and not, beside the templates of our keys."""
    named = [(metric.mlflow, metric.key) for metric in CATALOG.metrics if metric.mlflow is not None]
    unindexed = [(name.replace("{i}_", ""), key) for name, key in named if "{i}_" in name]
    return tuple((pattern(name), key) for name, key in named + unindexed)
