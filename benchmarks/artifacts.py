"""Cost of artifacts: CPU of client and server, the server's memory, beside the clients of wandb and MLflow.

    scripts/bench artifacts [--files 10000] [--kilobytes 10] [--megabytes 1024]

A folder of small files and one large file are logged and downloaded again: by runvitals (recorded offline,
then `runvitals sync`; `runvitals artifact get`, a second time with everything there), by wandb's client to
the same server, and by MLflow's client to its own server. CPU is of each client with the processes that it
started and ended, user and system. `memory` is the largest of the server's processes so far, all together.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.files import cpu_s, memory_mb, options

_OURS = """
import runvitals, sys
artifact = runvitals.Artifact(sys.argv[2], "dataset")
artifact.add_dir(sys.argv[1])
with runvitals.init(project="digits", id=sys.argv[2], mode="offline") as run:
    run.log_artifact(artifact)
"""
_WANDB_PUT = """
import sys, wandb
artifact = wandb.Artifact(sys.argv[2] + "-wandb", type="dataset")
artifact.add_dir(sys.argv[1])
with wandb.init(project="digits-wandb", entity="main") as run:
    run.log_artifact(artifact).wait()
"""
_WANDB_GET = """
import sys, wandb
with wandb.init(project="digits-wandb", entity="main") as run:
    run.use_artifact(sys.argv[2] + "-wandb:latest").download(sys.argv[1])
"""
_MLFLOW_PUT = """
import sys, mlflow
with mlflow.start_run(run_name=sys.argv[2]) as run:
    mlflow.log_artifacts(sys.argv[1], "data")
open(sys.argv[3], "w").write(run.info.run_id)
"""
_MLFLOW_GET = """
import sys, mlflow
run = open(sys.argv[3]).read()
mlflow.artifacts.download_artifacts(run_id=run, artifact_path="data", dst_path=sys.argv[1])
"""


@contextmanager
def server(command: list[str], url: str | None, log: Path) -> Iterator[tuple[int, str]]:
    """Yield the process id and URL of a server, once it answers. `url` None: it prints it."""
    with (
        log.open("w") as out,
        subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True) as process,
    ):
        try:
            while True:
                found = re.search(r"http://\S+:\d+", log.read_text()) if url is None else None
                address = url or (found[0] if found else "")
                try:
                    if (
                        address
                        and httpx.get(f"{address}/health" if url else f"{address}/healthz").status_code == 200
                    ):
                        break
                except httpx.TransportError:
                    pass
                time.sleep(0.2)
            yield process.pid, address
        finally:
            process.terminate()


def tree(pid: int) -> list[int]:
    """Return a process and those that it started."""
    pids = [pid]
    for known in pids:
        children = Path(f"/proc/{known}/task/{known}/children")
        pids += [int(child) for child in children.read_text().split()] if children.exists() else []
    return pids


def measure(name: str, pid: int, command: list[str], environ: dict[str, str], cwd: str) -> None:
    """Run a client beside a server, and print a row."""
    before, start = sum(map(cpu_s, tree(pid))), time.monotonic()
    with tempfile.TemporaryFile() as output:
        client = subprocess.Popen(command, env=environ, cwd=cwd, stdout=output, stderr=output)
        _, status, used = os.wait4(client.pid, 0)
        client.returncode = os.waitstatus_to_exitcode(status)
        if client.returncode:
            output.seek(0)
            raise SystemExit(output.read().decode()[-3000:])
    wall, pids = time.monotonic() - start, tree(pid)
    cpu, memory = sum(map(cpu_s, pids)) - before, sum(map(memory_mb, pids))
    print(
        f"{name:<44}{wall:>8.1f}{used.ru_utime + used.ru_stime:>10.2f}{cpu:>10.2f}{memory:>11.0f}", flush=True
    )


def ours(folder: str, data: str, name: str, label: str, with_wandb: bool = True) -> None:
    """Measure runvitals, and wandb's client, with our server."""
    command = [sys.executable, "-m", "runvitals"]
    arguments = ["server", "--listen", "127.0.0.1:0", "--store", f"{folder}/store-{name}"]
    environ = {
        **os.environ,
        "HOME": folder,
        "RUNVITALS_DIR": f"{folder}/data",
        "XDG_CACHE_HOME": f"{folder}/cache",
    }
    with server([*command, *arguments], None, Path(folder, "log")) as (pid, url):
        environ |= {
            "RUNVITALS_SERVER": url,
            "WANDB_BASE_URL": url,
            "WANDB_API_KEY": "0" * 40,
            "WANDB_SILENT": "true",
        }
        measure(
            f"{label}: runvitals, record", pid, [sys.executable, "-c", _OURS, data, name], environ, folder
        )
        measure(f"{label}: runvitals, sync", pid, [*command, "sync", name, "--to", url], environ, folder)
        get = [*command, "artifact", "get", f"digits/{name}", "-o", f"{folder}/got-{name}"]
        measure(f"{label}: runvitals, get", pid, get, environ, folder)
        measure(f"{label}: runvitals, get again", pid, get, environ, folder)
        if with_wandb:
            put = [sys.executable, "-c", _WANDB_PUT, data, name]
            measure(f"{label}: wandb to our server, log", pid, put, environ, folder)
            got = [sys.executable, "-c", _WANDB_GET, f"{folder}/wandb-{name}", name]
            measure(f"{label}: wandb to our server, download", pid, got, environ, folder)


def mlflows(folder: str, data: str, name: str, label: str) -> None:
    """Measure MLflow's client with its own server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow-{name}.db"]
    command += ["--artifacts-destination", f"{folder}/mlflow-{name}"]
    environ = {**os.environ, "MLFLOW_TRACKING_URI": url, "HOME": folder}
    note = f"{folder}/run-{name}"
    with server(command, url, Path(folder, "log")) as (pid, _):
        put = [sys.executable, "-c", _MLFLOW_PUT, data, name, note]
        measure(f"{label}: MLflow to its server, log", pid, put, environ, folder)
        get = [sys.executable, "-c", _MLFLOW_GET, f"{folder}/mlgot-{name}", name, note]
        os.makedirs(f"{folder}/mlgot-{name}")
        measure(f"{label}: MLflow to its server, download", pid, get, environ, folder)


def main() -> None:
    """Measure many small files and a large one."""
    arguments = options(__doc__)
    print(f"{'':<44}{'wall s':>8}{'client s':>10}{'server s':>10}{'memory MB':>11}")
    for name, count, size in (
        ("large", 1, arguments.megabytes << 20),
        ("small", arguments.files, arguments.kilobytes * 1000),
    ):
        with tempfile.TemporaryDirectory() as folder:
            data = Path(folder, "in")
            data.mkdir()
            for number in range(count):
                with (data / f"{number:06}").open("wb") as file:
                    for first in range(0, size, 1 << 20):
                        file.write(os.urandom(min(1 << 20, size - first)))
            shown = f"{size >> 20} MiB" if count == 1 else f"{count:,} × {size // 1000} kB"
            ours(folder, str(data), name, shown)
            mlflows(folder, str(data), name, shown)


if __name__ == "__main__":
    main()
