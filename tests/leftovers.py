"""Processes that tests start without waiting for them: ends them, and finds those still running."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from runvitals.monitoring.monitor import relay_connection
from tests.patience import PATIENCE_S

# A relay that has delivered everything stays for 5 s.


def end_relay(data: str | Path) -> None:
    """End the relay of a data folder, if it is running."""
    response = relay_connection.ask(str(data), {"op": "hello"}, PATIENCE_S)
    if response is not None:
        os.kill(int(response["pid"]), signal.SIGTERM)


def left_running(folder: Path) -> list[str]:
    """Descriptions of the processes that use a folder and do not end within `PATIENCE_S`."""
    until_s = time.monotonic() + PATIENCE_S
    while (processes := processes_using(folder)) and time.monotonic() < until_s:
        time.sleep(0.1)
    return [f"process {pid} ({name}) uses {path}" for pid, (name, path) in sorted(processes.items())]


def processes_using(folder: Path) -> dict[int, tuple[str, str]]:
    """Other processes of this user that use a folder: PID → (name, path in the folder).

    Processes are found by their arguments, their environment, their working directory and their open files.
    """
    by_pid = {}
    for entry in Path("/proc").glob("[0-9]*"):
        pid = int(entry.name)
        if pid == os.getpid():
            continue
        path = _path_within(entry, f"{folder}{os.sep}")
        if path:
            by_pid[pid] = (_name(entry), path)
    return by_pid


def _path_within(process: Path, prefix: str) -> str:
    """A path with this prefix that a process uses; "" if there is none."""
    for text in _words(process):
        at = text.find(prefix)
        if at >= 0:
            test = text[at + len(prefix) :].partition(os.sep)[0]
            return prefix + test.partition(os.pathsep)[0]
    return ""


def _words(process: Path) -> list[str]:
    words = []
    try:
        if process.stat().st_uid != os.getuid():
            return []
        for name in ("cmdline", "environ"):
            words += (process / name).read_bytes().decode(errors="replace").split("\0")
        words.append(os.readlink(process / "cwd"))
        words += [os.readlink(fd) for fd in (process / "fd").iterdir()]
    except OSError:
        pass  # it has ended, or is not ours: what is known of it by then counts
    return words


def _name(process: Path) -> str:
    try:
        return (process / "comm").read_text().strip()
    except OSError:
        return "ended meanwhile"
