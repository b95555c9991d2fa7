"""The interface between the API and what it reads: journals on this disk, or the store of a shared server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, TypeVar

from runvitals.base.buckets import Buckets, Floats, Grid, Integers
from runvitals.model.artifacts import ArtifactVersion
from runvitals.model.completion import FieldChoice
from runvitals.model.filter import Filter, ReadableRuns
from runvitals.model.logged_media import LoggedMedia, LoggedValue, MediaKey, SavedFile, ValueSelection
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.run import Event, Run
from runvitals.model.run_groups import RunGroup
from runvitals.model.run_sort import RunSort
from runvitals.model.run_state import State
from runvitals.readers.journals.globs import glob
from runvitals.readers.journals.key_filter import KeyFilter
from runvitals.readers.journals.series import Series
from runvitals.server.charts.run_plan import RunPlan
from runvitals.server.runs.run_lists import NO_COLUMNS, RunsPage, ShownColumns

T = TypeVar("T")
Position = Mapping[str, int]
"""How far a run has been read: for each of its sources a number that only grows."""


class TooMuch(ValueError):
    """More was requested than one response may hold."""


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """Which series of a run are requested. None and () mean all.

    Args:
        keys: keys or globs.
        host: only series of this host.
        rank: only series of this rank, and of the monitor on its host.
        writer: only series of this writer, or of the writers that match a glob.
        device: only series of this device: its index (`3`), or on a shared server its UUID or PCI address.
    """

    keys: tuple[str, ...] = ()
    host: str | None = None
    rank: int | None = None
    writer: str | None = None
    device: str | None = None

    @property
    def matches_key(self) -> Callable[[str], bool]:
        """Whether a key is requested, regardless of the device.

        Raises:
            ValueError: a key that is too long, or too many globs.
        """
        return KeyFilter(self.keys)

    def matches_writer(self, name: str) -> bool:
        """Return whether the series of a writer are requested."""
        return self.writer is None or name == self.writer or glob(self.writer)(name)


def device_index(key: str) -> str | None:
    """Return the index of the device in a key; None if the key names no device.

    Example:
        >>> device_index("gpu.3.powerWatts"), device_index("cpu.3.cpu_percent")
        ('3', None)
    """
    match = DEFINITIONS.find(key)
    if match is None or match.metric.scope != "device":
        return None
    return next(iter(match.labels.values()), None)


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """Count, times and extremes of a series; gaps are not counted."""

    key: str
    host: str
    role: str
    n: int
    first_ms: int
    last_ms: int
    min: float | None
    max: float | None
    last: float | None


@dataclass(frozen=True, slots=True)
class BucketedSeries:
    """A series reduced to buckets."""

    key: str
    host: str
    role: str
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class ChartData:
    """Series between two times: as samples, or all as buckets if one of them has too many samples."""

    samples: list[Series] = field(default_factory=list)
    buckets: list[BucketedSeries] | None = None


LoggedColumn = tuple[Floats, Floats, Floats]
"""Steps, times in ms UTC and values, in the order of the calls of `log()`."""


@dataclass(frozen=True, slots=True)
class LoggedColumns:
    """The rows of one process, by name."""

    host: str
    rank: int | None
    columns: dict[str, LoggedColumn]


class ConsolePiece(NamedTuple):
    """A piece of a program's output."""

    time_ms: int
    stream: str
    text: str
    host: str
    rank: int | None


@dataclass(frozen=True, slots=True)
class MediaSelection:
    """Which records of a key are requested.

    From one step to another, both included; records without a step come before all others. `skip`: those of
    previous pages.
    """

    key: str
    first_step: float | None = None
    last_step: float | None = None
    skip: int = 0
    limit: int = 100


class MediaPage(NamedTuple):
    """Records by step, and how many there are on all pages."""

    records: list[LoggedMedia]
    total: int


ArtifactRelation = Literal["logged", "used"]


class RunArtifact(NamedTuple):
    """A version of an artifact of a run. On this machine `project_id` and `maker` are None.

    Args:
        project_id: in the metadata store.
        maker: where the run is that logged it, unless it is the run that was asked for.
    """

    version: ArtifactVersion
    project_id: int | None
    maker: Any = None


class RunArtifactPage(NamedTuple):
    """Versions of artifacts, and how many there are in all."""

    artifacts: list[RunArtifact]
    total: int


class OpenedContent(NamedTuple):
    """A file of a run, open at its beginning; the reader closes it. The type is that of its content."""

    file: BinaryIO
    size: int
    media_type: str


class NewSample(NamedTuple):
    """A new sample, and the source that it is from."""

    source: str
    host: str
    role: str
    time_ms: int
    values: dict[str, float]


class NewRow(NamedTuple):
    """A new row of `log()`."""

    host: str
    rank: int | None
    step: float
    time_ms: int
    values: dict[str, float]


class RunView(Protocol):
    """One run at one moment. Use it from one thread at a time."""

    @property
    def run_id(self) -> str:
        """The id that users see."""

    @property
    def number(self) -> int | None:
        """Its number in the metadata store; None for a journal."""

    def run(self, now_ms: int) -> Run:
        """Everything known about the run except its series."""

    def events(self, now_ms: int, skip: int, limit: int) -> list[Event]:
        """Return the newest `limit` events after leaving out the newest `skip`, in order of time."""

    def note_problems(self) -> Mapping[str, None]:
        """Return a collection of texts that grows: problems with reading series from this call on."""

    def position(self) -> Position:
        """Return how far this view has read the run."""

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        """Return the series, derived rates included, without the first `skip`.

        If there are more than one response may hold, `note_problems` reports it.
        """

    def plan(self) -> RunPlan:
        """Return the series without their values.

        It is the same object until one is added or is no longer all zero.
        """

    def newest_ms(self) -> int:
        """Return the time of the newest sample; 0 without samples."""

    def extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        """Times of the first and the last sample; None without samples."""

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        """Return the samples from `t0` to `t1`, both included. Series without samples are left out.

        Raises:
            TooMuch: there are more than `at_most` in total.
        """

    def read_chart(
        self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int
    ) -> ChartData:
        """Return the samples if no series has more than `max_points` from `t0` to `t1`, otherwise buckets."""

    def read_buckets(self, selection: SeriesSelection, on: Grid) -> list[BucketedSeries]:
        """Return the buckets of a grid that have samples, of each series."""

    def sampled_keys(self) -> set[str]:
        """Return the keys of all series, derived rates included."""

    def logged_columns(self, names: Iterable[str]) -> list[LoggedColumns]:
        """Return what was logged under these names; under all names if there are none."""

    def logged_names(self) -> set[str]:
        """Return the names under which numbers were logged."""

    def console(self, max_bytes: int) -> tuple[bool, list[ConsolePiece]]:
        """Return whether older output was left out, and the newest: at most `max_bytes`, or one piece."""

    def console_pieces(self) -> Iterator[ConsolePiece]:
        """Yield all output that is kept: of each process in order, not of all."""

    def media_keys(self) -> list[MediaKey]:
        """Return the names under which media were logged, in order of first use."""

    def media(self, selection: MediaSelection) -> MediaPage:
        """Return what was logged under a name, by step."""

    def media_steps(self, key: str) -> list[float]:
        """Return the steps at which something was logged under a name, ascending."""

    def logged_others(self, selection: ValueSelection, limit: int) -> list[LoggedValue]:
        """Return the texts, lists and objects that the run logged, by step; the newest `limit` of them."""

    def other_names(self) -> list[str]:
        """Return the names under which texts, lists and objects were logged, sorted."""

    def saved_files(self) -> list[SavedFile]:
        """Return the files that the run saved, by name."""

    def artifacts(self, relation: ArtifactRelation, skip: int, limit: int) -> RunArtifactPage:
        """Return a page of the versions of artifacts that the run logged or used, the oldest first."""

    def content(
        self, sha256: str, check_artifact: Callable[[int], None] | None = None
    ) -> OpenedContent | None:
        """Return a file that a record of the run names; None if there is none, or if it has not arrived.

        Args:
            check_artifact: called with the number of the project if the run logged the file only in an
                artifact, on a server; raises if the requester may not download artifacts.
        """

    def count_between(self, before: Position, now: Position) -> int:
        """About how many samples and logged rows there are between two positions."""

    def samples_between(self, before: Position, now: Position) -> Iterator[NewSample]:
        """Return the samples between two positions, of each source in order of time."""

    def newest(self, source: str, before: Position) -> dict[str, tuple[int, float]]:
        """(time, value) of each counter of a source in its last sample up to a position."""

    def rows_between(self, before: Position, now: Position) -> Iterator[NewRow]:
        """Return the logged rows between two positions."""


class RunVersion(NamedTuple):
    """Counts of what a run's writers have sent: in total, and of facts."""

    all: int
    facts: int


class OpenedRun(Protocol):
    """A run that several requests read at the same time."""

    def version(self) -> RunVersion | None:
        """Unchanged if the run has not changed since; None if that is not known."""

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """Return the result of `work`, called in a thread with an up-to-date view.

        Args:
            quick: `work` reads no samples, so it need not wait for work that does.

        Raises:
            UnknownRun: the run was deleted.
            TooSlow: `work` took too long.
            Busy: too many requests are waiting.
        """


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run that a request named, and may be read.

    Args:
        end_ms: when it ended; while it is running, when it was last heard of.
    """

    id: str
    name: str
    state: State
    started_ms: int
    end_ms: int
    opened: OpenedRun


@dataclass(frozen=True, slots=True)
class LatestValues:
    """The newest values of one host of a run."""

    run: str
    project: str
    host: str
    t: dict[str, int]
    values: dict[str, float]
    entity: str | None = None


@dataclass(frozen=True, slots=True)
class AggregatedSeries:
    """One metric over the runs of a group (None means all runs): count and statistics by bucket."""

    group: str | None
    t: Integers
    n: Integers
    min: Floats
    max: Floats
    mean: Floats


Grouping = Literal["project", "host", "state", "run", "entity", "author"]


class Library(Protocol):
    """All runs of a server."""

    clock: Callable[[], int]
    kind: Literal["local", "server"]

    async def projects(self, readable: ReadableRuns | None = None) -> list[dict[str, Any]]:
        """`models.ProjectSchema` for each project with runs, the one with the newest run first.

        Args:
            readable: only projects that the principal may read; None: all.
        """

    async def page(
        self,
        run_filter: Filter,
        sort: RunSort,
        limit: int,
        after: str | None,
        last: Callable[[str], bool],
        shown: ShownColumns = NO_COLUMNS,
        skip: int = 0,
    ) -> RunsPage:
        """Return a page of the runs that match a filter, with the newest values of keys that `last` accepts.

        Args:
            skip: leave out this many runs first.

        Raises:
            ValueError: `after` is not the `next` of a previous page.
        """

    async def fields(self, run_filter: Filter) -> list[str]:
        """Return the configuration, summary and system fields of the runs that match a filter."""

    async def choices(self, run_filter: Filter) -> list[FieldChoice]:
        """Return what filters can name besides `completion.FIXED_CHOICES`, with frequent values."""

    async def groups(
        self, run_filter: Filter, by: tuple[str, ...], columns: tuple[str, ...]
    ) -> list[RunGroup]:
        """Return the groups of the runs that match a filter, unordered.

        Raises:
            TooManyGroups: there are too many.
        """

    async def open(self, run_id: str, number: int | None = None) -> OpenedRun:
        """Return a run by its full id.

        Args:
            number: its number in the metadata store, which tells apart runs with the same id in several
                teams; None: not known.

        Raises:
            UnknownRun: there is no such run.
        """

    async def named(self, ids: Sequence[str], run_filter: Filter) -> list[NamedRun]:
        """Return the runs with these ids that match a filter, in the requested order.

        Raises:
            AmbiguousName: several teams have a run with one of these ids.
        """

    async def latest(self, run_filter: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        """Return the newest values of all running runs that match a filter."""

    async def aggregate(
        self, metric: str, run_filter: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[AggregatedSeries]:
        """One metric over all runs that match a filter, by group and bucket."""
