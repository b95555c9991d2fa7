"""Adds logged rows to the summaries of their runs: the first ones at once, further ones once a second.

Writing the summary of a run with 1,000 metrics takes as long as storing 20 requests with its rows. So while a
run logs, its rows are gathered in memory, and written every second, and before a reader looks. The table
`pending_summary` has the runs of which this may be true, for each server; after a crash their summaries are
computed from their samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any, Literal, Protocol

from sqlalchemy import Connection, delete, select

from runvitals.model.errors import UnknownRun
from runvitals.server.database.database import Database, StoredTable, add_rows, among, in_transaction
from runvitals.server.database.server_link import ended_servers
from runvitals.server.database.tables.runs import pending_summary
from runvitals.server.runs.storage.log_summaries import LoggedRows, add_logged_rows
from runvitals.server.runs.storage.metrics import MetricTable
from runvitals.server.runs.storage.run_locks import lock_runs
from runvitals.store.errors import MetadataStoreUnavailable

IDLE_S = 30.0
_MAX_KNOWN = 50_000
_RUNS_PER_WRITE = 100
_Key = tuple[int, str, int]


class GatheredRows(Protocol):
    """Rows of `log()` that a writer has sent."""

    @property
    def run_id(self) -> int:
        """The number of the run."""

    @property
    def writer(self) -> str:
        """The name of the writer."""

    @property
    def names(self) -> int:
        """Identifies the list of their names."""

    @property
    def metric_ids(self) -> tuple[int, ...]:
        """The metric of each column."""

    def add(self, other: Any, /) -> None:
        """Add other rows of the same names."""

    def rows(self, keys: Mapping[int, str], what: Literal["sent", "new"] = "sent") -> LoggedRows:
        """Their statistics. `keys`: the names of the metrics."""


class PendingSummaries(StoredTable):
    """Rows that are stored, but not yet in the summaries of their runs. All methods are thread-safe.

    Args:
        clock: seconds that only grow.

    Attributes:
        server: the number of this server (see `server_link`); 0 with SQLite.

    Example:
        >>> summaries.add([columns])  # durable
        >>> summaries.gathers(columns.run_id, columns.writer, columns.names)
        True
        >>> summaries.gather(later)  # whose samples are durable; the summary has them within a second
    """

    def __init__(
        self, database: Database, metrics: MetricTable, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(database)
        self._metrics = metrics
        self._clock = clock
        self.server = 0
        self._included: set[_Key] = set()
        self._restored: set[int] = set()
        self._active_s: dict[int, float] = {}
        self._gathered: dict[_Key, GatheredRows] = {}
        self._changing = Lock()
        self._writing = Lock()

    def gathers(self, run_id: int, writer: str, names: int) -> bool:
        """Return whether further rows may be gathered: after a crash the summary would be computed again."""
        return (run_id, writer, names) in self._included or run_id in self._restored

    def gather(self, columns: GatheredRows) -> None:
        """Add rows within a second. Their samples are durable and were not stored before."""
        key = (columns.run_id, columns.writer, columns.names)
        with self._changing:
            self._active_s[columns.run_id] = self._clock()
            rows = self._gathered.get(key)
            if rows is None:
                self._gathered[key] = columns
            else:
                rows.add(columns)

    def add(self, batches: Sequence[GatheredRows]) -> None:
        """Add rows now, unless they are included already. Durable.

        Raises:
            UnknownRun: one of the runs does not exist.
        """
        with self._writing:
            named_rows = self._with_names(batches)
            run_ids = {columns.run_id for columns in batches}

            def write(connection: Connection) -> None:
                add_logged_rows(connection, named_rows)
                self._note(connection, run_ids)

            self._database.write(write)
            with self._changing:
                if len(self._included) >= _MAX_KNOWN:
                    self._included.clear()
                self._included.update((batch.run_id, batch.writer, batch.names) for batch in batches)
                self._active_s.update(dict.fromkeys(run_ids, self._clock()))

    def flush(self, run_ids: Iterable[int] | None = None) -> None:
        """Add the rows that were gathered of some runs, or of all. Durable."""
        if self._database.in_joint_transaction or not (self._gathered or self._writing.locked()):
            return
        ids = None if run_ids is None else set(run_ids)
        with self._writing:
            summaries = self._take(ids)
            runs = sorted({run_id for run_id, _, _ in summaries})
            for first in range(0, len(runs), _RUNS_PER_WRITE):
                part = set(runs[first : first + _RUNS_PER_WRITE])
                try:
                    self._write({key: summaries[key] for key in summaries if key[0] in part})
                except BaseException:
                    self._put_back({key: summaries[key] for key in summaries if key[0] >= min(part)})
                    raise

    def flush_for_readers(self, run_ids: Iterable[int] | None = None) -> None:
        """Add the rows that were gathered, if they can be written: on a full disk one may still read.

        They follow when there is room; the thread that writes them every second reports why they do not.
        """
        with suppress(MetadataStoreUnavailable):
            self.flush(run_ids)

    def close_idle(self, after_s: float = IDLE_S) -> None:
        """Note that the summaries of runs that have logged nothing for a time are complete.

        Args:
            after_s: 0: of all runs, when the server ends.
        """
        with self._writing:
            now_s = self._clock()
            with self._changing:
                busy = {run_id for run_id, _, _ in self._gathered}
                idle = {
                    run_id
                    for run_id, active_s in self._active_s.items()
                    if now_s - active_s >= after_s
                    and run_id not in busy
                    and (after_s <= 0 or run_id not in self._restored)
                }
                if not idle:
                    return
                self._included = {key for key in self._included if key[0] not in idle}
                self._restored -= idle
                for run_id in idle:
                    del self._active_s[run_id]
            self.complete(idle)

    def complete(self, run_ids: Collection[int]) -> None:
        """Note that the summaries of runs are complete."""
        self._database.write(
            lambda connection: connection.execute(
                delete(pending_summary).where(
                    among(connection, pending_summary.c.run_id, run_ids),
                    pending_summary.c.server == self.server,
                )
            ),
            durable=False,
        )

    def incomplete(self) -> list[int]:
        """Return the runs whose summaries are not complete because a server has crashed.

        With SQLite this server counts as one, so that it must not have begun. With several servers, runs of
        which one gathers rows are left out: they are complete when it has written these and no more come.
        """
        with self._database.read() as connection:
            ended = self._find_ended_servers(connection)
            gathering = select(pending_summary.c.run_id).where(pending_summary.c.server.not_in(ended))
            rows = (
                select(pending_summary.c.run_id)
                .where(pending_summary.c.server.in_(ended), pending_summary.c.run_id.not_in(gathering))
                .distinct()
            )
            return list(connection.execute(rows).scalars())

    def _find_ended_servers(self, connection: Connection) -> list[int]:
        """Servers that have ended and left rows."""
        servers = connection.execute(select(pending_summary.c.server).distinct()).scalars().all()
        if self._database.is_sqlite:
            return list(servers)
        # Without a link to others, this server's number is 0, which nobody has locked.
        return ended_servers(
            connection, [server for server in servers if server != self.server or not server]
        )

    def _note(self, connection: Connection, run_ids: Iterable[int]) -> None:
        """Note that this server gathers rows of runs."""
        rows = [{"run_id": run_id, "server": self.server} for run_id in sorted(run_ids)]
        add_rows(connection, pending_summary, rows)

    @in_transaction
    def restore_shared(self, connection: Connection, run_id: int, all_rows: Callable[[], LoggedRows]) -> None:
        """Complete the summary of a run by all its rows, while other servers may receive more of it.

        Nothing is done if one of them has begun to gather rows of it: `incomplete` returns it again later.

        Args:
            all_rows: reads them, with the requests that they came with. No server can add rows meanwhile.
        """
        if not lock_runs(connection, [run_id]):
            return  # deleted for good a moment ago
        ended = self._find_ended_servers(connection)
        of_run = pending_summary.c.run_id == run_id
        gathering = select(pending_summary.c.run_id).where(of_run, pending_summary.c.server.not_in(ended))
        if connection.execute(gathering).first() is not None:
            return
        add_logged_rows(connection, [all_rows()])
        connection.execute(delete(pending_summary).where(of_run, pending_summary.c.server.in_(ended)))

    def restore(self, rows: LoggedRows) -> None:
        """Complete the summary of a run by all its rows, before the only server has begun.

        From now on its rows are gathered, so that those of a request which the crashed server has stored, and
        which is sent again, are not added again. How late that may be is not known: until this server ends.
        """

        def work(connection: Connection) -> None:
            add_logged_rows(connection, [rows])
            conditions = (
                pending_summary.c.run_id == rows.run_id,
                pending_summary.c.server.in_(self._find_ended_servers(connection)),
            )
            connection.execute(delete(pending_summary).where(*conditions))
            self._note(connection, [rows.run_id])

        self._database.write(work)
        with self._changing:
            self._restored.add(rows.run_id)
            self._active_s[rows.run_id] = self._clock()

    def _take(self, run_ids: set[int] | None) -> dict[_Key, GatheredRows]:
        with self._changing:
            summaries = {
                key: columns
                for key, columns in self._gathered.items()
                if run_ids is None or key[0] in run_ids
            }
            for key in summaries:
                del self._gathered[key]
        return summaries

    def _put_back(self, summaries: dict[_Key, GatheredRows]) -> None:
        with self._changing:
            for key, columns in summaries.items():
                later = self._gathered.get(key)
                if later is not None:
                    columns.add(later)
                self._gathered[key] = columns

    def _write(self, summaries: dict[_Key, GatheredRows]) -> None:
        named_rows = [
            columns.rows(self._metrics.keys(columns.metric_ids), "new") for columns in summaries.values()
        ]
        try:
            self._database.write(lambda connection: add_logged_rows(connection, named_rows))
        except UnknownRun:  # deleted for good a moment ago
            runs = {rows.run_id for rows in named_rows}
            if len(runs) == 1:
                return
            for run_id in sorted(runs):
                self._write({key: summaries[key] for key in summaries if key[0] == run_id})

    def _with_names(self, batches: Sequence[GatheredRows]) -> list[LoggedRows]:
        return [columns.rows(self._metrics.keys(columns.metric_ids)) for columns in batches]
