"""What the API needs of runs, whatever holds them: journals on this disk or the shared store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from runvitals.buckets import Buckets, Floats, Grid, Integers
from runvitals.metrics import DEFINITIONS
from runvitals.model.event import Event
from runvitals.model.filter import Filter
from runvitals.model.run import Run
from runvitals.model.run_sort import RunSort
from runvitals.query.globs import glob
from runvitals.query.key_filter import KeyFilter
from runvitals.query.series import Series

T = TypeVar("T")
Position = Mapping[str, int]
"""How far a reader has come: a number that only grows, for each of a run's sources."""


class TooMuch(ValueError):
    """More was asked for than one answer holds."""


@dataclass(frozen=True, slots=True)
class SeriesSelection:
    """Which series of a run are meant; None and () mean all.

    Args:
        keys: keys or globs.
        host: the machine.
        rank: what that rank wrote itself, and the monitor of its host.
        writer: one writer's series.
        device: an index (`3`), or where devices are known by it a UUID or PCI address.
    """

    keys: tuple[str, ...] = ()
    host: str | None = None
    rank: int | None = None
    writer: str | None = None
    device: str | None = None

    @property
    def wanted(self) -> Callable[[str], bool]:
        """Which keys, whatever the device.

        Raises:
            ValueError: a key that is too long, or too many globs.
        """
        return KeyFilter(self.keys)

    def wants_writer(self, name: str) -> bool:
        """Whether a writer's series are meant."""
        return self.writer is None or name == self.writer or glob(self.writer)(name)


def device_index(key: str) -> str | None:
    """The index of the device that a key is about; None for a key that is about no device.

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
    """What a series amounts to: values that are no gaps, and the times of the first and the last of them."""

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
    """A series on a bucket grid."""

    key: str
    host: str
    role: str
    buckets: Buckets


@dataclass(frozen=True, slots=True)
class ChartData:
    """Series between two times: the samples, or, where a series has too many of them, all on a grid."""

    samples: list[Series] = field(default_factory=list)
    buckets: list[BucketedSeries] | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """One process's `log()` calls, by name: steps, times in ms UTC and values, in the order of the calls."""

    host: str
    rank: int | None
    columns: dict[str, tuple[Floats, Floats, Floats]]


class Piece(NamedTuple):
    """A piece of what a program printed."""

    time_ms: int
    stream: str
    text: str
    host: str
    rank: int | None


class NewSample(NamedTuple):
    """A sample that came: the source it came from, and where it was taken."""

    source: str
    host: str
    role: str
    time_ms: int
    values: dict[str, float]


class NewCall(NamedTuple):
    """A `log()` call that came."""

    host: str
    rank: int | None
    step: float
    time_ms: int
    values: dict[str, float]


class RunView(Protocol):
    """One run as it stands. Used from one thread at a time."""

    @property
    def run_id(self) -> str: ...

    def run(self, now_ms: int) -> Run:
        """Everything known of the run but its series."""

    def events(self, now_ms: int, skip: int, limit: int) -> list[Event]:
        """Some of what happened: the newest events but `skip`, in order of time."""

    def note_problems(self) -> Mapping[str, None]:
        """What cannot be read of the series that are asked for from now on, as texts; it grows."""

    def position(self) -> Position:
        """How far this view has come."""

    def summaries(self, selection: SeriesSelection, skip: int = 0) -> list[SeriesSummary]:
        """Which series there are, derived rates included, but for the first `skip`; that there are more than
        one answer holds is reported as a problem.
        """

    def extent(self, selection: SeriesSelection) -> tuple[int, int] | None:
        """Times of the first and the last sample; None without any."""

    def samples(
        self, selection: SeriesSelection, t0: int, t1: int, at_most: int | None = None
    ) -> list[Series]:
        """The samples from `t0` to `t1`, both included; series without one are left out.

        Raises:
            TooMuch: they are more than `at_most`, all series together.
        """

    def charted(self, selection: SeriesSelection, t0: int, t1: int, on: Grid, max_points: int) -> ChartData:
        """The samples, where no series has more than `max_points` from `t0` to `t1`; else their buckets."""

    def calls(self, names: Iterable[str]) -> list[Calls]:
        """What was logged, under these names or all."""

    def printed(self) -> tuple[bool, list[Piece]]:
        """The newest output in order of time, and whether older output was left out."""

    def count_between(self, before: Position, now: Position) -> int:
        """About how many samples and calls came between two positions."""

    def samples_between(self, before: Position, now: Position) -> Iterator[NewSample]:
        """The samples that came, of each source in order of time."""

    def newest(self, source: str, before: Position) -> dict[str, tuple[int, float]]:
        """(time, value) of each counter of a source in its last sample up to a position."""

    def calls_between(self, before: Position, now: Position) -> Iterator[NewCall]:
        """The `log()` calls that came."""


class Version(NamedTuple):
    """How often something was heard of a run: in all, and of its facts."""

    all: int
    facts: int


class OpenedRun(Protocol):
    """A run that requests share."""

    def version(self) -> Version | None:
        """The same as before where nothing was heard of it since; None where that is not known."""

    async def use(self, work: Callable[[RunView], T], quick: bool = False) -> T:
        """The result of `work`, in a thread, on a view that is up to date.

        Args:
            quick: it does not go through samples, and need not wait for what does.

        Raises:
            UnknownRun: the run was deleted.
            TooSlow: it took too long.
            Busy: too many questions wait.
        """


@dataclass(frozen=True, slots=True)
class RunsPage:
    """Some runs of a list; `total`: how many the whole list has; `next`: None on the last page."""

    runs: list[Run]
    total: int
    next: str | None


@dataclass(frozen=True, slots=True)
class LatestValues:
    """The newest values of one host of a run."""

    run: str
    project: str
    host: str
    t: dict[str, int]
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class FleetSeries:
    """One metric over the runs of a group (None: all runs): count and statistics by bucket."""

    group: str | None
    t: Integers
    n: Integers
    min: Floats
    max: Floats
    mean: Floats


Grouping = Literal["project", "host", "state", "run"]


class Library(Protocol):
    """All runs that a server has."""

    clock: Callable[[], int]
    kind: Literal["local", "server"]

    async def projects(self) -> list[dict[str, Any]]:
        """`models.Project` of those that have runs, the one with the newest run first."""

    async def page(
        self, wanted: Filter, sort: RunSort, limit: int, after: str | None, last: Callable[[str], bool]
    ) -> RunsPage:
        """Some runs of a filter, in order, with the newest values of those keys that `last` says.

        Raises:
            ValueError: an `after` that no page before gave.
        """

    async def fields(self, wanted: Filter) -> list[str]:
        """The fields of configurations and summaries that runs of a filter have."""

    async def open(self, run_id: str) -> OpenedRun:
        """A run by its whole id.

        Raises:
            UnknownRun: there is none.
        """

    async def latest(self, wanted: Filter, keys: Callable[[str], bool]) -> list[LatestValues]:
        """The newest values of all runs of a filter that are running."""

    async def aggregate(
        self, metric: str, wanted: Filter, t0: int, t1: int, bucket_ms: int | None, by: Grouping | None
    ) -> list[FleetSeries]:
        """One metric over many runs, by group and bucket."""


@runtime_checkable
class EditableLibrary(Protocol):
    """A library whose runs and projects can be changed: that of a shared server."""

    async def stop(self, run_id: str) -> None:
        """Record that a user requests the end of a run.

        Raises:
            UnknownRun: there is no such run.
            ValueError: it has ended.
        """

    async def delete(self, run_id: str) -> None:
        """Move a run to the trash.

        Raises:
            UnknownRun: there is no such run.
        """

    async def restore(self, run_id: str) -> None:
        """Restore a run from the trash.

        Raises:
            UnknownRun: there is no such run.
        """

    async def edit(self, run_id: str, values: dict[str, Any]) -> None:
        """Set the name, notes, tags, group, job_type or project of a run.

        Raises:
            UnknownRun: there is no such run.
            ValueError: a value that cannot be stored.
        """

    async def rename_project(self, name: str, new_name: str) -> None:
        """Rename a project.

        Raises:
            UnknownProject: no run was ever in it.
            ValueError: there is a project of the new name.
        """

    async def delete_project(self, name: str) -> int:
        """Move all runs of a project to the trash, and return their number.

        Raises:
            UnknownProject: no run was ever in it.
        """
