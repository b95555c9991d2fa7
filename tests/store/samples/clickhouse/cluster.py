"""A cluster of Debian's ClickHouse with ZooKeeper: two replicas of one shard, and a second shard."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from runvitals.store.samples.clickhouse import ClickHouseAddress
from runvitals.store.samples.clickhouse.connection import ClickHouse
from tests.patience import eventually
from tests.store.samples.clickhouse.server import DEBIAN, ClickHouseServer, free_ports

NAME = "fleet"
_JAR = "/usr/share/java/zookeeper.jar"
_LOGGER = "/usr/share/java/slf4j-nop.jar"
_NODES = (("one", "a"), ("one", "b"), ("two", "a"))
"""Shard and replica of each server."""
_ZOOKEEPER = """tickTime=500
dataDir={folder}
clientPort={port}
clientPortAddress=127.0.0.1
admin.enableServer=false
maxClientCnxns=0
4lw.commands.whitelist=srvr
"""
_CONFIG = """<interserver_http_host>127.0.0.1</interserver_http_host>
<interserver_http_port>{interserver_port}</interserver_http_port>
<zookeeper><node><host>127.0.0.1</host><port>{zookeeper_port}</port></node>
<session_timeout_ms>4000</session_timeout_ms></zookeeper>
<macros><shard>{shard}</shard><replica>{replica}</replica></macros>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
<remote_servers><{name}>{shards}</{name}></remote_servers>
<merge_tree><replicated_max_ratio_of_wrong_parts>1</replicated_max_ratio_of_wrong_parts></merge_tree>
"""
# The last lets a killed server start also if the few rows of a test were not yet agreed upon.
_DDL_THREAD_ENDED = b"DDLWorker: Unexpected ZooKeeper error"


def installed() -> bool:
    """Whether there is what a cluster needs."""
    return os.path.exists(DEBIAN) and os.path.exists(_JAR) and shutil.which("java") is not None


class ZooKeeper:
    """A ZooKeeper server in a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (self.port,) = free_ports(1)
        (folder / "zoo.cfg").write_text(_ZOOKEEPER.format(folder=folder, port=self.port))
        main = "org.apache.zookeeper.server.ZooKeeperServerMain"
        command = [
            "java",
            "-Xmx128m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-cp",
            f"{_JAR}:{_LOGGER}",
            main,
            str(folder / "zoo.cfg"),
        ]
        with open(folder / "log", "ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
        eventually(self._serves)

    def _serves(self) -> bool:
        """Whether it has begun to serve: it listens before that."""
        assert self.process.poll() is None, "ZooKeeper has ended"
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=4) as connection:
            connection.sendall(b"srvr")
            return b"Mode: standalone" in connection.makefile("rb").read()
        return False

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Cluster:
    """`nodes` are two replicas of a shard, then the only one of another. Each can be killed and started."""

    def __init__(self, folder: Path) -> None:
        self.zookeeper = ZooKeeper(folder / "zookeeper")
        ports = free_ports(3 * len(_NODES))
        tcp_ports = ports[len(_NODES) : 2 * len(_NODES)]
        shards = _shards(tcp_ports)
        self.nodes: list[ClickHouseServer] = []
        for index, (shard, replica) in enumerate(_NODES):
            more = _CONFIG.format(
                interserver_port=ports[2 * len(_NODES) + index],
                zookeeper_port=self.zookeeper.port,
                shard=shard,
                replica=replica,
                name=NAME,
                shards=shards,
            )
            server = ClickHouseServer(
                folder / f"node{index}", ports=(ports[index], tcp_ports[index]), more=more
            )
            self.nodes.append(server)

    def new_database(self, name: str) -> list[ClickHouseAddress]:
        """A new, empty database, by its address at each node."""
        self.restart_failed_nodes()
        addresses = [node.new_database(name) for node in self.nodes]
        return [
            ClickHouseAddress(
                address.host, address.port, address.database, address.user, address.password, cluster=NAME
            )
            for address in addresses
        ]

    def restart_failed_nodes(self) -> None:
        """Start those nodes again that have ended by themselves, or execute no more queries ON CLUSTER. In
        ClickHouse 18.16, two replicas that execute the same ALTER at the same moment end one's thread for
        such queries, which a busy machine provokes.
        """
        for node in self.nodes:
            node.start_if_ended()
            log = node.folder / "log"
            if _DDL_THREAD_ENDED in log.read_bytes():
                node.kill()
                log.rename(node.folder / "log.before")
                node.start()

    def count(self, node: int, sql: str, database: str) -> int:
        """Return the result of a query that counts on one node."""
        clickhouse = ClickHouse(self.nodes[node].address(database))
        try:
            return int(clickhouse.command(sql))
        finally:
            clickhouse.close()

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()
        self.zookeeper.stop()


def _shards(tcp_ports: list[int]) -> str:
    """The element of each shard, with the ports of its replicas."""
    text = ""
    for shard in dict.fromkeys(shard for shard, _ in _NODES):
        replicas = "".join(
            f"<replica><host>127.0.0.1</host><port>{port}</port></replica>"
            for port, (of, _) in zip(tcp_ports, _NODES, strict=True)
            if of == shard
        )
        text += f"<shard><internal_replication>true</internal_replication>{replicas}</shard>"
    return text
