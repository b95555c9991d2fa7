"""Stores of every pair of engines: samples in a folder or ClickHouse, metadata in SQLite or PostgreSQL."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from runvitals.cli.store_options import open_stores
from runvitals.model.filter import Filter
from runvitals.model.run_sort import RunSort
from runvitals.server.metadata_store import MetadataStore
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.samples.clickhouse import ClickHouseStore
from runvitals.store.samples.interface import SampleBatch
from runvitals.store.samples.sqlite import SqliteChunks
from tests.server.database.postgresql import Server

NOW = 1_790_812_800_000
Store = SqliteChunks | ClickHouseStore


@dataclass
class Pair:
    """The two stores of a server.

    Args:
        samples: a folder, or the address of ClickHouse.
        metadata: a file, or the address of PostgreSQL.
        folder: the data folder of the server.
        postgresql: the server that has the metadata, if one has.
    """

    samples: str
    metadata: str
    folder: Path
    postgresql: Server | None = None
    copies: int = 0

    @property
    def options(self) -> list[str]:
        """Of `store check` and `store repair`."""
        return ["--store", self.samples, "--catalogue", self.metadata, "--dir", str(self.folder)]

    @contextmanager
    def started(self) -> Iterator[tuple[Store, MetadataStore]]:
        """Both, opened as a server does."""
        arguments = argparse.Namespace(store=self.samples, catalogue=self.metadata, dir=str(self.folder))
        with ExitStack() as stack:
            yield open_stores(stack, arguments)

    def copy_metadata(self) -> str:
        """A copy of the metadata as it is now, as a backup or a dump has it: its path or database."""
        self.copies += 1
        if self.postgresql is None:
            return shutil.copy(self.metadata, f"{self.metadata}.copy-{self.copies}")
        name = self.metadata.partition("@/")[2].partition("?")[0]
        self.postgresql.make(f"{name}_copy_{self.copies}", template=name)
        return f"{name}_copy_{self.copies}"

    def restore_metadata(self, copy: str) -> None:
        """Go on with a copy of the metadata. No server may run."""
        if self.postgresql is None:
            shutil.copy(copy, self.metadata)
        else:
            self.metadata = self.postgresql.make(f"{copy}_restored", template=copy)


def record(pair: Pair, run: str, *keys: str, seq: int = 0) -> int:
    """Store ten samples of each key, as a server does that is started for it. Returns the id of the run."""
    with pair.started() as (samples, metadata_store):
        (writer,) = metadata_store.writers.join([WriterRegistration(run, "monitor.node1.1", "digits")], NOW)
        schema = metadata_store.metrics.schema(list(keys))
        metadata_store.metrics.record_schemas([(writer.writer_id, schema.id)])
        t = NOW + 1000 * np.arange(10) + 10_000 * seq
        values = np.full((10, len(keys)), float(seq))
        batch = SampleBatch(writer.lane_id, writer.writer_id, seq, schema.metric_ids, t, values)
        assert samples.append([batch]).stored == 1
    return writer.lane_id


def runs(pair: Pair) -> dict[str, dict[str, int]]:
    """The runs that a server shows: how many samples of each key."""
    with pair.started() as (samples, metadata_store):
        page = metadata_store.runs.page(Filter(), RunSort("started_ms"), NOW, 1000)
        return {row.uid: _counts(samples, metadata_store, row.id) for row in page.runs}


def _counts(samples: Store, metadata_store: MetadataStore, run_id: int) -> dict[str, int]:
    lanes = [writer.lane_id for writer in metadata_store.writers.of_runs([run_id])[run_id]]
    series = samples.read(lanes, None, 0, 2 * NOW).series
    keys = metadata_store.metrics.keys([each.metric for each in series])
    return {keys[each.metric]: len(each.t) for each in series if each.metric in keys}
