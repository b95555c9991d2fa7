"""Data loss after kill -9 of the training process or of the monitor.

The training process logs a row every millisecond and prints the row's number once the call has returned. A
row whose number was printed but that is not in the records is lost.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.overhead import processes
from benchmarks.overhead.peers import MLFLOW, RUNVITALS, WANDB, Peer, wandb_rows
from benchmarks.overhead.session import PATIENCE_S, Session
from runvitals.journal import frames
from runvitals.journal.reader import Tail
from runvitals.journal.records import Record

_INTERVAL_S = 0.1
# How often to read the journal while waiting for a record.
_POLL_S = 0.0001


@dataclass(frozen=True)
class Losses:
    """The losses of several kills together.

    Attributes:
        accepted: rows whose `log()` had returned; `lost`: those that are not in the records.
        noticed_ms: durations from the kill to the record of the end (or of the gap); empty if the tool
            records none.
        samples, samples_lost: samples that a reader had seen before the kill, and those not found later.
        damaged: number of damaged records.
    """

    label: str
    kills: int
    accepted: int
    lost: int
    noticed_ms: tuple[float, ...]
    samples: int = 0
    samples_lost: int = 0
    damaged: int = 0

    def noticed(self) -> str:
        if not self.noticed_ms:
            return "never"
        return f"{median(self.noticed_ms):.1f} ms (longest {max(self.noticed_ms):.1f})"


class _Follower:
    """Reads a run's journal as it grows."""

    def __init__(self, folder: str) -> None:
        self._tail = Tail(folder)
        self.records: list[Record] = []
        self._passed = 0  # records up to the last one that was waited for

    def poll(self) -> None:
        self.records += self._tail.poll()

    def wait_for(self, accepts: Callable[[Record], bool]) -> Record:
        """The next record that matches."""
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            self.poll()
            while self._passed < len(self.records):
                self._passed += 1
                if accepts(self.records[self._passed - 1]):
                    return self.records[self._passed - 1]
            time.sleep(_POLL_S)
        raise RuntimeError(f"the expected record was not written within {PATIENCE_S:g} s")

    def rows(self) -> set[int]:
        return {r.value["data"]["row"] for r in self.records if r.type == frames.HISTORY}

    def samples(self) -> set[tuple[str, int]]:
        return {(r.writer, r.seq) for r in self.records if r.type == frames.SAMPLE}

    @property
    def damaged(self) -> int:
        return len(self._tail.problems)


def _says(what: str) -> Callable[[Record], bool]:
    return lambda record: record.type == frames.LIFECYCLE and record.value["what"] == what


def training_process_killed(kills: int) -> Losses:
    """kill -9 of the training process at a random time, `kills` times, each in a new run."""
    accepted = lost = samples = samples_lost = damaged = 0
    noticed = []
    for _ in range(kills):
        with Session(RUNVITALS, _INTERVAL_S) as session:
            folder = session.ready["about"]["folder"]
            follower = _Follower(folder)
            session.send("rows")
            time.sleep(random.uniform(0.3, 0.6))
            follower.poll()
            # Like a shell, wait for the process.
            reaper = threading.Thread(target=session.process.wait)
            reaper.start()
            killed_s = time.perf_counter()
            os.kill(session.pid, signal.SIGKILL)
            follower.wait_for(_says("exit"))
            noticed.append((time.perf_counter() - killed_s) * 1e3)
            reaper.join()
            numbers = _numbers(session.rest())
            follower.wait_for(_says("end"))
            again = _Follower(folder)
            again.poll()
            accepted += len(numbers)
            lost += len(numbers - again.rows())
            samples += len(follower.samples())
            samples_lost += len(follower.samples() - again.samples())
            damaged += again.damaged
    label = "runvitals, training process killed"
    return Losses(label, kills, accepted, lost, tuple(noticed), samples, samples_lost, damaged)


def monitor_killed(kills: int) -> Losses:
    """kill -9 of the monitor at a random time, `kills` times, each in a new run that continues to log rows.

    The measured time is from the kill to the record of the gap, which the next monitor writes.
    """
    accepted = lost = samples = samples_lost = damaged = 0
    noticed = []
    for _ in range(kills):
        with Session(RUNVITALS, _INTERVAL_S) as session:
            about = session.ready["about"]
            follower = _Follower(about["folder"])
            session.send("rows")
            time.sleep(random.uniform(0.3, 0.6))
            monitor = _monitor_of(session, about["run"])
            follower.poll()
            killed_s = time.perf_counter()
            os.kill(monitor, signal.SIGKILL)
            seen = follower.samples()
            follower.wait_for(_says("gap"))
            noticed.append((time.perf_counter() - killed_s) * 1e3)
            os.kill(session.pid, signal.SIGKILL)
            session.process.wait()
            numbers = _numbers(session.rest())
            follower.wait_for(_says("end"))
            again = _Follower(about["folder"])
            again.poll()
            accepted += len(numbers)
            lost += len(numbers - again.rows())
            samples += len(seen)
            samples_lost += len(seen - again.samples())
            damaged += again.damaged
    label = "runvitals, monitor killed"
    return Losses(label, kills, accepted, lost, tuple(noticed), samples, samples_lost, damaged)


def peer_killed(peer: Peer, kills: int) -> Losses:
    """kill -9 of the training process with another tool; counted once all its processes have ended."""
    accepted = lost = 0
    for _ in range(kills):
        with Session(peer, 1.0) as session:
            session.send("rows")
            time.sleep(2.0)
            os.kill(session.pid, signal.SIGKILL)
            session.process.wait()
            numbers = _numbers(session.rest())
            until_s = time.monotonic() + PATIENCE_S
            while session.left() and time.monotonic() < until_s:
                time.sleep(0.1)
            accepted += len(numbers)
            lost += max(0, len(numbers) - _kept(peer, session))
    return Losses(f"{peer.label}, training process killed", kills, accepted, lost, ())


def _kept(peer: Peer, session: Session) -> int:
    """The number of rows in the tool's records."""
    if peer is WANDB:
        return wandb_rows(session.ready["about"]["folder"])
    with sqlite3.connect(Path(session.directory) / "mlflow.db") as database:
        (count,) = database.execute("SELECT count(*) FROM metrics WHERE key = 'row'").fetchone()
    return int(count)


def _monitor_of(session: Session, run: str) -> int:
    for pid in session.pids():
        if "runvitals-monitor" in (words := processes.command(pid)) and run in words:
            return pid
    raise RuntimeError(f"run {run} has no monitor")


def _numbers(printed: bytes) -> set[int]:
    """The numbers in complete lines."""
    return {int(line) for line in printed[: printed.rfind(b"\n") + 1].split()}


def measure(kills: int) -> list[Losses]:
    """The losses of runvitals, and of the two tools that record rows."""
    return [
        training_process_killed(kills),
        monitor_killed(kills),
        peer_killed(WANDB, max(1, kills // 5)),
        peer_killed(MLFLOW, max(1, kills // 5)),
    ]
