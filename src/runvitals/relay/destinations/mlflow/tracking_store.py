"""The interface of a tracking store, as the destination uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

SYSTEM_PREFIX = "system/"
RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"
# MLflow's limits for one request.
METRICS_PER_REQUEST = 1000
PARAMS_PER_REQUEST = 100
TAGS_PER_REQUEST = 100


class MetricPoint(NamedTuple):
    """One point of one metric."""

    key: str
    value: float
    time_ms: int
    step: int


class NamedText(NamedTuple):
    """A parameter or a tag."""

    key: str
    value: str


class RunState(NamedTuple):
    """The state of a run in the store.

    Attributes:
        status: RUNNING, FINISHED …
        system_step: the largest step of its system metrics; -1 if it has none.
    """

    status: str
    system_step: int


class TrackingStore(Protocol):
    """A tracking store.

    Methods may raise what `Destination.deliver` may: `Retry`, `Rejected`, `Gone`, OSError.
    """

    def experiment(self, name: str) -> str:
        """Return the id of an experiment, created if it does not exist."""
        ...

    def runs_with(self, experiment: str, tag: NamedText) -> list[str]:
        """Return the ids of an experiment's runs with a tag, oldest first."""
        ...

    def make_run(self, experiment: str, name: str, start_ms: int, tags: Sequence[NamedText]) -> str:
        """Create a run; returns its id."""
        ...

    def drop_run(self, run: str) -> None:
        """Delete a run."""
        ...

    def state(self, run: str) -> RunState:
        """Return the state of a run."""
        ...

    def log(
        self,
        run: str,
        metrics: Sequence[MetricPoint] = (),
        params: Sequence[NamedText] = (),
        tags: Sequence[NamedText] = (),
    ) -> None:
        """Add to a run; within the limits above."""
        ...

    def set_status(self, run: str, status: str, end_ms: int | None) -> None:
        """Set the status of a run, and the time of its end if it has ended."""
        ...

    def close(self) -> None:
        """Close the connections."""


def last_system_step(steps: Sequence[tuple[str, int]]) -> int:
    """Return the largest step of the system metrics among (key, step) of all metrics; -1 if there are none.

    >>> last_system_step([("loss", 900), ("system/cpu_utilization_percentage", 3), ("system/n1/x", 4)])
    4
    """
    return max((step for key, step in steps if key.startswith(SYSTEM_PREFIX)), default=-1)
