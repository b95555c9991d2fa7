"""The proxies of deploy/proxies, real ones, before real servers."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import grpc
import httpx
import pytest

from runvitals.relay.destinations.runvitals.destination import SENDER_HEADER
from tests.cli.test_server import envelope
from tests.forked_command import ForkedCommand
from tests.patience import PATIENCE_S, eventually
from tests.relay.real_servers import free_port
from tests.server.doors.otlp.messages import gauge
from tests.server.doors.otlp.messages import request as metrics
from tests.server.doors.otlp.test_overload import EXPORT, FAR_MS

PROXIES = Path(__file__).parents[2] / "deploy" / "proxies"
NUMBERS = (1, 2, 3)
# What is around a file of /etc/nginx/conf.d. Root may write into the folders of tests.
AROUND_NGINX = (
    "user root; daemon off; error_log stderr; pid {folder}/pid; events {{}} "
    "http {{ access_log off; {paths} include {file}; }}"
)
NGINX_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


class Servers:
    """Three servers, each with a store and a port of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ports = {number: free_port() for number in NUMBERS}
        self.grpc_ports = {number: free_port() for number in NUMBERS}
        self._processes: dict[int, ForkedCommand] = {}

    def start(self, number: int) -> None:
        command = [
            "server",
            "--listen",
            f"127.0.0.1:{self.ports[number]}",
            "--store",
            f"{self._folder}/{number}",
        ]
        process = ForkedCommand(
            *command,
            *("--otlp-grpc", f"127.0.0.1:{self.grpc_ports[number]}"),
            env={**os.environ, "RUNVITALS_DIR": f"{self._folder}/data-{number}", "GRPC_VERBOSITY": "NONE"},
        )
        assert process.stdout.readline(), process.stderr.read()
        self._processes[number] = process
        address = f"http://127.0.0.1:{self.ports[number]}/api/v1/ingest"
        run = envelope(0, f"server-{number}")
        assert httpx.post(address, json=run, timeout=PATIENCE_S).status_code == 200

    def signal(self, number: int, sent: signal.Signals) -> None:
        self._processes[number].send_signal(sent)

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes.pop(number).communicate()

    def close(self) -> None:
        for number in list(self._processes):
            self.kill(number)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    servers = Servers(tmp_path_factory.mktemp("servers"))
    for number in NUMBERS:
        servers.start(number)
    yield servers
    servers.close()


def adapted(text: str, servers: Servers, port: int, grpc_port: int) -> str:
    """A configuration with the ports of a test, and short limits."""
    text = re.sub(r"(read_timeout|response_header_timeout) \d\ds", r"\1 2s", text)
    for number in NUMBERS:
        text = text.replace(f"server-{number}:8900", f"127.0.0.1:{servers.ports[number]}")
        text = text.replace(f"server-{number}:4317", f"127.0.0.1:{servers.grpc_ports[number]}")
    return re.sub(r"\b8900\b", str(port), re.sub(r"\b4317\b", str(grpc_port), text))


def nginx(folder: Path, text: str) -> list[str]:
    (folder / "servers.conf").write_text(text)
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in NGINX_PATHS)
    file = folder / "nginx.conf"
    file.write_text(AROUND_NGINX.format(folder=folder, paths=paths, file=folder / "servers.conf"))
    return ["nginx", "-c", str(file)]


def haproxy(folder: Path, text: str) -> list[str]:
    (folder / "haproxy.cfg").write_text(text)
    return ["haproxy", "-db", "-f", str(folder / "haproxy.cfg")]


def caddy(folder: Path, text: str) -> list[str]:
    (folder / "Caddyfile").write_text(text.replace("{\n\tservers", "{\n\tadmin off\n\tservers"))
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


KINDS: dict[str, Callable[[Path, str], list[str]]] = {
    "nginx.conf": nginx,
    "haproxy.cfg": haproxy,
    "Caddyfile": caddy,
}


def server_reached(client: httpx.Client, sender: str) -> int:
    """The number of the server that a machine's requests reach."""
    runs = client.get("/api/v1/runs", headers={SENDER_HEADER: sender}).json()["runs"]
    return next(int(run["id"].rpartition("-")[2]) for run in runs if run["id"].startswith("server-"))


class Proxy(NamedTuple):
    client: httpx.Client
    grpc_port: int


@contextmanager
def started(name: str, servers: Servers, folder: Path) -> Iterator[Proxy]:
    port, grpc_port = free_port(), free_port()
    command = KINDS[name](folder, adapted((PROXIES / name).read_text(), servers, port, grpc_port))
    program = shutil.which(command[0], path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    with ExitStack() as stack:
        log = stack.enter_context((folder / "log").open("wb"))
        environ = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        process = subprocess.Popen([program, *command[1:]], stdout=log, stderr=log, env=environ)
        stack.callback(process.wait, PATIENCE_S)
        stack.callback(process.terminate)
        client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S))

        def answers() -> bool:
            assert process.poll() is None, (folder / "log").read_text()
            try:
                return client.get("/readyz").status_code == 200
            except httpx.TransportError:
                return False

        eventually(answers)
        yield Proxy(client, grpc_port)


@pytest.fixture(scope="module")
def proxies(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Proxy]]:
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(started(name, servers, tmp_path_factory.mktemp("proxy")))
            for name in KINDS
        }


@pytest.fixture(params=KINDS)
def client(request: pytest.FixtureRequest, proxies: dict[str, Proxy]) -> httpx.Client:
    return proxies[request.param].client


def test_a_large_file_of_an_mlflow_client_passes(client: httpx.Client) -> None:
    run = client.post("/api/2.0/mlflow/runs/create", json={"experiment_id": "0"}).json()["run"]["info"]
    path = f"/api/2.0/mlflow-artifacts/artifacts/{run['artifact_uri'].partition(':/')[2]}/weights"
    assert client.put(path, content=bytes(70 << 20)).status_code == 200
    assert client.get(path).content == bytes(70 << 20)


def test_a_batch_of_the_largest_size_passes(client: httpx.Client) -> None:
    response = client.post("/api/v1/ingest", content=b" " * (8 << 20) + b"{}")
    assert (response.status_code, response.headers["content-type"]) == (413, "application/json")


def test_machines_behind_one_address_reach_several_servers_and_each_the_same_one(
    client: httpx.Client,
) -> None:
    if "caddy" in client.get("/").headers.get("server", "").lower():
        assert (
            len({server_reached(client, sender) for sender in map(str, range(8))}) == 1
        )  # it knows addresses only
        return
    reached = {sender: server_reached(client, sender) for sender in map(str, range(8))}
    assert len(set(reached.values())) > 1
    assert reached == {sender: server_reached(client, sender) for sender in reached}


def test_events_arrive_at_once(client: httpx.Client) -> None:
    assert client.post("/api/v1/ingest", json=envelope(0)).status_code == 200
    with client.stream("GET", "/api/v1/runs/curl-1/live") as response:
        assert response.status_code == 200
        assert next(response.iter_lines())


def test_a_server_that_hangs_is_left(client: httpx.Client, servers: Servers) -> None:
    hung = server_reached(client, "a")
    servers.signal(hung, signal.SIGSTOP)
    try:
        eventually(lambda: client.get("/healthz", headers={SENDER_HEADER: "a"}).status_code == 200)
        assert server_reached(client, "a") != hung
    finally:
        servers.signal(hung, signal.SIGCONT)


@pytest.mark.parametrize("name", KINDS)
def test_grpc_passes(name: str, proxies: dict[str, Proxy]) -> None:
    body = metrics({}, gauge("queue", "1", {"time_unix_nano": FAR_MS * 10**6, "as_double": 3.0}))
    with grpc.insecure_channel(f"127.0.0.1:{proxies[name].grpc_port}") as channel:
        response = channel.unary_unary(EXPORT)(
            body.SerializeToString(), timeout=PATIENCE_S, wait_for_ready=True
        )
    assert b"a day ahead" in response


def test_clients_are_told_to_come_again_while_all_servers_restart(
    proxies: dict[str, Proxy], servers: Servers
) -> None:
    for number in NUMBERS:
        servers.kill(number)
    for proxy in proxies.values():
        response = proxy.client.get("/api/v1/about")
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    for number in NUMBERS:
        servers.start(number)
    for proxy in proxies.values():
        eventually(lambda client=proxy.client: client.get("/api/v1/about").status_code == 200)
