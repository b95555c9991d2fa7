"""Time and memory until a server is ready, ours and others that are installed: scripts/bench start."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import httpx
import psutil
from tests.relay.real_servers import free_port

REST_S = 4.0
COMMANDS: Mapping[str, tuple[str, str]] = {
    "runvitals server": (
        "/readyz",
        "runvitals server --listen 127.0.0.1:{port} --dir {folder} --store {folder}/store",
    ),
    "mlflow server --workers 1": (
        "/health",
        "mlflow server --host 127.0.0.1 --port {port} --workers 1 --backend-store-uri sqlite:///{folder}/db "
        "--artifacts-destination {folder}/files",
    ),
    "VictoriaMetrics": (
        "/health",
        "victoria-metrics -storageDataPath {folder}/data -httpListenAddr 127.0.0.1:{port}",
    ),
}
"""What is asked until it answers 200, and how each is started."""


class Start(NamedTuple):
    """A start: seconds until ready, of CPU until then, and what it has some seconds later."""

    ready_s: float
    cpu_s: float
    memory_mb: float
    processes: int
    threads: int


def measure(path: str, command: Sequence[str], port: int) -> Start:
    """Start a server, wait until it is ready and at rest, and end it.

    The memory is the proportional set size of all its processes.
    """
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    began_s = time.monotonic()
    with tempfile.TemporaryFile() as log:
        main = psutil.Popen(command, env=environ, stdout=log, stderr=log)
        while not _answers(f"http://127.0.0.1:{port}{path}"):
            if main.poll() is not None:
                log.seek(0)
                raise RuntimeError(f"{' '.join(command)} has ended: {log.read()[-2000:].decode()}")
            time.sleep(0.01)
    ready_s = time.monotonic() - began_s
    tree = [main, *main.children(recursive=True)]
    try:
        cpu_s = _sum(tree, lambda process: sum(process.cpu_times()[:2]))
        time.sleep(REST_S)
        tree = [main, *main.children(recursive=True)]
        memory_mb = _sum(tree, lambda process: process.memory_full_info().pss / 1e6)
        return Start(ready_s, cpu_s, memory_mb, len(tree), int(_sum(tree, psutil.Process.num_threads)))
    finally:
        for each in reversed(tree):
            with suppress(psutil.NoSuchProcess):
                each.terminate()
        psutil.wait_procs(tree, 30)


def _sum(tree: Sequence[psutil.Process], read: Callable[[psutil.Process], float]) -> float:
    """Add up what is read of processes, without those that have ended meanwhile."""
    total = 0.0
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            total += read(process)
    return total


def _answers(address: str) -> bool:
    try:
        return httpx.get(address, timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="starts of each; default: 3")
    times = parser.parse_args().times
    print("| | ready, s | CPU until then, s | memory, MB | processes | threads |\n|---|---|---|---|---|---|")
    programs = os.pathsep.join((sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)))
    for name, (path, text) in COMMANDS.items():
        program = shutil.which(text.split()[0], path=programs)
        if program is None:
            print(f"{name}: not installed", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            starts = []
            for _ in range(times + 1):  # the first, which makes its files, does not count
                port = free_port()
                _, *options = text.format(port=port, folder=folder).split()
                starts.append(measure(path, [program, *options], port))
            best = min(starts[1:], key=lambda start: start.cpu_s)
        print(
            f"| {name} | {best.ready_s:.2f} | {best.cpu_s:.2f} | {best.memory_mb:.0f} | {best.processes} "
            f"| {best.threads} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
