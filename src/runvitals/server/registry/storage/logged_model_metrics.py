"""Metrics of logged models: the newest value of each that runs measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, or_, select

from runvitals.server.database.database import StoredTable, among, insert
from runvitals.server.database.tables.registry import logged_model, logged_model_metric
from runvitals.store.errors import LimitReached

MAX_METRICS = 10_000
"""Of a model: each metric of each run counts once for each dataset."""
_Identity = tuple[str, str, str, str, str]
_KEYS = ("model_id", "run_uid", "key", "dataset_name", "dataset_digest")


class ModelMetric(NamedTuple):
    """A value of a metric of a logged model.

    Args:
        model_uid: the id of the model, as clients know it.
        timestamp: ms UTC.
        dataset_name, dataset_digest: what it was measured on; empty if that is not known.
    """

    model_uid: str
    run_uid: str
    key: str
    value: float
    timestamp: int
    step: int
    dataset_name: str = ""
    dataset_digest: str = ""

    def is_on(self, name: str | None, digest: str | None) -> bool:
        """Return whether it was measured on a dataset; None: on any."""
        return name in (None, self.dataset_name) and digest in (None, self.dataset_digest)


class LoggedModelMetricTable(StoredTable):
    """The table of metrics of logged models.

    Example:
        >>> [metric] = metadata_store.logged_model_metrics.of_models(["m-4f5e"])
        >>> metric.key, metric.value
        ('accuracy', 0.93)
    """

    def record(self, metrics: Sequence[ModelMetric]) -> None:
        """Record values, if they are newer than those known. Those of models that do not exist are left out.

        Raises:
            LimitReached: a model would have too many; then nothing is recorded.
        """
        newest: dict[_Identity, ModelMetric] = {}
        for metric in sorted(metrics, key=lambda metric: (metric.timestamp, metric.step)):
            newest[_identity(metric)] = metric
        if newest:
            self._database.write(lambda connection: _record(connection, list(newest.values())))

    def of_models(self, uids: Iterable[str]) -> list[ModelMetric]:
        """The metrics of models, by key."""
        with self._database.read() as connection:
            return _read_metrics(connection, logged_model.c.uid.in_(list(uids)))

    def of_projects(self, project_ids: Iterable[int], keys: Iterable[str] | None) -> list[ModelMetric]:
        """The metrics of all models of projects; only these keys, unless None."""
        with self._database.read() as connection:
            condition = among(connection, logged_model.c.project_id, project_ids)
            if keys is not None:
                condition = and_(condition, logged_model_metric.c.key.in_(list(keys)))
            return _read_metrics(connection, condition)


def _identity(metric: ModelMetric) -> _Identity:
    return metric.model_uid, metric.run_uid, metric.key, metric.dataset_name, metric.dataset_digest


def _record(connection: Connection, metrics: Sequence[ModelMetric]) -> None:
    uids = {metric.model_uid for metric in metrics}
    models = select(logged_model.c.uid, logged_model.c.id).where(logged_model.c.uid.in_(uids))
    # In the order of their ids: two requests at once do not wait for each other.
    locked = connection.execute(models.order_by(logged_model.c.id).with_for_update())
    ids: dict[str, int] = {row.uid: row.id for row in locked}
    rows = [
        {
            **dict(zip(ModelMetric._fields[1:], metric[1:], strict=True)),
            "model_id": ids[metric.model_uid],
            "value": None if math.isnan(metric.value) else metric.value,
        }
        for metric in metrics
        if metric.model_uid in ids
    ]
    if not rows:
        return
    table = logged_model_metric.c
    statement = insert(connection, logged_model_metric)
    sent = statement.excluded
    is_newer = or_(
        sent.timestamp > table.timestamp,
        and_(sent.timestamp == table.timestamp, sent.step >= table.step),
    )
    values = {name: sent[name] for name in ("value", "timestamp", "step")}
    connection.execute(
        statement.on_conflict_do_update(index_elements=_KEYS, set_=values, where=is_newer), rows
    )
    counted = select(func.count()).where(among(connection, table.model_id, set(ids.values())))
    for number in connection.execute(counted.group_by(table.model_id)).scalars():
        if number > MAX_METRICS:
            raise LimitReached(f"a logged model has at most {MAX_METRICS:,} metrics")


def _read_metrics(connection: Connection, condition: Any) -> list[ModelMetric]:
    table = logged_model_metric.c
    columns = [logged_model.c.uid, *(table[name] for name in ModelMetric._fields[1:])]
    statement = (
        select(*columns)
        .join(logged_model, logged_model.c.id == table.model_id)
        .where(condition)
        .order_by(table.model_id, table.key, table.run_uid, table.dataset_name, table.dataset_digest)
    )
    metrics = (ModelMetric(*row) for row in connection.execute(statement))
    return [metric._replace(value=math.nan) if metric.value is None else metric for metric in metrics]
