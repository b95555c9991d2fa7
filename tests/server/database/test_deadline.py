"""A query that exceeds its deadline is interrupted by the database; the next one succeeds."""

from __future__ import annotations

import pytest

from runvitals.base import deadline
from runvitals.base.deadline import TooSlow
from runvitals.model.filter import Filter
from runvitals.server.metadata_store import MetadataStore

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_query_is_interrupted_at_its_deadline(metadata_store: MetadataStore) -> None:
    with (
        pytest.raises(TooSlow),
        deadline.within(0.05),
        metadata_store.runs._database.read() as connection,
    ):
        connection.exec_driver_sql(ENDLESS)
    assert metadata_store.runs.count(Filter(), 0) == 0
