"""A shared store for tests, and how the records of a journal come into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from runvitals.journal import frames
from runvitals.journal.paths import run_dir
from runvitals.journal.reader import read_run
from runvitals.journal.records import CONSOLE_HEAD, Record
from runvitals.model.ending import Ending
from runvitals.readers.journals.history import numbers
from runvitals.readers.journals.series import WriterSamples
from runvitals.server.library.stored.run_library import StoredLibrary
from runvitals.server.local_app import create_app
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.console import ConsoleLine
from runvitals.server.runs.storage.events import StoredEvent
from runvitals.server.runs.storage.log_summaries import LoggedRows, LoggedValues, add_logged_rows
from runvitals.server.runs.storage.sections import SectionUpdate
from runvitals.server.runs.storage.writer_registration import RegisteredWriter, WriterRegistration
from runvitals.server.runs.storage.writers import StoredProcess, WriterEnd, WriterHeartbeat
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.empty_metadata import new_metadata_store
from tests.readers.journals.journals import T0
from tests.server.client import Client


class StoredServer(Client):
    """A client of an application over a store; it gives journals to it as a relay and a server would.

    Attributes:
        now_ms: what the application takes the time to be.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.now_ms = T0 + 3_600_000
        self.store = SqliteChunks(str(folder / "store"))
        self.metadata_store: MetadataStore = new_metadata_store(folder / "catalogue.db")
        self.app = create_app(str(folder / "none"), lambda: self.now_ms)
        self.app.state.services.library = StoredLibrary(self.store, self.metadata_store, lambda: self.now_ms)
        self._seq = 0

    def close(self) -> None:
        self.store.close()
        self.metadata_store.close()

    def take(
        self, directory: Path, run_id: str = "abc", after: dict[str, int] | None = None
    ) -> dict[str, int]:
        """Store what a run's journal has after some records of each writer; the last record of each."""
        seen = dict(after or {})
        by_writer: dict[str, list[Record]] = {}
        for record in read_run(run_dir(run_id, str(directory))):
            if record.seq > seen.get(record.writer, -1) or record.type == frames.START:
                by_writer.setdefault(record.writer, []).append(record)
        for writer, records in by_writer.items():
            self._writer(run_id, writer, records, after is None)
            seen[writer] = records[-1].seq
        return seen

    def _writer(self, run_id: str, writer: str, records: list[Record], first: bool) -> None:
        about = next((record.value for record in records if record.type == frames.START), {})
        names = ("project", "role", "host", "pid", "rank", "interval_s")
        joining = WriterRegistration(
            run_id, writer, started_ms=about.get("t"), **{name: about.get(name) for name in names}
        )
        (who,) = self.metadata_store.writers.join([joining], self.now_ms)
        samples = WriterSamples(writer)
        calls: dict[tuple[str, ...], list[tuple[int, list[float]]]] = {}
        for record in records:
            if record.type == frames.START and not first:
                continue
            if record.type == frames.SAMPLE:
                samples.add(record)
            elif record.type == frames.HISTORY:
                values = {**dict(numbers(record.value["data"])), "_step": float(record.value["step"])}
                calls.setdefault(tuple(values), []).append((record.time_ms, list(values.values())))
                self._fold(who, writer, record)
            elif record.type == frames.CONSOLE:
                self._printed(who, record)
            else:
                self._record(who, str(about.get("host", "")), record)
        for keys, table in samples.tables.items():
            rows = np.frombuffer(table.rows, np.float64).reshape(-1, len(keys))
            self.append(who, keys, np.array(table.times, np.int64), rows)
        for names_of_call, of_names in calls.items():
            t = np.array([time_ms for time_ms, _ in of_names], np.int64)
            self.append(who, names_of_call, t, np.array([row for _, row in of_names], np.float64))
        self.metadata_store.writers.record_heartbeats(
            [WriterHeartbeat(who.writer_id, self.now_ms, max(record.time_ms for record in records))]
        )

    def _fold(self, who: RegisteredWriter, writer: str, record: Record) -> None:
        row = dict(numbers(record.value["data"]))
        metrics = {
            name: LoggedValues(1, value, value, value, value, record.time_ms)
            for name, value in row.items()
            if value == value
        }
        rows = LoggedRows(who.run_id, writer, 0, record.seq, metrics)
        self.metadata_store.write(lambda connection: add_logged_rows(connection, [rows]))

    def append(self, who: RegisteredWriter, keys: tuple[str, ...], t: Any, values: Any) -> None:
        """Samples of a writer: rows × keys."""
        schema = self.metadata_store.metrics.schema(keys)
        self.metadata_store.metrics.record_schemas([(who.writer_id, schema.id)])
        self._seq += 1
        batch = SampleBatch(
            who.lane_id, who.writer_id, self._seq, schema.metric_ids, t, np.ascontiguousarray(values)
        )
        self.store.append([batch])

    def _printed(self, who: RegisteredWriter, record: Record) -> None:
        stream, time_ms = CONSOLE_HEAD.unpack_from(record.value)
        text = record.value[CONSOLE_HEAD.size :].decode("utf-8", "replace")
        self.metadata_store.console.add(
            [ConsoleLine(who.run_id, who.writer_id, record.seq, time_ms, stream, text)]
        )

    def _record(self, who: RegisteredWriter, host: str, record: Record) -> None:
        value = {key: entry for key, entry in record.value.items() if key != "t"}
        if record.type == frames.INFO:
            updates = [
                SectionUpdate(who.run_id, name, entry, record.time_ms, host) for name, entry in value.items()
            ]
            self.metadata_store.sections.merge(updates)
        elif record.type == frames.EVENT:
            reported = {name: value.pop(name) for name in ("name", "level", "text") if name in value}
            event = StoredEvent(
                who.run_id, record.time_ms, **reported, data=value, writer_id=who.writer_id, seq=record.seq
            )
            self.metadata_store.events.add([event])
        elif record.type == frames.LIFECYCLE:
            self._lifecycle(who, host, record.time_ms, value)

    def _lifecycle(self, who: RegisteredWriter, host: str, time_ms: int, value: dict[str, Any]) -> None:
        what = value["what"]
        names = {
            "attach": ("rank", "local_rank", "world_size"),
            "exit": ("exit_code", "signal", "out_of_memory"),
        }
        if what in names:
            fields = {name: value.get(name) for name in names[what]}
            ended_ms = time_ms if what == "exit" else None
            process = StoredProcess(who.run_id, host, value["pid"], ended_ms=ended_ms, **fields)
            self.metadata_store.writers.record_processes([process])
        elif what == "end":
            how = Ending(
                value["state"], value.get("exit_code"), value.get("signal"), value.get("out_of_memory")
            )
            self.metadata_store.writers.record_ends([WriterEnd(who.writer_id, how, time_ms)])
