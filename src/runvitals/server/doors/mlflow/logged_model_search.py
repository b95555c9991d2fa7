"""`logged-models/search`: which logged models a filter selects, and their order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runvitals.server.doors.mlflow.errors import invalid
from runvitals.server.doors.mlflow.limits import MAX_SHOWN
from runvitals.server.doors.mlflow.logged_models import LoggedModels
from runvitals.server.doors.mlflow.requests import SentMessage
from runvitals.server.doors.mlflow.search_text import (
    Attributes,
    Comparison,
    OrderBy,
    Value,
    parse_filter,
    parse_order,
)
from runvitals.server.registry.storage.logged_model_metrics import ModelMetric
from runvitals.server.registry.storage.logged_models import LoggedModel

_ATTRIBUTES: Final = Attributes(
    texts={"name": (), "model_id": (), "model_type": (), "status": (), "source_run_id": ()},
    numbers={
        "creation_time": ("creation_timestamp", "creation_timestamp_ms"),
        "last_updated_timestamp": ("last_updated_timestamp_ms",),
    },
    kinds=("attribute", "tag", "parameter", "metric"),
)
_MAX_DATASETS: Final = 100


class _Dataset(NamedTuple):
    """A dataset that metrics were measured on. None: any."""

    name: str | None
    digest: str | None


class _Sorting(NamedTuple):
    """A part of an order. `dataset`: on which a metric was measured."""

    by: OrderBy
    dataset: _Dataset


class ModelSearch(NamedTuple):
    """A search for logged models, as a request describes it."""

    comparisons: Sequence[Comparison]
    datasets: Sequence[_Dataset]
    order: Sequence[_Sorting]

    @classmethod
    def of(cls, sent: SentMessage) -> ModelSearch:
        """Return the search that a client asks for.

        Raises:
            MlflowError: 400.
        """
        datasets = [_dataset(entry) for entry in sent.objects("datasets")]
        if len(datasets) > _MAX_DATASETS:
            raise invalid(f"datasets: expected at most {_MAX_DATASETS}")
        if not all(dataset.name for dataset in datasets):
            raise invalid("`dataset_name` in the `datasets` clause must be specified.")
        comparisons = parse_filter(sent.text("filter"), _ATTRIBUTES)
        return cls(comparisons, datasets, [_sorting(entry) for entry in sent.objects("order_by")])

    def find(self, models: LoggedModels, project_ids: Sequence[int]) -> list[LoggedModel]:
        """Return the models of projects, the newest first unless the order says otherwise.

        Those without a value that they are sorted by are the last ones.
        """
        measured = self._metrics_by_model(models, project_ids)
        matches = [
            model
            for model in models.table.of_projects(project_ids)
            if self._holds(model, measured.get(model.uid, ()))
        ]
        for part in reversed(self.order):
            value_of = _value_of(part, measured)
            matches.sort(key=lambda model: _sort_key(value_of(model)), reverse=not part.by.ascending)
            matches.sort(key=lambda model: value_of(model) is None)
        return matches

    def _metrics_by_model(
        self, models: LoggedModels, project_ids: Sequence[int]
    ) -> Mapping[str, list[ModelMetric]]:
        """Return the metrics that the search is about, by model."""
        parts: list[Comparison | OrderBy] = [*self.comparisons, *(part.by for part in self.order)]
        keys = {part.key for part in parts if part.kind == "metric"}
        by_model: dict[str, list[ModelMetric]] = {}
        if keys or self.datasets:
            for metric in models.metrics.of_projects(project_ids, None if self._is_on_any else keys):
                by_model.setdefault(metric.model_uid, []).append(metric)
        return by_model

    @property
    def _is_on_any(self) -> bool:
        """Return whether a model matches by any metric on the datasets."""
        return bool(self.datasets) and all(comparison.kind != "metric" for comparison in self.comparisons)

    def _holds(self, model: LoggedModel, metrics: Sequence[ModelMetric]) -> bool:
        on = [metric for metric in metrics if self._is_wanted(metric)]
        if self._is_on_any and not on:
            return False
        return all(
            any(metric.key == comparison.key and comparison.holds(metric.value) for metric in on)
            if comparison.kind == "metric"
            else comparison.holds(_value(model, comparison))
            for comparison in self.comparisons
        )

    def _is_wanted(self, metric: ModelMetric) -> bool:
        return not self.datasets or any(metric.is_on(*dataset) for dataset in self.datasets)


def _dataset(sent: Mapping[str, Any]) -> _Dataset:
    message = SentMessage(dict(sent))
    return _Dataset(message.text("dataset_name") or None, message.text("dataset_digest") or None)


def _sorting(sent: Mapping[str, Any]) -> _Sorting:
    name = str(sent.get("field_name", ""))
    [by] = parse_order([name], _ATTRIBUTES)
    dataset = _dataset(sent)
    if dataset.name is None and dataset.digest is not None:
        raise invalid(f"order_by {name[:MAX_SHOWN]!r}: dataset_digest without dataset_name")
    return _Sorting(OrderBy(by.kind, by.key, sent.get("ascending", True) is not False), dataset)


def _value_of(
    part: _Sorting, measured: Mapping[str, Iterable[ModelMetric]]
) -> Callable[[LoggedModel], Value | None]:
    """Return a function for the value of a model that it is sorted by. Of a metric, the newest one counts."""
    if part.by.kind != "metric":
        return lambda model: _value(model, part.by)
    newest: dict[str, ModelMetric] = {}
    for uid, metrics in measured.items():
        for metric in metrics:
            if metric.key == part.by.key and metric.is_on(*part.dataset):
                newest_of_model = newest.get(uid)
                if newest_of_model is None or (metric.timestamp, metric.step) > (
                    newest_of_model.timestamp,
                    newest_of_model.step,
                ):
                    newest[uid] = metric

    def value(model: LoggedModel) -> Value | None:
        metric = newest.get(model.uid)
        return None if metric is None or math.isnan(metric.value) else metric.value

    return value


def _sort_key(value: Value | None) -> tuple[bool, float, str]:
    if isinstance(value, str):
        return True, 0.0, value
    return False, 0.0 if value is None else float(value), ""


def _value(model: LoggedModel, comparison: Comparison | OrderBy) -> Value | None:
    if comparison.kind != "attribute":
        return (model.tags if comparison.kind == "tag" else model.params).get(comparison.key)
    attributes: dict[str, Value | None] = {
        "name": model.name,
        "model_id": model.uid,
        "model_type": model.type,
        "status": model.status.removeprefix("LOGGED_MODEL_"),
        "source_run_id": model.run_uid,
        "creation_time": model.created_ms,
        "last_updated_timestamp": model.changed_ms,
    }
    return attributes[comparison.key]
