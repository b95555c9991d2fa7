"""A run of MLflow, as every kind of store returns it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class MlflowMetric(NamedTuple):
    """A value of a metric."""

    key: str
    value: float
    time_ms: int
    step: int


class MlflowArtifact(NamedTuple):
    """A file: its name, and a function that returns its path on this machine, or None if it is left out."""

    name: str
    path: Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class MlflowStoreRun:
    """A run, without its metrics and artifacts.

    Args:
        status: `RUNNING`, `SCHEDULED`, `FINISHED`, `FAILED` or `KILLED`.
        artifact_uri: where its artifacts are.
    """

    id: str
    experiment: str
    name: str
    status: str
    started_ms: int
    ended_ms: int | None
    params: Mapping[str, str]
    tags: Mapping[str, str]
    artifact_uri: str


class MlflowStore(Protocol):
    """A store of MLflow's runs.

    Attributes:
        total: number of runs, known from the first on; 0 if the store does not tell.
        deleted: number of runs that were deleted and are left out; known when `runs` is exhausted.
        damaged: runs that are left out because they cannot be read, with the reason.
        unreadable: number of values of metrics that are left out, because they are not numbers.
    """

    total: int
    deleted: int
    unreadable: int
    damaged: dict[str, str]

    def runs(self) -> Iterator[MlflowStoreRun]:
        """Return the runs that are not deleted."""
        ...

    def metrics(self, run: MlflowStoreRun) -> Iterator[MlflowMetric]:
        """Return the values of all metrics of a run."""
        ...

    def artifacts(self, run: MlflowStoreRun) -> Iterator[MlflowArtifact]:
        """Return the files of a run, or raise ValueError if this store cannot read them."""
        ...

    def close(self) -> None:
        """Close files and connections."""
        ...
