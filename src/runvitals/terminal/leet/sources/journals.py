"""A run in the journals of a data folder."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from runvitals.journal import paths
from runvitals.model.logged_media import LoggedMedia, MediaKey
from runvitals.model.run import Run
from runvitals.readers.journals.console import ConsoleText
from runvitals.readers.journals.reader import RunReader
from runvitals.terminal.leet.charts import SeriesName
from runvitals.terminal.leet.series_column import SeriesColumn
from runvitals.terminal.leet.sources.journal_series import ProcessHistory, SampledSeries
from runvitals.terminal.leet.sources.run_source import LoggedLine, SystemKeys, now_ms

if TYPE_CHECKING:
    from runvitals.findings.finding import Findings
    from runvitals.readers.journals.live_findings import LiveFindings
    from runvitals.terminal.leet.record_log import RecordReader

MAX_CONTENT_BYTES = 64 * 1024 * 1024


class JournalSource:
    """A run of this machine.

    Args:
        run_id: the run.
        directory: the data folder.
        clock: ms UTC.
    """

    def __init__(self, run_id: str, directory: str, clock: Callable[[], int] = now_ms) -> None:
        self.reader = RunReader(run_id, directory)
        self.run: Run | None = None
        self._clock = clock
        self._series: dict[SeriesName, SampledSeries] = {}
        self._logged: dict[str, ProcessHistory] = {}
        self._findings: LiveFindings | None = None
        self._lock = threading.Lock()

    def poll(self) -> bool:
        """Read what was appended."""
        with self._lock:
            count = self.reader.poll()
            for writer, history in self.reader.histories.items():
                self._logged.setdefault(writer, ProcessHistory()).update(history)
            groups = self.reader.groups() if count else {}
            for series in self._series.values() if count else ():
                series.update(self.reader.samples, groups)
            before, self.run = self.run, self.reader.run(self._clock())
        return bool(count) or before is None or before.state != self.run.state

    def end_ms(self) -> float:
        """Return the time of the newest record in ms UTC; 0 without records."""
        writers = self.reader.facts.writers.values()
        return float(max((writer.last_ms for writer in writers), default=0))

    def system_keys(self) -> SystemKeys:
        """Return the keys of system metrics of each (host, role)."""
        writers = self.reader.samples.writers
        with self._lock:
            return {
                group: {key for name in names if name in writers for key in writers[name].keys}
                for group, names in self.reader.groups().items()
            }

    def system(
        self, names: Iterable[SeriesName], x_range: tuple[float, float]
    ) -> dict[SeriesName, SeriesColumn]:
        """Return the whole series of these names that have values."""
        columns = {}
        with self._lock:
            groups = None
            for name in names:
                series = self._series.get(name)
                if series is None:
                    groups = groups or self.reader.groups()
                    series = self._series[name] = SampledSeries(name)
                    series.update(self.reader.samples, groups)
                if series.column.count:
                    columns[name] = series.column.snapshot()
        return columns

    def progress(self) -> float:
        """Return 1.0: each poll reads everything."""
        return 1.0

    def wants_more(self) -> bool:
        """Return False: each poll reads everything."""
        return False

    def logged_names(self) -> list[str]:
        """Return the names of logged numbers."""
        with self._lock:
            return list({name: None for rows in self._logged.values() for name in rows.columns})

    def logged_lines(self, name: str) -> list[LoggedLine]:
        """Return the numbers logged under a name, by process."""
        lines = []
        with self._lock:
            for writer, rows in sorted(self._logged.items()):
                if name in rows.columns:
                    facts = self.reader.facts.writer(writer)
                    steps, times = (column.snapshot() for column in rows.columns[name])
                    lines.append(LoggedLine(facts.host, facts.rank, writer, steps, times))
        return lines

    def console(self) -> list[ConsoleText]:
        """Return the end of the output."""
        with self._lock:
            return self.reader.console.pieces()

    def media_keys(self) -> list[MediaKey]:
        """Return the names of logged media."""
        with self._lock:
            return self.reader.media.keys()

    def media(self, key: str) -> list[LoggedMedia]:
        """Return the media logged under a name, by step."""
        with self._lock:
            return self.reader.logged_media(key)

    def content(self, item: Mapping[str, Any]) -> bytes:
        """Return the first 64 MiB of an item's file."""
        with open(paths.content_path(self.reader.folder, str(item["sha256"])), "rb") as file:
            return file.read(MAX_CONTENT_BYTES)

    def records(self) -> RecordReader:
        """Return a reader of the run's folder."""
        from runvitals.terminal.leet.record_log import JournalRecords

        return JournalRecords(self.reader.folder)

    def findings(self) -> Findings:
        """Judge the run if something changed in it, or for long nothing did; else as before."""
        from runvitals.readers.journals.live_findings import LiveFindings

        now_ms = self._clock()
        with self._lock:
            live = self._findings = self._findings or LiveFindings(self.reader)
            observed = live.observe(self.reader.run(now_ms), now_ms)
        if observed is not None:
            live.judge(observed, now_ms)
        assert live.findings is not None
        return live.findings

    def close(self) -> None:
        """Do nothing: no file is kept open."""
