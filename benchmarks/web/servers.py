"""The servers that the page is loaded from: over journals, over a store, and over plain files."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.ingest.server import serving as serving_store

SYNC_LIMIT_S = 900


class PageServer(NamedTuple):
    """A server that runs in a process of its own."""

    pid: int
    url: str

    def memory_mb(self) -> tuple[float, float]:
        """Resident memory now, and at most so far."""
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines()
        )
        now, most = (int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
        return now, most

    def ask(self, path: str) -> Any:
        """The JSON response to a path of the API."""
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=120) as response:
            return json.load(response)

    def timed(self, path: str) -> tuple[float, int, int]:
        """Return the ms that a request takes, and the bytes of its response: as sent, and unpacked."""
        request = urllib.request.Request(f"{self.url}/api/v1/{path}", headers={"accept-encoding": "gzip"})
        began = time.perf_counter()
        with urllib.request.urlopen(request, timeout=120) as response:
            body = response.read()
        took_ms = (time.perf_counter() - began) * 1000
        packed = response.headers.get("content-encoding") == "gzip"
        return took_ms, len(body), len(gzip.decompress(body) if packed else body)


@contextmanager
def over_journals(folder: Path) -> Iterator[PageServer]:
    """`runvitals ui` over a data folder."""
    command = [sys.executable, "-m", "runvitals", "ui", "--no-browser", "--port", "0", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield PageServer(process.pid, process.stdout.readline().split()[1].rstrip("/"))
    finally:
        process.terminate()
        process.wait()


@contextmanager
def over_a_store(folder: Path, data: Path) -> Iterator[PageServer]:
    """`runvitals server` after a restart, with the runs of a data folder in its store."""
    store = str(folder / "store")
    with serving_store(store) as (_, port):
        command = [
            sys.executable,
            "-m",
            "runvitals",
            "sync",
            "--all",
            "--dir",
            str(data),
            "--to",
            f"http://127.0.0.1:{port}",
        ]
        subprocess.run(command, check=True, stdout=sys.stderr, timeout=SYNC_LIMIT_S)
    with serving_store(store) as (pid, port):
        yield PageServer(pid, f"http://127.0.0.1:{port}")


class _PackedFiles(SimpleHTTPRequestHandler):
    """Files of a folder; what has a packed file beside it is sent packed, as our server does."""

    def end_headers(self) -> None:
        self.send_header("cache-control", "no-store")
        super().end_headers()

    def do_GET(self) -> None:
        packed = Path(self.translate_path(self.path) + ".gz")
        if not packed.is_file():
            super().do_GET()
            return
        body = packed.read_bytes()
        self.send_response(200)
        self.send_header("content-type", self.guess_type(str(packed.with_suffix(""))))
        self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Not logged."""


@contextmanager
def over_files(folder: Path) -> Iterator[str]:
    """A server of plain files; yields its address. Files of 1 kB and more are packed before."""
    for path in folder.iterdir():
        if path.is_file() and path.stat().st_size >= 1000:
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), 6))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_PackedFiles, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
