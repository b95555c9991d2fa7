"""The series of a resource: which key each one has, and what is remembered of it between requests.

Sums and histograms are stored as totals. Where senders send differences, they are added up here, those of all
processes that share a key; of histograms with totals, the previous point is kept, so that percentiles are
those of the time since then. The server forgets this when it ends: a total then begins anew, which charts
show as a reset.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from cachetools import LRUCache

from runvitals.model.metrics import DEFINITIONS, otel
from runvitals.model.names import sanitized_name
from runvitals.server.doors.exporters.moments import DerivedMetric
from runvitals.server.doors.exporters.translation import Input, possible
from runvitals.server.doors.otlp.exporter_series import translation
from runvitals.server.doors.otlp.message import Buckets, Resource, SentMetric
from runvitals.server.doors.otlp.prometheus_names import prometheus_name
from runvitals.server.doors.remote_write.native_histograms import bound_text
from runvitals.server.doors.routing import Route, RoutingRules, device
from runvitals.server.doors.sample_batches import FOREIGN, MAX_KEYS, KeyLists, folded_key
from runvitals.server.doors.sending_interval import SendingInterval
from runvitals.server.ingest.envelope import WriterDescription

LOG: Final = "runvitals.log"
LOG_STEP: Final = "runvitals.log.step"
OTHER: Final = "runvitals.other"
"""Names that our own destination gives to logged values, their steps, and keys without a definition."""
KEY: Final = "runvitals.key"
OUR_RUN: Final = "runvitals.run.id"
_OF_PROCESSES: Final = ("process.executable.name", "process.pid")
_OF_CONTAINERS: Final = ("container.name", "k8s.container.name")
_MAX_SERIES: Final = 50_000
_USUAL_CHARACTERS: Final = 500
_MAX_DERIVED: Final = 10_000
_MAX_HOSTS: Final = 2000
_MAX_NAMES: Final = 2000
_MAX_BOUNDS: Final = 1024


class TooManyKeys(ValueError):
    """A run has as many keys as it may have."""


@dataclass(slots=True)
class DeltaTotal:
    """The sum of all differences that were sent for a key of a host.

    By any process, because the processes of a run share its keys. Each process says by its own times which of
    its points were counted.
    """

    value: float = 0.0


@dataclass(slots=True)
class NumberSeries:
    """A series of numbers.

    Args:
        key: None: it is only an input of others.
        highest: larger values are faults, and become this.
        inputs: what is computed from it.
        possible: the least and the most that it can be; other values stand for no value.
        last_ns, total: of a series whose sender sends differences; the total is that of its key.
    """

    key: str | None
    factor: float
    highest: float = inf
    inputs: tuple[Input, ...] = ()
    possible: tuple[float, float] = (-inf, inf)
    last_ns: int = 0
    total: DeltaTotal | None = None


@dataclass(frozen=True, slots=True)
class HistogramState:
    """The newest point of a histogram, as totals."""

    start_ns: int = 0
    last_ns: int = 0
    count: int = 0
    sum: float = 0.0
    buckets: Buckets = field(default_factory=dict)


@dataclass(slots=True)
class HistogramSeries:
    """A histogram or summary.

    Args:
        keys: of what is stored of it, by what it is: `count`, `p90`.
        totals: if its sender sends differences: the totals of its count and sum.
        bounds: for which it is stored how many values were at most this, by their keys, ascending.
    """

    name: str
    attributes: Mapping[str, str]
    totals: tuple[DeltaTotal, DeltaTotal] | None
    keys: dict[str, str] = field(default_factory=dict)
    bounds: dict[float, str] = field(default_factory=dict)
    state: HistogramState = field(default_factory=HistogramState)


class ComputedValues(NamedTuple):
    """Values by key that were computed from several series of a host, at a time in ms."""

    host: str
    time_ms: int
    values: Mapping[str, float]


class RememberedHost:
    """A host of a run, with what is remembered of it.

    Attributes:
        lists: of the keys that it sends.
        totals: by key, of what is sent as differences.
        about: describes its writer.
    """

    def __init__(self, name: str) -> None:
        self.lists = KeyLists()
        self.totals: dict[str, DeltaTotal] = {}
        self._name = name
        self._interval = SendingInterval()
        self.about = self._description()

    def _description(self) -> WriterDescription:
        return WriterDescription("monitor", self._name, interval_s=self._interval.seconds)

    def add_time(self, time_ms: int) -> None:
        """Note the newest time of a request: it says how long silence is normal."""
        self._interval.add(time_ms)
        if self.about.interval_s != self._interval.seconds:
            self.about = self._description()


class RememberedRun:
    """A run, with what is remembered of it. Its lock is held while a request changes it.

    Attributes:
        keys: that this server process has stored.
        resources: by their attributes.
        is_named: whether the run's name was sent.
        names: Prometheus' names of metrics that are not ours; `unsent_names`: those that are not stored yet.
        unsent: what was computed and is not stored yet.
        series: how many are remembered.
    """

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.keys: set[str] = set()
        self._hosts: LRUCache[str, RememberedHost] = LRUCache(_MAX_HOSTS)
        self.resources: dict[Hashable, ResourceSeries] = {}
        self.is_named = False
        self.names: dict[str, str] = {}
        self.unsent_names: dict[str, str] = {}
        self.unsent: list[ComputedValues] = []
        self.series = 0
        self._derived: dict[tuple[str, str], DerivedMetric] = {}

    def host(self, name: str) -> RememberedHost:
        """Return what is remembered of a host. The hosts that were silent longest are forgotten."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = RememberedHost(name)
        return host

    def total(self, host: str, key: str) -> DeltaTotal:
        """Return the total of a key of a host."""
        return self.host(host).totals.setdefault(key, DeltaTotal())

    def add_input(self, host: str, input_: Input, time_ms: int, value: float) -> DerivedMetric:
        """Add a value of an input; returns what it is an input of."""
        derived = self._derived.get((host, input_.of.name))
        if derived is None:
            if len(self._derived) >= _MAX_DERIVED:
                self._derived.clear()
            derived = self._derived[host, input_.of.name] = DerivedMetric(input_.of)
        derived.add(input_.name, time_ms, value)
        return derived

    def count_series(self, attributes: Mapping[str, str]) -> None:
        """Count a new series, or resource, which counts as several if its attributes are long.

        Forget all if there are too many: attributes may be encoded in many ways.
        """
        characters = sum(map(len, attributes)) + sum(map(len, attributes.values()))
        self.series += 1 + characters // _USUAL_CHARACTERS
        if self.series > _MAX_SERIES:
            self.resources.clear()
            self._hosts.clear()
            self.series = 0

    def name(self, metric: SentMetric) -> None:
        """Note how Prometheus calls a metric that is not one of ours."""
        if metric.name not in self.names and len(self.names) < _MAX_NAMES:
            name = prometheus_name(metric)
            self.names[metric.name] = self.unsent_names[metric.name] = name

    def add(self, key: str) -> str:
        """Count a key of the run and return it.

        Raises:
            TooManyKeys: the key would be one too many.
        """
        if key not in self.keys:
            if len(self.keys) >= MAX_KEYS:
                raise TooManyKeys(f"the run has {MAX_KEYS:,} metrics with attributes already: {key[:100]!r}")
            self.keys.add(key)
        return key


class ResourceSeries:
    """The series of a resource.

    Args:
        attributes: of the resource.
        route: the run and host that they belong to.
        rules: of the project.
    """

    def __init__(
        self, attributes: Mapping[str, str], route: Route, rules: RoutingRules, run: RememberedRun
    ) -> None:
        self.route = route
        self._rules = rules
        self._run = run
        self._folded = _distinguishing(attributes, route)
        self._is_ours = OUR_RUN in attributes  # our destination sends what would be computed
        self._maps_processes = route.rank is None and not (
            route.is_host_run and any(name in attributes for name in _OF_PROCESSES)
        )
        self._numbers: dict[Hashable, dict[Hashable, NumberSeries]] = {}
        self._histograms: dict[Hashable, dict[Hashable, HistogramSeries]] = {}

    def numbers(self, metric: SentMetric) -> dict[Hashable, NumberSeries]:
        """Return the known series of a gauge or sum, by the encoded attributes of points."""
        identity = metric.name, metric.unit, metric.kind, metric.is_monotonic, metric.is_delta
        return self._numbers.setdefault(identity, {})

    def histograms(self, metric: SentMetric) -> dict[Hashable, HistogramSeries]:
        """Return the known series of a histogram or summary."""
        return self._histograms.setdefault((metric.name, metric.is_delta), {})

    def new_number(self, metric: SentMetric, resource: Resource, encoded: Hashable) -> NumberSeries:
        """Return a series that is not known yet.

        Raises:
            TooManyKeys: the run has too many keys.
        """
        attributes = resource.attributes_of(encoded)
        if metric.name in (LOG, OTHER) and KEY in attributes:
            series = NumberSeries(attributes[KEY], 1.0)
        elif metric.name == LOG_STEP:
            series = NumberSeries("", 1.0)
        else:
            series = self._number(metric, attributes)
        if metric.name not in (LOG, LOG_STEP) and series.key is not None:
            self._run.add(series.key)
        self._run.count_series(attributes)
        if metric.is_delta:
            series.total = (
                DeltaTotal() if series.key is None else self._run.total(self.route.host, series.key)
            )
        self.numbers(metric)[encoded] = series
        return series

    def new_histogram(self, metric: SentMetric, resource: Resource, encoded: Hashable) -> HistogramSeries:
        """Return the same of a histogram or summary."""
        attributes = {**resource.attributes_of(encoded), **self._folded}
        self._run.count_series(attributes)
        totals = None
        if metric.is_delta:
            count, total = (folded_key(f"{metric.name}.{part}", attributes) for part in ("count", "sum"))
            host = self.route.host
            totals = self._run.total(host, count), self._run.total(host, total)
        self._run.name(metric)
        series = HistogramSeries(metric.name, attributes, totals)
        self.histograms(metric)[encoded] = series
        return series

    def key_of(self, series: HistogramSeries, part: str) -> str:
        """Return the key of a part of a histogram.

        Raises:
            TooManyKeys: the run has too many keys.
        """
        key = series.keys.get(part)
        if key is None:
            key = self._run.add(folded_key(f"{series.name}.{part}", series.attributes))
            series.keys[part] = key
        return key

    def bucket_keys(self, series: HistogramSeries, bounds: Iterable[float]) -> dict[float, str]:
        """Return the keys of the counts up to some bounds, and up to those that its points had before.

        Raises:
            TooManyKeys: the run has too many keys.
        """
        new = [bound for bound in (*bounds, inf) if bound not in series.bounds]
        if new and len(series.bounds) + len(new) <= _MAX_BOUNDS:
            for bound in new:
                labels = {**series.attributes, "le": bound_text(bound)}
                series.bounds[bound] = self._run.add(folded_key(f"{series.name}.bucket", labels))
            series.bounds = dict(sorted(series.bounds.items()))
        return series.bounds

    def total(self, key: str) -> DeltaTotal:
        """Return the total of a key."""
        return self._run.total(self.route.host, key)

    def _number(self, metric: SentMetric, attributes: Mapping[str, str]) -> NumberSeries:
        if self._maps_processes or not metric.name.startswith("process."):
            exported = otel.find(
                metric.name, self._with_device_number(metric, attributes), metric.unit, metric.is_monotonic
            )
            exporters = (
                None if self._is_ours else translation(metric.name, attributes, metric.unit, self._rules)
            )
            if exported is not None:
                inputs = exporters.inputs if exporters else ()
                limits = possible(exported.key, exported.factor)
                return NumberSeries(exported.key, exported.factor, inputs=inputs, possible=limits)
            if exporters is not None:
                limits = exporters.possible
                return NumberSeries(
                    exporters.key, exporters.factor, exporters.highest, exporters.inputs, limits
                )
        self._run.name(metric)
        key = folded_key(metric.name, {**attributes, **self._folded})
        if not self._is_ours and DEFINITIONS.find(key) is not None:
            key = folded_key(FOREIGN + metric.name, {**attributes, **self._folded})
        return NumberSeries(key, 1.0)

    def _with_device_number(self, metric: SentMetric, attributes: Mapping[str, str]) -> Mapping[str, str]:
        """Return the attributes with the number of the device, where the rules find one."""
        if not metric.name.startswith("hw.") or attributes.get("hw.type", "gpu") != "gpu":
            return attributes
        number = device(attributes, self._rules)
        return attributes if number is None else {**attributes, "hw.id": str(number)}


def _distinguishing(attributes: Mapping[str, str], route: Route) -> dict[str, str]:
    """Return the labels that distinguish a resource from others of the same run and host."""
    names = list(_OF_CONTAINERS)
    if route.is_host_run:
        names += ["service.name", *_OF_PROCESSES]
    labels = {name: sanitized_name(attributes[name]) for name in names if attributes.get(name)}
    if route.rank is not None:
        labels["rank"] = str(route.rank)
    return labels
