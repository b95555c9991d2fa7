"""The shapes of the API's answers, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runvitals.model.run import State

Number = float | None
Values = dict[str, list[Number]]


class ErrorAnswer(BaseModel):
    error: str = Field(description="What was wrong, where, and what is allowed.")


class About(BaseModel):
    version: str
    kind: Literal["local", "server"] = Field(description="local: the journals of this machine, read only.")
    capabilities: list[str] = Field(description="`stop`, `delete`, `edit`: calls that change runs.")


class Done(BaseModel):
    run: str
    done: Literal["stop", "delete", "restore", "edit"]


class ProjectDone(BaseModel):
    project: str
    done: Literal["rename", "delete"]
    runs: int | None = Field(None, description="How many were moved to the trash.")


class ProjectChanges(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1, max_length=256)


class RunChanges(BaseModel):
    """Changes of a run by a user."""

    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(None, max_length=256)
    notes: str | None = Field(None, max_length=100_000)
    tags: list[Annotated[str, Field(min_length=1, max_length=256)]] | None = Field(None, max_length=1000)
    group: str | None = Field(None, max_length=256)
    job_type: str | None = Field(None, max_length=256)
    project: str | None = Field(None, max_length=256)


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
    exit_code: int | None = Field(description="None where a signal ended it, or its end was not recorded.")
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
    stop_requested_ms: int | None = Field(description="When a user requested its end; None: not requested.")


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


class MlflowName(BaseModel):
    """What MLflow calls a series."""

    name: str
    unit: str
    factor: float = Field(description="Makes a value of MLflow's unit from one of ours.")


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
    n: int = Field(description="Values: samples that are no gaps.")
    first_ms: int = Field(description="Of the first value; 0 where there are only gaps.")
    last_ms: int
    min: Number = Field(
        description="Of all values. None where there are only gaps, and for the rate of a very long series."
    )
    max: Number
    last: Number = Field(description="The newest value.")
    mlflow: MlflowName | None = Field(None, description="None of what MLflow has no name for.")


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
    problems: list[str] = Field(description="What of these series could not be read; the rest is here.")


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
    problems: list[str] = Field(description="What of it could not be read; the rest is here.")


class NewSample(BaseModel):
    host: str
    role: str
    t: int
    values: dict[str, Number]


class NewRow(BaseModel):
    host: str
    rank: int | None
    step: float
    t: int
    values: dict[str, Number]


class News(BaseModel):
    """What came since a cursor."""

    cursor: str
    samples: list[NewSample] = Field([], description="Rates included.")
    calls: list[NewRow] = Field([], description="Of `log()`.")
    run: RunDetail | None = None
    reload: bool = Field(False, description="Too much is new: ask for the series again.")


class Statistics(BaseModel):
    """Of one series, over the samples that have a value; None where none has."""

    key: str
    host: str
    unit: str
    n: int
    min: Number
    max: Number
    mean: Number
    p50: Number
    p95: Number
    last: Number
    total: Number = Field(description="What a counter grew by, resets left out; None for a gauge.")


class Latest(BaseModel):
    """The newest values of one host of a run that is running."""

    run: str
    project: str
    host: str
    t: dict[str, int]
    values: dict[str, float]


class FleetGroup(BaseModel):
    """The buckets of a group that hold a value. For `infinity` in a value there is null."""

    group: str | None = Field(description="A project, host, state or run id; None: all runs.")
    t: list[int] = Field(description="Where the buckets begin, ms UTC.")
    n: list[int]
    min: list[Number]
    max: list[Number]
    mean: list[Number]


class Aggregate(BaseModel):
    metric: str
    t0: int
    t1: int
    bucket_ms: int | None
    groups: list[FleetGroup]


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
