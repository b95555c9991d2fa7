"""The statistics that are kept for each run, so that lists can be filtered and sorted by them.

`QUANTITIES` is the only place that declares them. Each quantity with a mean has three statistics, such as
`system.gpu` (the mean), `system.gpu.min` and `system.gpu.max`; a total has one, such as `system.energy`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

SECTION: Final = "system"
VERSION: Final = 1
"""Raise it when `QUANTITIES` changes: the statistics of stored runs are then computed again."""

POWER_SUSPECT: Final = "gpu.{i}.powerSuspect"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity of which statistics over the whole run are kept, over all hosts and devices together.

    Attributes:
        name: as in `system.<name>`.
        metric: the key template of the metric.
        unit: of the statistics.
        text: what it is.
        kind: `gauge`: mean, min and max of all values; `energy`: the total increase of a counter of joules,
            in watt-hours.
        spellings: other names that filters accept.
        power: for `energy`: the metric in watts that is integrated where the counter is missing.
        suspect: the metric that is there while the values of `metric`, or of `power`, are in doubt; they do
            not count then.
    """

    name: str
    metric: str
    unit: str
    text: str
    kind: Literal["gauge", "energy"] = "gauge"
    spellings: tuple[str, ...] = ()
    power: str | None = None
    suspect: str | None = None

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of its statistics, as fields: `system.gpu`, `system.gpu.min`, `system.gpu.max`."""
        mean = f"{SECTION}.{self.name}"
        return (mean,) if self.kind == "energy" else (mean, f"{mean}.min", f"{mean}.max")


QUANTITIES: Final = (
    Quantity("cpu", "cpu", "%", "CPU use of the run's processes."),
    Quantity("host_cpu", "cpu.mean", "%", "CPU use of the hosts."),
    Quantity("memory", "memory_percent", "%", "Memory use of the hosts, or of the cgroup with a limit."),
    Quantity("process_memory", "proc.memory.rssMB", "MiB", "Resident memory of the run's processes."),
    Quantity("gpu", "gpu.{i}.gpu", "%", "GPU use.", spellings=("gpu.util", "gpu.utilization")),
    Quantity(
        "gpu_memory", "gpu.{i}.memoryAllocated", "%", "Used share of the GPU memory.", spellings=("gpu.mem",)
    ),
    Quantity("gpu_memory_bytes", "gpu.{i}.memoryAllocatedBytes", "bytes", "Used memory of one GPU."),
    Quantity(
        "gpu_power",
        "gpu.{i}.powerWatts",
        "W",
        "Power of one GPU.",
        spellings=("gpu.power",),
        suspect=POWER_SUSPECT,
    ),
    Quantity("gpu_temperature", "gpu.{i}.temp", "°C", "Temperature of the GPUs."),
    Quantity("tpu", "tpu.{i}.dutyCycle", "%", "TPU duty cycle."),
    Quantity("trn", "trn.{core}.neuroncore_utilization", "%", "Use of Neuron cores."),
    Quantity(
        "energy",
        "gpu.{i}.energyJoules",
        "Wh",
        "Energy of all GPUs of the run: the increase of their counters, or power × time without counters.",
        "energy",
        ("gpu.energy", "gpu_energy"),
        power="gpu.{i}.powerWatts",
        suspect=POWER_SUSPECT,
    ),
)

_SUFFIXES = (".mean", ".min", ".max")
_PLACEHOLDER = re.compile(r"\.(?:\*|\{\w{1,20}\})(?=\.)")


def statistic_names() -> Iterator[str]:
    """Yield the fields of all statistics: `system.cpu`, `system.cpu.min` and so on."""
    for quantity in QUANTITIES:
        yield from quantity.statistics


def _spellings(quantity: Quantity) -> Iterator[str]:
    yield from (quantity.name, _without_placeholders(quantity.metric), *quantity.spellings)


def _without_placeholders(name: str) -> str:
    return _PLACEHOLDER.sub("", name)


_BY_SPELLING: Final = {spelling: quantity for quantity in QUANTITIES for spelling in _spellings(quantity)}
_FIELDS: Final = frozenset(statistic_names())


def statistic_named(name: str) -> str | None:
    """Return the field of a statistic by any of its names; None if there is none.

    With or without `system.`, with the quantity's name or its metric's key template, and with `.mean`, `.min`
    or `.max`; without, it is the mean or the total.

    Example:
        >>> statistic_named("gpu.util"), statistic_named("system.gpu.*.powerWatts.max")
        ('system.gpu', 'system.gpu_power.max')
    """
    bare = _without_placeholders(name.removeprefix(f"{SECTION}."))
    quantity, suffix = _BY_SPELLING.get(bare), ""
    if quantity is None:
        suffix = next((ending for ending in _SUFFIXES if bare.endswith(ending)), "")
        quantity = _BY_SPELLING.get(bare[: len(bare) - len(suffix)]) if suffix else None
    if quantity is None:
        return None
    field = f"{SECTION}.{quantity.name}{'' if suffix == '.mean' else suffix}"
    return field if field in _FIELDS else None


def is_statistic(name: str) -> bool:
    """Return whether this is the field of a statistic, as `statistic_named` returns it."""
    return name in _FIELDS
