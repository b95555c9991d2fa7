"""A run that a server has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from runvitals.client import responses
from runvitals.client.connection import Connection
from runvitals.model.run import Event, Run, State
from runvitals.query.run_handle import LoggedRow, Names, checked_names
from runvitals.query.series import Columns
from runvitals.query.statistics import Statistics

if TYPE_CHECKING:
    import pyarrow


class RemoteRun:
    """A run, as it stood when the server was asked; series, history and events are asked for at each call.

    Attributes:
        id: the run's.

    Raises:
        UnknownRun: by all calls, when the server has the run no more.
        ServerError: by all calls that ask the server.

    Example:
        >>> run = runvitals.Client("https://runs.example.org").run("brave-otter-1")
        >>> run.state, run.config["lr"]
        ('finished', 0.001)
        >>> t, watts = run.metrics("gpu.*", max_points=500)["gpu.0.powerWatts"]
    """

    def __init__(self, connection: Connection, row: Mapping[str, Any], facts: Run | None = None) -> None:
        self.id: str = row["id"]
        self._connection = connection
        self._row = row
        self._facts = facts

    def refresh(self) -> RemoteRun:
        """Ask how the run stands now; returns the run itself."""
        self._row = self._connection.get_of_run(self.id)
        self._facts = responses.run(self._row)
        return self

    @property
    def facts(self) -> Run:
        """Everything known of the run but its series; of a run of a list, asked for at first use."""
        if self._facts is None:
            self.refresh()
            assert self._facts is not None
        return self._facts

    @property
    def project(self) -> str:
        return str(self._row["project"])

    @property
    def name(self) -> str:
        return str(self._row["name"])

    @property
    def tags(self) -> list[str]:
        return list(self._row["tags"])

    @property
    def state(self) -> State:
        state: State = self._row["state"]
        return state

    @property
    def summary(self) -> dict[str, Any]:
        return dict(self._row["summary"])

    @property
    def config(self) -> dict[str, Any]:
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
        """The series whose keys match any of the patterns, all without one; rates of counters too.

        Args:
            patterns: keys or globs: `"cpu"`, `"gpu.*"`. Other spellings the catalogue knows work too.
            max_points: where a series has more samples, all are put into buckets: `t` is where they begin,
                `values` what the catalogue's `merge` makes of them, mostly means. 2 to 10,000.
            resolution: `raw`, every sample, is what is meant without `max_points`; a server has a limit for
                one answer, and says so.
            host, rank, device: only this host's, rank's (with the monitor of its host), device's.
            t0, t1: ms UTC, both included.
            names: `"mlflow"`: under MLflow's names and in its units, where MLflow has a name.

        Returns:
            Series by key: times in ms UTC (int64) and values (float64, NaN is a gap); numpy arrays, or lists
            without numpy.
        """
        parameters = _wanted(patterns, max_points, resolution, host, rank, device, t0, t1)
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
        """The series of `metrics` as one table: `t`, `host`, `role`, and a column for each key.

        Needs pyarrow, here and on the server; there `runvitals[parquet]` has it.

        Returns:
            rows in order of time; NaN is a gap, null is what was not read at that time.

        Raises:
            ModuleNotFoundError: there is no pyarrow here.
            ServerError: 501, there is none on the server.

        Example:
            >>> run.table("gpu.*").to_pandas().set_index("t")["gpu.0.powerWatts"].plot()
        """
        parameters = _wanted(patterns, max_points, None, host, rank, device, t0, t1)
        parameters += _names(names)
        return self._table("/metrics", parameters)

    def history_table(self, *names: str, rank: int | None = None) -> pyarrow.Table:
        """The calls of `history` as one table: `step`, `t`, `host`, `rank`, and a column for each name."""
        return self._table("/history", [("keys", names), ("rank", rank), ("resolution", "raw")])

    def _table(self, path: str, parameters: list[tuple[str, Any]]) -> pyarrow.Table:
        try:
            from pyarrow import ipc
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError("tables need pyarrow: pip install pyarrow", name=error.name) from error
        content = self._connection.get_bytes_of_run(self.id, path, [*parameters, ("format", "arrow")])
        return ipc.open_stream(content).read_all()

    def statistics(
        self, *patterns: str, t0: int | None = None, t1: int | None = None, names: Names = "runvitals"
    ) -> list[Statistics]:
        """Count, extremes, mean, percentiles and last value of each series that matches; `names` as in
        `metrics`.
        """
        parameters = [("keys", patterns), ("t0", t0), ("t1", t1), *_names(names)]
        return responses.statistics(self._connection.get_of_run(self.id, "/statistics", parameters))

    def history(self, *names: str, rank: int | None = None) -> list[LoggedRow]:
        """The numbers of every `log()` call, in order of time, from all ranks.

        Args:
            names: as logged, those of nested dictionaries joined with dots; all without one.
            rank: only this rank's.
        """
        parameters = [("keys", names), ("rank", rank), ("resolution", "raw")]
        return responses.calls(self._connection.get_of_run(self.id, "/history", parameters))

    def events(self) -> list[Event]:
        """What happened: alerts, failures, gaps, lost records, in order of time."""
        return responses.events(self._connection.get_of_run(self.id, "/events"))

    def stop(self) -> None:
        """Ask the run to end: its training gets a KeyboardInterrupt, as if a person had pressed Ctrl-C.

        Raises:
            ServerError: it has ended (409); the server shows a machine's own journals (405).
        """
        self._connection.post_to_run(self.id, "/stop")

    def __repr__(self) -> str:
        return f"<run {self.id} of project {self.project!r} on {self._connection.url}: {self.state}>"


def _names(names: str) -> list[tuple[str, Any]]:
    """Nothing for our own: a server that knows no other names need not be asked."""
    return [] if checked_names(names) == "runvitals" else [("names", names)]


def _wanted(
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
