"""The store over a cluster: replicated tables in two shards, with nodes that are killed."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runvitals.store.samples.clickhouse import ClickHouseAddress, ClickHouseStore
from runvitals.store.samples.clickhouse.connection import ClickHouse
from runvitals.store.samples.clickhouse.schema import TABLES
from runvitals.store.samples.interface import CommitAck, StoreError
from runvitals.store.samples.migration import migrate
from runvitals.store.samples.sqlite import SqliteChunks
from runvitals.store.samples.sqlite.log import Pairing
from tests.patience import eventually
from tests.store.samples.clickhouse.cluster import Cluster, installed
from tests.store.samples.clickhouse.server import open_store
from tests.store.samples.conformance import ALL, DAY, Conformance, batch, samples_of

# ClickHouse 18.16 sometimes crashes while it deletes. Then the test is run again, on nodes that are started
# again.
pytestmark = pytest.mark.flaky(reruns=1, only_rerun=["cannot be reached"])
_numbers = itertools.count()
FIRST, SECOND, OTHER_SHARD = range(3)
"""The nodes."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if not installed():
        pytest.skip("clickhouse-server, ZooKeeper or Java is not installed")
    in_memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="runvitals-cluster-", dir=in_memory) as folder:
        running = Cluster(Path(folder))
        yield running
        running.stop()


@pytest.fixture
def addresses(cluster: Cluster) -> list[ClickHouseAddress]:
    """A new, empty database, by its address at each node."""
    return cluster.new_database(f"test_{next(_numbers)}")


def test_a_run_is_in_one_shard_and_on_each_of_its_replicas(
    cluster: Cluster, addresses: list[ClickHouseAddress], tmp_path: Path
) -> None:
    database = addresses[FIRST].database
    with open_store(addresses[FIRST], tmp_path / "store") as store:
        store.append([batch(1, range(10), [1.0], run=run) for run in range(1, 5)])
        count = "SELECT count() FROM samples_local"
        runs = "SELECT uniqExact(run) FROM samples_local"
        eventually(lambda: cluster.count(SECOND, count, database) == 20)
        assert [cluster.count(node, count, database) for node in range(3)] == [20, 20, 20]
        assert [cluster.count(node, runs, database) for node in range(3)] == [2, 2, 2]
        assert store.stats().samples == 40


def test_servers_store_a_batch_once(addresses: list[ClickHouseAddress], tmp_path: Path) -> None:
    with (
        open_store(addresses[FIRST], tmp_path / "a") as first,
        open_store(addresses[FIRST], tmp_path / "b") as second,
    ):
        for run in (1, 2):
            assert first.append([batch(1, [0], [1.0], run=run)]) == CommitAck(1, 0)
            assert second.append([batch(2, [0], [2.0], run=run)]) == CommitAck(1, 0)
            assert second.append([batch(1, [0], [9.0], run=run)]) == CommitAck(0, 1)
        for store in (first, second):
            expected = {(1, 1): [(0, 2.0)], (2, 1): [(0, 2.0)]}
            assert samples_of(store.read([1, 2], None, *ALL)) == expected


def test_nothing_is_lost_when_a_replica_is_killed(
    cluster: Cluster, addresses: list[ClickHouseAddress], tmp_path: Path
) -> None:
    with open_store(addresses[FIRST], tmp_path / "a") as first:
        first.append([batch(seq, [seq], [1.0], run=run) for run in (1, 2) for seq in range(5)])
    node = cluster.nodes[FIRST]
    node.kill()
    try:
        with open_store(addresses[SECOND], tmp_path / "b") as second:
            # What it holds and the other did not have yet is there when it is back.
            second.append([batch(seq, [seq], [1.0], run=run) for run in (1, 2) for seq in range(5, 10)])
            node.start()

            def complete() -> bool:
                stored = samples_of(second.read([1, 2], None, *ALL))
                return [len(samples) for samples in stored.values()] == [10, 10]

            eventually(complete)
            assert second.append([batch(1, [1], [9.0])]) == CommitAck(0, 1)
        with open_store(addresses[FIRST], tmp_path / "a") as first:
            stored = cluster.count(SECOND, "SELECT count() FROM samples_local FINAL", addresses[0].database)
            query = "SELECT count() FROM samples_local FINAL"
            eventually(lambda: cluster.count(FIRST, query, addresses[0].database) == stored)
            assert first.append([batch(6, [6], [9.0])]) == CommitAck(0, 1)
    finally:
        if node.process is None:
            node.start()


def test_runs_are_deleted_also_on_a_node_that_is_away(
    cluster: Cluster, addresses: list[ClickHouseAddress], tmp_path: Path
) -> None:
    database = addresses[FIRST].database
    with open_store(addresses[FIRST], tmp_path / "store") as store:
        store.append([batch(1, range(10), [1.0], run=run) for run in range(1, 5)])
        eventually(lambda: cluster.count(SECOND, "SELECT count() FROM samples_local", database) == 20)
        cluster.nodes[SECOND].kill()
        try:
            store.delete([1, 2])
            assert samples_of(store.read([1, 2], None, *ALL)) == {}
            assert len(samples_of(store.read([3, 4], None, *ALL))) == 2
            # Sent again, they are stored again: what was deleted is not mistaken for a repetition.
            assert store.append([batch(1, range(10), [1.0], run=1)]) == CommitAck(1, 0)
        finally:
            cluster.nodes[SECOND].start()
        count = "SELECT count() FROM samples_local WHERE run = 2"
        eventually(lambda: cluster.count(SECOND, count, database) == 0)
        assert len(samples_of(store.read([1], None, *ALL))[1, 1]) == 10


def test_nothing_is_deleted_later_of_a_run_that_has_nothing(
    cluster: Cluster, addresses: list[ClickHouseAddress], tmp_path: Path
) -> None:
    """Nodes delete when they come to it, and would delete rows that are inserted until then."""
    database = addresses[FIRST].database
    queued = "SELECT count() FROM system.zookeeper WHERE path = '/clickhouse/task_queue/ddl'"
    with open_store(addresses[FIRST], tmp_path / "store") as store:
        store.append([batch(1, [0], [1.0], run=1)])
        before = cluster.count(FIRST, queued, database)
        store.delete([2])
        assert cluster.count(FIRST, queued, database) == before
        store.delete([1])
        assert cluster.count(FIRST, queued, database) > before


def test_tables_of_a_cluster_and_of_one_server_are_not_confused(
    addresses: list[ClickHouseAddress], cluster: Cluster, tmp_path: Path
) -> None:
    plain = cluster.nodes[FIRST].address(addresses[FIRST].database)
    with open_store(addresses[FIRST], tmp_path / "a"):
        pass
    with pytest.raises(StoreError, match=r"are those of a cluster: add \?cluster=NAME"):
        open_store(plain, tmp_path / "b")
    single = cluster.nodes[FIRST].new_database(f"single_{next(_numbers)}")
    with open_store(single, tmp_path / "c"):
        pass
    clustered = ClickHouseAddress(single.host, single.port, single.database, cluster="fleet")
    with pytest.raises(StoreError, match=r"are not those of a cluster: leave out \?cluster="):
        open_store(clustered, tmp_path / "d")


def test_runs_are_copied_to_a_cluster_and_back(
    addresses: list[ClickHouseAddress], folder: str, tmp_path: Path
) -> None:
    runs = list(range(1, 7))
    with (
        SqliteChunks(folder) as embedded,
        open_store(addresses[FIRST], tmp_path / "store") as clustered,
        SqliteChunks(str(tmp_path / "back")) as back,
    ):
        embedded.pair(Pairing("ours", 1, "metadata"))
        for seq in (1, 2):
            embedded.append([batch(seq, [seq, seq + DAY], [float(run)], run=run) for run in runs])
        assert migrate(embedded, clustered, lambda totals: None).copied == 6
        assert migrate(embedded, clustered, lambda totals: None).unchanged == 6
        assert migrate(clustered, back, lambda totals: None).copied == 6
        expected = samples_of(embedded.read(runs, None, *ALL))
        for store in (clustered, back):
            assert samples_of(store.read(runs, None, *ALL)) == expected
            assert store.append([batch(2, [2], [9.0])]) == CommitAck(0, 1)


def test_an_unknown_cluster_is_named(cluster: Cluster, tmp_path: Path) -> None:
    single = cluster.nodes[FIRST].new_database(f"unknown_{next(_numbers)}")
    wrong = ClickHouseAddress(single.host, single.port, single.database, cluster="nowhere")
    with pytest.raises(StoreError, match="'nowhere'"):
        open_store(wrong, tmp_path / "store")


@pytest.fixture(scope="module")
def shared(cluster: Cluster) -> ClickHouseAddress:
    """A database for many tests: to create tables on each node takes seconds."""
    return cluster.new_database("conformance")[SECOND]


class TestCluster(Conformance):
    @pytest.fixture(params=[False], ids=["fresh"])
    def sealed(self, request: pytest.FixtureRequest) -> bool:
        return bool(request.param)  # nothing is sealed

    @pytest.fixture
    def opened(
        self, cluster: Cluster, shared: ClickHouseAddress, tmp_path: Path
    ) -> Iterator[ClickHouseStore]:
        cluster.restart_failed_nodes()
        with open_store(shared, tmp_path / "store") as store:
            yield store
        empty(cluster, shared.database)


def empty(cluster: Cluster, database: str) -> None:
    """Delete all rows, at a node of each shard: through the cluster it takes a second on the other nodes."""
    for node in (FIRST, OTHER_SHARD):
        clickhouse = ClickHouse(cluster.nodes[node].address(database))
        for table in TABLES:
            clickhouse.command(f"ALTER TABLE {table}_local DELETE WHERE 1")
        clickhouse.close()
    left = [(node, f"SELECT count() FROM {table}_local") for node in range(3) for table in TABLES]
    eventually(lambda: not any(cluster.count(node, count, database) for node, count in left))
