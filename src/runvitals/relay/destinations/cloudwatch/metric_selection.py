"""Selects the metrics that are sent, and therefore billed."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from runvitals.relay.destinations.cloudwatch.datum import MetricReading
from runvitals.relay.destinations.cloudwatch.neuron_report import GROUPS

# The default selection for neuron-monitor reports: what shows whether an instance works, which is 25 metrics
# on an inf1.xlarge. Left out: what CloudWatch provides for free (AWS/EC2 CPUUtilization), and many metrics
# for details (memory by use and core, more percentiles, ECC counts per device).
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


class MetricGlobs:
    """Globs over the spellings of metrics; exclusion takes precedence.

    Args:
        include: a metric is selected if one of these matches one of its spellings; empty: all metrics.
        exclude: a metric is not selected if one of these matches.

    Example:
        >>> MetricGlobs(["NeuronCoreUtilization*"]).wants(reading)
        True
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self.include = tuple(include)
        self.exclude = tuple(exclude)
        self._decisions: dict[tuple[str, ...], bool] = {}
        chosen = () if self.include == NEURON_STANDARD else self.include
        self._unmatched = dict.fromkeys((*chosen, *self.exclude))

    def problems(self) -> list[str]:
        """Return which globs of the user have matched no metric so far."""
        if not self._unmatched:
            return []
        return [f"no metric matches {', '.join(self._unmatched)}"]

    def wants(self, reading: MetricReading) -> bool:
        """Return whether a glob selects the metric of a reading, and note which globs have matched."""
        names = spellings(reading)
        is_wanted = self._decisions.get(names)
        if is_wanted is None:
            if len(self._decisions) >= 100_000:  # names are external input
                self._decisions.clear()
            is_wanted = self._decisions[names] = self._decide(names)
            for glob in [glob for glob in self._unmatched if _matches(names, (glob,))]:
                del self._unmatched[glob]
        return is_wanted

    def _decide(self, names: Sequence[str]) -> bool:
        if self.include and not _matches(names, self.include):
            return False
        return not _matches(names, self.exclude)


def spellings(reading: MetricReading) -> tuple[str, ...]:
    """Return the names a metric can be selected by.

    They are its name and its field, and for neuron-monitor's metrics also the first part of the field and the
    group. Not for runs, where `cpu` is one metric and `cpu.*` are others.

    Example:
        >>> spellings(reading)
        ('ExecutionErrorsGeneric', 'error_summary.generic', 'error_summary', 'execution_stats')
    """
    own = (reading.series.name, reading.field)
    if reading.group in GROUPS:
        return (*own, reading.field.partition(".")[0], reading.group)
    return own


def _matches(names: Sequence[str], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs for name in names)
