"""What a destination needs of a tracking store, and what it says to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

SYSTEM_PREFIX = "system/"
RUNNING, FINISHED, FAILED, KILLED = "RUNNING", "FINISHED", "FAILED", "KILLED"
# What a tracking store takes in one request.
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
    """What the store knows of a run.

    Attributes:
        status: RUNNING, FINISHED …
        system_step: the largest step of its system metrics; -1 where it has none.
    """

    status: str
    system_step: int


class TrackingStore(Protocol):
    """A tracking store. Every method may raise what a destination may: `Retry`, `Rejected`, `Gone`,
    OSError."""

    def experiment(self, name: str) -> str:
        """The id of an experiment, which is made if there is none of that name."""
        ...

    def runs_with(self, experiment: str, tag: NamedText) -> list[str]:
        """The ids of an experiment's runs that have a tag, oldest first."""
        ...

    def make_run(self, experiment: str, name: str, start_ms: int, tags: Sequence[NamedText]) -> str:
        """The id of a new run."""
        ...

    def drop_run(self, run: str) -> None:
        """Delete a run."""
        ...

    def state(self, run: str) -> RunState:
        """What is known of a run."""
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
        """How a run is doing; with the time of its end, if it has ended."""
        ...

    def close(self) -> None: ...


def last_system_step(steps: Sequence[tuple[str, int]]) -> int:
    """The largest step among system metrics, given (key, step) of all; -1 where there are none.

    >>> last_system_step([("loss", 900), ("system/cpu_utilization_percentage", 3), ("system/n1/x", 4)])
    4
    """
    return max((step for key, step in steps if key.startswith(SYSTEM_PREFIX)), default=-1)
