"""What a run is to a reader: facts folded from the records of all its writers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["running", "finished", "failed", "crashed", "stopped", "lost"]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a host's part of a run stands.

    Args:
        state: running, finished, failed (exit code), crashed (signal), stopped (a person asked for it), lost
            (no end record, and silent).
        exit_code: of the program, None where a signal ended it or it is not known.
        signal: that ended the program, or None.
        out_of_memory: the kernel killed it for memory; None where nobody saw how it ended.
    """

    state: State
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None


@dataclass(frozen=True, slots=True)
class Host:
    """One machine of a run. Times are milliseconds UTC; `monitors` is how many lives its monitor had."""

    name: str
    ending: Ending
    started_ms: int
    last_ms: int
    interval_s: float | None
    monitors: int


@dataclass(frozen=True, slots=True)
class Rank:
    """One process that attached to the run. `rank` is None for a run without ranks."""

    host: str
    pid: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    exit_code: int | None = None
    signal: int | None = None
    out_of_memory: bool | None = None
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened: an alert, lost records, a collector that failed, a marker."""

    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None = None
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """Everything known of a run but its series.

    Times are milliseconds UTC. `machines` and `sources` are by host: the facts of its environment, and which
    sources of numbers are on, absent or failing there, with the reason. `last` is the newest sample of each
    host. `stop_requested_ms` is when a person asked a shared server for the run's end. `problems` says what
    could not be read of the run's files. In a list of runs (`RunList`), which reads only the ends of the
    files, `events` and `problems` are those found there.
    """

    id: str
    project: str
    name: str
    group: str | None
    job_type: str | None
    tags: list[str]
    notes: str
    command: list[str]
    ending: Ending
    started_ms: int
    ended_ms: int | None
    duration_ms: int
    config: dict[str, Any]
    summary: dict[str, Any]
    settings: dict[str, Any]
    machines: dict[str, dict[str, Any]]
    sources: dict[str, dict[str, Any]]
    hosts: list[Host]
    ranks: list[Rank]
    events: list[Event]
    lost_records: int
    problems: list[str]
    last: dict[str, dict[str, float]]
    stop_requested_ms: int | None = None

    @property
    def state(self) -> State:
        return self.ending.state

    @property
    def exit_code(self) -> int | None:
        return self.ending.exit_code

    @property
    def signal(self) -> int | None:
        return self.ending.signal

    @property
    def out_of_memory(self) -> bool | None:
        return self.ending.out_of_memory
