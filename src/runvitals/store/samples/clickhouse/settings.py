"""Settings of the store in ClickHouse."""

from __future__ import annotations

from dataclasses import dataclass

from runvitals.store.samples.clickhouse.connection import PROMPT_S

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ClickHouseSettings:
    """Sizes and times of the ClickHouse store.

    Args:
        gather_s: batches are gathered this long before they are inserted together; every INSERT makes files
            that ClickHouse must merge.
        group_bytes: values of batches that are inserted together at most.
        submitted_bytes: values of batches that may be in memory, not yet stored; further ones are refused.
        waiting_bytes: packed batches that may wait on this machine's disk while ClickHouse cannot store them.
        raw_samples: series with more samples than this are put into buckets by ClickHouse, not here.
        timeout_s: how long a request to ClickHouse may take.
        commit_s: how long a batch waits for ClickHouse before it is put on this machine's disk.
        retry_s: how often at least ClickHouse is tried again.
    """

    gather_s: float = 0.2
    group_bytes: int = 32 * MIB
    submitted_bytes: int = 256 * MIB
    waiting_bytes: int = 4096 * MIB
    raw_samples: int = 2_000_000
    timeout_s: float = 60.0
    commit_s: float = PROMPT_S
    retry_s: float = 5.0
