"""Two nodes with two ranks each, as torchrun starts them, and a server, each in its own network namespace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import frames, paths
from runvitals.journal.reader import read_run
from runvitals.sdk.identity import short_id
from tests.patience import PATIENCE_S
from tests.relay.namespaces import Network
from tests.relay.receiver import END_OF_TIME_MS, Receiver

SOURCE = str(Path(__file__).parents[2] / "src")
RUN = short_id("torchrun-job7")
TOKEN = "rvt_of_the_cluster"
# What torchrun's agent does on a node: the ranks of this node, with what they need to know of the others.
AGENT = """
import os, socket, subprocess, sys
node, script = int(sys.argv[1]), sys.argv[2]
socket.sethostname(f"node{node + 1}")
ranks = []
for local in range(2):
    place = {"RANK": 2 * node + local, "WORLD_SIZE": 4, "LOCAL_RANK": local, "LOCAL_WORLD_SIZE": 2}
    job = {"TORCHELASTIC_RUN_ID": "job7", "GROUP_RANK": node, "MASTER_ADDR": "node1", "MASTER_PORT": 29500}
    environ = {**os.environ, **{name: str(value) for name, value in {**place, **job}.items()}}
    ranks.append(subprocess.Popen([sys.executable, "-c", script], env=environ))
sys.exit(max(rank.wait() for rank in ranks))
"""
TRAIN = """
import os, time, runvitals
run = runvitals.init(project="digits", settings={"sampling_interval": 0.2})
step = 0
while not os.path.exists(os.environ["STOP"]):
    run.log({"loss": 1.0 / (step + 1)}, step=step)
    step += 1
    time.sleep(0.05)
run.finish()
"""


class Cluster:
    """The nodes, each with its own data folder, and their journals."""

    def __init__(self, folder: Path, network: Network, url: str) -> None:
        self.folder = folder
        self.network = network
        self._url = url
        self._agents: list[subprocess.Popen[str]] = []

    def data(self, node: str) -> str:
        return str(self.folder / node)

    def start(self, node: str) -> None:
        kept = {name: text for name, text in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        environ = {
            **kept,
            "PYTHONPATH": SOURCE,
            "RUNVITALS_DIR": self.data(node),
            "RUNVITALS_COLLECTORS": "cpu,memory",
            "RUNVITALS_SERVER": self._url,
            "RUNVITALS_TOKEN": TOKEN,
            "STOP": str(self.folder / "stop"),
        }
        words = [sys.executable, "-c", AGENT, str(len(self._agents)), TRAIN]
        self._agents.append(
            subprocess.Popen(
                self.network.command(node, *words), env=environ, stderr=subprocess.PIPE, text=True
            )
        )

    def finish(self) -> str:
        """What was output on stderr, once all ranks have ended well."""
        (self.folder / "stop").touch()
        output = [agent.communicate(timeout=PATIENCE_S)[1] for agent in self._agents]
        assert [agent.returncode for agent in self._agents] == [0, 0], output
        return "".join(output)

    def end(self) -> None:
        """End what a failed test has left."""
        (self.folder / "stop").touch()
        for agent in self._agents:
            agent.kill()
            agent.communicate()
        for node in ("node1", "node2"):
            for pid in self.relays(node):
                os.kill(pid, signal.SIGKILL)

    def relays(self, node: str) -> list[int]:
        pids = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue  # it ended while we looked
            if b"runvitals-relay" in words and self.data(node).encode() in words:
                pids.append(int(entry.name))
        return pids

    def written(self) -> Counter[tuple[str, str]]:
        """(host, what) of every sample and `log()` in the journals; of a millisecond's samples the last."""
        counts: Counter[tuple[str, str]] = Counter()
        for node in ("node1", "node2"):
            records = list(read_run(paths.run_dir(RUN, self.data(node))))
            samples = {record.time_ms for record in records if record.type == frames.SAMPLE}
            counts[node, "memory_percent"] = len(samples)
            counts[node, "loss"] = sum(record.type == frames.HISTORY for record in records)
        return counts


def stored(receiver: Receiver) -> Counter[tuple[str, str]]:
    """The same, of what the server holds."""
    run_id = receiver.run(RUN).id
    hosts = {
        writer.lane_id: writer.host for writer in receiver.metadata_store.writers.of_runs([run_id])[run_id]
    }
    series = receiver.store.read(receiver.store.active_runs(0), None, 0, END_OF_TIME_MS).series
    keys = receiver.metadata_store.metrics.keys(item.metric for item in series)
    counts: Counter[tuple[str, str]] = Counter()
    for item in series:
        if keys[item.metric] in ("memory_percent", "loss"):
            counts[hosts[item.run], keys[item.metric]] += len(item.t)
    return counts


def eventually(look: Callable[[], Any], what: str) -> Any:
    until_s = time.monotonic() + PATIENCE_S
    while not (value := look()):
        assert time.monotonic() < until_s, f"it did not come to pass: {what}; {value}"
        time.sleep(0.05)
    return value


@pytest.fixture
def network() -> Iterator[Network]:
    with Network("node1", "node2") as network:
        yield network


@pytest.fixture
def receiver(network: Network, tmp_path: Path) -> Iterator[Receiver]:
    receiver = Receiver(str(tmp_path / "server"), listener=network.listen())
    receiver.required_token = TOKEN
    yield receiver
    receiver.close()


@pytest.fixture
def cluster(network: Network, receiver: Receiver, tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        cluster = Cluster(tmp_path, network, receiver.url)
        stack.callback(cluster.end)
        yield cluster


def states(receiver: Receiver) -> dict[str, str]:
    """Of the run, and of its hosts."""
    from runvitals.server.runs.storage.run_states import hosts

    run = receiver.run(RUN)
    writers = receiver.metadata_store.writers.of_runs([run.id])[run.id]
    return {"run": run.state, **{host.name: host.ending.state for host in hosts(writers, receiver.now_ms())}}


def test_two_nodes_survive_outages_as_one_run(cluster: Cluster, receiver: Receiver) -> None:
    for node in ("node1", "node2"):
        cluster.start(node)
    everywhere = {(node, key) for node in ("node1", "node2") for key in ("memory_percent", "loss")}
    eventually(lambda: receiver.runs() and set(stored(receiver)) == everywhere, "both nodes deliver")
    assert receiver.runs() == 1
    assert states(receiver) == {"run": "running", "node1": "running", "node2": "running"}
    ranks = receiver.metadata_store.writers.processes(receiver.run(RUN).id)
    assert sorted((rank.rank, rank.host, rank.world_size) for rank in ranks) == [
        (0, "node1", 4), (1, "node1", 4), (2, "node2", 4), (3, "node2", 4),
    ]  # fmt: skip

    cluster.network.link("node2", up=False)
    before = stored(receiver)
    (first,) = cluster.relays("node1")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: first not in cluster.relays("node1") and cluster.relays("node1"), "another relay")
    receiver.ahead_ms = 60_000  # a minute later, for the server
    eventually(
        lambda: stored(receiver)["node1", "memory_percent"] > before["node1", "memory_percent"],
        "node1 goes on",
    )
    assert stored(receiver)["node2", "memory_percent"] == before["node2", "memory_percent"]
    silent = {"run": "running", "node1": "running", "node2": "lost"}  # not crashed
    eventually(lambda: states(receiver) == silent, "node2 is missed, the run goes on")

    cluster.network.link("node2", up=True)
    eventually(lambda: states(receiver)["node2"] == "running", "node2 is back")
    output = cluster.finish()
    eventually(lambda: set(states(receiver).values()) == {"finished"}, "the end is known")
    assert stored(receiver) == cluster.written()
    assert output.count("delivered to") == 1  # rank 0 tells
    assert receiver.runs() == 1
