"""Settings of a store. The defaults suit anything from a laptop to a server with thousands of runs."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Sizes and times of the SQLite store.

    Args:
        chunk_ticks: ticks (distinct times) of a run that are kept in memory and in the log before they are
            sealed, and the approximate length of chunks.
        pack_ticks: fewer ticks than this are stored as a pack (all metrics of the run in one row) instead of
            chunks.
        compact_ticks: compaction merges chunks up to this length; the last one up to half as much again.
        seal_age_s: samples are sealed at this age at the latest.
        head_bytes: samples in memory before sealing starts early. At twice as much, writers wait.
        log_bytes: size of the log before sealing starts early; it is read when the store is opened.
        group_wait_s: how long a commit waits for as many batches as the last one had.
        quiet_s: a run without new samples for this long is compacted.
    """

    chunk_ticks: int = 2000
    pack_ticks: int = 512
    compact_ticks: int = 4000
    seal_age_s: float = 600.0
    head_bytes: int = 64 * MIB
    log_bytes: int = 256 * MIB
    group_wait_s: float = 0.005
    quiet_s: float = 900.0
