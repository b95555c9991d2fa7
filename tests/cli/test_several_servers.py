"""Several servers over the same stores, ClickHouse and PostgreSQL, as processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from runvitals.cli import main
from runvitals.server.metadata_store import open_metadata_store
from tests.cli.test_server import envelope, serving, values
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S, eventually
from tests.server.database import postgresql as postgres
from tests.store.samples.clickhouse.server import ClickHouseServer, installed


class Stores:
    """ClickHouse and PostgreSQL."""

    def __init__(self, folder: Path) -> None:
        self.clickhouse = ClickHouseServer(folder / "clickhouse")
        self.metadata = postgres.temporary_server()
        self._numbers = iter(range(1000))

    def new(self) -> tuple[str, ...]:
        """The options of servers with empty stores."""
        number = next(self._numbers)
        samples = self.clickhouse.new_database(f"servers_{number}")
        return str(samples), "--metadata", self.metadata.make(f"servers_{number}")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    if not installed("debian"):
        pytest.skip("clickhouse-server is not installed")
    if postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    both = Stores(tmp_path_factory.mktemp("stores"))
    yield both
    both.clickhouse.stop()


def start(stack: ExitStack, *options: str, environ: dict[str, str]) -> ForkedCommand:
    """A server that starts, and is killed at the end."""
    command = ["server", "--listen", "127.0.0.1:0", "--store", *options]
    process = ForkedCommand(*command, env={**os.environ, **environ})

    def kill() -> None:
        process.kill()
        process.communicate()

    stack.callback(kill)
    return process


def leads(client: httpx.Client) -> bool:
    return "runvitals_leader 1\n" in client.get("/metrics").text


def test_servers_share_everything_and_any_may_be_killed(stores: Stores, tmp_path: Path) -> None:
    options = stores.new()
    environs = [{"RUNVITALS_DIR": str(tmp_path / name)} for name in "ab"]
    with serving(*options, environ=environs[1]) as (_, second):
        with serving(*options, environ=environs[0]) as (process, first):
            assert [leads(second), leads(first)] == [True, False]
            assert first.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is True
            assert second.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is False
            assert values(second) == values(first) == [0.0, 1.0, 2.0]
            assert second.post("/api/v1/ingest", json=envelope(1)).json()["stored"] is True
            eventually(lambda: values(first) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
            # What is asked of one server, the clients of the other do.
            assert first.post("/api/v1/runs/curl-1/stop", json={}).status_code == 200
            eventually(lambda: second.post("/api/v1/ingest", json=envelope(1)).json()["stop"])
            process.kill()
            process.communicate()
        assert second.post("/api/v1/ingest", json=envelope(2)).json()["stored"] is True
        assert len(values(second)) == 9
        with serving(*options, environ=environs[0]) as (_, again):
            assert len(values(again)) == 9
            assert not leads(again)


def test_another_server_leads_when_the_leader_is_killed(stores: Stores, tmp_path: Path) -> None:
    options = stores.new()
    with serving(*options, environ={"RUNVITALS_DIR": str(tmp_path / "a")}) as (process, first):
        assert leads(first)
        with serving(*options, environ={"RUNVITALS_DIR": str(tmp_path / "b")}) as (_, second):
            assert not leads(second)
            process.kill()
            process.communicate()
            eventually(lambda: leads(second))


def test_servers_start_with_a_postgresql_that_was_restored_from_an_older_dump(
    stores: Stores, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples, option, address = stores.new()
    environs = [{"RUNVITALS_DIR": str(tmp_path / name)} for name in "ab"]
    database = address.partition("@/")[2].partition("?")[0]
    more = {**envelope(30), "keys": ["cpu", "loss"], "v": [[3.0, 4.0, 5.0], [0.5, 0.5, 0.5]]}
    with serving(samples, option, address, environ=environs[0]) as (_, client):
        assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
    restored = stores.metadata.make(f"{database}_restored", template=database)
    for environ in environs:  # two starts later
        with serving(samples, option, address, environ=environ) as (_, client):
            assert client.post("/api/v1/ingest", json=more).status_code == 200
            assert client.post("/api/v1/ingest", json=envelope(0, run="lost")).status_code == 200
    with (
        serving(samples, option, restored, environ=environs[0]) as (_, first),
        serving(samples, option, restored, environ=environs[1]) as (_, second),
    ):
        assert [run["id"] for run in first.get("/api/v1/runs").json()["runs"]] == ["curl-1"]
        assert first.post("/api/v1/ingest", json=envelope(0, run="new", values=1)).status_code == 200
        for client in (first, second):
            eventually(lambda client=client: values(client, "new") == [0.0])
            assert sorted(values(client)) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
            assert client.get("/api/v1/runs/curl-1").status_code == 200
            assert client.get("/api/v1/runs/curl-1/metrics").status_code == 200
            assert client.get("/metrics").status_code == 200
        options = ["--store", samples, "--catalogue", restored, "--dir", str(tmp_path / "c")]
        assert main(["store", "repair", *options]) == 1
        assert "stop all of them before a repair" in capsys.readouterr().err
    assert main(["store", "repair", *options]) == 0
    with serving(samples, option, restored, environ=environs[0]) as (_, client):
        names = sorted(run["id"] for run in client.get("/api/v1/runs").json()["runs"])
        assert [name.partition("-")[0] for name in names] == ["curl", "new", "recovered"]
        assert client.get(f"/api/v1/runs/{names[2]}/metrics").status_code == 200


def test_an_open_page_sees_what_another_server_receives(stores: Stores, tmp_path: Path) -> None:
    options = stores.new()
    with (
        serving(*options, environ={"RUNVITALS_DIR": str(tmp_path / "a")}) as (_, first),
        serving(*options, environ={"RUNVITALS_DIR": str(tmp_path / "b")}) as (_, second),
    ):
        first.post("/api/v1/ingest", json=envelope(0))
        with second.stream("GET", "/api/v1/runs/curl-1/live") as events:
            assert events.status_code == 200, events.read()
            lines = events.iter_lines()
            first.post("/api/v1/ingest", json=envelope(1))
            assert any('"samples"' in line and '"cpu":5.0' in line for line in lines)


def test_worker_processes_share_a_port(stores: Stores, tmp_path: Path) -> None:
    options = stores.new()
    environ = {"RUNVITALS_DIR": str(tmp_path / "a")}
    with serving(*options, "--workers", "2", environ=environ) as (process, client):
        workers = eventually_children(process.pid, 2)
        assert client.post("/api/v1/ingest", json=envelope(0)).json()["stored"] is True
        os.kill(workers[0], signal.SIGKILL)
        eventually(lambda: set(eventually_children(process.pid, 2)) - set(workers))
        with httpx.Client(base_url=client.base_url, timeout=PATIENCE_S) as again:
            eventually(lambda: posted(again))
            assert len(values(again)) == 6
        process.send_signal(signal.SIGTERM)
        _, written = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, written


def test_worker_processes_end_when_their_parent_is_killed(stores: Stores, tmp_path: Path) -> None:
    options = stores.new()
    environ = {"RUNVITALS_DIR": str(tmp_path / "a")}
    with serving(*options, "--workers", "2", environ=environ) as (process, _):
        workers = [psutil.Process(pid) for pid in eventually_children(process.pid, 2)]
        process.kill()
        gone, alive = psutil.wait_procs(workers, timeout=PATIENCE_S)
        assert (len(gone), alive) == (2, [])


def posted(client: httpx.Client) -> bool:
    """Whether the server that gets the connection takes an envelope: one that just died does not."""
    try:
        return client.post("/api/v1/ingest", json=envelope(1)).status_code == 200
    except httpx.TransportError:
        return False


def eventually_children(pid: int, count: int) -> list[int]:
    pids: list[int] = []

    def are_there() -> bool:
        pids[:] = [child.pid for child in psutil.Process(pid).children()]
        return len(pids) == count

    eventually(are_there)
    return pids


def test_workers_need_stores_that_processes_share(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["server", "--workers", "2", "--listen", "127.0.0.1:0", "--store", str(tmp_path)]) == 1
    assert "--store clickhouse://… and --metadata postgresql://…" in capsys.readouterr().err


@pytest.mark.parametrize("round", range(2))
def test_servers_that_start_together_for_the_first_time_all_serve(
    stores: Stores, tmp_path: Path, round: int
) -> None:
    password = tmp_path / "password"
    password.write_text("correct horse battery staple\n")
    options = (*stores.new(), "--admin-email", "ada@example.org", "--require-token")
    named = {"RUNVITALS_ADMIN_PASSWORD_FILE": str(password)} if round else {}
    with ExitStack() as stack:
        processes = [
            start(stack, *options, environ={**named, "RUNVITALS_DIR": str(tmp_path / name)}) for name in "abc"
        ]
        printed = [process.stdout.readline() for process in processes]
        for process, line in zip(processes, printed, strict=True):
            assert line.startswith("runvitals: http://"), process.stderr.read()
            with httpx.Client(base_url=line.split()[1], timeout=PATIENCE_S) as client:
                assert client.get("/api/v1/about").json()["auth"] == "accounts"
                assert client.get("/readyz").status_code == 200
    with open_metadata_store(options[2]) as metadata_store:
        assert [user.name for user in metadata_store.accounts.users.page()] == ["ada"]
        paired = metadata_store.issued_ids.pairing()
        assert paired is not None
        assert paired[1] == 3
