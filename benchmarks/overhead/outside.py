"""Tools that run independently of the training, installed by the system: node_exporter and sadc."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from threading import Event, Thread

from benchmarks.overhead.peers import Peer, Sample
from benchmarks.overhead.session import PATIENCE_S, Watched

NODE_EXPORTER = Peer("node_exporter", "node_exporter, default collectors, scraped")
SADC = Peer("sadc", "sadc -S DISK (sysstat)")

_EXPORTER = shutil.which("prometheus-node-exporter") or shutil.which("node_exporter")
_SADC = next((path for path in ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc") if Path(path).exists()), None)
_SECOND_NS = 1_000_000_000


class NodeExporter(Watched):
    """node_exporter with its default collectors, scraped over a persistent connection.

    The CPU time of the scraper, which is part of the benchmark, is not counted.
    """

    shortest_s = 0.1

    def __init__(self, interval_s: float) -> None:
        super().__init__(NODE_EXPORTER)
        self.interval_s = interval_s
        self.samples: list[Sample] = []
        self._stop = Event()
        self._scraper = Thread(target=self._scrape_forever, daemon=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = int(free.getsockname()[1])

    def __enter__(self) -> NodeExporter:
        assert _EXPORTER is not None
        address = f"127.0.0.1:{self._port}"
        self.spawn([_EXPORTER, f"--web.listen-address={address}", "--log.level=error"], {})
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > until_s:
                    raise RuntimeError(f"node_exporter does not respond:\n{self.stderr()}") from None
                time.sleep(0.05)
        self._scraper.start()
        return self

    def _scrape_forever(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE_S)
        due_s = time.monotonic()
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            due_s += self.interval_s
            begin_ns = time.time_ns()
            connection.request("GET", "/metrics")
            page = connection.getresponse().read()
            series = sum(not line.startswith(b"#") for line in page.splitlines())
            self.samples.append(Sample(begin_ns, time.time_ns(), series))
        connection.close()

    def finished(self) -> list[Sample]:
        self._stop.set()
        self._scraper.join()
        return self.samples


class Sadc(Watched):
    """The collector of sysstat, a C program that writes binary records. Its shortest interval is 1 s."""

    shortest_s = 1.0

    def __init__(self, interval_s: float) -> None:
        super().__init__(SADC)
        self.interval_s = interval_s
        self._file = self.directory / "records"

    def __enter__(self) -> Sadc:
        assert _SADC is not None
        self.spawn([_SADC, "-S", "DISK", str(int(self.interval_s)), str(self._file)], {})
        return self

    def finished(self) -> list[Sample]:
        """The samples as printed by `sadf`: one value per line, with the time in the third column."""
        command = ["sadf", "-p", "-U", str(self._file), "--", "-A"]
        listing = subprocess.run(command, capture_output=True, text=True, check=True, env={"LC_ALL": "C"})
        lines = (line.split("\t") for line in listing.stdout.splitlines())
        values = Counter(int(fields[2]) for fields in lines if len(fields) == 6 and fields[2].isdigit())
        return [
            Sample(stamp * _SECOND_NS, (stamp + 1) * _SECOND_NS, n) for stamp, n in sorted(values.items())
        ]


def missing() -> list[str]:
    """For each tool that is not installed, how to install it."""
    programs = (
        (_EXPORTER, "node_exporter is not measured: apt-get install prometheus-node-exporter"),
        (_SADC and shutil.which("sadf"), "sadc is not measured: apt-get install sysstat"),
    )
    return [advice for there, advice in programs if not there]


def installed() -> list[type[NodeExporter] | type[Sadc]]:
    baselines: list[type[NodeExporter] | type[Sadc]] = []
    if _EXPORTER:
        baselines.append(NodeExporter)
    if _SADC and shutil.which("sadf"):
        baselines.append(Sadc)
    return baselines


def version(command: list[str]) -> str:
    """The first line of a version command's output; "" if the program is not installed."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return (process.stdout or process.stderr).splitlines()[0]
