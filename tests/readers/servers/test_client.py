"""Listing runs, tokens, and errors of the client."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path

import pytest

import runvitals
from runvitals.base import stored_keys
from runvitals.readers.servers import Client, ServerError
from runvitals.readers.servers import client as client_module
from tests.readers.journals.journals import T0, Monitor, Training


def test_runs_are_fetched_page_by_page(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "PAGE_SIZE", 2)
    for number in range(5):
        Monitor(tmp_path, f"run{number}", start_ms=T0 + number).end(T0 + 10)
    runs = client.runs()
    assert [run.id for run in islice(runs, 2)] == ["run4", "run3"]
    Monitor(tmp_path, "late", start_ms=T0 + 100)
    assert [run.id for run in runs] == ["run2", "run1", "run0"]
    assert [run.id for run in client.runs(state=["running", "lost"])] == ["late"]


def test_filters_and_sort_order(client: Client, tmp_path: Path) -> None:
    for number, (name, project) in enumerate(
        (("wide", "digits"), ("deep", "other"), ("very wide", "digits"))
    ):
        training = Training(tmp_path, f"r{number}", project=project, seed=number, name=name)
        training.advance(1)
        training.end(exit_code=0)
    assert [run.id for run in client.runs(project="digits", sort="name", descending=False)] == ["r2", "r0"]
    assert [run.id for run in client.runs(where=["config.seed >= 1", "config.seed < 2"])] == ["r1"]
    (run,) = client.runs(text="VERY wide", tag="baseline")
    assert (run.name, run.project, run.tags) == ("very wide", "digits", ["baseline"])
    assert run.summary["loss"] == 0.08
    assert run.config["seed"] == 2  # asked for only now: lists have no configurations
    with pytest.raises(ServerError, match="where: ") as refused:
        list(client.runs(where="config.seed"))
    assert refused.value.status == 422


def test_latest_and_aggregate(client: Client, tmp_path: Path) -> None:
    for number in range(2):
        Training(tmp_path, f"r{number}", host=f"node{number}", seed=number).advance(30)
    assert {latest.host: set(latest.values) for latest in client.latest("cpu")} == {
        "node0": {"cpu"},
        "node1": {"cpu"},
    }
    by_host = client.aggregate("cpu", t0=T0, t1=T0 + 29_999, bucket_ms=10_000, group_by="host")
    assert [(latest.group, latest.n.sum()) for latest in by_host] == [("node0", 30), ("node1", 30)]
    (of_all,) = client.aggregate("cpu", t0=T0, t1=T0 + 29_999, text="r1")
    assert (of_all.group, of_all.n.tolist()) == (None, [30])
    t, values = client.run("r1").metrics("cpu")["cpu"]
    assert (of_all.min[0], of_all.max[0]) == (values.min(), values.max())
    assert len(t) == 30


def test_mlflow_names(client: Client, tmp_path: Path) -> None:
    Training(tmp_path, gpus=2).advance(3)
    run = client.run("abc")
    ours = run.metrics("system/gpu_utilization_percentage")
    assert sorted(ours) == ["gpu.0.gpu", "gpu.1.gpu"]
    theirs = run.metrics("gpu.0.gpu", "memory.usedMB", names="mlflow")
    assert list(theirs["system/gpu_0_utilization_percentage"].values) == list(ours["gpu.0.gpu"].values)
    assert theirs["memory.usedMB"].key == "system/system_memory_usage_megabytes"
    (reported,) = run.statistics("gpu.1.gpu", names="mlflow")
    assert reported.key == "system/gpu_1_utilization_percentage"
    (of_all,) = client.aggregate("system/gpu_0_utilization_percentage", t0=T0, t1=T0 + 10_000)
    assert of_all.n.sum() == 3


class Echo(BaseHTTPRequestHandler):
    """Responds with the request's token, and closes the connection after each response without notice."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b'{"error": "token: %s"}' % self.headers.get("Authorization", "none").encode()
        if "plain" in self.path:
            body = b"<h1>It works!</h1>"
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def echo() -> object:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def reported(client: Client) -> str:
    with client, pytest.raises(ServerError) as refused:
        client.latest()
    assert refused.value.status == 401
    return str(refused.value)


def test_order_of_tokens(echo: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The argument, then the environment variable, then the token stored by `runvitals login`."""
    assert "requires a key: `runvitals login http" in reported(Client(echo))
    stored_keys.save(echo, "rvt_kept", {"XDG_CONFIG_HOME": str(home)})
    assert reported(Client(echo + "/")) == "token: Bearer rvt_kept"
    monkeypatch.setenv("RUNVITALS_TOKEN", "rvt_variable")
    assert reported(Client(echo)) == "token: Bearer rvt_variable"
    assert reported(Client(echo, token="rvt_argument")) == "token: Bearer rvt_argument"


def test_dropped_connection_is_reopened(echo: str) -> None:
    client = Client(echo)
    for _ in range(3):
        with pytest.raises(ServerError, match="requires a key"):
            client.latest()
    client.close()


def test_other_servers_are_reported(echo: str) -> None:
    with Client(f"{echo}/plain") as client, pytest.raises(ServerError, match="is it a runvitals server"):
        client.latest()


def test_unreachable_server() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ServerError, match=f"could not reach {url}: ") as error:
            Client(url).run("abc")
    assert error.value.status is None


def test_server_that_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(ServerError, match="timed out"):
            Client(url, timeout_s=0.05).run("abc")


def test_invalid_urls() -> None:
    with pytest.raises(ValueError, match="invalid server URL"):
        runvitals.Client("runs.example.org")


def test_client_is_imported_on_first_use() -> None:
    assert runvitals.Client is Client
