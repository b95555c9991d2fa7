"""What a metric is: one row of the catalogue, and how a concrete key finds its row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["gauge", "counter", "rate"]
Scope = Literal["host", "cgroup", "process", "device", "monitor"]
Merge = Literal["mean", "max", "min", "sum", "last"]

# What a template's placeholder may stand for. `{i}` is an index; everything else is a name, which may hold
# dots and slashes (`disk./data/v1.5.usagePercent`), so the literal tail of the template has to anchor it.
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_INDEXES = frozenset({"i", "core", "port"})


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue.

    Args:
        key: canonical key or template, e.g. ``"gpu.{i}.powerWatts"``.
        unit: UCUM-like unit as people write it: ``"%"``, ``"MiB"``, ``"bytes"``, ``"W"``, ``"MHz"``, ``"1"`` …
        kind: ``gauge`` (a level), ``counter`` (a sum since the run's first sample, never falls except on a reset),
            ``rate`` (never stored: derived from the counter named in ``of`` where it is read).
        scope: what the number is about.
        merge: how several samples of one time bucket become one number.
        chart: heading of the chart it is drawn in; metrics of one chart share a unit.
        text: one sentence for a person.
        source: where the number comes from (file, call, formula).
        aliases: other spellings that mean the same key and are accepted wherever a key is read.
        of: for ``rate``: the counter it is derived from; ``factor`` converts counter units per second into ``unit``.
        mlflow: MLflow's name without the ``system/`` prefix, or None; ``mlflow_factor`` converts our unit into MLflow's.
        prometheus: full Prometheus metric name (unit suffix, ``_total`` for counters).
        otel: OpenTelemetry name (semantic conventions where one exists).
    """

    key: str
    unit: str
    kind: Kind
    scope: Scope
    merge: Merge
    chart: str
    text: str
    source: str
    aliases: tuple[str, ...] = ()
    of: str | None = None
    factor: float = 1.0
    mlflow: str | None = None
    mlflow_factor: float = 1.0
    prometheus: str = ""
    otel: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """A concrete key resolved against the catalogue.

    >>> match = catalog.find("gpu.3.powerWatts")
    >>> match.metric.unit, match.labels
    ('W', {'i': '3'})
    """

    metric: Metric
    key: str  # the canonical spelling of the key that was asked for
    labels: Mapping[str, str] = field(default_factory=dict)


def pattern(template: str) -> re.Pattern[str]:
    """Compile a key template into a regular expression that matches whole concrete keys."""
    parts: list[str] = []
    position = 0
    for found in _PLACEHOLDER.finditer(template):
        parts.append(re.escape(template[position : found.start()]))
        name = found.group(1)
        parts.append(f"(?P<{name}>" + (r"\d+" if name in _INDEXES else r".+?") + ")")
        position = found.end()
    parts.append(re.escape(template[position:]))
    return re.compile("".join(parts), re.DOTALL)


def literal_length(template: str) -> int:
    """How many characters of a template are fixed: the more, the more specific the template is."""
    return len(_PLACEHOLDER.sub("", template))


class Catalog:
    """All metrics, findable by concrete key or alias.

    >>> Catalog(METRICS).find("memory").key
    'memory_percent'
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics: tuple[Metric, ...] = tuple(metrics)
        self.by_template = {metric.key: metric for metric in self.metrics}
        if len(self.by_template) != len(self.metrics):
            seen: set[str] = set()
            twice = sorted(m.key for m in self.metrics if m.key in seen or seen.add(m.key))  # type: ignore[func-returns-value]
            raise ValueError(f"catalogue declares keys twice: {', '.join(twice)}")
        spellings = [(spelling, metric) for metric in self.metrics for spelling in (metric.key, *metric.aliases)]
        self._exact = {spelling: metric for spelling, metric in spellings if "{" not in spelling}
        # Most specific first, so `network.ib.{dev}.{port}.xmitBytes` wins over `network.{nic}.xmitBytes`.
        self._templates = [
            (pattern(spelling), metric)
            for spelling, metric in sorted(spellings, key=lambda row: -literal_length(row[0]))
            if "{" in spelling
        ]
        self._found: dict[str, Match | None] = {}

    def find(self, key: str) -> Match | None:
        """The catalogue row of a concrete key, or None for a key the catalogue does not know."""
        if key not in self._found:
            self._found[key] = self._find(key)
        return self._found[key]

    def _find(self, key: str) -> Match | None:
        metric = self._exact.get(key)
        if metric is not None:
            return Match(metric, metric.key)
        for expression, row in self._templates:
            found = expression.fullmatch(key)
            if found is not None:
                labels = found.groupdict()
                return Match(row, row.key.format(**labels), labels)
        return None
