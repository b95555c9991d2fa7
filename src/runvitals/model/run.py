"""A run as readers see it, from journals and from a server alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from runvitals.model.ending import Ending
from runvitals.model.host import Host
from runvitals.model.run_state import State
from runvitals.model.run_verdict import RunVerdict


@dataclass(frozen=True, slots=True)
class RunAuthor:
    """The user whose run it is, or who caused an event. A deleted user keeps the id, but has no name.

    `picture`: the digest of the user's picture, which is part of its address; None: there is none.
    """

    id: int
    name: str | None
    display_name: str
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class RunServiceAccount:
    """The service account whose key sent the run, or caused an event."""

    id: int
    name: str
    deleted: bool


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened at a time (ms UTC).

    An alert, a marker, lost records, a failing collector, or a change that somebody made on a server.

    Args:
        author: the user who made the change, or whose key sent the event; None: no user, or nobody known.
        service_account: the service account that did.
    """

    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None = None
    data: dict[str, Any] = field(default_factory=dict)
    author: RunAuthor | None = None
    service_account: RunServiceAccount | None = None


@dataclass(frozen=True, slots=True)
class Rank:
    """A process that attached to the run. `rank` is None for a run without ranks."""

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
class Run:
    """Everything known about a run, except its series. Times are ms UTC.

    Args:
        machines: facts about each host's environment.
        sources: state of each source by host: on, absent or failing, with the reason.
        last: the newest sample of each host.
        problems: what could not be read from the run's files.
        stop_requested_ms: when a user asked a shared server to stop the run.
        entity: name of the team or user that has the project; None without accounts.
        author: the user whose run it is; None without accounts, and if nobody is known.
        service_account: the service account that sent it; None if a user's own key did.
        defined_metrics: what `define_metric` chose, by name or pattern.
        verdict: of the findings about it; None if it was not judged yet.
        deleted_ms: when it was moved to the trash; None: it is not there.

    A list of runs (`RunList`) reads only the start and end of the files, so its runs have only the `events`
    and `problems` found there.
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
    entity: str | None = None
    author: RunAuthor | None = None
    service_account: RunServiceAccount | None = None
    defined_metrics: dict[str, dict[str, Any]] = field(default_factory=dict)
    verdict: RunVerdict | None = None
    starred: bool = False
    deleted_ms: int | None = None

    @property
    def state(self) -> State:
        """`running`, `finished`, `failed`, `crashed`, `stopped` or `lost`."""
        return self.ending.state

    @property
    def exit_code(self) -> int | None:
        """The exit code of the training, None if it has not ended or was ended by a signal."""
        return self.ending.exit_code

    @property
    def signal(self) -> int | None:
        """The number of the signal that ended the training, or None."""
        return self.ending.signal

    @property
    def out_of_memory(self) -> bool | None:
        """Whether the kernel killed the training because it was out of memory; None if unknown."""
        return self.ending.out_of_memory
