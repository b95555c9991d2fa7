"""`runvitals store`: maintain the store of a server."""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from runvitals.base.terminal_text import inert
from runvitals.cli import WrongUsage, store_migration, store_repair
from runvitals.cli.data_folder import add_dir, directory
from runvitals.cli.formatting import table
from runvitals.cli.server import add_keeping
from runvitals.cli.store_options import is_clickhouse

if TYPE_CHECKING:
    from runvitals.store.samples.sqlite.inventory import StoreFile


_FOR_CLICKHOUSE = ("check", "repair")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `runvitals store`."""
    parser.description = (
        "Maintain the folder in which a server stores samples. "
        "A server may use it at the same time, except for repair, compact, drop, and migrate with metadata."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    stats = actions.add_parser("stats", help="statistics of each file")
    stats.add_argument("--json", action="store_true", help="print JSON, for scripts")
    check = actions.add_parser(
        "check",
        help="read and decode all samples and metadata; exit code 1 if there is a problem",
    )
    repair = actions.add_parser(
        "repair", help="recover what can be read from damaged files, and make samples and metadata match"
    )
    store_repair.add(check, repair)
    actions.add_parser("compact", help="merge small chunks and free unused space")
    drop = actions.add_parser("drop", help="drop old samples, or the oldest beyond a size")
    add_keeping(drop)
    copy = actions.add_parser(
        "migrate",
        help="copy all samples, or all metadata, to a store of another engine",
        description="Copies all samples from one store to another and compares each run. A store is a "
        "folder, or clickhouse://USER@HOST:8123/DATABASE with the password in CLICKHOUSE_PASSWORD. "
        "Interrupted, it goes on where it was. While a server uses the first store, copy it once; then end "
        "the server, copy what has changed since, and start the server with the second store and the same "
        "metadata store. With two metadata stores (the path of a catalogue.db, postgresql://…) it copies all "
        "tables and compares each: completely or not at all, while no server uses the first.",
    )
    copy.add_argument("source", metavar="FROM", help="the store that has the samples")
    copy.add_argument("target", metavar="TO", help="a new one, or an earlier copy")
    for name, action in actions.choices.items():
        in_clickhouse = ", or clickhouse://…" if name in _FOR_CLICKHOUSE else ""
        help = f"the server's --store{in_clickhouse}; default: `store` in the data folder"
        action.add_argument("--store", metavar="FOLDER", help=help)
        add_dir(action)


def run(arguments: argparse.Namespace) -> int:
    """Run an action on the store; return its exit code."""
    from runvitals.store.samples import sqlite as sqlite_chunks  # noqa: F401 - fails early if a dependency is missing

    folder = arguments.store or os.path.join(directory(arguments), "store")
    if arguments.action == "migrate":
        return store_migration.run(arguments.source, arguments.target)
    if arguments.action == "check":
        return store_repair.check(arguments)
    if arguments.action == "repair":
        return store_repair.repair(arguments)
    if is_clickhouse(arguments):
        raise ValueError(f"`store {arguments.action}` is for samples in a folder: {folder} is not one")
    if arguments.action == "drop":
        return _drop(folder, arguments.keep, arguments.max_size)
    return _stats(folder, arguments.json) if arguments.action == "stats" else _compact(folder)


def _stats(folder: str, as_json: bool) -> int:
    from runvitals.store.samples.sqlite.inventory import inventory

    heading = ["FILE", "MB", "COLD MB", "RUNS", "SAMPLES", "BYTES/SAMPLE", "CHUNKS", "PACKS", "DAMAGED"]
    files = list(inventory(folder))
    if as_json:
        print(json.dumps([asdict(file) for file in files], indent=1))
        return 0
    rows = [_row(file) for file in files]
    print(table([heading, *rows], right=frozenset(range(1, 9))))
    return 0


def _row(file: StoreFile) -> list[str]:
    size_bytes = file.size_bytes + file.cold_bytes
    per_sample = f"{size_bytes / file.samples:.2f}" if file.samples else "-"
    counts = [f"{count:,}" if count is not None else "-" for count in (file.runs, file.samples)]
    parts = [f"{count:,}" if count is not None else "-" for count in (file.chunks, file.packs)]
    name = os.path.basename(file.path)
    sizes = [f"{file.size_bytes / 1e6:.1f}", f"{file.cold_bytes / 1e6:.1f}"]
    return [name, *sizes, *counts, per_sample, *parts, f"{file.damaged:,}"]


def _compact(folder: str) -> int:
    from runvitals.store.samples.sqlite import SqliteChunks, log

    log.existing_path(folder)
    with SqliteChunks(folder) as store:
        before = store.stats().size_bytes
        store.compact()
        after = store.stats().size_bytes
    print(f"{inert(folder)}: {before / 1e6:.1f} MB compacted to {after / 1e6:.1f} MB")
    return 0


def _drop(folder: str, keep_ms: int | None, size_bytes: int | None) -> int:
    from runvitals.store.samples.sqlite import SqliteChunks, log

    if keep_ms is None and size_bytes is None:
        raise WrongUsage("specify what to keep: --keep 90d, --max-size 200GB, or both")
    log.existing_path(folder)
    with SqliteChunks(folder) as store:
        store.flush()
        before = store.stats()
        if keep_ms is not None:
            store.drop_before(time.time_ns() // 1_000_000 - keep_ms)
        if size_bytes is not None:
            store.shrink_to(size_bytes)
        after = store.stats()
    dropped = before.samples - after.samples
    print(
        f"{inert(folder)}: {dropped:,} samples dropped; "
        f"{before.size_bytes / 1e6:.1f} MB are now {after.size_bytes / 1e6:.1f} MB"
    )
    return 0
