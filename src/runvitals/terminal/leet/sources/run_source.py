"""The interface of a run, and of a catalogue of runs, wherever they are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from runvitals.findings.finding import Findings
    from runvitals.model.logged_media import LoggedMedia, MediaKey
    from runvitals.model.run import Run
    from runvitals.readers.journals.console import ConsoleText
    from runvitals.terminal.leet.charts import SeriesName
    from runvitals.terminal.leet.record_log import RecordReader
    from runvitals.terminal.leet.series_column import SeriesColumn

SystemKeys = Mapping[tuple[str, str], Iterable[str]]


def now_ms() -> int:
    """Return the current time in ms UTC."""
    return time.time_ns() // 1_000_000


class LoggedLine(NamedTuple):
    """The values that one process logged under a name, over steps and over time.

    `rank` is None without ranks.
    """

    host: str
    rank: int | None
    process: str
    steps: SeriesColumn
    times: SeriesColumn


class RunSource(Protocol):
    """A run. `poll` reads what is new and may run in a thread; everything else reads memory.

    Attributes:
        run: facts, as of the last poll; None before.
    """

    run: Run | None

    def poll(self) -> bool:
        """Read what is new; return whether there is anything to show.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def end_ms(self) -> float:
        """Return the time of the newest record."""
        ...

    def system_keys(self) -> SystemKeys:
        """Return the keys of system metrics of each (host, role)."""
        ...

    def system(
        self, names: Iterable[SeriesName], x_range: tuple[float, float]
    ) -> dict[SeriesName, SeriesColumn]:
        """Return those series of system metrics that are in memory.

        A remote source reads the others, and more detail for this range of times, with the next poll.
        """
        ...

    def progress(self) -> float:
        """Return the share that was read of what there was, up to 1.0."""
        ...

    def wants_more(self) -> bool:
        """Return whether the next poll has something to read that was asked for."""
        ...

    def logged_names(self) -> list[str]:
        """Return the names of logged numbers."""
        ...

    def logged_lines(self, name: str) -> list[LoggedLine]:
        """Return the numbers logged under a name, by process."""
        ...

    def console(self) -> list[ConsoleText]:
        """Return the end of the output."""
        ...

    def media_keys(self) -> list[MediaKey]:
        """Return the names of logged images and other media."""
        ...

    def media(self, key: str) -> list[LoggedMedia]:
        """Return the media logged under a name, by step. May read, and raise OSError."""
        ...

    def content(self, item: Mapping[str, Any]) -> bytes:
        """Return the content of an item's file. May read, and raise OSError."""
        ...

    def records(self) -> RecordReader | None:
        """Return a reader of the records; None if the source has none."""
        ...

    def findings(self) -> Findings:
        """Judge the run. Reads, and may take seconds: call it in a thread.

        Raises:
            OSError: it cannot be read.
        """
        ...

    def close(self) -> None:
        """Close files and connections as soon as no thread uses them any more."""
        ...


class RunCatalogue(Protocol):
    """A collection of runs: a data folder, a server, a folder of W&B's files.

    Attributes:
        title: its name, such as the folder.
        filters_itself: whether `runs` applies the filter; otherwise its runs have everything to filter by.
    """

    title: str
    filters_itself: bool

    def runs(self, now_ms: int, filter_text: str) -> tuple[list[Run], int]:
        """Return the runs, newest first, and how many there are. It may run in a thread.

        Raises:
            OSError: they cannot be read.
        """
        ...

    def open(self, run_id: str) -> RunSource:
        """Return one of its runs."""
        ...

    def close(self) -> None:
        """Close connections as soon as no thread uses them any more."""
        ...
