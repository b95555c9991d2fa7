"""A query that takes longer than its question may is ended by the database, and the next one is answered."""

from __future__ import annotations

import pytest

from runvitals import deadline
from runvitals.deadline import TooSlow
from runvitals.store.metadata import Filter, MetadataStore

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


def test_a_query_ends_where_the_time_is_over(catalogue: MetadataStore) -> None:
    with (
        pytest.raises(TooSlow),
        deadline.within(0.05),
        catalogue.runs._database.read() as connection,
    ):
        connection.exec_driver_sql(ENDLESS)
    assert catalogue.runs.count(Filter(), 0) == 0
