"""The shapes of the API's answers, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from runvitals.query.model import State

Number = float | None
Values = dict[str, list[Number]]


class ErrorAnswer(BaseModel):
    error: str = Field(description="What was wrong, where, and what is allowed.")


class Project(BaseModel):
    name: str
    runs: int
    running: int
    newest_ms: int = Field(description="Start of its newest run, ms UTC.")


class HostState(BaseModel):
    name: str
    state: State
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    started_ms: int
    last_ms: int
    interval_s: float | None
    monitors: int = Field(
        description="How many lives its monitor had: more than 1 means that it had to be started again."
    )


class RunRow(BaseModel):
    """A run as a table shows it."""

    id: str
    project: str
    name: str
    group: str | None
    job_type: str | None
    tags: list[str]
    state: State
    exit_code: int | None = Field(description="None where a signal ended it, or nobody saw how it ended.")
    signal: int | None
    out_of_memory: bool | None = Field(description="Whether the kernel killed it for memory.")
    started_ms: int = Field(description="ms UTC, as all times here.")
    ended_ms: int | None = Field(description="None while it is running.")
    duration_ms: int
    hosts: list[HostState]
    summary: dict[str, Any]
    last: dict[str, dict[str, Number]] = Field(
        description="By host: the newest values of the keys asked for in `last`."
    )


class RunPage(BaseModel):
    runs: list[RunRow]
    total: int = Field(description="Runs that fit the filters, on all pages.")
    next: str | None = Field(description="Give it as `after` to get the next page; None on the last.")


class Rank(BaseModel):
    host: str
    pid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    ended_ms: int | None


class Event(BaseModel):
    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None
    data: dict[str, Any]


class RunDetail(RunRow):
    """Everything known of a run but its series."""

    notes: str
    command: list[str]
    config: dict[str, Any]
    settings: dict[str, Any]
    machines: dict[str, dict[str, Any]] = Field(description="By host: facts of its environment.")
    sources: dict[str, dict[str, Any]] = Field(
        description="By host and source: on, absent or failing, and why."
    )
    ranks: list[Rank]
    events: list[Event]
    lost_records: int = Field(description="Records that could not be written, of a full disk for example.")
    problems: list[str] = Field(description="What could not be read of the run's files.")


class SeriesInfo(BaseModel):
    """A series that a run has, and what the catalogue says of it."""

    key: str
    template: str = Field(description="The catalogue's row; the key itself where it is not in the catalogue.")
    host: str
    role: str
    unit: str
    kind: Literal["gauge", "counter", "rate"] | None = Field(
        description="None for a key the catalogue does not know."
    )
    subject: str = Field(description="CPU, Memory, …; `Other` for a key the catalogue does not know.")
    chart: str = Field(description="Heading of the chart it belongs to; series of one chart share a unit.")
    text: str
    source: str
    n: int
    first_ms: int
    last_ms: int
    min: Number = Field(description="Of all samples; None where there are only gaps.")
    max: Number
    last: Number


class MetricGroup(BaseModel):
    """Series of one host that have their points at the same times.

    A null is a gap; a time at which a series has no point is not in its group.
    """

    host: str
    role: str
    t: list[int] = Field(description="ms UTC: of the samples, or where the buckets begin.")
    n: list[int] | None = Field(description="Samples in each bucket; None for samples themselves.")
    series: Values = Field(description="By key. Of a bucket: its mean, or what the catalogue's `merge` says.")
    min: Values | None = Field(description="By key, the lowest in each bucket; None for samples themselves.")
    max: Values | None


class Metrics(BaseModel):
    run: str
    t0: int
    t1: int
    resolution: Literal["raw", "buckets"]
    bucket_ms: int | None = Field(description="Buckets begin at multiples of this since 1970.")
    cursor: str = Field(description="Give it as `after` to `/live` to miss nothing.")
    groups: list[MetricGroup]


class LoggedGroup(BaseModel):
    """What one process logged under several names at the same steps."""

    host: str
    rank: int | None
    step: list[float]
    t: list[Number] = Field(description="ms UTC; of a bucket of steps: of the newest call in it.")
    n: list[int] | None
    series: Values
    min: Values | None
    max: Values | None


class Logged(BaseModel):
    run: str
    cursor: str
    groups: list[LoggedGroup]


class PrintedPiece(BaseModel):
    time_ms: int
    stream: Literal["stdout", "stderr"]
    text: str
    host: str
    rank: int | None


class ConsoleAnswer(BaseModel):
    cut: bool = Field(description="Older output is only in the journal.")
    pieces: list[PrintedPiece]


class CatalogueRow(BaseModel):
    key: str
    unit: str
    kind: Literal["gauge", "counter", "rate"]
    scope: str
    merge: str
    subject: str
    chart: str
    text: str
    source: str
    aliases: list[str]
    of: str | None = Field(description="Of a rate: its counter.")
