"""Prometheus names of keys: a metric family, labels, and a factor to the base unit.

The Prometheus destination and the server's query API use the same names.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.labels import LABELS, labels
from runvitals.model.metrics.unit import UNITS

Labels = tuple[tuple[str, str], ...]

_OWN = frozenset({"run", "project", "host", "rank", "process", "key", "endpoint", *LABELS.values()})
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_:]")


class MetricFamily(NamedTuple):
    """A Prometheus metric family. `name` is without `_total`; `unit` is its last word, or ""."""

    name: str
    kind: str
    unit: str
    help: str

    @property
    def sample(self) -> str:
        """The name of its samples."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


LOG = MetricFamily(
    "runvitals_log", "gauge", "", "A value logged by the program; its name is in the label key."
)
LOG_STEP = MetricFamily("runvitals_log_step", "gauge", "", "The step of the newest log() call.")
OTHER = MetricFamily(
    "runvitals_other", "gauge", "", "A value without a metric definition; its key is in the label key."
)


@lru_cache(16_384)
def to_prometheus(key: str) -> tuple[MetricFamily, Labels, float]:
    """Return the family of a key, the labels from its placeholders, and the factor to the family's unit.

    Example:
        >>> family, labels, factor = named("gpu.0.memoryAllocated")
        >>> family.name, labels, factor
        ('runvitals_gpu_memory_utilization_ratio', (('device', '0'),), 0.01)
    """
    match = DEFINITIONS.find(key)
    if match is None or not match.metric.name:
        return OTHER, (("key", key),), 1.0
    row, unit = match.metric, UNITS[match.metric.unit]
    name = row.prometheus
    if row.kind == "counter":
        name = name.removesuffix("_total")
    return MetricFamily(name, row.kind, unit.prometheus, row.text), labels(match), unit.to_base


def valid_name(name: str) -> str:
    """Convert a text to a valid Prometheus name.

    Example:
        >>> valid_name("9 lives/cat")
        '_9_lives_cat'
    """
    valid = _NOT_IN_NAMES.sub("_", name)
    return f"_{valid}" if not valid or valid[0].isdigit() else valid


def free_label(name: str) -> str:
    """Return a label of a user, renamed if it is one of ours."""
    return f"label_{name}" if name in _OWN or name.startswith("__") else name
