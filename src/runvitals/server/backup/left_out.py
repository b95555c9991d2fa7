"""What belongs to a server and is not in its backup."""

from __future__ import annotations

import os
from collections.abc import Iterator

from runvitals.server.backup.manifest import FILES
from runvitals.server.buckets.storage.buckets import BucketTable
from runvitals.server.database.database import Database
from runvitals.server.database.migration import is_current
from runvitals.server.files.storage.stored_files import StoredFileTable
from runvitals.store.samples.sqlite.backup import cold_of


def not_included(folder: str, database: Database) -> Iterator[str]:
    """Yield a sentence for everything that is not in a backup.

    Args:
        folder: of the backup.
        database: the metadata in it.
    """
    yield "the key file (secrets.key, or the one of --secret-keys): keep a copy of it in another place"
    cold, cold_bytes = cold_of(folder)
    if cold_bytes:
        yield f"{cold_bytes / 1e6:.1f} MB of old samples in {cold}: copy them too"
    if not is_current(database):
        yield "whatever is in buckets: metadata of an earlier version do not say what"
        return
    buckets, in_buckets = files_in_buckets(database)
    if in_buckets:
        yield f"{in_buckets / 1e6:.1f} MB of files of teams in {', '.join(buckets)}: copy these buckets too"
    missing, missing_bytes = _missing(folder, database)
    if missing:
        yield (
            f"{missing:,} images, tables and files of runs with {missing_bytes / 1e6:.1f} MB, which were "
            "not in the folder of the store: they are in the bucket of --files, which has to be copied "
            "too, or are lost"
        )


def files_in_buckets(database: Database) -> tuple[list[str], int]:
    """Return the buckets in which teams have files, and the bytes of these files."""
    table, total = BucketTable(database), 0
    names = set()
    for team_id in StoredFileTable(database).places()[1:]:
        row, (_, size) = table.of_team(team_id), table.use(team_id)
        total += size
        if row is not None and size:
            names.add(str(row.location))
    return sorted(names), total


def _missing(folder: str, database: Database) -> tuple[int, int]:
    """Return how many contents of the server's own place are not in the folder, and their bytes."""
    contents = os.path.join(folder, FILES)
    count = total = 0
    for sizes in StoredFileTable(database).sizes():
        for sha256, size in sizes.items():
            if not os.path.exists(os.path.join(contents, sha256[:2], sha256)):
                count += 1
                total += size
    return count, total
