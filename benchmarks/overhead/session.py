"""Controls a training process with a tool, or a tool that runs independently."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from array import array
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.overhead import processes
from benchmarks.overhead.peers import Peer, Sample

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
_BOOT = "from benchmarks.overhead.trainer import main; main()"
_KEPT = ("PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH")


class Watched:
    """A process and its descendants, which are found by a marker in their environment.

    Attributes:
        pid: the process that was started.
        directory: a folder for its files; removed at the end.
        idle: PIDs of idle children of the training process, which do not belong to the tool.
    """

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.directory = Path(tempfile.mkdtemp(prefix="runvitals-bench-"))
        self.errors = self.directory / "stderr.txt"
        self.idle: frozenset[int] = frozenset()
        self._mark = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None

    def spawn(self, command: list[str], environ: dict[str, str]) -> None:
        kept = {name: value for name, value in os.environ.items() if name in _KEPT}
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                command,
                env={**kept, **environ, processes.MARKER: self._mark},
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    @property
    def process(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.peer.label} has not been started")
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    def pids(self) -> list[int]:
        """All processes of the tool, and the training process.

        Raises:
            RuntimeError: a process that the tool must have is missing.
        """
        children = self.left()
        commands = [" ".join(processes.command(pid)) for pid in children]
        for name in self.peer.companions:
            if not any(name in command for command in commands):
                raise RuntimeError(
                    f"{self.peer.label} runs without its process {name}: {commands}\n{self.stderr()}"
                )
        return children

    def left(self) -> list[int]:
        """The processes that are still running."""
        return [pid for pid in processes.marked(self._mark) if pid not in self.idle]

    def clocks(self, pids: list[int]) -> dict[int, int]:
        """CPU time of each process in ns."""
        return {pid: processes.cpu_ns(pid) for pid in pids}

    def stderr(self) -> str:
        """The end of the output on stderr."""
        return self.errors.read_text(errors="replace")[-2000:]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._kill_all()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _kill_all(self) -> None:
        until_s = time.monotonic() + PATIENCE_S
        while left := processes.marked(self._mark):
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            self.process.poll()
            if time.monotonic() > until_s:
                raise RuntimeError(f"processes {left} of {self.peer.label} could not be killed")
            time.sleep(0.01)


class Session(Watched):
    """A training process with a tool.

    Args:
        peer: the tool.
        interval_s: its sampling interval.
        children: idle child processes of the training process.
        cpu: the core that the training process and its descendants are bound to, if any.

    Example:
        >>> with Session(PEERS["runvitals"], 1.0) as session:
        ...     session.ask("log 100")["us"]
    """

    def __init__(self, peer: Peer, interval_s: float, children: int = 0, cpu: int | None = None) -> None:
        super().__init__(peer)
        self.interval_s = interval_s
        self._children = children
        self._cpu = -1 if cpu is None else cpu
        self._answers = b""
        self.ready: dict[str, Any] = {}

    def __enter__(self) -> Session:
        words = (self.peer.name, self.interval_s, self.directory, self._children, self._cpu)
        environ = {
            **self.peer.environ(self.interval_s),
            "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}",
            "OPENBLAS_NUM_THREADS": "1",
        }
        self.spawn([sys.executable, "-c", _BOOT, *map(str, words)], environ)
        try:
            self.ready = self._answer()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.idle = frozenset(self.ready["children"])
        return self

    def ask(self, command: str) -> dict[str, Any]:
        """Send a command and return the response.

        Raises:
            RuntimeError: the training process has ended or does not respond.
        """
        self.send(command)
        return self._answer()

    def send(self, command: str) -> None:
        """Send a command without waiting for a response."""
        stdin = self.process.stdin
        assert stdin is not None
        stdin.write(command.encode() + b"\n")
        stdin.flush()

    def _answer(self) -> dict[str, Any]:
        response: dict[str, Any] = json.loads(self.line())
        return response

    def line(self) -> bytes:
        """The next line on stdout."""
        stdout = self.process.stdout
        assert stdout is not None
        until_s = time.monotonic() + PATIENCE_S
        while b"\n" not in self._answers:
            readable, _, _ = select.select([stdout], [], [], max(0.0, until_s - time.monotonic()))
            data = os.read(stdout.fileno(), 65536) if readable else b""
            if not data:
                why = "ended" if readable else "does not respond"
                raise RuntimeError(f"the training process with {self.peer.label} {why}:\n{self.stderr()}")
            self._answers += data
        line, _, self._answers = self._answers.partition(b"\n")
        return line

    def rest(self) -> bytes:
        """The rest of stdout, once the training process has ended."""
        stdout = self.process.stdout
        assert stdout is not None
        return self._answers + stdout.read()

    def train(self, kind: str, seconds: float) -> tuple[array[int], list[Sample]]:
        """Run a training loop; returns the end of each step in ns, and the samples taken in the process."""
        path = self.directory / "steps"
        response = self.ask(f"loop {kind} {seconds} {path}")
        ends = array("q")
        ends.frombytes(path.read_bytes())
        return ends, [Sample(*sample) for sample in response["samples"]]

    def end(self) -> float:
        """Stop the tool and end the training process; returns how long the tool took to stop, in ms."""
        response = self.ask("end")
        self.process.wait(PATIENCE_S)
        return float(response["finish_ms"])
