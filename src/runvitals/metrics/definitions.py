"""All metric definitions, and the look-up of a key, in any accepted spelling."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

from runvitals.metrics.metric import Metric, literal_length, pattern

# Keys come from users and from other clients, so what is remembered about them has to have an end.
_REMEMBERED_KEYS = 16_384


@dataclass(frozen=True, slots=True)
class Match:
    """A concrete key resolved against the catalogue.

    >>> match = DEFINITIONS.find("gpu.3.powerWatts")
    >>> match.metric.unit, match.labels
    ('W', {'i': '3'})
    """

    metric: Metric
    key: str  # the canonical spelling of the key that was asked for
    labels: Mapping[str, str] = field(default_factory=dict)


class MetricDefinitions:
    """All metrics, findable by concrete key or alias.

    Raises:
        ValueError: a key or alias is declared twice, or a rate is of something that is no counter here.

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
        _refuse_twice([spelling for spelling, _ in spellings])
        self.by_template = {metric.key: metric for metric in self.metrics}
        self.rate_of = self._rates()
        self._exact = {spelling: metric for spelling, metric in spellings if "{" not in spelling}
        # By first segment, which is always literal; most specific first, so that
        # `network.ib.{dev}.{port}.errors` wins over `network.{nic}.errors`.
        self._templates: dict[str, list[tuple[str, Metric]]] = {}
        for spelling, metric in sorted(spellings, key=lambda row: -literal_length(row[0])):
            if "{" in spelling:
                family = spelling.partition(".")[0]
                self._templates.setdefault(family, []).append((spelling, metric))
        self.find = lru_cache(_REMEMBERED_KEYS)(self._find)
        """The row of a concrete key or alias as a `Match`, or None for a key the catalogue does not know."""

    @property
    def charts(self) -> Mapping[str, tuple[Metric, ...]]:
        """What each chart draws, in the catalogue's order: gauges, rates, and counters without a rate."""
        charts: dict[str, list[Metric]] = {}
        for metric in self.metrics:
            if metric.key not in self.rate_of:
                charts.setdefault(metric.chart, []).append(metric)
        return {heading: tuple(metrics) for heading, metrics in charts.items()}

    def search(self, wanted: str) -> list[Metric]:
        """Rows by concrete key, by glob over the spellings of keys, or by a word in their names or texts.

        >>> [row.key for row in DEFINITIONS.search("gpu.7.temp")]
        ['gpu.{i}.temp']
        >>> [row.key for row in DEFINITIONS.search("disk.{dev}.*MBps")]
        ['disk.{dev}.readMBps', 'disk.{dev}.writeMBps']
        """
        match = self.find(wanted)
        if match is not None:
            return [match.metric]
        if "*" in wanted or "?" in wanted:
            return [
                row
                for row in self.metrics
                if any(fnmatchcase(key, wanted) for key in (row.key, *row.aliases))
            ]
        word = wanted.casefold()
        return [row for row in self.metrics if any(word in text.casefold() for text in _texts(row))]

    def _rates(self) -> Mapping[str, Metric]:
        """The rate of each counter that has one, by the counter's template."""
        rates: dict[str, Metric] = {}
        for metric in self.metrics:
            if metric.kind != "rate":
                continue
            counter = self.by_template.get(metric.of or "")
            if counter is None or counter.kind != "counter":
                raise ValueError(
                    f"catalogue: the rate {metric.key} is of {metric.of!r}, which is not a counter"
                )
            rates[counter.key] = metric
        return rates

    def _find(self, key: str) -> Match | None:
        metric = self._exact.get(key)
        if metric is not None:
            return Match(metric, metric.key)
        for spelling, row in self._templates.get(key.partition(".")[0], ()):
            found = pattern(spelling).fullmatch(key)
            if found is not None:
                labels = found.groupdict()
                return Match(row, row.key.format(**labels), labels)
        return None


def _texts(row: Metric) -> tuple[str, ...]:
    return (row.key, *row.aliases, row.chart, row.text, row.mlflow or "", row.prometheus, row.otel)


def _refuse_twice(spellings: Iterable[str]) -> None:
    seen: set[str] = set()
    twice: set[str] = set()
    for spelling in spellings:
        (twice if spelling in seen else seen).add(spelling)
    if twice:
        raise ValueError(f"catalogue declares twice: {', '.join(sorted(twice))}")
