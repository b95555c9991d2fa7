"""A run on a server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from runvitals.findings.finding import Findings, from_json
from runvitals.model.logged_media import LoggedMedia, MediaKey, SavedFile
from runvitals.model.run import Event, Run
from runvitals.model.run_state import State
from runvitals.readers.journals import run_view
from runvitals.readers.journals.logged_rows import LoggedCalls
from runvitals.readers.journals.run_handle import Names, checked_names
from runvitals.readers.journals.series import Columns
from runvitals.readers.journals.statistics import Statistics
from runvitals.readers.servers import responses
from runvitals.readers.servers.connection import ApiConnection
from runvitals.readers.servers.remote_files import NamedContent, RemoteFiles

if TYPE_CHECKING:
    import pyarrow


class RemoteRun:
    """A run as of when it was fetched. Series, history and events are fetched on each call.

    Attributes:
        id: run id.

    Raises:
        UnknownRun: from any call, if the server no longer has the run.
        ServerError: from any call that fetches something.

    Example:
        >>> run = runvitals.Client("https://runs.example.org").run("brave-otter-1")
        >>> run.state, run.config["lr"]
        ('finished', 0.001)
        >>> t, watts = run.metrics("gpu.*", max_points=500)["gpu.0.powerWatts"]
    """

    def __init__(self, connection: ApiConnection, row: Mapping[str, Any], facts: Run | None = None) -> None:
        self.id: str = row["id"]
        self._connection = connection
        self._row = row
        self._facts = facts
        self._files = RemoteFiles(connection, self.id)

    def refresh(self) -> RemoteRun:
        """Fetch the run's current facts. Returns self."""
        self._row = self._connection.get_of_run(self.id)
        self._facts = responses.run(self._row)
        return self

    @property
    def facts(self) -> Run:
        """Everything known about the run, except its series. Fetched on first use for a run from a list."""
        if self._facts is None:
            self.refresh()
            assert self._facts is not None
        return self._facts

    @property
    def project(self) -> str:
        """The project of the run."""
        return str(self._row["project"])

    @property
    def entity(self) -> str | None:
        """The team or user that has the project; None on a server without accounts."""
        return self._row.get("entity")

    @property
    def name(self) -> str:
        """The display name."""
        return str(self._row["name"])

    @property
    def tags(self) -> list[str]:
        """The tags."""
        return list(self._row["tags"])

    @property
    def state(self) -> State:
        """`running`, `finished`, `failed`, `crashed`, `stopped` or `lost`, when the run was fetched."""
        state: State = self._row["state"]
        return state

    @property
    def summary(self) -> dict[str, Any]:
        """One value per logged metric, when the run was fetched."""
        return dict(self._row["summary"])

    @property
    def config(self) -> dict[str, Any]:
        """The hyper-parameters. Fetched on first use for a run from a list."""
        return self.facts.config

    def metrics(
        self,
        *patterns: str,
        max_points: int | None = None,
        resolution: Literal["raw", "auto"] | None = None,
        host: str | None = None,
        rank: int | None = None,
        device: str | None = None,
        t0: int | None = None,
        t1: int | None = None,
        names: Names = "runvitals",
    ) -> Columns:
        """Return the series whose keys match a pattern, including rates derived from counters.

        Args:
            patterns: keys or globs: `"cpu"`, `"gpu.*"`; without any, all keys. W&B's and MLflow's names work
                too.
            max_points: downsample series with more samples to buckets: `t` is the start of a bucket, `values`
                its aggregate according to the metric's `merge`, usually the mean. 2 to 10,000.
            resolution: `raw` (every sample) is the default without `max_points`. The server limits the size
                of a response and reports an error beyond it.
            host, rank, device: only this host, rank (with its host's monitor), or device.
            t0, t1: ms UTC, inclusive.
            names: `"mlflow"` returns MLflow's names and units where MLflow has one.

        Returns:
            Series by key: times in ms UTC (int64) and values (float64, NaN is a gap), as numpy arrays, or as
            lists without numpy.
        """
        parameters = _query_parameters(patterns, max_points, resolution, host, rank, device, t0, t1)
        parameters += _names(names)
        return responses.columns(self._connection.get_of_run(self.id, "/metrics", parameters))

    def table(
        self,
        *patterns: str,
        max_points: int | None = None,
        host: str | None = None,
        rank: int | None = None,
        device: str | None = None,
        t0: int | None = None,
        t1: int | None = None,
        names: Names = "runvitals",
    ) -> pyarrow.Table:
        """Return the series of `metrics` as one table: `t`, `host`, `role`, and a column for each key.

        Requires pyarrow, here and on the server (`runvitals[parquet]`).

        Returns:
            Rows ordered by time. NaN is a gap; null means not sampled at that time.

        Raises:
            ModuleNotFoundError: pyarrow is not installed here.
            ServerError: 501 if it is not installed on the server.

        Example:
            >>> run.table("gpu.*").to_pandas().set_index("t")["gpu.0.powerWatts"].plot()
        """
        parameters = _query_parameters(patterns, max_points, None, host, rank, device, t0, t1)
        parameters += _names(names)
        return self._table("/metrics", parameters)

    def history_table(self, *names: str, rank: int | None = None) -> pyarrow.Table:
        """Return the rows of `history` as one table.

        Its columns are `step`, `t` (ms UTC), `host`, `rank`, and one per name. Requires pyarrow, like
        `table`.
        """
        return self._table("/history", [("keys", names), ("rank", rank), ("resolution", "raw")])

    def _table(self, path: str, parameters: list[tuple[str, Any]]) -> pyarrow.Table:
        try:
            from pyarrow import ipc
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "tables require pyarrow: pip install pyarrow", name=error.name
            ) from error
        content = self._connection.get_bytes_of_run(self.id, path, [*parameters, ("format", "arrow")])
        return ipc.open_stream(content).read_all()

    def statistics(
        self, *patterns: str, t0: int | None = None, t1: int | None = None, names: Names = "runvitals"
    ) -> list[Statistics]:
        """Return statistics of each matching series: count, min, max, mean, percentiles, last value.

        Arguments as in `metrics`.
        """
        parameters = [("keys", patterns), ("t0", t0), ("t1", t1), *_names(names)]
        return responses.statistics(self._connection.get_of_run(self.id, "/statistics", parameters))

    def findings(self, price_per_device_hour: float | None = None) -> Findings:
        """Return what the server says is wrong with the run, why, what it costs, and what to do.

        Args:
            price_per_device_hour: to tell costs in money too.
        """
        return from_json(
            self._connection.get_of_run(self.id, "/findings", [("price", price_per_device_hour)])
        )

    def history(self, *names: str, rank: int | None = None) -> LoggedCalls:
        """Return all `log()` rows, from all ranks, ordered by time: a list, also as data frame or plot.

        An infinity is NaN here; use `history_table` for infinities.

        Args:
            names: logged names, with dots for nested dictionaries; default: all.
            rank: only this rank.

        Example:
            >>> [(row.step, row.data["loss"]) for row in run.history("loss")]
            [(0, 0.5), (1, 0.25)]
        """
        parameters = [("keys", names), ("rank", rank), ("resolution", "raw")]
        return responses.calls(self._connection.get_of_run(self.id, "/history", parameters))

    def events(self) -> list[Event]:
        """Return the events of the run: alerts, failures, gaps, lost records, ordered by time."""
        return responses.events(self._connection.get_of_run(self.id, "/events"))

    def media_keys(self) -> list[MediaKey]:
        """The names under which images, tables, histograms and so on were logged, in order of first use."""
        return self._files.media_keys()

    def media(
        self, key: str, first_step: float | None = None, last_step: float | None = None
    ) -> Iterator[LoggedMedia]:
        """Iterate over what was logged under a name, by step, from all processes. Fetches pages as needed.

        Args:
            key: the name.
            first_step, last_step: both included; default: no limit.

        Example:
            >>> for each in run.media("samples"):
            ...     for number, item in enumerate(each.items):
            ...         run.download(item, f"{each.step}-{number}.png")
        """
        return self._files.media(key, first_step, last_step)

    def files(self) -> list[SavedFile]:
        """Return the files that were saved with `save`, by name, each as it was last saved."""
        return self._files.list_saved()

    def content(self, file: NamedContent) -> bytes:
        """Return the content of a saved file or of an item of `media`, in memory.

        Raises:
            ValueError: the item has no file.
            UnknownRun: the server does not have the run or the file, perhaps because it has not arrived.
            ServerError: it could not be fetched, or is not what the record names.

        Example:
            >>> (table,) = next(run.media("worst")).items
            >>> json.loads(run.content(table))["columns"]
            ['image', 'label', 'score']
        """
        return b"".join(self._files.parts(file))

    def download(self, file: NamedContent, path: str | os.PathLike[str]) -> None:
        """Download a saved file, or the file of an item of `media`.

        The file has its name only when it is complete.

        Args:
            path: of the file to write; one that exists is replaced.

        Raises:
            ValueError, UnknownRun, ServerError: see `content`.
            OSError: it could not be written.
        """
        self._files.download(file, os.fspath(path))

    def stop(self) -> None:
        """Ask the run to stop: its training gets a KeyboardInterrupt, as with Ctrl-C.

        Raises:
            ServerError: 409 if the run has ended, 405 if the server shows local journals (`runvitals ui`).
        """
        self._connection.post_to_run(self.id, "/stop")

    def _repr_html_(self) -> str:
        """Return the run for a notebook. What cannot be fetched is left out, with the reason."""
        links, charts = {"open": f"{self._connection.url}/runs/{quote(self.id, safe='')}"}, []
        problem = ""
        try:
            facts = self.facts
            parameters = [("max_points", run_view.POINTS), ("keys", run_view.logged_names(facts.summary))]
            logged = self._connection.get_of_run(self.id, "/history", parameters)
            sampled = self.metrics(*run_view.KEYS, max_points=run_view.POINTS)
            charts = [*responses.small_charts(logged), *run_view.small_charts(sampled)]
        except (OSError, LookupError) as error:
            problem = f"its charts cannot be fetched: {error}"
        return run_view.html(self._row, links, charts, problem)

    def __repr__(self) -> str:
        return f"<run {self.id} of project {self.project!r} on {self._connection.url}: {self.state}>"


def _names(names: str) -> list[tuple[str, Any]]:
    """Omitted for the default, which servers of any version understand."""
    return [] if checked_names(names) == "runvitals" else [("names", names)]


def _query_parameters(
    patterns: Sequence[str],
    max_points: int | None,
    resolution: str | None,
    host: str | None,
    rank: int | None,
    device: str | None,
    t0: int | None,
    t1: int | None,
) -> list[tuple[str, Any]]:
    return [
        ("keys", patterns),
        ("max_points", max_points),
        ("resolution", resolution or ("raw" if max_points is None else "auto")),
        ("host", host),
        ("rank", rank),
        ("device", device),
        ("t0", t0),
        ("t1", t1),
    ]
