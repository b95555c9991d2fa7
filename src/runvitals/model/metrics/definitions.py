"""The collection of metric definitions, searchable by key or alias."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from runvitals.model.metrics.metric import Metric, literal_length, pattern

# Keys come from users and other clients, so the cache must be bounded.
_CACHED_KEYS = 16_384


@dataclass(frozen=True, slots=True)
class Match:
    """A key and its definition.

    >>> match = DEFINITIONS.find("gpu.3.powerWatts")
    >>> match.metric.unit, match.labels
    ('W', {'i': '3'})
    """

    metric: Metric
    key: str  # canonical spelling
    labels: Mapping[str, str] = field(default_factory=dict)


class MetricDefinitions:
    """All metric definitions, searchable by key or alias.

    Raises:
        ValueError: a key or alias is declared twice, or the counter of a rate is not defined.

    Example:
        >>> DEFINITIONS.find("memory").key
        'memory_percent'
        >>> DEFINITIONS.find("disk./data/v1.5.usagePercent").labels
        {'path': '/data/v1.5'}
    """

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics: tuple[Metric, ...] = tuple(metrics)
        spellings = [
            (spelling, metric) for metric in self.metrics for spelling in (metric.key, *metric.aliases)
        ]
        _reject_duplicates([spelling for spelling, _ in spellings])
        self.by_template = {metric.key: metric for metric in self.metrics}
        self.rate_of = self._rates()
        self._exact = {spelling: metric for spelling, metric in spellings if "{" not in spelling}
        # By first segment, which is always literal; most specific template first, so that
        # `network.ib.{dev}.{port}.errors` takes precedence over `network.{nic}.errors`.
        self._templates: dict[str, list[tuple[str, Metric]]] = {}
        for spelling, metric in sorted(spellings, key=lambda row: -literal_length(row[0])):
            if "{" in spelling:
                family = spelling.partition(".")[0]
                self._templates.setdefault(family, []).append((spelling, metric))
        self.find = lru_cache(_CACHED_KEYS)(self._find)
        """The definition of a key or alias as a `Match`, or None if it is unknown."""

    @property
    def charts(self) -> Mapping[str, tuple[Metric, ...]]:
        """The metrics of each chart by title: gauges, rates, and counters without a rate."""
        charts: dict[str, list[Metric]] = {}
        for metric in self.metrics:
            if metric.key not in self.rate_of:
                charts.setdefault(metric.chart, []).append(metric)
        return {heading: tuple(metrics) for heading, metrics in charts.items()}

    def search(self, query: str) -> list[Metric]:
        """Find definitions by key, by a glob over keys and aliases, or by a word in names and descriptions.

        >>> [row.key for row in DEFINITIONS.search("gpu.7.temp")]
        ['gpu.{i}.temp']
        >>> [row.key for row in DEFINITIONS.search("disk.{dev}.*MBps")]
        ['disk.{dev}.readMBps', 'disk.{dev}.writeMBps']
        """
        match = self.find(query)
        if match is not None:
            return [match.metric]
        if "*" in query or "?" in query:
            return [
                row for row in self.metrics if any(fnmatchcase(key, query) for key in (row.key, *row.aliases))
            ]
        word = query.casefold()
        return [row for row in self.metrics if any(word in text.casefold() for text in _texts(row))]

    def _rates(self) -> Mapping[str, Metric]:
        """Return the rate of each counter that has one, by the counter's template."""
        rates: dict[str, Metric] = {}
        for metric in self.metrics:
            if metric.kind != "rate":
                continue
            counter = self.by_template.get(metric.of or "")
            if counter is None or counter.kind != "counter":
                raise ValueError(
                    f"invalid metric {metric.key}: its counter {metric.of!r} is not defined as a counter"
                )
            rates[counter.key] = metric
        return rates

    def _find(self, key: str) -> Match | None:
        metric = self._exact.get(key)
        if metric is not None:
            return Match(metric, metric.key)
        for spelling, row in self._templates.get(key.partition(".")[0], ()):
            match = pattern(spelling).fullmatch(key)
            if match is not None:
                labels = match.groupdict()
                return Match(row, row.key.format(**labels), labels)
        return None


def _texts(row: Metric) -> tuple[str, ...]:
    return (row.key, *row.aliases, row.chart, row.text, row.mlflow or "", row.prometheus, row.otel)


def _reject_duplicates(spellings: Iterable[str]) -> None:
    seen: set[str] = set()
    duplicates: set[str] = set()
    for spelling in spellings:
        (duplicates if spelling in seen else seen).add(spelling)
    if duplicates:
        raise ValueError(f"metrics defined more than once: {', '.join(sorted(duplicates))}")
