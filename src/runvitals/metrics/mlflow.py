"""MLflow's names: a second view of the same readings, with MLflow's units.

MLflow writes `system/{name}`, or `system/{node}/{name}` where a node is named. It knows one file system, `/`;
its documentation also names GPU metrics without an index: where it has one GPU, that one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Literal, NamedTuple

from runvitals.metrics import DEFINITIONS
from runvitals.metrics.definitions import Match
from runvitals.metrics.metric import pattern, placeholders

# What MLflow's names leave out.
_IMPLIED = {"path": "/", "i": "0"}
# MLflow means the whole host's memory, where ours is that of the cgroup's limit if there is one.
OF_HOST, OF_LIMIT = "host.memory_percent", "memory_percent"
# AMD's memory has a name of its own in MLflow, in GB.
_GB_PER_BYTE = 1e-9
_MB_PER_BYTE = 1e-6
PREFIX = "system/"
_UNITS = {"percentage": "%", "megabytes": "MB", "gigabytes": "GB", "watts": "W"}


class Column(NamedTuple):
    """How a metric of MLflow's comes out of a sample.

    Attributes:
        name: MLflow's, without `system/`.
        places: which of the sample's values it is made of.
        factor: from our unit to MLflow's.
        how: what of several values; of one value all ways are the same.
        total: a running total: of several samples the last one counts, and is not rounded.
    """

    name: str
    places: tuple[int, ...]
    factor: float
    how: Literal["mean", "sum"]
    total: bool


def to_mlflow(match: Match) -> str | None:
    """MLflow's name of a key without the prefix, or None where MLflow has none for it.

    >>> to_mlflow(DEFINITIONS.find("gpu.3.powerWatts"))
    'gpu_3_power_usage_watts'
    """
    name = match.metric.mlflow
    if name is None:
        return None
    said = placeholders(name)
    if any(match.labels[label] != _IMPLIED[label] for label in match.labels if label not in said):
        return None
    return name.format(**match.labels)


def spellings(match: Match) -> tuple[str, ...]:
    """Every name that MLflow and its guide have for a key: with `system/` and without, with a GPU's index and
    without.

    >>> spellings(DEFINITIONS.find("gpu.3.powerWatts"))[:2]
    ('system/gpu_3_power_usage_watts', 'gpu_3_power_usage_watts')
    """
    name = to_mlflow(match)
    if name is None:
        return ()
    index = match.labels.get("i")
    names = [name] if index is None else [name, name.replace(f"gpu_{index}_", "gpu_")]
    if match.metric.mlflow_factor == _MB_PER_BYTE:
        names += [one.replace("megabytes", "gigabytes") for one in names]  # AMD's
    return tuple(prefix + one for one in names for prefix in (PREFIX, ""))


def bare(name: str) -> str:
    """An MLflow name without its node, which is a host of ours: `system/node-1/x` as `system/x`."""
    return PREFIX + name.rpartition("/")[2] if name.startswith(PREFIX) else name


def rename(key: str, host_memory: bool) -> tuple[str, float] | None:
    """MLflow's name of a key, with `system/`, and the factor to MLflow's unit; None where it has none.

    Args:
        host_memory: the host's memory is there beside that of the limit; then it is what MLflow means.

    >>> rename("gpu.0.powerWatts", host_memory=False)
    ('system/gpu_0_power_usage_watts', 1.0)
    """
    if key == OF_LIMIT and host_memory:
        return None
    match = DEFINITIONS.find(OF_LIMIT if key == OF_HOST else key)
    name = None if match is None else to_mlflow(match)
    return None if match is None or name is None else (PREFIX + name, match.metric.mlflow_factor)


def renamed(keys: Collection[str]) -> dict[str, tuple[str, float]]:
    """`rename` of those keys of one host that MLflow has a name for.

    >>> renamed(["cpu.mean", "system.load1"])
    {'cpu.mean': ('system/cpu_utilization_percentage', 1.0)}
    """
    host_memory = OF_HOST in keys
    named = ((key, rename(key, host_memory)) for key in keys)
    return {key: name for key, name in named if name is not None}


def unit_of(name: str) -> str:
    """MLflow's unit, which the last word of its names says.

    >>> unit_of("system/gpu_0_memory_usage_megabytes")
    'MB'
    """
    return _UNITS.get(name.rpartition("_")[2], "")


def from_mlflow(name: str) -> Match | None:
    """The row and key of an MLflow name, with or without prefix and node; None for any other name.

    Divide the value by the row's `mlflow_factor` to have it in our unit.

    >>> from_mlflow("system/node-1/gpu_3_power_usage_watts").key
    'gpu.3.powerWatts'
    """
    last = bare(name).removeprefix(PREFIX)
    for expression, key in _names():
        found = expression.fullmatch(last)
        if found is not None:
            return DEFINITIONS.find(key.format(**(_IMPLIED | found.groupdict())))
    return None


def columns(keys: Sequence[str], amd: Collection[int] = ()) -> list[Column]:
    """What MLflow's monitor would log of a sample with these keys.

    Beside the names with a GPU's index there are those of MLflow's guide without: percentages are the mean
    of all GPUs, megabytes and watts their sum.

    Args:
        keys: canonical keys, the sample's columns.
        amd: indices of AMD's GPUs, whose memory MLflow counts in gigabytes; they get both names.

    Example:
        >>> columns(["load1", "memory.usedMB"])
        [Column(name='system_memory_usage_megabytes', places=(1,), factor=1.048576, how='mean', total=False)]
    """
    found: list[Column] = []
    of_all: dict[str, Column] = {}
    for place, key in enumerate(keys):
        if key == OF_LIMIT and OF_HOST in keys:
            continue
        match = DEFINITIONS.find(OF_LIMIT if key == OF_HOST else key)
        name = None if match is None else to_mlflow(match)
        if match is None or name is None:
            continue
        metric = match.metric
        how: Literal["mean", "sum"] = "mean" if metric.unit == "%" else "sum"
        found.append(Column(name, (place,), metric.mlflow_factor, how, metric.kind == "counter"))
        index = match.labels.get("i")
        if index is None:
            continue
        if metric.mlflow_factor == _MB_PER_BYTE and int(index) in amd:
            found.append(Column(name.replace("megabytes", "gigabytes"), (place,), _GB_PER_BYTE, how, False))
        unindexed = name.replace(f"gpu_{index}_", "gpu_")
        before = of_all[unindexed].places if unindexed in of_all else ()
        of_all[unindexed] = Column(unindexed, (*before, place), metric.mlflow_factor, how, False)
    return found + list(of_all.values())


@cache
def _names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Patterns of MLflow's names, indexed and not, beside the templates of our keys."""
    named = [(metric.mlflow, metric.key) for metric in DEFINITIONS.metrics if metric.mlflow is not None]
    unindexed = [(name.replace("{i}_", ""), key) for name, key in named if "{i}_" in name]
    return tuple((pattern(name), key) for name, key in named + unindexed)
