"""The destination `wandb:`, against a server that W&B's own client can use too."""

from __future__ import annotations

import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from runvitals.readers.journals import open_run
from runvitals.readers.wandb_files.importer import import_file
from runvitals.relay.batch import CONSOLE, LIFECYCLE, Batch, LogRow, Note, RunFacts, Samples, WriterFacts
from runvitals.relay.destination import Context, Gone, Rejected, Retry, Unauthorized
from runvitals.relay.destinations.wandb.account import WandbAddress, authorization
from runvitals.relay.destinations.wandb.destination import WandbDestination
from runvitals.relay.engine.destination_spec import DestinationSpec
from tests.patience import PATIENCE_S
from tests.relay.destinations.wandb.server import KEY, WandbServer

T0 = 1_700_000_000_000


@pytest.fixture(scope="module")
def server() -> Iterator[WandbServer]:
    server = WandbServer()
    yield server
    server.shutdown()
    server.server_close()


class Source:
    """A run's batches, and the state of its delivery as JSON keeps it."""

    def __init__(self, server: WandbServer, cwd: Path, run: str) -> None:
        self.environ = {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY, "HOME": str(cwd)}
        self.cwd = cwd
        self.state: dict[str, Any] = {}
        self.run = RunFacts(run, "vision")
        self.run.run = {"name": "first try", "tags": ["a"]}
        self.stops: list[str] = []

    def destination(self, address: str = "?every=0") -> WandbDestination:
        self.state = json.loads(json.dumps(self.state))
        context = Context(
            self.run.id,
            str(self.cwd),
            str(self.cwd),
            self.state,
            lambda: None,
            self.stops.append,
            self.environ,
        )
        return WandbDestination(address, context)

    def deliver(self, *batches: Batch, address: str = "?every=0") -> None:
        with closing(self.destination(address)) as destination:
            for batch in batches:
                destination.deliver(batch)

    def batch(self, role: str = "monitor", rank: int | None = None) -> Batch:
        writer = WriterFacts(f"{role}.n1.{100 + (rank or 0)}.18c", role, "n1")
        writer.rank, writer.started_ms = rank, T0
        return Batch(self.run, writer, 1, 1)

    def samples(self, keys: Sequence[str], rows: Sequence[Sequence[float]], first: int = 0) -> Batch:
        batch = self.batch()
        table = Samples(keys)
        for i, row in enumerate(rows):
            table.add(i, T0 + 1000 * (first + i), struct.pack(f"<{len(row)}d", *row))
        batch.samples.append(table)
        return batch

    def logged(self, *rows: tuple[int, Mapping[str, Any]], rank: int | None = 0) -> Batch:
        batch = self.batch("train", rank)
        batch.logs = [LogRow(i, T0 + 1000 * i, step, data) for i, (step, data) in enumerate(rows)]
        return batch

    def printed(self, *pieces: tuple[int, str]) -> Batch:
        batch = self.batch("console")
        batch.notes = [
            Note(1, CONSOLE, {"t": T0 + 1500, "stream": stream, "text": text}) for stream, text in pieces
        ]
        return batch

    def ended(self, state: str = "finished", **how: int) -> Batch:
        batch = self.batch()
        batch.notes = [Note(1, LIFECYCLE, {"t": T0 + 9000, "what": "end", "state": state, **how})]
        return batch


@pytest.fixture
def source(server: WandbServer, tmp_path: Path, request: pytest.FixtureRequest) -> Source:
    server.stop = False
    return Source(server, tmp_path, request.node.name[:60].replace("[", "-").replace("]", ""))


def test_is_built_in() -> None:
    assert DestinationSpec("wandb:me/digits").factory() is WandbDestination


def test_delivers_a_whole_run(server: WandbServer, source: Source) -> None:
    source.run.config = {"lr": 0.1, "net": {"depth": 3}}
    source.run.summary = {"best": 0.9}
    source.deliver(
        source.samples(["cpu", "gpu.0.powerWatts"], [(1.5, 70.0), (math.nan, math.inf)]),
        source.logged((0, {"loss": 0.5}), (0, {"acc": 0.1}), (3, {"loss": math.nan, "note": "x"})),
        source.logged((0, {"loss": 9.0}), rank=1),
        source.printed((1, "10 %\r20 %\rdone\nbye"), (2, "oh \x1b[31mno\n")),
        source.ended("failed", exit_code=3),
    )
    files = server.run(source.run.id)
    assert files.variables["displayName"] == "first try"
    assert (files.variables["project"], files.variables["tags"]) == ("vision", ["a"])
    assert json.loads(files.variables["config"]) == {"lr": {"value": 0.1}, "net": {"value": {"depth": 3}}}
    assert files.read("wandb-events.jsonl") == [
        {"_wandb": True, "_timestamp": T0 / 1000, "_runtime": 0.0, "system.cpu": 1.5,
         "system.gpu.0.powerWatts": 70.0},
        {"_wandb": True, "_timestamp": T0 / 1000 + 1, "_runtime": 1.0, "system.gpu.0.powerWatts": None},
    ]  # fmt: skip
    first, second = files.read("wandb-history.jsonl")
    assert (first["_step"], first["loss"], first["acc"]) == (0, 0.5, 0.1)
    assert second["_step"] == 3
    assert math.isnan(second["loss"])
    [summary] = files.read("wandb-summary.json")
    assert (summary["acc"], summary["note"], summary["best"]) == (0.1, "x", 0.9)
    assert files.read("output.log") == [
        "2023-11-14T22:13:21.500000 done",
        "ERROR 2023-11-14T22:13:21.500000 oh \x1b[31mno",
    ]
    assert files.exit_code == 3


def test_samples_of_an_interval_become_one_line(server: WandbServer, source: Source) -> None:
    rows = [(float(i), 10.0 * i) for i in range(30)]
    source.deliver(source.samples(["cpu", "network.recv"], rows), address="?every=15")
    lines = server.run(source.run.id).read("wandb-events.jsonl")
    assert [(line["_runtime"], line["system.cpu"], line["system.network.recv"]) for line in lines] == [
        (9.0, 4.5, 90.0), (24.0, 17.0, 240.0), (29.0, 27.0, 290.0),
    ]  # fmt: skip


def test_repeated_batch_is_stored_once(server: WandbServer, source: Source) -> None:
    source.deliver(source.samples(["cpu"], [(1.0,)]))
    state = json.dumps(source.state)
    again = source.samples(["cpu"], [(2.0,), (3.0,)], first=1)
    source.deliver(again)
    source.state = json.loads(state)  # killed before the position was written
    source.deliver(again, source.samples(["cpu"], [(4.0,)], first=3))
    lines = server.run(source.run.id).read("wandb-events.jsonl")
    assert [line["system.cpu"] for line in lines] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("status", "kind"), [(500, Retry), (429, Retry), (401, Unauthorized), (422, Rejected)]
)
def test_failed_request_changes_nothing(
    server: WandbServer, source: Source, status: int, kind: type[Exception]
) -> None:
    destination = source.destination()
    destination.deliver(source.logged((0, {"loss": 1.0})))
    state = json.dumps(source.state)
    server.faults = [status]
    batch = source.logged((1, {"loss": 2.0}))
    with pytest.raises(kind, match=str(status)):
        destination.deliver(batch)
    assert json.dumps(source.state) == state
    destination.deliver(batch)
    destination.close()
    assert [row["loss"] for row in server.run(source.run.id).read("wandb-history.jsonl")] == [1.0, 2.0]


def test_missing_api_key(source: Source) -> None:
    del source.environ["WANDB_API_KEY"]
    with pytest.raises(Unauthorized, match="no API key for http://127") as raised:
        source.deliver(source.samples(["cpu"], [(1.0,)]))
    assert not raised.value.remedied()
    source.environ["WANDB_API_KEY"] = "k" * 40
    assert raised.value.remedied()


def test_project_without_write_access(source: Source) -> None:
    with pytest.raises(Rejected, match="permission denied"):
        source.deliver(source.samples(["cpu"], [(1.0,)]), address="me/forbidden")


def test_forwards_a_stop_request(server: WandbServer, source: Source) -> None:
    server.stop = True
    source.deliver(source.samples(["cpu"], [(1.0,)]), source.samples(["cpu"], [(2.0,)], first=1))
    assert source.stops == ["requested at W&B"]


def test_several_hosts(server: WandbServer, source: Source) -> None:
    source.deliver(source.samples(["cpu"], [(1.0,)]), address="?every=0&shared=1")
    files = server.run(source.run.id)
    assert "system.cpu/l:n1" in files.read("wandb-events.jsonl")[0]
    assert files.clients == {f"runvitals-{source.run.id}"}


def test_joins_the_run_of_the_training(server: WandbServer, source: Source) -> None:
    guest = {"entity": "me", "project": "p", "id": "theirs", "base_url": server.url, "offline": False}
    source.run.run["wandb"] = {**guest, "stats": False}
    source.deliver(source.samples(["cpu"], [(1.0,)]), source.logged((0, {"loss": 1.0})), source.ended())
    files = server.run("theirs")
    assert set(files.lines) == {"wandb-events.jsonl"}
    assert (files.variables, files.exit_code) == ({}, None)
    source.run.run["wandb"] = {**guest, "stats": True}
    with pytest.raises(Gone, match="x_disable_stats=True"):
        source.deliver(source.samples(["cpu"], [(1.0,)]))


def test_joins_a_shared_run_of_the_training(server: WandbServer, source: Source) -> None:
    guest = {"entity": "me", "project": "p", "id": "common", "base_url": server.url, "offline": False}
    source.run.run["wandb"] = {**guest, "stats": True, "shared": True}
    source.deliver(source.samples(["cpu"], [(1.0,)]))
    files = server.run("common")
    assert "system.cpu/l:runvitals-n1" in files.read("wandb-events.jsonl")[0]
    assert files.clients == {f"runvitals-{source.run.id}"}


def test_offline_file(source: Source) -> None:
    source.run.config = {"lr": 0.1}
    address = "me/digits?mode=offline&every=0"
    source.deliver(source.samples(["cpu"], [(1.5,)]), source.logged((2, {"loss": 0.5})), address=address)
    state = json.dumps(source.state)
    again = source.samples(["cpu"], [(2.5,)], first=1)
    source.deliver(again, address=address)
    source.state = json.loads(state)
    source.deliver(
        again, source.printed((1, "x" * 40_000 + "\n")), source.ended(exit_code=0), address=address
    )
    [path] = source.cwd.glob("wandb/offline-run-20231114_221320-*/run-*.wandb")
    run_id = import_file(str(path), str(source.cwd / "ours"))
    assert (run_id.samples, run_id.rows, run_id.console_records, run_id.damaged, run_id.project) == (
        2,
        1,
        1,
        0,
        "digits",
    )
    run = open_run(run_id.run, directory=str(source.cwd / "ours"))
    assert (run.state, run.config, run.summary, run.facts.name) == (
        "finished",
        {"lr": 0.1},
        {"loss": 0.5},
        "first try",
    )
    assert run.history()[0].step == 2


def test_wandb_sync_accepts_the_file(server: WandbServer, source: Source) -> None:
    source.deliver(
        source.samples(["cpu"], [(1.5,), (2.5,)]), source.logged((2, {"loss": 0.5})),
        source.ended(exit_code=0), address="me/digits?mode=offline&every=0",
    )  # fmt: skip
    [folder] = source.cwd.glob("wandb/offline-run-*")
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "sync", str(folder)],
        env={**_clean(), **source.environ}, cwd=source.cwd, capture_output=True, text=True,
        timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    files = server.run(source.run.id)
    assert [line["system.cpu"] for line in files.read("wandb-events.jsonl")] == [1.5, 2.5]
    assert [(row["_step"], row["loss"]) for row in files.read("wandb-history.jsonl")] == [(2, 0.5)]
    assert (files.variables["project"], files.exit_code) == ("digits", 0)


TRAINING = """
import sys, time, wandb, runvitals
settings = wandb.Settings(x_disable_stats=True, silent=True)
theirs = wandb.init(project="p", id="trained", settings=settings)
ours = runvitals.init(settings={"destinations": ["wandb:?every=0"], "sampling_interval": 0.1})
for i in range(10):
    theirs.log({"loss": 1 / (i + 1)})
    time.sleep(0.05)
ours.finish()
theirs.finish()
"""


def test_training_with_the_wandb_client(server: WandbServer, source: Source) -> None:
    environ = {**_clean(), **source.environ, "RUNVITALS_DIR": str(source.cwd / "ours")}
    done = subprocess.run(
        [sys.executable, "-c", TRAINING],
        env=environ,
        cwd=source.cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "delivered to wandb" in done.stderr
    files = server.run("trained")
    lines = files.read("wandb-events.jsonl")
    assert lines  # how many depends on how soon the monitor is there
    assert all("system.proc.memory.rssMB" in line for line in lines[:1])
    assert [row["loss"] for row in files.read("wandb-history.jsonl")] == [1 / (i + 1) for i in range(10)]
    assert files.exit_code == 0
    journal = b"".join(path.read_bytes() for path in (source.cwd / "ours").rglob("*") if path.is_file())
    assert KEY.encode() not in journal


def _clean() -> dict[str, str]:
    kept = ("PATH", "TMPDIR", "LANG", "VIRTUAL_ENV")
    environ = {key: value for key, value in os.environ.items() if key in kept}
    return {**environ, "PYTHONPATH": os.pathsep.join(sys.path), "WANDB_ERROR_REPORTING": "false"}


def test_api_key_is_sent_to_its_own_service_only(tmp_path: Path) -> None:
    environ = {"WANDB_API_KEY": "k", "HOME": str(tmp_path)}
    assert authorization("https://api.wandb.ai", environ) == "Basic YXBpOms="
    assert authorization("https://elsewhere.example.org", environ) is None
    (tmp_path / ".netrc").write_text("machine elsewhere.example.org login user password other\n")
    assert authorization("https://elsewhere.example.org", environ) == "Basic YXBpOm90aGVy"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("?every=-1", "invalid every='-1'"), ("?every=x", "invalid every='x'"),
        ("?mode=shared", "invalid mode='shared'"),
        ("?colour=1", "unknown option 'colour'"), ("?shared=yes", "invalid shared='yes'"),
    ],
)  # fmt: skip
def test_invalid_addresses_are_rejected(address: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"wandb: {why}"):
        WandbAddress.read(address, {})
