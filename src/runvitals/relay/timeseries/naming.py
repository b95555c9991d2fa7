"""Maps keys to Prometheus names: a metric family, labels, and a factor to the base unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.prometheus import (
    LOG,
    LOG_STEP,
    Labels,
    MetricFamily,
    free_label,
    to_prometheus,
    valid_name,
)
from runvitals.relay.batch import Batch

_MAX_SERIES = 100_000


class LabeledSeries(NamedTuple):
    """One series. Labels are sorted by name and do not include `__name__`."""

    family: MetricFamily
    labels: Labels
    factor: float


def base_labels(batch: Batch) -> dict[str, str]:
    """Return the labels of everything in a batch: run, project, host.

    Those of a training process have its rank, or its process id if it has none; and the user's own labels.
    """
    writer = batch.writer
    labels = {"run": batch.run.id, "project": batch.run.project, "host": writer.host}
    if writer.role != "monitor":
        if writer.rank is not None:
            labels["rank"] = str(writer.rank)
        elif writer.pid is not None:
            labels["process"] = str(writer.pid)
    for name, text in writer.labels.items():
        labels[free_label(valid_name(name).replace(":", "_"))] = str(text)
    return labels


class Namer:
    """The series of a run's keys, cached per writer. A cached key takes 60 ns.

    Example:
        >>> namer = Namer(batch)
        >>> namer.series("cpu").labels
        (('host', 'node1'), ('project', 'digits'), ('run', 'abc'))
    """

    log, log_step = LOG, LOG_STEP
    log_label, endpoint_label, endpoint_prefix = "key", "endpoint", "runvitals_openmetrics_"

    def __init__(self, batch: Batch) -> None:
        self._base = self.base(batch)
        self._endpoints: Any = batch.run.machine.get("openmetrics")
        self._series_by_key: dict[str, LabeledSeries] = {}
        self._logged: dict[str, LabeledSeries] = {}
        self.step = self._series(self.log_step, {}, 1.0)

    @classmethod
    def of(cls, batch: Batch, namers: dict[str, Namer]) -> Namer:
        """Return the writer's namer from `known`, or a new one if its labels have changed."""
        namer = namers.get(batch.writer.name)
        if namer is None or not namer._matches(batch):
            namer = namers[batch.writer.name] = cls(batch)
        return namer

    def _matches(self, batch: Batch) -> bool:
        return self._base == self.base(batch) and self._endpoints is batch.run.machine.get("openmetrics")

    def base(self, batch: Batch) -> dict[str, str]:
        """Return the labels of everything in a batch."""
        return base_labels(batch)

    def name_metric(self, key: str) -> tuple[MetricFamily, Labels, float]:
        """Return the family of a key, its own labels, and the factor to the family's unit."""
        return to_prometheus(key)

    def series(self, key: str) -> LabeledSeries:
        """Return the series of a sample's key."""
        series = self._series_by_key.get(key)
        if series is None:
            if len(self._series_by_key) >= _MAX_SERIES:
                self._series_by_key.clear()
            series = self._series_by_key[key] = self._of_key(key)
        return series

    def logged_series(self, name: str) -> LabeledSeries:
        """Return the series of a logged name."""
        series = self._logged.get(name)
        if series is None:
            if len(self._logged) >= _MAX_SERIES:
                self._logged.clear()
            series = self._logged[name] = self._series(self.log, {self.log_label: name}, 1.0)
        return series

    def _of_key(self, key: str) -> LabeledSeries:
        series = self._of_endpoint(key)
        if series is not None:
            return series
        family, labels, factor = self.name_metric(key)
        return self._series(family, dict(labels), factor)

    def _of_endpoint(self, key: str) -> LabeledSeries | None:
        """Return the original name and labels of a metric scraped from an exporter.

        None for any other key.
        """
        match = DEFINITIONS.find(key) if key.startswith("openmetrics.") else None
        if match is None or not isinstance(self._endpoints, Mapping):
            return None
        endpoint, n = match.labels["endpoint"], match.labels["n"]
        metric = key.removeprefix(f"openmetrics.{endpoint}.").removesuffix(f".{n}")
        try:
            facts = self._endpoints[endpoint]["metrics"][metric]
            of_series = facts["series"][int(n)]
            labels = {free_label(valid_name(name)): str(text) for name, text in of_series.items()}
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            return None  # the facts arrive later than the first values, and may be invalid
        is_counter = match.metric.kind == "counter" and metric.endswith("_total")
        name = self.endpoint_prefix + valid_name(metric.removesuffix("_total") if is_counter else metric)
        text = str(facts.get("help") or "") or f"{metric} of the endpoint {endpoint}."
        family = MetricFamily(name, "counter" if is_counter else "gauge", "", text)
        return self._series(family, {**labels, self.endpoint_label: endpoint}, 1.0)

    def _series(self, family: MetricFamily, labels: Mapping[str, str], factor: float) -> LabeledSeries:
        all_labels = {**self._base, **labels}
        return LabeledSeries(
            family, tuple(sorted((name, text) for name, text in all_labels.items() if text)), factor
        )
