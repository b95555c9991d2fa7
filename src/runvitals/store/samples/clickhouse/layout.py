"""The tables that hold rows: one of one server, or replicated tables on the nodes of a cluster.

In a cluster a table such as `samples` is of the engine Distributed and holds nothing. It passes rows to
tables named `samples_local`: all of a run to the replicas of one shard, so that rows replace each other.

A node asks its own replica, and the first one of other shards that answers, and it writes to the same ones.
So servers that use the same node see each other's writes at once; those of another node see them once they
were copied, which usually takes less than a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_DISTRIBUTED = "Distributed"
_IN_CLUSTER: Mapping[str, str] = {
    "load_balancing": "in_order",
    "insert_distributed_sync": "1",
    # The same rows may come again after they were deleted.
    "insert_deduplicate": "0",
    # What all nodes must do fails before the request does, with a message that says which has not done it.
    "distributed_ddl_task_timeout": "50",
    # Between nodes; 50 ms, the default of old versions, is too little for a busy node.
    "connect_timeout_with_failover_ms": "1000",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose rows are replaced by others with the same values in the columns of `order`.

    Args:
        columns: as in CREATE TABLE.
        order: the columns of the sorting key.
        replaced_by: the column that decides which row is kept; None: any.
        shard_by: the column that decides to which shard a row goes.
        more: PARTITION BY.
        settings: of the engine.
    """

    name: str
    columns: str
    order: str
    replaced_by: str | None
    shard_by: str
    more: str = ""
    settings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """Tables of a database, in a cluster unless `cluster` is None."""

    database: str
    cluster: str | None

    @staticmethod
    def is_distributed(engine: str) -> bool:
        """Return whether tables of an engine are read and written through a cluster."""
        return engine == _DISTRIBUTED

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of every request."""
        return _IN_CLUSTER if self.cluster else {}

    def storage_table(self, table: str) -> str:
        """Return the table that holds the rows of a table."""
        return f"{table}_local" if self.cluster else table

    def altered_table(self, table: str) -> str:
        """Return the table to name in ALTER TABLE, with its cluster."""
        return f"{table}_local ON CLUSTER '{self.cluster}'" if self.cluster else table

    def of_system(self, table: str) -> str:
        """Return a table of the database `system`, such as `parts`: of one replica of each shard."""
        return f"cluster('{self.cluster}', system, {table})" if self.cluster else f"system.{table}"

    def parts(self, *tables: str) -> str:
        """FROM … WHERE for the rows of `system.parts` about tables."""
        names = ",".join(f"'{self.storage_table(table)}'" for table in tables)
        where = f"active AND database = '{self.database}' AND table IN ({names})"
        return f"FROM {self.of_system('parts')} WHERE {where}"

    def create(self, table: Table) -> Sequence[str]:
        """Return the statements that create a table."""
        columns = f"({table.columns})"
        more = f"{table.more} ORDER BY {table.order}"
        if table.settings:
            more += f" SETTINGS {', '.join(table.settings)}"
        version = table.replaced_by or ""
        if not self.cluster:
            engine = f"ReplacingMergeTree({version})"
            return (f"CREATE TABLE IF NOT EXISTS {table.name} {columns} ENGINE = {engine} {more}",)
        path = f"/clickhouse/tables/{{shard}}/{self.database}/{table.name}"
        arguments = f"'{path}', '{{replica}}'" + (f", {version}" if version else "")
        local = self.storage_table(table.name)
        distributed = f"{_DISTRIBUTED}('{self.cluster}', '{self.database}', '{local}', {table.shard_by})"
        return (
            f"CREATE TABLE IF NOT EXISTS {self.altered_table(table.name)} {columns} "
            f"ENGINE = ReplicatedReplacingMergeTree({arguments}) {more}",
            f"CREATE TABLE IF NOT EXISTS {table.name} ON CLUSTER '{self.cluster}' "
            f"AS {self.database}.{local} ENGINE = {distributed}",
        )
