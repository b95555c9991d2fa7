"""A sample store in ClickHouse, for installations that one machine cannot serve.

Example:
    >>> address = parse_address("clickhouse://runvitals@db.example:8123/runvitals")
    >>> with ClickHouseStore(address, "/var/lib/runvitals/store") as store:
    ...     store.append([SampleBatch(run=7, writer=1, seq=1, metrics=(3, 5), t=t, values=values)])
"""

from runvitals.store.samples.clickhouse.address import ClickHouseAddress, parse_address
from runvitals.store.samples.clickhouse.settings import ClickHouseSettings
from runvitals.store.samples.clickhouse.store import ClickHouseStore

__all__ = ["ClickHouseAddress", "ClickHouseSettings", "ClickHouseStore", "parse_address"]
