"""The bytes that the samples of runs take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from runvitals.store.samples.cold.rows import has_cold
from runvitals.store.samples.sqlite import database
from runvitals.store.samples.sqlite.head import Heads
from runvitals.store.samples.sqlite.month_files import MonthFiles

# Lengths of BLOBs are read without the BLOBs. Times that chunks share are counted once.
_SIZE: Final = """
    SELECT (SELECT coalesce(sum(length(chunk.summary) + length(data.data)), 0)
            FROM chunk JOIN data ON data.id = chunk.data WHERE chunk.run = :run)
        + (SELECT coalesce(sum(length(times.data)), 0)
            FROM times WHERE id IN (SELECT times FROM chunk WHERE run = :run))
        + (SELECT coalesce(sum(length(body)), 0) FROM pack WHERE run = :run)"""
_COLD_SIZE: Final = """
    SELECT coalesce(sum(length(chunk.summary) + cold.bytes), 0)
    FROM chunk JOIN cold ON cold.id = -chunk.data WHERE chunk.run = :run AND chunk.data < 0"""


def run_sizes(months: MonthFiles, heads: Heads, runs: Iterable[int]) -> dict[int, int]:
    """Bytes by run: compressed in month files and cold storage, and uncompressed what is in memory only.

    Raises:
        StoreError: a file cannot be read.
    """
    run_ids = frozenset(runs)
    sizes = {
        run: sum(block.t.nbytes + block.values.nbytes for block in blocks)
        for run, blocks in heads.blocks(run_ids).items()
    }
    for month in months.existing():
        with months.reader(month) as connection, database.store_errors(months.path(month)):
            present = {run for (run,) in connection.execute("SELECT run FROM run")}
            statements = (_SIZE, _COLD_SIZE) if has_cold(connection) else (_SIZE,)
            for run in run_ids & present:
                for statement in statements:
                    (size,) = connection.execute(statement, {"run": run}).fetchone()
                    sizes[run] = sizes.get(run, 0) + size
    return sizes
