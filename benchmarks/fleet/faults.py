"""The servers of `deploy/compose/compose.yaml` as processes behind nginx, and what happens when parts fail.

Their commands and environment are those of the file, apart from addresses and folders. Hosts send through
the proxy all the time, and repeat what was not acknowledged. At the end each value is compared with what was
sent.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import yaml
from moto.server import ThreadedMotoServer
from tests.deploy.test_proxies import AROUND_NGINX, NGINX_PATHS, PROXIES
from tests.relay.real_servers import free_port
from tests.server.database.postgresql import KillableServer
from tests.store.samples.clickhouse.server import ClickHouseServer

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose" / "compose.yaml"
NUMBERS = (1, 2, 3)
VALUES = 10
START_MS = time.time_ns() // 1_000_000 - 6 * 3_600_000
PROBES = ("/healthz", "/readyz", "/metrics")


class Fleet:
    """Three servers over PostgreSQL, ClickHouse and a bucket.

    Args:
        folder: for everything.
        source: `src` of the version that servers run, until `upgrade`.
    """

    def __init__(self, folder: Path, source: Path = COMPOSE.parents[2] / "src") -> None:
        self.folder, self.source = folder, source
        self.metadata = KillableServer()
        self.clickhouse = ClickHouseServer(folder / "clickhouse", password=secrets.token_hex(8))
        self.bucket = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.bucket.start()
        self.ports = {number: free_port() for number in NUMBERS}
        self.proxy_port = free_port()
        self._servers: dict[int, subprocess.Popen[bytes]] = {}
        self._proxy: subprocess.Popen[bytes] | None = None
        self._services = yaml.safe_load(COMPOSE.read_text())["services"]
        (folder / "secrets").mkdir()
        for name in ("clickhouse", "postgres", "bucket", "admin"):
            (folder / "secrets" / f"{name}_password").write_text(f"{secrets.token_hex(16)}\n")
        (folder / "secrets" / "clickhouse_password").write_text(self.clickhouse.password)
        (folder / "keys").mkdir()
        self.use("runvitals")

    def use(self, name: str) -> None:
        """Make new databases and a bucket, which servers use from now on."""
        self.database = name
        self.clickhouse.new_database(name)
        self.metadata_address = self.metadata.make(name)
        httpx.put(f"http://127.0.0.1:{self.bucket.get_host_and_port()[1]}/{name}").raise_for_status()

    @property
    def stores(self) -> list[str]:
        """The options that name the stores."""
        samples = f"clickhouse://default@127.0.0.1:{self.clickhouse.port}/{self.database}"
        return ["--store", samples, "--metadata", self.metadata_address]

    @property
    def environment(self) -> dict[str, str]:
        """The environment of servers and commands."""
        own = {"PYTHONPATH": str(self.source), "AWS_EC2_METADATA_DISABLED": "true", "AWS_ALLOW_HTTP": "true"}
        given = self._services["server-1"]["environment"]
        return {**os.environ, **own, **{name: self._here(value) for name, value in given.items()}}

    def _here(self, text: str) -> str:
        samples = f"clickhouse://default@127.0.0.1:{self.clickhouse.port}/{self.database}"
        for there, here in (
            ("/run/secrets/", f"{self.folder}/secrets/"),
            ("/keys/", f"{self.folder}/keys/"),
            ("clickhouse://runvitals@clickhouse:8123/runvitals", samples),
            ("postgresql://runvitals@postgres/runvitals", f"'{self.metadata_address}'"),
            ("http://bucket:9000", f"http://127.0.0.1:{self.bucket.get_host_and_port()[1]}"),
            ("s3://runvitals/", f"s3://{self.database}/"),
            ("172.16.0.0/12", "127.0.0.1"),
            ("${RUNVITALS_ADMIN_EMAIL:-admin@example.org}", "admin@example.org"),
            ("exec runvitals ", f"exec {sys.executable} -m runvitals "),
            ("$$", "$"),
        ):
            text = text.replace(there, here)
        return text

    def start(self, number: int) -> None:
        """Start a server, without waiting until it is ready."""
        command = self._here(self._services[f"server-{number}"]["command"][2])
        command = command.replace("0.0.0.0:8900", f"127.0.0.1:{self.ports[number]}")
        environ = {**self.environment, "RUNVITALS_DIR": f"{self.folder}/{self.database}-{number}"}
        with open(self.folder / f"server-{number}.log", "ab") as log:
            self._servers[number] = subprocess.Popen(
                ["sh", "-c", command], env=environ, stdout=log, stderr=log
            )

    def ask(self, number: int, path: str = "/readyz", timeout_s: float = 5.0) -> httpx.Response | None:
        """Ask one server; None if it does not answer."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.ports[number]}{path}", timeout=timeout_s)
        except httpx.TransportError:
            return None

    def wait_ready(self, number: int, at_most_s: float = 600.0) -> float:
        """Wait until a server is ready; return the seconds."""
        began_s = time.monotonic()
        while (answer := self.ask(number)) is None or answer.status_code != 200:
            process = self._servers[number]
            log = self.folder / f"server-{number}.log"
            if process.poll() is not None or time.monotonic() - began_s > at_most_s:
                raise RuntimeError(f"server {number} is not ready: {log.read_text()[-3000:]}")
            time.sleep(0.05)
        return time.monotonic() - began_s

    def signal(self, number: int, sent: signal.Signals) -> None:
        """Send a signal to a server."""
        self._servers[number].send_signal(sent)
        if sent in (signal.SIGKILL, signal.SIGTERM):
            self._servers.pop(number).wait(60)

    def start_proxy(self) -> None:
        """Start nginx with the file of deploy/proxies."""
        text = (PROXIES / "nginx.conf").read_text().partition("# OTLP over gRPC")[0]
        text = text.replace("listen 8900", f"listen 127.0.0.1:{self.proxy_port}")
        for number in NUMBERS:
            text = text.replace(f"server-{number}:8900", f"127.0.0.1:{self.ports[number]}")
        folder = self.folder / "nginx"
        folder.mkdir()
        (folder / "fleet.conf").write_text(text)
        paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in NGINX_PATHS)
        main = AROUND_NGINX.format(folder=folder, paths=paths, file=folder / "fleet.conf")
        (folder / "nginx.conf").write_text(main)
        with open(folder / "log", "ab") as log:
            self._proxy = subprocess.Popen(["nginx", "-c", folder / "nginx.conf"], stdout=log, stderr=log)

    def run(self, *arguments: str) -> str:
        """Run a command of runvitals beside the servers; return what it prints."""
        command = [sys.executable, "-m", "runvitals", *arguments]
        environ = {**self.environment, "RUNVITALS_DIR": str(self.folder / "command")}
        ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)}: {ran.stdout[-1000:]} {ran.stderr[-3000:]}")
        return ran.stdout

    def close(self) -> None:
        """End everything."""
        for number in list(self._servers):
            self._servers[number].send_signal(signal.SIGCONT)
            self.signal(number, signal.SIGKILL)
        if self._proxy is not None:
            self._proxy.terminate()
            self._proxy.wait()
        self.bucket.stop()
        self.clickhouse.stop()
        self.metadata.stop()


class Load:
    """Hosts that send through the proxy, and watchers that ask each server's probes."""

    def __init__(self, fleet: Fleet, key: str, hosts: int) -> None:
        self.acknowledged = [0] * hosts
        self.stored_again = 0
        self.retries: dict[str, int] = defaultdict(int)
        self.slowest_s: dict[tuple[str, str], float] = defaultdict(float)
        self.phase = "start"
        self.hung: set[int] = set()
        self._fleet, self._key = fleet, key
        self._ends = threading.Event()
        senders = [threading.Thread(target=self._send, args=(host,), daemon=True) for host in range(hosts)]
        watchers = [threading.Thread(target=self._watch, args=(number,), daemon=True) for number in NUMBERS]
        self._threads = senders + watchers
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Stop sending, when what was begun is acknowledged, or after two minutes."""
        self._ends.set()
        for thread in self._threads:
            thread.join(120)

    def _send(self, host: int) -> None:
        headers = {"authorization": f"Bearer {self._key}", "X-Runvitals-Sender": f"host-{host}"}
        address = f"http://127.0.0.1:{self._fleet.proxy_port}/api/v1/ingest"
        with httpx.Client(headers=headers, timeout=30) as client:
            while not self._ends.is_set():
                sent = batch(host, self.acknowledged[host])
                while True:
                    try:
                        answer = client.post(address, json=sent)
                    except httpx.TransportError as error:
                        self.retries[f"{self.phase}: {type(error).__name__}"] += 1
                    else:
                        if answer.status_code == 200:
                            self.stored_again += not answer.json()["stored"]
                            break
                        self.retries[f"{self.phase}: {answer.status_code} {answer.text[:90]}"] += 1
                        if answer.status_code < 500 and answer.status_code != 429:
                            raise RuntimeError(answer.text)
                    time.sleep(0.5)
                self.acknowledged[host] += 1
                time.sleep(0.1)

    def _watch(self, number: int) -> None:
        while not self._ends.is_set():
            for path in PROBES:
                began_s = time.monotonic()
                phase = self.phase
                answer = self._fleet.ask(number, path)
                took_s = time.monotonic() - began_s
                if answer is not None and number not in self.hung and phase == self.phase:
                    self.slowest_s[phase, path] = max(self.slowest_s[phase, path], took_s)
            time.sleep(0.2)


def batch(host: int, seq: int) -> dict[str, object]:
    """The batch of a host with this number."""
    start_ms = START_MS + seq * 1000
    return {
        "project": "fleet",
        "run": f"host-{host}",
        "writer": f"monitor.host{host}.1",
        "seq": seq,
        "keys": ["cpu"],
        "t": [start_ms + tick * 100 for tick in range(VALUES)],
        "v": [[float(seq * VALUES + tick) for tick in range(VALUES)]],
    }


def compare(address: str, key: str, acknowledged: Sequence[int]) -> list[str]:
    """Return what differs between the values that a server has and those that were acknowledged."""
    problems = []
    for host, batches in enumerate(acknowledged):
        parameters = {"keys": "cpu", "resolution": "raw"}
        answer = httpx.get(
            f"{address}/api/v1/runs/host-{host}/metrics",
            params=parameters,
            headers={"authorization": f"Bearer {key}"},
            timeout=120,
        )
        if answer.status_code != 200:
            problems.append(f"host {host}: {answer.status_code} {answer.text[:200]}")
            continue
        found = [value for group in answer.json()["groups"] for value in group["series"]["cpu"]]
        wanted = [float(number) for number in range(batches * VALUES)]
        if found != wanted:
            missing = sorted(set(wanted) - set(found))[:5]
            problems.append(f"host {host}: {len(found)} values, expected {len(wanted)}; missing {missing}")
    return problems


def measure(folder: Path, before: Path | None = None, hosts: int = 6) -> Iterator[str]:
    """Run the fleet, let parts of it fail, and yield lines that say what became of what was acknowledged.

    Args:
        before: `src` of an earlier version, from which all servers are upgraded instead.
    """
    fleet = Fleet(folder, before or COMPOSE.parents[2] / "src")
    try:
        for number in NUMBERS:
            fleet.start(number)
            if (
                before is not None
            ):  # it may be one of which several could not start together for the first time
                fleet.wait_ready(number)
        yield f"ready after {max(fleet.wait_ready(number) for number in NUMBERS):.1f} s"
        fleet.start_proxy()
        created = fleet.run("key", "create", "load", "--user", "administrator", *fleet.stores, "--json")
        key = json.loads(created)["key"]
        load = Load(fleet, key, hosts)
        try:
            if before is None:
                yield from _failures(fleet, load)
            else:
                _upgrade(fleet, load)
        finally:
            load.end()
        yield from _results(fleet, load, key)
    finally:
        fleet.close()


def _failures(fleet: Fleet, load: Load) -> Iterator[str]:
    for name, what in _kinds(fleet, load):
        load.phase = name
        with what:
            time.sleep(20)
        load.phase, load.hung = "after", set()
        for number in NUMBERS:
            fleet.wait_ready(number)
        yield f"{name}: {sum(load.acknowledged):,} requests acknowledged so far"
    load.phase = "backup"
    yield fleet.run("backup", str(fleet.folder / "backup"), *fleet.stores).splitlines()[0]


def _kinds(fleet: Fleet, load: Load) -> Iterator[tuple[str, AbstractContextManager[None]]]:
    for number in NUMBERS:
        yield f"server {number} is killed", _killed(fleet, number)
    for number in NUMBERS:
        yield f"server {number} hangs", _hung(fleet, load, number)
    yield "ClickHouse is killed", _away(fleet.clickhouse)
    yield "PostgreSQL is killed", _away(fleet.metadata)
    yield "PostgreSQL hangs", fleet.metadata.frozen()


@contextmanager
def _killed(fleet: Fleet, number: int) -> Iterator[None]:
    fleet.signal(number, signal.SIGKILL)
    yield
    fleet.start(number)


@contextmanager
def _hung(fleet: Fleet, load: Load, number: int) -> Iterator[None]:
    load.hung = {number}
    fleet.signal(number, signal.SIGSTOP)
    yield
    fleet.signal(number, signal.SIGCONT)


@contextmanager
def _away(engine: ClickHouseServer | KillableServer) -> Iterator[None]:
    engine.kill()
    yield
    engine.start()


def _upgrade(fleet: Fleet, load: Load) -> None:
    load.phase = "upgrade"
    fleet.source = COMPOSE.parents[2] / "src"
    for number in NUMBERS:
        fleet.signal(number, signal.SIGTERM)
    for number in NUMBERS:
        fleet.start(number)
    for number in NUMBERS:
        fleet.wait_ready(number)


def _results(fleet: Fleet, load: Load, key: str) -> Iterator[str]:
    for number in NUMBERS:
        while fleet.ask(number).json()["warnings"]:  # type: ignore[union-attr]  # it was ready
            time.sleep(0.5)
        wrong = compare(f"http://127.0.0.1:{fleet.ports[number]}", key, load.acknowledged)
        yield f"server {number}: {'; '.join(wrong) or 'has what was acknowledged, each value once'}"
    yield f"{sum(load.acknowledged):,} requests acknowledged, {load.stored_again} of them repeated ones"
    for (phase, path), slowest_s in sorted(load.slowest_s.items()):
        yield f"{phase}: {path} took {slowest_s:.2f} s at most"
