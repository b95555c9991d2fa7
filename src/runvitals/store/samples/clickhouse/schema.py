"""The tables in ClickHouse, and what its version can do.

`samples`: a row per value, replaced by the row of the same series and time with the highest version.
`batches`: which batches were stored. `extents`: the last time of each run. `series`: for each series a time
at which it had a value, minutes before the newest one at most, so that the newest value is found without
reading the whole series.

`version` is the time at which a server accepted the batch, in µs. A batch that is written again, after a
failure, keeps its version, and so do its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from runvitals.store.samples.clickhouse.connection import PROMPT_S, ClickHouse
from runvitals.store.samples.clickhouse.layout import Layout, Table
from runvitals.store.samples.interface import StoreError

SAMPLES = np.dtype(
    [
        ("month", "<u4"),
        ("run", "<i8"),
        ("metric", "<u4"),
        ("t", "<i8"),
        ("value", "<f8"),
        ("version", "<u8"),
    ]
)
BATCHES = np.dtype([("run", "<i8"), ("writer", "<i8"), ("seq", "<i8"), ("version", "<u8")])
EXTENTS = np.dtype([("run", "<i8"), ("last", "<i8")])
SERIES = np.dtype([("run", "<i8"), ("metric", "<u4"), ("t", "<i8")])
TABLES = ("samples", "batches", "extents", "series")
"""The tables with data of runs."""
_OLDEST = (18, 16)
_LIGHTWEIGHT_DELETES = (23, 3)
_CODECS = (19, 4)
_FSYNC = "fsync_after_insert"


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a server.

    Args:
        codecs: columns may have codecs, such as ZSTD.
        fsync: inserted rows can be synced to the disk before they are acknowledged.
        lightweight_deletes: rows can be deleted without rewriting their parts.
        settings: names of the settings that it knows.
    """

    version: tuple[int, int]
    codecs: bool
    fsync: bool
    lightweight_deletes: bool
    settings: frozenset[str]

    def supported(self, **settings: str) -> dict[str, str]:
        """Return the settings among these that this server knows."""
        return {name: value for name, value in settings.items() if name in self.settings}


def features(clickhouse: ClickHouse) -> Features:
    """Return what this version of ClickHouse can do.

    Raises:
        StoreError: the server is too old.
    """
    text = clickhouse.command("SELECT version()", timeout_s=PROMPT_S)
    major, minor = (int(part) for part in text.split(".")[:2])
    version = (major, minor)
    if version < _OLDEST:
        raise StoreError(f"ClickHouse at {clickhouse.address} is of version {text}: 18.16 or later is needed")
    names = clickhouse.command("SELECT name FROM system.settings").split("\n")
    of_tables = clickhouse.command("SELECT name FROM system.merge_tree_settings").split("\n")
    return Features(
        version,
        codecs=version >= _CODECS,
        fsync=_FSYNC in of_tables,
        lightweight_deletes=version >= _LIGHTWEIGHT_DELETES,
        settings=frozenset(names),
    )


def has_tables(clickhouse: ClickHouse) -> bool:
    """Return whether there are tables of runvitals."""
    return _exists(clickhouse, _FORMAT.name)


def prepare(clickhouse: ClickHouse, able: Features) -> None:
    """Create the tables if they do not exist, or migrate them from an earlier version of runvitals.

    Several servers may do this at the same time.

    Raises:
        StoreError: they are of a later version.
    """
    layout = clickhouse.layout
    _check_layout(clickhouse)
    if not _exists(clickhouse, _FORMAT.name):
        for statement in layout.create(_FORMAT):
            clickhouse.command(statement)
    version = int(clickhouse.command("SELECT max(version) FROM format") or 0)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"the tables at {clickhouse.address} were written by a later version of runvitals (format "
            f"{version}; this one knows up to {len(MIGRATIONS)}): use that version"
        )
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        for statement in migration(able, layout):
            clickhouse.command(statement)
        clickhouse.command(f"INSERT INTO format VALUES ({number})")


def _engine(clickhouse: ClickHouse, table: str) -> str:
    """Return the engine of a table; empty if there is no such table."""
    where = f"database = '{clickhouse.layout.database}' AND name = '{table}'"
    return clickhouse.command(f"SELECT engine FROM system.tables WHERE {where}")


def _exists(clickhouse: ClickHouse, table: str) -> bool:
    return bool(_engine(clickhouse, table))


def _check_layout(clickhouse: ClickHouse) -> None:
    """Check that the tables are made for the layout that the address names.

    Raises:
        StoreError: the tables are those of a cluster and the address names none, or the other way round.
    """
    engine = _engine(clickhouse, _FORMAT.name)
    if not engine:
        return
    distributed = clickhouse.layout.is_distributed(engine)
    if distributed and clickhouse.layout.cluster is None:
        raise StoreError(
            f"the tables at {clickhouse.address} are those of a cluster: add ?cluster=NAME to the address"
        )
    if not distributed and clickhouse.layout.cluster is not None:
        raise StoreError(
            f"the tables at {clickhouse.address} are not those of a cluster: leave out ?cluster=, or name "
            "another database and copy them there with `runvitals store migrate`"
        )


_FORMAT = Table("format", "version UInt32", "version", None, shard_by="version")


def _first_tables(able: Features, layout: Layout) -> Sequence[str]:
    delta, plain = (" CODEC(Delta, ZSTD(1))", " CODEC(ZSTD(1))") if able.codecs else ("", "")
    sync = (f"{_FSYNC} = 1", "fsync_part_directory = 1") if able.fsync else ()
    small = ("index_granularity = 512", *sync)
    tables = (
        Table(
            "samples",
            f"month UInt32{plain}, run Int64{plain}, metric UInt32{plain}, t Int64{delta}, "
            f"value Float64{plain}, version UInt64{delta}",
            "(run, metric, t)",
            "version",
            shard_by="run",
            more="PARTITION BY month",
            settings=("index_granularity = 4096", *sync),
        ),
        Table(
            "batches",
            f"run Int64{plain}, writer Int64{plain}, seq Int64{delta}, version UInt64{delta}",
            "(run, writer, seq)",
            "version",
            shard_by="run",
            settings=small,
        ),
        Table("extents", "run Int64, last Int64", "run", "last", shard_by="run", settings=small),
        Table(
            "series",
            "run Int64, metric UInt32, t Int64",
            "(run, metric)",
            "t",
            shard_by="run",
            settings=small,
        ),
        Table(
            "pairing",
            "id String, starts UInt64, metadata_store String",
            "id",
            "starts",
            shard_by="starts",
        ),
    )
    return [statement for table in tables for statement in layout.create(table)]


MIGRATIONS: Sequence[Callable[[Features, Layout], Sequence[str]]] = (_first_tables,)
"""The n-th makes format n + 1 of format n. Each statement may be run again, after a failure or by another
server at the same time.
"""
