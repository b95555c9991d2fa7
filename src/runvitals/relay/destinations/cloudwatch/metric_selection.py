"""Which metrics are sent, and so paid for."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from runvitals.relay.destinations.cloudwatch.datum import MetricReading
from runvitals.relay.destinations.cloudwatch.neuron_report import GROUPS

# What is sent of a neuron-monitor report when nobody says: what one needs to know whether an instance works,
# 25 metrics on an inf1.xlarge. Not in it: what CloudWatch has for nothing (AWS/EC2 CPUUtilization), and what
# is many metrics for a second look (memory by use and core, more percentiles, each device's ECC counts).
NEURON_STANDARD = (
    "neuroncore_utilization",
    "error_summary",
    "execution_summary",
    "total_latency.p50",
    "total_latency.p99",
    "RuntimeMemoryHost",
    "RuntimeMemoryDevice",
    "neuron_runtime_vcpu_usage",
    "EccMemUncorrected",
    "EccSramUncorrected",
    "SystemMemoryUsed",
)


class MetricSelection:
    """Globs over the spellings of metrics; what is excluded wins.

    Args:
        include: a metric is wanted if one of these fits one of its spellings; none: all are.
        exclude: and none of these.

    Example:
        >>> MetricSelection(["NeuronCoreUtilization*"]).wants(reading)
        True
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        self._known: dict[tuple[str, ...], bool] = {}

    def wants(self, reading: MetricReading) -> bool:
        names = spellings(reading)
        wanted = self._known.get(names)
        if wanted is None:
            if len(self._known) >= 100_000:  # names come from outside
                self._known.clear()
            wanted = self._known[names] = self._decide(names)
        return wanted

    def _decide(self, names: Sequence[str]) -> bool:
        if self.include and not _fits(names, self.include):
            return False
        return not _fits(names, self.exclude)


def spellings(reading: MetricReading) -> tuple[str, ...]:
    """What a metric can be chosen by: its name and its field; of neuron-monitor's also by the beginning of
    the field and by the group. Of runs not: `cpu` is a metric, and `cpu.*` are others.

    Example:
        >>> spellings(reading)
        ('ExecutionErrorsGeneric', 'error_summary.generic', 'error_summary', 'execution_stats')
    """
    own = (reading.series.name, reading.field)
    if reading.group in GROUPS:
        return (*own, reading.field.partition(".")[0], reading.group)
    return own


def _fits(names: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs for name in names)
