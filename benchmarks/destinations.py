"""The cost of delivery: CPU per delivered point, and bytes on the wire or on disk, for each destination.

    scripts/bench destinations [--minutes 5]

A run of 60 keys at 1 Hz is delivered while it is in progress: from its journal, in batches of the
destination's length, with a cursor that is saved on disk before and after each batch. Then it is delivered
again like `runvitals sync` does, in batches of about 1,000 samples. CPU is that of the delivering process,
user and system, from reading the journal to the response; writing the journal and the first half minute, in
which modules are loaded, are excluded. The receiver is a fake server in another process, which counts bytes
including headers and responds with 200.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from runvitals.journal.paths import run_dir
from runvitals.journal.writer import JournalWriter
from runvitals.model.metrics import DEFINITIONS
from runvitals.model.metrics.metric import placeholders
from runvitals.relay.batch import Batch
from runvitals.relay.destination import Context, Destination
from runvitals.relay.destinations import BUILT_IN
from runvitals.relay.destinations.prometheus import destination as exporter
from runvitals.relay.destinations.prometheus import snappy
from runvitals.relay.engine.cursor import Cursor
from runvitals.relay.engine.delivery import RunDelivery
from runvitals.relay.engine.destination_spec import DestinationSpec

KEYS = 60
WARM_UP_S = 30
SCRAPE_S = 10
PAGE = ("127.0.0.1", 0)


class Case(NamedTuple):
    """A destination. `{url}` and `{folder}` in its address are filled in."""

    title: str
    destination: str
    every_s: int = 5


class Nowhere(Destination):
    """A destination that does nothing, to measure the cost of the relay."""

    name = "nowhere"

    def __init__(self, address: str, context: Context) -> None:
        """Needs no resources."""

    def deliver(self, batch: Batch) -> None:
        """Accept the batch."""


BUILT_IN["nowhere"] = f"{__name__}:Nowhere"
CASES = (
    Case("the relay alone", "nowhere"),
    Case("runvitals server", "{url}"),
    Case("remote write 1.0", "remote_write:{url}"),
    Case("… without cramjam", "remote_write:{url}"),
    Case("remote write 2.0", "remote_write:{url}#version=2"),
    Case("OTLP, protocol buffers", "otel:{url}"),
    Case("OTLP, JSON", "otel:{url}#encoding=json"),
    Case(f"Prometheus page, a scrape every {SCRAPE_S} s", "prometheus:127.0.0.1:0", 2),
    Case("files, CSV", "files:{folder}?format=csv"),
    Case("files, JSON lines", "files:{folder}?format=jsonl"),
    Case("files, Arrow", "files:{folder}?format=arrow"),
    Case("files, Parquet", "files:{folder}?format=parquet", 30),
    Case("TensorBoard", "tensorboard:{folder}"),
)


class Cost(NamedTuple):
    """The result: `points` were delivered while CPU was measured, `every` in total."""

    points: int
    cpu_s: float
    every: int
    bytes: int

    @property
    def cpu_us(self) -> str:
        return f"{self.cpu_s / self.points * 1e6:.2f}"

    @property
    def size(self) -> str:
        return f"{self.bytes / self.every:.1f}" if self.bytes else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description="What delivery costs, by destination.")
    parser.add_argument("--minutes", type=int, default=5, help="of a run at 1 Hz")
    minutes = parser.parse_args().minutes
    print("| destination | µs of CPU a point, live | afterwards | bytes a point, live | afterwards |")
    print("|---|---|---|---|---|")
    for case in CASES:
        packs = snappy._compress
        snappy._compress = None if "without" in case.title else packs
        live, rest = (measured(case, minutes * 60, every_s) for every_s in (case.every_s, minutes * 60))
        print(f"| {case.title} | {live.cpu_us} | {rest.cpu_us} | {live.size} | {rest.size} |", flush=True)
        snappy._compress = packs


def measured(case: Case, seconds: int, every_s: int) -> Cost:
    """Deliver a run in batches of a number of seconds. A small run is delivered first, to load modules."""
    with serving() as (url, came), tempfile.TemporaryDirectory() as folder:
        if every_s == seconds:
            deliver(case, url, f"{folder}/first", samples(2), 2)
            came()
        cost = deliver(case, url, f"{folder}/run", samples(seconds), every_s)
        reported = came()
        files = sum(path.stat().st_size for path in Path(folder, "run", "out").rglob("*") if path.is_file())
        return cost._replace(bytes=cost.bytes + reported + files)


def deliver(case: Case, url: str, folder: str, samples: Iterable[dict[str, float]], every_s: int) -> Cost:
    """The result of a delivery; `bytes` are those of scrapes."""
    page = exporter.acquire(PAGE) if case.destination.startswith("prometheus") else None
    about = {"run": "bench", "project": "bench", "host": "node1", "role": "monitor", "interval_s": 1.0}
    journal = JournalWriter(run_dir("bench", folder), "monitor.node1.1", about)
    cursor = Cursor(
        journal.folder, DestinationSpec(case.destination.format(url=url, folder=f"{folder}/out")), "node1"
    )
    assert cursor.lock()
    delivery = RunDelivery(cursor)
    began_ms = time.time_ns() // 1_000_000 - 3_600_000
    scraped = counted = 0
    cpu_s = 0.0
    for second, sample in enumerate(samples, 1):
        journal.sample(time.time_ns() // 1_000_000 if page else began_ms + 1000 * second, sample)
        if second % every_s:
            continue
        before_s = time.process_time()
        while delivery.step(0.0, flush=True):
            pass
        if page is not None and second % SCRAPE_S == 0:
            scraped += scrape(page.port)
        if second > WARM_UP_S:
            cpu_s += time.process_time() - before_s
            counted += KEYS * every_s
    delivery.close()
    journal.close()
    if page is not None:
        exporter.release(PAGE)
    assert cursor.rejection == "", cursor.rejection
    return Cost(counted, cpu_s, cursor.counts["points"], scraped)


def scrape(port: int) -> int:
    """Scrape like Prometheus; returns the size of the response body."""
    headers = {"Accept": "application/openmetrics-text;version=1.0.0", "Accept-Encoding": "gzip"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return len(response.read())


def samples(seconds: int) -> Iterator[dict[str, float]]:
    """A third of the keys are counters, some are constant, the rest is noise with one or all decimals."""
    rows = [row for row in DEFINITIONS.metrics if row.name and row.scope in ("host", "process", "device")]
    keys = [row.key.format(**dict.fromkeys(placeholders(row.key), "0")) for row in rows][:KEYS]
    chance = random.Random(7)
    totals = dict.fromkeys(keys, 0.0)
    for second in range(seconds):
        sample: dict[str, float] = {}
        for i, key in enumerate(keys):
            if i % 3 == 0:
                totals[key] += chance.randrange(1 << 20)
                sample[key] = totals[key]
            elif i % 6 == 1:
                sample[key] = float(i)
            elif i % 6 == 2:
                sample[key] = round(50 + 40 * math.sin(second / 60 + i) + chance.uniform(-3, 3), 1)
            else:
                sample[key] = chance.uniform(0, 100)
        yield sample


def serve(connection: Connection) -> None:
    """Accept any request; on demand, send back the number of bytes received since the last time."""
    came = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal came
            came += len(self.requestline) + 2
            came += sum(len(name) + len(text) + 4 for name, text in self.headers.items()) + 2
            came += len(self.rfile.read(int(self.headers["Content-Length"])))
            ours = self.path.endswith("/ingest")
            body = json.dumps({"stored": True, "schema": 1}).encode() if ours else b""
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Prometheus-Remote-Write-Samples-Written", "1")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    connection.send(server.server_port)
    server.timeout = 0.05
    while True:
        server.handle_request()
        if connection.poll():
            if not connection.recv():
                return
            connection.send(came)
            came = 0


@contextmanager
def serving() -> Iterator[tuple[str, Callable[[], int]]]:
    """(URL of a fake server, function that returns the number of bytes received since the last call)"""
    here, there = Pipe()
    process = Process(target=serve, args=(there,), daemon=True)
    process.start()
    url = f"http://127.0.0.1:{here.recv()}"

    def came() -> int:
        here.send(True)
        return int(here.recv())

    yield url, came
    here.send(False)
    process.join()


if __name__ == "__main__":
    os.environ["no_proxy"] = "127.0.0.1"
    main()
