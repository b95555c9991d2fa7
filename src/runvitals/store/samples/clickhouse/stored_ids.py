"""The metadata store that belongs to the tables, and the ids in them. Servers may be using them."""

from __future__ import annotations

import json

import numpy as np

from runvitals.store.samples.clickhouse import import_export
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.sqlite.log import Pairing
from runvitals.store.samples.sqlite.stored_ids import StoredIds

_METRIC = np.dtype([("metric", "<u4")])


def pairing(clickhouse: ClickHouse) -> Pairing | None:
    """Return the pairing with a metadata store; None if there is none yet."""
    rows = clickhouse.command(
        "SELECT id, starts, metadata_store FROM pairing ORDER BY starts DESC LIMIT 1 FORMAT JSONEachRow"
    )
    if not rows:
        return None
    fields = json.loads(rows)
    return Pairing(fields["id"], int(fields["starts"]), fields["metadata_store"])


def is_new(clickhouse: ClickHouse) -> bool:
    """Return whether nothing was ever stored."""
    return not int(clickhouse.command("SELECT count() FROM (SELECT 1 FROM batches LIMIT 1)"))


def highest(clickhouse: ClickHouse) -> tuple[int, int]:
    """Return the highest id of a run or writer, and of a metric, that was stored."""
    maxima = ("max(run) FROM extents", "max(run) FROM batches", "max(writer) FROM batches")
    runs = [int(clickhouse.command(f"SELECT {expression}") or 0) for expression in maxima]
    return max(runs), int(clickhouse.command("SELECT max(metric) FROM series") or 0)


def read(clickhouse: ClickHouse) -> StoredIds:
    """Read the ids of runs and metrics that have samples.

    Raises:
        StoreError: there are no tables of runvitals, or they could not be read.
    """
    metrics = clickhouse.select("SELECT DISTINCT metric FROM series", _METRIC)
    return StoredIds(
        pairing(clickhouse),
        is_new(clickhouse),
        set(import_export.runs(clickhouse)),
        set(metrics["metric"].tolist()),
        highest(clickhouse)[0],
    )
