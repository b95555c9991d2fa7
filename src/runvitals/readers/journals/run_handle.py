"""`open_run`: read a run in a notebook or script."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, get_args

from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.model.errors import UnknownRun
from runvitals.model.failure import Failure
from runvitals.model.logged_media import LoggedMedia, MediaKey, SavedFile
from runvitals.model.run import Event, Run
from runvitals.model.run_json import run_as_dict
from runvitals.model.run_state import State
from runvitals.readers.journals import console, run_view
from runvitals.readers.journals.console import ConsoleText
from runvitals.readers.journals.history import History
from runvitals.readers.journals.logged_rows import LoggedCalls, LoggedRow
from runvitals.readers.journals.reader import RunReader
from runvitals.readers.journals.runs import RunList
from runvitals.readers.journals.series import Columns
from runvitals.readers.journals.statistics import Statistics, of_columns

if TYPE_CHECKING:
    from runvitals.findings.finding import Findings
    from runvitals.findings.observed_run import ObservedRun

Names = Literal["runvitals", "mlflow"]


def checked_names(names: str) -> str:
    """Validate the `names` argument.

    Raises:
        ValueError: unknown value.
    """
    if names not in get_args(Names):
        raise ValueError(f"invalid names={names!r}: expected {' or '.join(get_args(Names))}")
    return names


def now_ms() -> int:
    """Return the time, ms UTC."""
    return time.time_ns() // 1_000_000


class OpenRun:
    """A run of this machine, as of when it was opened or last refreshed.

    `history` and `console` read the journal anew.

    Attributes:
        id: run id.
        facts: everything known about the run, except its series.

    Example:
        >>> run = runvitals.open_run("brave-otter-1")
        >>> run.state, run.config["lr"]
        ('finished', 0.001)
        >>> t, watts = run.metrics("gpu.*")["gpu.0.powerWatts"]
    """

    def __init__(self, reader: RunReader, clock: Callable[[], int] = now_ms) -> None:
        self._reader = reader
        self._clock = clock
        self.id = reader.run_id
        self.refresh()

    def refresh(self) -> OpenRun:
        """Read what was written since. Returns self."""
        self._reader.poll()
        self.facts = self._reader.run(self._clock())
        return self

    facts: Run

    @property
    def state(self) -> State:
        """`running`, `finished`, `failed`, `crashed`, `stopped` or `lost`."""
        return self.facts.state

    @property
    def config(self) -> dict[str, Any]:
        """The hyper-parameters."""
        return self.facts.config

    @property
    def summary(self) -> dict[str, Any]:
        """One value per logged metric; see `Run.summary`."""
        return self.facts.summary

    @property
    def events(self) -> list[Event]:
        """Alerts, markers, failures, gaps and lost records, ordered by time."""
        return self.facts.events

    @property
    def problems(self) -> list[str]:
        """Damage that was found while reading the journal; empty for an intact one."""
        return self.facts.problems

    def metrics(self, *patterns: str, host: str | None = None, names: Names = "runvitals") -> Columns:
        """Return the system metrics whose keys match a pattern, including rates derived from counters.

        Args:
            patterns: keys or globs: `"cpu"`, `"gpu.*"`, `"disk.*.usagePercent"`; without any, all keys. W&B's
                and MLflow's names (`"system/gpu_0_utilization_percentage"`) work too.
            host: only this host.
            names: `"mlflow"` returns MLflow's names and units where MLflow has one.

        Returns:
            Series by key: times in ms UTC (int64) and values (float64, NaN is a gap), as numpy arrays, or as
            lists without numpy.

        Raises:
            ValueError: invalid `names`.

        Example:
            >>> t, watts = run.metrics("gpu.*")["gpu.0.powerWatts"]
        """
        columns = self._reader.columns(patterns, host)
        return columns.in_mlflow() if checked_names(names) == "mlflow" else columns

    def statistics(self, *patterns: str, names: Names = "runvitals") -> list[Statistics]:
        """Return statistics of each matching series: count, min, max, mean, percentiles, last value.

        Arguments as in `metrics`.

        Example:
            >>> [(each.key, each.mean, each.unit) for each in run.statistics("cpu")]
            [('cpu', 41.5, '%')]
        """
        return of_columns(self.metrics(*patterns, names=names).series)

    def findings(self, price_per_device_hour: float | None = None) -> Findings:
        """Say what is wrong with the run, why, what it costs, and what to do. Needs numpy.

        Args:
            price_per_device_hour: to tell costs in money too.

        Example:
            >>> run.findings().verdict
            'input_bound_cpu'
        """
        from runvitals.findings.judge import judge

        return judge(self.observe(price_per_device_hour))

    def observe(self, price_per_device_hour: float | None = None) -> ObservedRun:
        """Return what the rules of `findings` see of the run. Needs numpy."""
        from runvitals.readers.journals.findings import observe_reader

        return observe_reader(self._reader, self.facts, self._clock(), price_per_device_hour)

    def history(self) -> LoggedCalls:
        """Return all rows of `log()`, from all ranks, ordered by time: a list, also as data frame or plot.

        Example:
            >>> [(row.step, row.data["loss"]) for row in run.history()]
            [(0, 0.5), (1, 0.25)]
        """
        writers = self._reader.facts.writers
        rows = [
            LoggedRow(
                record.value.get("step"),
                record.time_ms,
                writers[record.writer].rank,
                writers[record.writer].host,
                record.value.get("data") or {},
            )
            for record in read_run(self._reader.folder)
            if record.type == frames.HISTORY and record.writer in writers
        ]
        return LoggedCalls(sorted(rows, key=lambda row: row.time_ms))

    def media_keys(self) -> list[MediaKey]:
        """Return the names under which images, tables, histograms and so on were logged.

        Example:
            >>> [(each.key, each.kind, each.count) for each in run.media_keys()]
            [('samples', 'image', 10)]
        """
        return self._reader.media.keys()

    def media(self, key: str) -> list[LoggedMedia]:
        """Return what was logged under a name, by step, from all processes.

        Example:
            >>> [(each.step, run.path_of(each.items[0])) for each in run.media("samples")]
            [(0, '/data/runs/brave-otter-1/files/4e5f…')]
        """
        return self._reader.logged_media(key)

    def files(self) -> list[SavedFile]:
        """Return the files that were saved with `save`, by name, each as it was last saved."""
        return self._reader.media.files(self._reader.folder)

    def path_of(self, item: Mapping[str, Any]) -> str | None:
        """Return the path of the file of an item of `media`; None if it has none, or if the file is gone."""
        if not item.get("sha256"):
            return None
        path = paths.content_path(self._reader.folder, item["sha256"])
        return path if os.path.isfile(path) else None

    def console(self) -> Iterator[ConsoleText]:
        """The recorded output: process by process, in order within each."""
        for record in read_run(self._reader.folder):
            if record.type == frames.CONSOLE:
                yield console.parse(record.value, record.writer)

    def failure(self) -> Failure | None:
        """Return why the run failed, and what it printed last; None if it has not failed.

        Example:
            >>> run.failure().title
            'ValueError: shapes (3, 4) and (5,) do not fit'
        """
        return self._reader.failure(self._clock())

    def _repr_html_(self) -> str:
        return self.html({})

    def html(self, links: Mapping[str, str]) -> str:
        """Return how the run shows itself in a notebook: its state, small charts and links.

        Args:
            links: text → address.
        """
        writers = self._reader.facts.writers
        by_rank: dict[int | None, list[History]] = {}
        for history in sorted(self._reader.histories.values(), key=lambda each: each.times[0]):
            by_rank.setdefault(writers[history.writer].rank, []).append(history)
        charts = run_view.logged_charts(by_rank)
        sampled = run_view.small_charts(self.metrics(*run_view.KEYS))
        return run_view.html(run_as_dict(self.facts), links, [*charts, *sampled])

    def __repr__(self) -> str:
        return f"<run {self.id} of project {self.facts.project!r}: {self.state}>"


def open_run(run_id: str, directory: str | None = None) -> OpenRun:
    """Open a run in the data folder, running or ended.

    Args:
        run_id: run id, a unique prefix of one, the run's name, or `"latest"`.
        directory: the data folder; by default `$RUNVITALS_DIR` or the user's data home.

    Raises:
        UnknownRun: no run matches, or several do.

    Example:
        >>> runvitals.open_run("latest").metrics("cpu")["cpu"].values
        array([ 3.1, 97.5, 98.2])
    """
    return OpenRun(RunReader(find_run(run_id, directory), directory))


def find_run(reference: str, directory: str | None = None) -> str:
    """Return the id of the run with this id, unique id prefix or name; `latest` is the newest run.

    Raises:
        UnknownRun: no run matches, or several do.
    """
    runs = RunList(directory)
    folder = paths.runs_dir(runs.directory)
    if reference == "latest":
        newest_first = runs.runs(now_ms())
        if newest_first:
            return newest_first[0].id
    ids = sorted(runs.ids())
    by_prefix = [
        run_id
        for run_id in ids
        if reference and run_id.startswith(reference) and runs.run(run_id, 0) is not None
    ]
    if reference in by_prefix or len(by_prefix) == 1:
        return reference if reference in by_prefix else by_prefix[0]
    if by_prefix:
        raise UnknownRun(f"run id {reference!r} is ambiguous in {folder}: {_first_ids(by_prefix)}")
    if not ids:
        raise UnknownRun(f"no run {reference!r}: {folder} contains no runs")
    names = {run_id: runs.name(run_id) for run_id in ids}
    by_name = [run_id for run_id, name in names.items() if name == reference]
    if len(by_name) == 1:
        return by_name[0]
    if by_name:
        raise UnknownRun(f"run name {reference!r} is ambiguous in {folder}: {_first_ids(by_name)}")
    candidates = [*ids, *{name for name in names.values() if name is not None}.difference(ids)]
    similar = get_close_matches(reference, candidates, n=5, cutoff=0.5)
    hint = (
        f"; did you mean {_first_ids(similar)}?"
        if similar
        else f"; list its {len(ids)} runs with `runvitals runs`"
    )
    raise UnknownRun(f"no run {reference!r} in {folder}{hint}")


def _first_ids(ids: list[str]) -> str:
    text = ", ".join(ids[:5])
    return text if len(ids) <= 5 else f"{text} and {len(ids) - 5} more"
