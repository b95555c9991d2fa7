"""State of MLflow's routes: sessions of runs, stored names, histories read page by page."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from cachetools import TTLCache

from runvitals.model.metrics import mlflow as mlflow_names
from runvitals.model.metrics.definitions import Match
from runvitals.model.names import sanitized_name
from runvitals.server.doors.mlflow.limits import checked_name
from runvitals.server.doors.mlflow.metric_columns import MetricColumns
from runvitals.server.doors.mlflow.metric_history import MetricValues
from runvitals.server.doors.mlflow.run_sessions import RunSessions
from runvitals.server.http.workers import Workers
from runvitals.server.metadata_store import MetadataStore
from runvitals.store.samples.interface import SampleStore

_SORTING_THREADS: Final = 2
_MAX_NAMES: Final = 500_000
PAGED_BYTES: Final = 32 << 20
"""Of histories that clients read page by page: 1.4 million values."""
_PAGED_S: Final = 60.0


class StoredNames(NamedTuple):
    """How a list of metrics is stored.

    Attributes:
        changed: the names under which they are stored; None: their own.
        has_system: whether one of them is a system metric of MLflow.
    """

    changed: list[str] | None
    has_system: bool


class StoredMetrics(NamedTuple):
    """Metrics under the names with which they are stored. `has_system`: whether one is a system metric."""

    columns: MetricColumns
    has_system: bool


NO_METRICS: Final = StoredMetrics(MetricColumns.of_objects(()), False)


class MlflowDoor:
    """State that the routes of this door share.

    Args:
        metadata_store: of the server.

    Attributes:
        workers: for searches that Python sorts.
        paged_histories: those that clients read page by page, by run and metric.
    """

    def __init__(self, store: SampleStore, metadata_store: MetadataStore) -> None:
        self.sessions = RunSessions(store, metadata_store)
        self.workers = Workers(_SORTING_THREADS)
        self.paged_histories: TTLCache[tuple[int, str], MetricValues] = TTLCache(
            PAGED_BYTES, _PAGED_S, getsizeof=lambda values: values.nbytes
        )
        self._lists: dict[tuple[str, ...], StoredNames] = {}
        self._names = 0

    def to_stored(self, metrics: MetricColumns) -> StoredMetrics:
        """Return metrics under the names with which they are stored.

        Lists of names repeat, so they are remembered.

        Raises:
            MlflowError: a name is not allowed.
        """
        sent = tuple(metrics.names)
        names = self._lists.get(sent)
        if names is None:
            ours = [sanitized_name(checked_name("metric", key)) for key in sent]
            names = StoredNames(ours if ours != metrics.names else None, any(map(is_system, ours)))
            self._names += len(sent)
            if self._names > _MAX_NAMES:
                self._lists.clear()
                self._names = len(sent)
            self._lists[sent] = names
        renamed = metrics if names.changed is None else metrics.with_names(names.changed)
        return StoredMetrics(renamed, names.has_system)


@lru_cache(maxsize=10_000)
def system_match(name: str) -> Match | None:
    """Return our key of a system metric of MLflow; None for other names."""
    return mlflow_names.from_mlflow(name) if name.startswith(mlflow_names.PREFIX) else None


def is_system(name: str) -> bool:
    """Return whether a metric's name is one that MLflow or runvitals gives to system metrics."""
    return name.startswith(mlflow_names.PREFIX) and system_match(name) is not None
