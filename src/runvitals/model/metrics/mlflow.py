"""Translation between our keys and MLflow's names of system metrics, including units.

MLflow's names are `system/{name}`, or `system/{node}/{name}` with a node id. MLflow measures only the file
system `/`. Its documentation also has names of GPU metrics without an index, which apply to a single GPU.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cache
from typing import Literal, NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.definitions import Match
from runvitals.model.metrics.metric import pattern, placeholders

# Labels that MLflow's names omit.
_IMPLIED = {"path": "/", "i": "0"}
# MLflow's memory metrics describe the whole host, ours the cgroup's limit if there is one.
OF_HOST, OF_LIMIT = "host.memory_percent", "memory_percent"
# MLflow has a separate name for the memory of AMD GPUs, in GB.
_GB_PER_BYTE = 1e-9
_MB_PER_BYTE = 1e-6
PREFIX = "system/"
_UNITS = {"percentage": "%", "megabytes": "MB", "gigabytes": "GB", "watts": "W"}


class MlflowColumn(NamedTuple):
    """The computation of a metric of MLflow from a sample.

    Attributes:
        name: MLflow's, without `system/`.
        positions: indices of the sample's values that it is computed from.
        factor: from our unit to MLflow's.
        how: how several values are combined.
        total: whether it is a running total: of several samples the last one is used, without rounding.
    """

    name: str
    positions: tuple[int, ...]
    factor: float
    how: Literal["mean", "sum"]
    total: bool


def to_mlflow(match: Match) -> str | None:
    """MLflow's name of a key without the prefix, or None if MLflow has no such metric.

    >>> to_mlflow(DEFINITIONS.find("gpu.3.powerWatts"))
    'gpu_3_power_usage_watts'
    """
    name = match.metric.mlflow
    if name is None:
        return None
    labels = placeholders(name)
    if any(match.labels[label] != _IMPLIED[label] for label in match.labels if label not in labels):
        return None
    return name.format(**match.labels)


def spellings(match: Match) -> tuple[str, ...]:
    """All names of a key in MLflow and its documentation: with and without `system/` and the GPU's index.

    >>> spellings(DEFINITIONS.find("gpu.3.powerWatts"))[:2]
    ('system/gpu_3_power_usage_watts', 'gpu_3_power_usage_watts')
    """
    name = to_mlflow(match)
    if name is None:
        return ()
    index = match.labels.get("i")
    names = [name] if index is None else [name, name.replace(f"gpu_{index}_", "gpu_")]
    if match.metric.mlflow_factor == _MB_PER_BYTE:
        names += [name.replace("megabytes", "gigabytes") for name in names]  # of AMD GPUs
    return tuple(prefix + name for name in names for prefix in (PREFIX, ""))


def bare(name: str) -> str:
    """Return an MLflow name without the node id, our host: `system/node-1/x` becomes `system/x`."""
    return PREFIX + name.rpartition("/")[2] if name.startswith(PREFIX) else name


def rename(key: str, host_memory: bool) -> tuple[str, float] | None:
    """MLflow's name of a key, with `system/`, and the factor to its unit; None if MLflow has no such metric.

    Args:
        host_memory: whether the host's memory is recorded too; MLflow's name then refers to it.

    >>> rename("gpu.0.powerWatts", host_memory=False)
    ('system/gpu_0_power_usage_watts', 1.0)
    """
    if key == OF_LIMIT and host_memory:
        return None
    match = DEFINITIONS.find(OF_LIMIT if key == OF_HOST else key)
    name = None if match is None else to_mlflow(match)
    return None if match is None or name is None else (PREFIX + name, match.metric.mlflow_factor)


def rename_all(keys: Collection[str]) -> dict[str, tuple[str, float]]:
    """`rename` for the keys of one host. Keys without a name in MLflow are omitted.

    >>> rename_all(["cpu.mean", "system.load1"])
    {'cpu.mean': ('system/cpu_utilization_percentage', 1.0)}
    """
    host_memory = OF_HOST in keys
    renamed_keys = ((key, rename(key, host_memory)) for key in keys)
    return {key: name for key, name in renamed_keys if name is not None}


def unit_of(name: str) -> str:
    """Return the unit of an MLflow name, given by its last word.

    >>> unit_of("system/gpu_0_memory_usage_megabytes")
    'MB'
    """
    return _UNITS.get(name.rpartition("_")[2], "")


def from_mlflow(name: str) -> Match | None:
    """Return the definition and key of an MLflow name, with or without prefix and node id.

    None for other names.

    Divide the value by the metric's `mlflow_factor` to convert it to our unit.

    >>> from_mlflow("system/node-1/gpu_3_power_usage_watts").key
    'gpu.3.powerWatts'
    """
    last = bare(name).removeprefix(PREFIX)
    for expression, key in _names():
        match = expression.fullmatch(last)
        if match is not None:
            return DEFINITIONS.find(key.format(**(_IMPLIED | match.groupdict())))
    return None


def columns(keys: Sequence[str], amd: Collection[int] = ()) -> list[MlflowColumn]:
    """Return the metrics that MLflow's own monitor would log for a sample with these keys.

    Besides the names with a GPU's index, this includes the documented ones without: percentages are averaged
    over all GPUs, megabytes and watts are summed.

    Args:
        keys: canonical keys, the sample's columns.
        amd: indices of AMD GPUs. MLflow reports their memory in gigabytes, so they get both names.

    Example:
        >>> columns(["load1", "memory.usedMB"])[0].name
        'system_memory_usage_megabytes'
    """
    own: list[MlflowColumn] = []
    of_all: dict[str, MlflowColumn] = {}
    for position, key in enumerate(keys):
        if key == OF_LIMIT and OF_HOST in keys:
            continue
        match = DEFINITIONS.find(OF_LIMIT if key == OF_HOST else key)
        name = None if match is None else to_mlflow(match)
        if match is None or name is None:
            continue
        metric = match.metric
        how: Literal["mean", "sum"] = "mean" if metric.unit == "%" else "sum"
        own.append(MlflowColumn(name, (position,), metric.mlflow_factor, how, metric.kind == "counter"))
        index = match.labels.get("i")
        if index is None:
            continue
        if metric.mlflow_factor == _MB_PER_BYTE and int(index) in amd:
            own.append(
                MlflowColumn(name.replace("megabytes", "gigabytes"), (position,), _GB_PER_BYTE, how, False)
            )
        unindexed = name.replace(f"gpu_{index}_", "gpu_")
        before = of_all[unindexed].positions if unindexed in of_all else ()
        of_all[unindexed] = MlflowColumn(unindexed, (*before, position), metric.mlflow_factor, how, False)
    return own + list(of_all.values())


@cache
def _names() -> tuple[tuple[re.Pattern[str], str], ...]:
    """(pattern of MLflow's name, template of our key), with and without the GPU's index."""
    name_keys = [(metric.mlflow, metric.key) for metric in DEFINITIONS.metrics if metric.mlflow is not None]
    unindexed = [(name.replace("{i}_", ""), key) for name, key in name_keys if "{i}_" in name]
    return tuple((pattern(name), key) for name, key in name_keys + unindexed)
