"""The operations that are interrupted at each step.

As a process that may mount disks, `python -m tests.store.interrupted_operations` reads a JSON list from each
line, with the name of an operation and a folder. It forks, runs the operation on a disk that becomes full,
writes what is printed into files beside the folder, and prints the exit code.

With the folder of a server of PostgreSQL after the folder, the metadata are there, and with an address of
ClickHouse after it the samples.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import psycopg

from runvitals.cli import main as runvitals
from runvitals.cli.first_administrator import FirstAdministrator
from runvitals.server.database import migration
from runvitals.server.metadata_store import MetadataStore, open_metadata_store
from runvitals.server.pairing.check import check_metadata_store
from runvitals.server.runs.storage.writer_registration import WriterRegistration
from runvitals.store.errors import MetadataStoreError
from runvitals.store.samples.cold.storage import ColdSettings
from runvitals.store.samples.interface import SampleBatch, StoreError
from runvitals.store.samples.sqlite import SqliteChunks, StoreSettings
from runvitals.store.samples.sqlite.check import check
from tests.server.database.next_revision import later_version
from tests.server.database.postgresql import Server
from tests.shared_statements import share_statements
from tests.store.crash_points import interrupted
from tests.store.engine_pairs import NOW, Pair, Store

DAY = 86_400_000
SMALL = StoreSettings(chunk_ticks=16, pack_ticks=4, compact_ticks=32)
TICKS = 10
PREPARED = 6
"""Batches that were acknowledged before the operation."""

Acknowledge = Callable[[int], None]


class Case:
    """A server with one run, at a step of its life.

    Args:
        folder: of everything; on the disk that becomes full.
        pair: its stores.
    """

    def __init__(self, folder: str, pair: Pair) -> None:
        self.folder = folder
        self.pair = pair
        self.store = pair.samples
        self.bucket = os.path.join(folder, "bucket")
        self.copy = os.path.join(folder, "copy")
        self.restored = Pair(
            os.path.join(folder, "restored"),
            os.path.join(folder, "restored", "catalogue.db"),
            Path(folder, "data-of-restored"),
        )

    @property
    def cold(self) -> ColdSettings:
        return ColdSettings(self.bucket, after_ms=30 * DAY, object_bytes=2000)

    def later(self) -> int:
        return NOW + 90 * DAY

    @contextmanager
    def opened(self) -> Iterator[SqliteChunks]:
        """The samples alone, with small chunks that are old enough for cold storage."""
        with SqliteChunks(self.store, SMALL, self.later, self.cold) as samples:
            yield samples


def batch(lane: int, metrics: tuple[int, ...], seq: int) -> SampleBatch:
    t = NOW + 1000 * np.arange(seq * TICKS, (seq + 1) * TICKS)
    values = np.arange(seq * TICKS, (seq + 1) * TICKS, dtype=float)[:, None] + np.array([0.5, 0.25])
    return SampleBatch(lane, lane, seq, metrics, t, values)


def known(metadata_store: MetadataStore) -> tuple[int, tuple[int, ...]]:
    """The id of the run, and those of its metrics."""
    (writer,) = metadata_store.writers.join([WriterRegistration("otter", "monitor.node1.1", "digits")], NOW)
    schema = metadata_store.metrics.schema(["cpu", "loss"])
    metadata_store.metrics.record_schemas([(writer.writer_id, schema.id)])
    return writer.lane_id, schema.metric_ids


def append(samples: Store, run: tuple[int, tuple[int, ...]], seqs: range, acknowledge: Acknowledge) -> None:
    for seq in seqs:
        samples.append([batch(*run, seq)])
        acknowledge(seq)


def nothing(number: int) -> None: ...


# What there is before an operation


def used(case: Case) -> None:
    os.makedirs(case.bucket)
    with case.pair.started() as (samples, metadata_store):
        append(samples, known(metadata_store), range(PREPARED), nothing)
        samples.flush()


def new(case: Case) -> None:
    os.makedirs(case.bucket)
    if case.pair.postgresql is not None:  # `_STATE` reads its tables, which one transaction creates
        open_metadata_store(case.pair.metadata).close()


def of_earlier_version(case: Case) -> None:
    used(case)
    migration.FOLDER = later_version(Path(case.folder, "later"))


def compacted(case: Case) -> None:
    os.makedirs(case.bucket)
    with case.pair.started() as (_, metadata_store):
        run = known(metadata_store)
    with SqliteChunks(case.store, SMALL) as samples:
        append(samples, run, range(PREPARED), nothing)
        samples.compact()


def damaged_samples(case: Case) -> None:
    """A month file was set aside."""
    used(case)
    (path,) = Path(case.store).glob("samples-*.db")
    path.rename(f"{path}.damaged-1")


def damaged_metadata(case: Case) -> None:
    """A row refers to one that is missing."""
    used(case)
    with closing(sqlite3.connect(case.pair.metadata)) as connection, connection:
        connection.execute("INSERT INTO writer_schema VALUES (999, 999)")


def backed_up(case: Case) -> None:
    used(case)
    back_up(case, nothing)


# Operations


def start(case: Case, acknowledge: Acknowledge) -> None:
    with case.pair.started() as (_, metadata_store):
        FirstAdministrator("ada@example.org", "ada").create(metadata_store, NOW)


def ingest_and_seal(case: Case, acknowledge: Acknowledge) -> None:
    with case.pair.started() as (_, metadata_store):
        run = known(metadata_store)
    with SqliteChunks(case.store, SMALL) as samples:
        append(samples, run, range(PREPARED, PREPARED + 2), acknowledge)
        samples.flush()
        append(samples, run, range(PREPARED + 2, PREPARED + 4), acknowledge)
        samples.compact()


def move_to_cold_storage(case: Case, acknowledge: Acknowledge) -> None:
    with case.opened() as samples:
        samples.move_to_cold_storage()
        samples.remove_unused_objects()


def back_up(case: Case, acknowledge: Acknowledge) -> None:
    _command("backup", case.copy, "--store", case.store)


def restore(case: Case, acknowledge: Acknowledge) -> None:
    _command("restore", case.copy, "--store", case.restored.samples)


def repair(case: Case, acknowledge: Acknowledge) -> None:
    _command("store", "repair", *case.pair.options)


def _command(*words: str) -> None:
    with redirect_stdout(sys.stderr):
        if runvitals(list(words)) != 0:
            raise OSError(f"{' '.join(words)}: failed")


# What must hold after an operation, interrupted or not


def verify(case: Case, acknowledged: list[int]) -> None:
    """A server starts, everything that was acknowledged is there once, and it goes on."""
    count = max([PREPARED - 1, *acknowledged]) + 1
    with case.pair.started() as (samples, metadata_store):
        run = known(metadata_store)
        for _ in ("as left", "sealed"):
            _assert_complete(samples, run, count)
            samples.flush()
        stats = samples.stats()
        assert (stats.problem, stats.warnings) == (None, ())
    _assert_consistent(case)


def verify_new(case: Case, acknowledged: list[int]) -> None:
    with case.pair.started() as (samples, metadata_store):
        FirstAdministrator("ada@example.org", "ada").create(metadata_store, NOW)
        assert [user.name for user in metadata_store.accounts.users.page()] == ["ada"]
        append(samples, known(metadata_store), range(PREPARED), nothing)
    verify(case, [])


def verify_backup(case: Case, acknowledged: list[int]) -> None:
    """No server starts on an incomplete copy without saying what is missing, and the store is as before."""
    verify(case, [])
    copied = Pair(case.copy, os.path.join(case.copy, "catalogue.db"), Path(case.folder, "data-of-copy"))
    _assert_complete_or_refused(copied)


def verify_restored(case: Case, acknowledged: list[int]) -> None:
    """No server starts on a part of the backup, which can be restored once more."""
    _assert_complete_or_refused(case.restored)
    shutil.rmtree(case.restored.samples, ignore_errors=True)
    restore(case, nothing)
    with case.restored.started() as (samples, metadata_store):
        _assert_complete(samples, known(metadata_store), PREPARED)


def _assert_complete_or_refused(copied: Pair) -> None:
    if not os.path.exists(copied.samples) or not os.listdir(copied.samples):
        return
    try:
        with copied.started() as (samples, metadata_store):
            if not samples.stats().warnings:
                _assert_complete(samples, known(metadata_store), PREPARED)
    except (StoreError, MetadataStoreError, OSError) as refused:
        print(f"refused: {refused}", file=sys.stderr)


def verify_repair(case: Case, acknowledged: list[int]) -> None:
    repair(case, nothing)
    verify(case, [])


def _assert_complete(samples: Store, run: tuple[int, tuple[int, ...]], count: int) -> None:
    lane, metrics = run
    series = samples.read([lane], None, 0, 2 * NOW).series
    assert [each.metric for each in series] == sorted(metrics)
    assert len(series[0].t) >= count * TICKS, f"{len(series[0].t)} samples, {count * TICKS} were acknowledged"
    sent = [batch(lane, metrics, seq) for seq in range(len(series[0].t) // TICKS)]
    for column, each in enumerate(series):
        np.testing.assert_array_equal(each.t, np.concatenate([each.t for each in sent]))
        np.testing.assert_array_equal(each.values, np.concatenate([each.values[:, column] for each in sent]))
    assert samples.append(sent).stored == 0


def _assert_consistent(case: Case) -> None:
    if os.path.isdir(case.store):
        problems = [
            *check(case.store, reads_cold=True),
            *check_metadata_store(case.store, case.pair.metadata),
        ]
        assert [str(problem) for problem in problems] == []


@dataclass(frozen=True)
class Operation:
    prepare: Callable[[Case], None]
    operate: Callable[[Case, Acknowledge], None]
    verify: Callable[[Case, list[int]], None] = verify


OPERATIONS = {
    "first start": Operation(new, start, verify_new),
    "start": Operation(used, start),
    "migration": Operation(of_earlier_version, start),
    "seal": Operation(used, ingest_and_seal),
    "cold move": Operation(compacted, move_to_cold_storage),
    "backup": Operation(used, back_up, verify_backup),
    "restore": Operation(backed_up, restore, verify_restored),
    "repair": Operation(damaged_samples, repair, verify_repair),
    "repair of metadata": Operation(damaged_metadata, repair, verify_repair),
}


def main(name: str, how: str, folder: str, postgresql: str = "", clickhouse: str = "") -> None:
    """Interrupt an operation, and print the outcome as JSON."""
    logging.disable()
    share_statements()
    operation, work = OPERATIONS[name], os.path.join(folder, "work")
    server = Server(postgresql, os.getpid()) if postgresql else None
    prepared = _case(os.path.join(folder, "prepared"), server, "prepared", clickhouse)
    operation.prepare(prepared)
    case = _case(work, server, "work", clickhouse)
    before = None if server is None else _in_database(server, "prepared")
    if server is not None:
        server.renew("work", template="prepared")

    def renew() -> None:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(prepared.folder, work)
        # Tables of ClickHouse cannot be put back: each start comes after the one before.
        if server is not None and not clickhouse and _in_database(server, "work") != before:
            server.renew("work", template="prepared")

    renew()
    operation.operate(case, nothing)  # loads and compiles once, for all forks
    operation.verify(case, [])
    gc.disable()  # in the forks it would copy the memory that they share
    outcome = interrupted(
        how,
        work,
        renew,
        lambda acknowledge: operation.operate(case, acknowledge),
        lambda acknowledged: operation.verify(case, acknowledged),
        None if server is None else lambda: repr(_in_database(server, "work")),
    )
    print(json.dumps(dataclasses.asdict(outcome)))


def _case(folder: str, server: Server | None, database: str, clickhouse: str) -> Case:
    store = os.path.join(folder, "store")
    metadata = os.path.join(store, "catalogue.db")
    if server is not None:
        metadata = server.make(database) if database == "prepared" else server.address(database)
    return Case(folder, Pair(clickhouse or store, metadata, Path(folder), server))


def _in_database(server: Server, database: str) -> object:
    """The changes of operations in a database: one transaction changes some of it at least."""
    with psycopg.connect(server.address(database)) as connection:
        return connection.execute(_STATE).fetchone()


_STATE = """
    SELECT (SELECT version_num FROM alembic_version), (SELECT id || starts FROM pairing),
        (SELECT count(*) FROM user_account), (SELECT count(*) FROM audit_event), (SELECT count(*) FROM run),
        (SELECT count(*) FROM writer), (SELECT count(*) FROM schema), (SELECT count(*) FROM pg_attribute)
"""


def _serve() -> None:
    for line in sys.stdin:
        name, folder, *more = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _run_on_small_disk(name, folder, more)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


def _run_on_small_disk(name: str, folder: str, more: list[str]) -> NoReturn:
    status = 1
    try:
        for number, suffix in ((1, ".out"), (2, ".err")):
            with open(f"{folder}{suffix}", "w") as file:
                os.dup2(file.fileno(), number)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], check=True)
        main(name, "full", folder, *more)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()
