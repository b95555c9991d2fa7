"""The JSON bodies of the API, as its OpenAPI document describes them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runvitals.model.run_state import State
from runvitals.server.http.bodies import RequestBody, ResponseBody
from runvitals.server.runs.routes.run_list_models import GoalLineSchema

Number = float | None
Values = dict[str, list[Number]]


class About(ResponseBody):
    """The server's version, kind and capabilities."""

    version: str
    kind: Literal["local", "server"] = Field(
        description="`local`: the journals of this machine, read-only; `server`: a shared server."
    )
    auth: Literal["open", "tokens", "accounts"] = Field(
        description="What requests need: nothing, a token, or an account or key."
    )
    capabilities: list[str] = Field(
        description="Groups of routes. `stop`, `delete` and `edit` change runs, `views` saves views."
    )


class Done(ResponseBody):
    """A completed change of a run."""

    run: str
    done: Literal["stop", "delete", "restore", "edit"]


class ProjectDone(ResponseBody):
    """A completed change of a project."""

    project: str
    done: Literal["rename", "delete"]
    runs: int | None = Field(None, description="Number of runs moved to the trash.")


class ProjectChanges(RequestBody):
    """Changes of a project."""

    name: str = Field(min_length=1, max_length=256)


class RunChanges(RequestBody):
    """Changes of a run by a user."""

    name: str | None = Field(None, max_length=256)
    notes: str | None = Field(None, max_length=100_000)
    tags: list[Annotated[str, Field(min_length=1, max_length=256)]] | None = Field(None, max_length=1000)
    group: str | None = Field(None, max_length=256)
    job_type: str | None = Field(None, max_length=256)
    project: str | None = Field(None, max_length=256)
    starred: bool | None = Field(None, description="For everyone who sees the run.")
    author: str | None = Field(
        None, max_length=64, description="On a server with accounts: a member of the run's team."
    )


class ProjectSchema(ResponseBody):
    """A project with runs."""

    name: str
    entity: str | None = Field(None, description="The team or user whose it is; None without accounts.")
    runs: int
    running: int
    newest_ms: int = Field(description="Start of its newest run, ms UTC.")


class HostState(ResponseBody):
    """The state of a run on one host."""

    name: str
    state: State
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    started_ms: int
    last_ms: int
    interval_s: float | None
    monitors: int = Field(
        description="How often a monitor was started; more than 1 means that it was restarted."
    )


class RunAuthorSchema(ResponseBody):
    """The user whose run it is."""

    id: int
    name: str | None = Field(description="The user name; None for a deleted user.")
    display_name: str
    picture: str | None = Field(description="The user's picture is at `/-/picture/{picture}`; None: none.")


class RunServiceAccountSchema(ResponseBody):
    """The service account that sent a run."""

    id: int
    name: str
    deleted: bool


class RunVerdictSchema(ResponseBody):
    """What the findings about a run come to."""

    id: str = Field(description="Of the finding that costs most, `healthy` or `unknown`.")
    text: str
    severity: Literal["critical", "warning", "healthy", "unknown"] = Field(
        description="Of the worst finding; `healthy` if there is only information."
    )
    lost_device_hours: float
    findings: list[str] = Field(description="The ids of all findings, the most important first.")
    judged_ms: int = Field(description="ms UTC.")


class RunRowSchema(ResponseBody):
    """A run in a list."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    id: str
    project: str
    name: str
    group: str | None
    job_type: str | None
    tags: list[str]
    state: State
    exit_code: int | None = Field(description="None if a signal ended it or its end was not recorded.")
    signal: int | None
    out_of_memory: bool | None = Field(
        description="Whether the kernel killed it because memory was exhausted."
    )
    started_ms: int = Field(description="ms UTC, as all times.")
    ended_ms: int | None = Field(description="None while the run is running.")
    duration_ms: int
    hosts: list[HostState]
    summary: dict[str, Any]
    last: dict[str, dict[str, Number]] = Field(
        description="By host: the newest values of the keys requested with `last`."
    )
    stop_requested_ms: int | None = Field(description="When a user requested its end; None if not requested.")
    entity: str | None = Field(description="The team or user that has the project; None without accounts.")
    author: RunAuthorSchema | None = Field(description="None without accounts, and if nobody is known.")
    service_account: RunServiceAccountSchema | None = Field(
        description="None if a user's own key sent the run."
    )
    verdict: RunVerdictSchema | None = Field(
        description="None until the run is judged; `/runs/{run}/findings` has the findings."
    )
    starred: bool
    deleted_ms: int | None = Field(description="When it was moved to the trash; None if it is not there.")
    may: list[str] | None = Field(
        None, description="What the requester may do with it: `run:stop`, …; left out in live events."
    )


class ListedRunSchema(RunRowSchema):
    """A run in a list with the requested columns."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=False)

    notes: str = Field("", description="The first line of its notes, cut after 200 characters.")
    columns: dict[str, str | Number] = Field({}, description="By the names in `columns`; None: no value.")
    sparklines: dict[str, list[Number]] = Field(
        {}, description="By key: means in equal parts of the run's time; None is a gap. Empty without values."
    )
    goal: GoalLineSchema | None = Field(
        None, description="If requested, of the first 20 runs of the page; None: it logged no such metric."
    )


class RunPageSchema(ResponseBody):
    """A page of runs."""

    runs: list[ListedRunSchema]
    total: int = Field(description="Runs that match the filters, on all pages.")
    next: str | None = Field(description="The `after` of the next page; None on the last.")
    pending: int = Field(
        0,
        description="Runs whose system statistics or verdicts are not computed yet: they have none for now.",
    )


class RankSchema(ResponseBody):
    """A process of a training."""

    host: str
    pid: int
    rank: int | None
    local_rank: int | None
    world_size: int | None
    exit_code: int | None
    signal: int | None
    out_of_memory: bool | None
    ended_ms: int | None


class EventSchema(ResponseBody):
    """An event of a run."""

    time_ms: int
    name: str
    level: str
    text: str
    host: str
    rank: int | None
    data: dict[str, Any]
    author: RunAuthorSchema | None = Field(
        None, description="The user who made the change, or whose key sent the event; None: nobody known."
    )
    service_account: RunServiceAccountSchema | None = Field(
        None, description="The service account that did; None if none did."
    )


class DefinedMetric(BaseModel):
    """How a metric is shown, as `define_metric` chose it. None: not chosen."""

    summary: Literal["last", "min", "max", "mean", "none"] | None = None
    x: str | None = Field(None, description="The logged metric that is the x-axis of its charts.")
    hidden: bool | None = Field(None, description="Whether it has no chart unless somebody asks for it.")
    goal: Literal["minimize", "maximize"] | None = Field(None, description="Which values are better.")


class RunDetail(RunRowSchema):
    """Everything known about a run except its series."""

    notes: str
    command: list[str]
    config: dict[str, Any]
    settings: dict[str, Any]
    machines: dict[str, dict[str, Any]] = Field(description="By host: facts about its environment.")
    sources: dict[str, dict[str, Any]] = Field(
        description="By host and source: `on`, `absent` or `failing`, with the reason."
    )
    ranks: list[RankSchema]
    events: list[EventSchema]
    lost_records: int = Field(
        description="Records that could not be written, for example because a disk was full."
    )
    problems: list[str] = Field(description="Parts of the run's files that could not be read.")
    defined_metrics: dict[str, DefinedMetric] = Field(
        description="By name or pattern. What a name leaves out, the longest matching pattern says."
    )


class MlflowName(ResponseBody):
    """The MLflow name of a series."""

    name: str
    unit: str
    factor: float = Field(description="Converts a value to MLflow's unit.")


class SeriesInfo(ResponseBody):
    """A series of a run with its metric definition."""

    key: str
    template: str = Field(description="The key template of the metric; the key itself if no metric matches.")
    host: str
    role: str
    unit: str
    kind: Literal["gauge", "counter", "rate"] | None = Field(
        description="None for a key without a metric definition."
    )
    subject: str = Field(description="CPU, Memory, …; `Other` for a key without a metric definition.")
    chart: str = Field(description="Title of its chart; the series of a chart have the same unit.")
    text: str
    source: str
    n: int = Field(description="Number of values, without gaps.")
    first_ms: int = Field(description="Time of the first value; 0 if there are only gaps.")
    last_ms: int
    min: Number = Field(
        description="Of all values. None if there are only gaps, and for the rate of a very long series."
    )
    max: Number
    last: Number = Field(description="The newest value.")
    mlflow: MlflowName | None = Field(None, description="None if MLflow has no name for it.")


class MetricGroup(ResponseBody):
    """Series of one host that have points at the same times. A null is a gap."""

    host: str
    role: str
    t: list[int] = Field(description="ms UTC: times of the samples, or starts of the buckets.")
    n: list[int] | None = Field(description="Samples in each bucket; None if these are samples.")
    series: Values = Field(
        description="By key. The value of a bucket is the statistic that the metric defines (`merge`)."
    )
    min: Values | None = Field(
        description="By key: the lowest value in each bucket; None if these are samples."
    )
    max: Values | None


class Metrics(ResponseBody):
    """Series of a run, in groups of the same times."""

    run: str
    t0: int
    t1: int
    resolution: Literal["raw", "buckets"]
    bucket_ms: int | None = Field(
        description="Buckets begin at multiples of this since 1970; null of samples, and of "
        "buckets that get wider (`log_from`)."
    )
    cursor: str = Field(description="Pass it as `after` to `/live` to miss nothing.")
    groups: list[MetricGroup]
    problems: list[str] = Field(description="Parts of these series that could not be read.")


class NewSampleSchema(ResponseBody):
    """Samples that a host has sent."""

    host: str
    role: str
    t: int
    values: dict[str, Number]


class NewRowSchema(ResponseBody):
    """A row that the training has logged."""

    host: str
    rank: int | None
    step: float
    t: int
    values: dict[str, Number]


class News(ResponseBody):
    """Samples, rows and facts that are newer than a cursor."""

    cursor: str
    samples: list[NewSampleSchema] = Field([], description="Rates included.")
    calls: list[NewRowSchema] = Field([], description="Calls of `log()`.")
    run: RunDetail | None = None
    reload: bool = Field(False, description="Too much is new: request the series again.")


class StatisticsSchema(ResponseBody):
    """Statistics of one series over the samples that have a value; None if none has."""

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
    total: Number = Field(description="Increase of a counter, without resets; None for a gauge.")


class DifferencePart(ResponseBody):
    """The values of a series inside or outside a time range."""

    n: int = Field(description="Number of compared values: samples, or means of buckets.")
    median: float
    mad: float = Field(description="Median absolute deviation.")
    farthest: float = Field(description="The value that is farthest from the median outside.")


class DifferenceSchema(ResponseBody):
    """How much one metric differs: the series of it that differs most, and how many differ alike."""

    kind: Literal["sampled", "logged"]
    key: str
    host: str
    role: str | None = Field(description="None for a logged value.")
    rank: int | None = Field(description="Of the process that logged it; None for a sampled series.")
    unit: str
    chart: str = Field(description="Title of its chart.")
    how: Literal["level", "spike"] = Field(
        description="`level`: most values differ; `spike`: some are farther away than any outside."
    )
    part: Literal["cause", "logged", "effect", "volume"] = Field(
        description="`cause`: a probable cause, such as waiting for a disk, throttling or network errors; "
        "`logged`: what the program logged; `effect`: use of devices, processors and memory; `volume`: the "
        "rest."
    )
    series: int = Field(description="How many series of the metric differ alike.")
    hosts: int = Field(description="On how many hosts.")
    score: float = Field(description="The statistic: 0 is no difference, 100 is the maximum.")
    inside: DifferencePart
    outside: DifferencePart


class Differences(ResponseBody):
    """How much metrics differ between a time range and the time around it: probable causes first."""

    run: str
    t0: int
    t1: int
    around_t0: int
    around_t1: int
    statistic: str = Field(description="How `score` is computed.")
    compared: int = Field(description="Series with enough values inside and outside.")
    left_out: int = Field(description="Series with too few values.")
    differences: list[DifferenceSchema]
    problems: list[str] = Field(description="Parts of these series that could not be read.")


class LatestSchema(ResponseBody):
    """The newest values of one host of a running run."""

    run: str
    project: str
    host: str
    t: dict[str, int]
    values: dict[str, float]
    entity: str | None = Field(None, description="The team or user that has the project.")


class FleetGroup(ResponseBody):
    """The buckets of a group that have values. Infinite values are null."""

    group: str | None = Field(
        description="A project, host, state, run id, entity or author; None for all runs."
    )
    t: list[int] = Field(description="Starts of the buckets, ms UTC.")
    n: list[int]
    min: list[Number]
    max: list[Number]
    mean: list[Number]


class Aggregate(ResponseBody):
    """A metric over many runs."""

    metric: str
    t0: int
    t1: int
    bucket_ms: int | None
    groups: list[FleetGroup]


class MetricDefinition(ResponseBody):
    """A metric's unit, kind, scope and meaning."""

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
    of: str | None = Field(description="The counter of a rate.")
