"""How a store behaves. The defaults fit from a laptop to a server of some thousand runs."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Settings:
    """
    Args:
        chunk_ticks: a run's newest samples stay in memory (and in the log) until it has this many ticks, and
            become chunks of about this length.
        pack_ticks: fewer ticks than this become no chunk of their own: all metrics of the run stay in one
            row.
        compact_ticks: later, chunks are put together up to this length; the last ones up to half as much
            again.
        seal_age_s: no sample stays in memory for longer.
        head_bytes: nor more samples than this in all. At twice as much, writers wait.
        log_bytes: nor more than this in the log, which is read again when the store is opened.
        group_wait_s: how long a commit waits for as many batches as came last time.
        quiet_s: a run that has got nothing for this long is compacted.
    """

    chunk_ticks: int = 2000
    pack_ticks: int = 512
    compact_ticks: int = 4000
    seal_age_s: float = 600.0
    head_bytes: int = 64 * MIB
    log_bytes: int = 256 * MIB
    group_wait_s: float = 0.005
    quiet_s: float = 900.0
