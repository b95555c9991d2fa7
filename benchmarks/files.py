"""Cost of files on their way to a server: CPU of the sender and of the server, and the server's memory.

    scripts/bench files [--files 10000] [--kilobytes 10] [--megabytes 1024]

Many small files and one large one are in the folder of a run. `FileUploads` of the relay sends them to a
server in a process of its own, with a store on the disk. `one by one` is how an earlier server gets them.
CPU is of the whole process, user and system; `memory` is the server's largest so far.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx

from runvitals.base.http_client import HttpClient
from runvitals.journal import paths
from runvitals.model.limits import FILE_BYTES
from runvitals.relay.destination import Unfinished
from runvitals.relay.destinations.runvitals.uploads import FileUploads
from runvitals.sdk.media.run_files import RunFiles

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = {"writer": "monitor.a", "seq": 1, "project": "digits", "about": {"interval_s": 3600, "host": "n"}}


@contextmanager
def server(folder: str) -> Iterator[tuple[int, str]]:
    """Yield the process id and URL of a server with a new store."""
    command = (sys.executable, "-m", "runvitals", "server", "--listen", "127.0.0.1:0", "--store", folder)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            url = next(match[0] for line in process.stdout if (match := re.search(r"http://\S+:\d+", line)))
            yield process.pid, url
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def memory_mb(pid: int) -> float:
    """Return the largest memory of a process so far."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1000  # type: ignore[index]


def measure(name: str, folder: str, items: list[dict[str, Any]], together: bool) -> None:
    """Send the files of a run to a new server, and print a row."""
    with tempfile.TemporaryDirectory() as store, server(store) as (pid, url):
        now_ms = time.time_ns() // 1_000_000
        sample = {**_SAMPLE, "run": "a", "keys": ["cpu"], "t": [now_ms], "v": [[1.0]]}
        httpx.post(f"{url}/api/v1/ingest", json=sample).raise_for_status()
        http = HttpClient(url)
        uploads = FileUploads(
            folder, "a", [lambda method, path, body, sent: http.request(method, path, body, dict(sent))]
        )
        if not together:
            uploads._takes_small = False
        note: Any = SimpleNamespace(seq=1, value={"items": items})
        before, own, start = cpu_s(pid), time.process_time(), time.monotonic()
        while True:
            try:
                assert uploads.upload([note], None) == {}
                break
            except Unfinished:
                continue
        wall, own, cpu = time.monotonic() - start, time.process_time() - own, cpu_s(pid) - before
        print(f"{name:<34}{wall:>9.1f}{own:>11.2f}{cpu:>11.2f}{memory_mb(pid):>12.0f}", flush=True)


def options(description: str | None) -> argparse.Namespace:
    """Return the options of a command line: how many small files of which size, and how large one file."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--kilobytes", type=int, default=10)
    parser.add_argument("--megabytes", type=int, default=1024)
    return parser.parse_args()


def main() -> None:
    """Measure small files, together and one by one, and a large one."""
    arguments = options(__doc__)
    print(f"{'':<34}{'wall s':>9}{'sender s':>11}{'server s':>11}{'memory MB':>12}")
    with tempfile.TemporaryDirectory() as data:
        folder = paths.run_dir("a", data)
        os.makedirs(folder)
        files = RunFiles(folder, FILE_BYTES, 1 << 40)
        size = arguments.kilobytes * 1000
        small = [files.add(os.urandom(size)) for _ in range(arguments.files)]
        name = f"{arguments.files:,} files of {arguments.kilobytes} kB"
        measure(name, folder, small, together=True)
        measure(f"{name}, one by one", folder, small, together=False)
        large = Path(data, "large")
        with large.open("wb") as file:
            for _ in range(arguments.megabytes):
                file.write(os.urandom(1 << 20))
        measure(f"1 file of {arguments.megabytes} MiB", folder, [files.add_file(str(large))], together=True)


if __name__ == "__main__":
    main()
