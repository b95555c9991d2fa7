"""The monitor: one poll loop over the clock, the clients and the processes of a run on this host."""

from __future__ import annotations

import os
import select
import time
from struct import error as StructError

from runvitals.journal import frames
from runvitals.monitor.clients import Client, Door
from runvitals.monitor.processes import Exit, Process, stop_signal, verdict
from runvitals.monitor.sampler import Schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from runvitals.collectors.base import Scope
    from runvitals.journal.seal import Sealer
    from runvitals.journal.writer import Writer
    from runvitals.monitor.relay import RelayLine
    from runvitals.monitor.sampler import Sampler

SYNC_EVERY_S = 10.0
# A process that said "my interpreter is ending" is waited for this long; then its word is taken for its end.
CLOSING_GRACE_S = 60.0
# How long the exit status of a vanished process is looked for: it shows up when the parent has reaped it.
EXIT_STATUS_GRACE_S = 0.1
# How long a monitor without any process waits for one to attach.
FIRST_ATTACH_S = 30.0


class Monitor:
    """Watches one run on one host until every process of it has ended.

    Args:
        journal: where everything goes.
        door: the listening socket, handed on by the process that started us.
        sampler: asks the collectors.
        scope: its `pids` follow the processes that attach.
        interval_s: sampling interval.
        oom_kills: reads the kernel's count of out-of-memory kills, None where there is none.

    Attributes:
        relay: the line to the process that delivers the run; None where it goes nowhere.
    """

    def __init__(
        self,
        journal: Writer,
        door: Door,
        sampler: Sampler,
        scope: Scope,
        interval_s: float,
        oom_kills: Callable[[], int | None],
    ) -> None:
        self.journal = journal
        self.door = door
        self.sampler = sampler
        self.scope = scope
        self.oom_kills = oom_kills
        self.relay: RelayLine | None = None
        self.processes: list[Process] = []
        self.started_s = time.monotonic()
        self.schedule = Schedule(self.started_s, interval_s)
        self._poll = select.poll()
        self._clients: dict[int, Client] = {}
        self._watched: dict[int, Process] = {}
        self._errands: dict[int, Callable[[], None]] = {}
        self._sealer: Sealer | None = None
        self._refused: set[str] = set()
        self._synced_s = self.started_s
        self._closing_until_s = 0.0
        self._stop_asked = False
        self._interrupted: set[int] = set()
        self._oom_kills_before = oom_kills()
        self._poll.register(door.fd, select.POLLIN)

    # -- the loop

    def run(self) -> None:
        """Until every process is over: sample on the clock, listen in between. Then the last sample and the
        verdict.
        """
        while not self._over():
            now_s = time.monotonic()
            if now_s >= self.schedule.next_s:
                self._tick(now_s)
                continue
            for fd, _ in self._poll.poll((self.schedule.next_s - now_s) * 1000.0):
                self._handle(fd)
        self._end()

    def _over(self) -> bool:
        if not self.processes:
            return time.monotonic() - self.started_s > FIRST_ATTACH_S
        if self._closing_until_s and time.monotonic() > self._closing_until_s:
            return all(process.over or process.closing for process in self.processes)
        return all(process.over for process in self.processes)

    def _tick(self, now_s: float) -> None:
        self.sampler.missed_ticks += self.schedule.advance(now_s)
        self.sample(now_s)
        for process in self.processes:
            if process.pidfd < 0 and not process.gone and process.check():
                self._gone(process)
        self.mind_relay(now_s)
        if now_s - self._synced_s >= SYNC_EVERY_S:
            self._synced_s = now_s
            self._sync()
        self._seal_a_little()

    def sample(self, now_s: float) -> None:
        """Take one sample and write it."""
        values = self.sampler.sample(now_s)
        time_ms = time.time_ns() // 1_000_000
        try:
            self.journal.sample(time_ms, values)
        except (StructError, OverflowError):
            self.journal.sample(time_ms, self._numbers_of(values))
        fresh = self.sampler.baselines.fresh
        if fresh:
            # The next monitor of this run, should this one die, counts on from the same zero.
            self.note(frames.INFO, baselines=fresh)
            self.sampler.baselines.fresh = {}
        self._write_news()

    def _write_news(self) -> None:
        """What the sources tell beside numbers: facts about their devices, what they miss, what happened."""
        news = self.sampler.news()
        if news:
            self._note_theirs(frames.INFO, news)
        if self.sampler.events:
            events, self.sampler.events = self.sampler.events, []
            for event in events:
                self._note_theirs(frames.EVENT, event)

    def _note_theirs(self, type: int, value: Mapping[str, object]) -> None:
        """A record made by a collector, of another package perhaps, which may hold what JSON cannot."""
        try:
            self.journal.json(type, {**value, "t": time.time_ns() // 1_000_000})
        except (TypeError, ValueError) as error:
            text = f"a source told what cannot be written: {error}: {value!r:.200}"
            self.note(frames.EVENT, name="bad_reading", level="warning", text=text)

    def _numbers_of(self, values: dict[str, float]) -> dict[str, float]:
        """What of a sample can be written, when a collector of another package has put in something else."""
        numbers = {key: float(value) for key, value in values.items() if _is_number(value)}
        for key in values.keys() - numbers.keys() - self._refused:
            self._refused.add(key)
            text = f"{key} = {values[key]!r:.80} is not a number and is left out"
            self.note(frames.EVENT, name="bad_reading", level="warning", text=text)
        return numbers

    def note(self, type: int, **value: object) -> None:
        """Write a JSON record of this moment."""
        self.journal.json(type, {"t": time.time_ns() // 1_000_000, **value})

    def errand(self, fd: int, done: Callable[[], None]) -> None:
        """Call `done` when `fd` has something to read; `done` closes it."""
        self._errands[fd] = done
        self._poll.register(fd, select.POLLIN)

    def _handle(self, fd: int) -> None:
        if fd == self.door.fd:
            while (client := self.door.accept()) is not None:
                self._clients[client.fd] = client
                self._poll.register(client.fd, select.POLLIN)
        elif fd in self._clients:
            self._hear(self._clients[fd])
        elif fd in self._watched:
            self._gone(self._watched[fd])
        elif fd in self._errands:
            self._poll.unregister(fd)
            self._errands.pop(fd)()
        elif self.relay is not None and fd == self.relay.fd:
            self._hear_relay(self.relay)

    # -- the relay

    def mind_relay(self, now_s: float) -> None:
        """See that there is a relay, where the run has a destination."""
        if self.relay is not None and self.relay.mind(now_s):
            self._poll.register(self.relay.fd, select.POLLIN)

    def _hear_relay(self, relay: RelayLine) -> None:
        fd = relay.fd
        for message in relay.messages():
            if message.get("op") == "stop":
                self._interrupt(str(message.get("text", "")))
            elif message.get("op") == "event":
                name, text = str(message.get("name", "")), str(message.get("text", ""))
                self.note(frames.EVENT, name=name, level="warning", text=text)
        if relay.fd < 0:
            self._poll.unregister(fd)

    def _interrupt(self, text: str) -> None:
        """Somebody at a destination wants the run to end: as by Ctrl-C. Each process is interrupted once:
        a second time would break into what it does at its end, and a relay that was started anew asks again.
        """
        pids = {process.pid for process in self.processes if not process.over} - self._interrupted
        if self._stop_asked and not pids:
            return
        self._stop_asked = True
        self._interrupted |= pids
        self.note(frames.EVENT, name="stop_requested", level="warning", text=text)
        for pid in pids:
            try:
                os.kill(pid, stop_signal(pid))
            except (ProcessLookupError, PermissionError) as error:
                failed = f"process {pid} could not be interrupted: {error.strerror}"
                self.note(frames.EVENT, name="stop_failed", level="warning", text=failed)

    # -- clients

    def _hear(self, client: Client) -> None:
        try:
            messages = client.messages()
        except ValueError as error:
            self.note(
                frames.EVENT, name="bad_message", level="warning", text=f"process {client.pid} said {error}"
            )
            messages = None
        if messages is None:
            self._poll.unregister(client.fd)
            del self._clients[client.fd]
            client.close()
            return
        for message in messages:
            self._obey(client, message)

    def _obey(self, client: Client, message: dict[str, Any]) -> None:
        op = message.get("op")
        pid = int(message.get("pid") or client.pid)
        if op == "attach":
            self.attach(pid, message)
        elif op == "finish":
            self._finish(pid, message)
            self._answer(client, pid)
        elif op == "exited":
            for process in self._of(pid):
                process.exit = Exit(message.get("exit_code"), message.get("signal"))
                self._gone(process)
        else:
            self.note(
                frames.EVENT,
                name="bad_message",
                level="warning",
                text=f"process {client.pid} asked for {op!r}",
            )

    def _of(self, pid: int, role: str | None = None) -> list[Process]:
        return [p for p in self.processes if p.pid == pid and not p.over and (role is None or p.role == role)]

    def attach(self, pid: int, about: dict[str, Any], pidfd: int = -1) -> None:
        """A process joins the run. Saying so twice, as the one that started us does, changes nothing."""
        if self._of(pid, str(about.get("role", "train"))):
            if pidfd >= 0:
                os.close(pidfd)
            return
        process = Process(pid, about, pidfd)
        self.processes.append(process)
        said = {key: about.get(key) for key in ("role", "rank", "local_rank", "world_size", "writer")}
        self.note(frames.LIFECYCLE, what="attach", pid=pid, **said)
        if process.gone:
            self._gone(process)
            return
        if pid not in self.scope.pids:
            self.scope.pids.append(pid)
        if process.pidfd >= 0:
            self._watched[process.pidfd] = process
            self._poll.register(process.pidfd, select.POLLIN)

    def _finish(self, pid: int, message: dict[str, Any]) -> None:
        self._stop_asked = self._stop_asked or bool(message.get("stopped"))
        for process in self._of(pid, "train"):
            process.finished = True
            process.closing = bool(message.get("closing"))
            code = message.get("exit_code")
            if process.closing:
                process.exit_hint = code
                self._closing_until_s = time.monotonic() + CLOSING_GRACE_S
            else:
                process.exit = Exit(code or 0, None)
                self._unwatch(process)
            self.note(frames.LIFECYCLE, what="finish", pid=pid, exit_code=code)

    def _answer(self, client: Client, pid: int) -> None:
        """The last sample of a process that leaves while the run goes on; if it is the last one, `_end`
        answers.
        """
        if not all(process.over for process in self.processes):
            self.sample(time.monotonic())
            client.send({"op": "done", "state": "running"})

    # -- processes

    def _unwatch(self, process: Process) -> None:
        if process.pidfd in self._watched:
            self._poll.unregister(process.pidfd)
            del self._watched[process.pidfd]
        process.close()

    def _gone(self, process: Process) -> None:
        """A process has ended: write it down at once, for we may be killed with it."""
        if process.recorded:
            return
        process.gone = process.recorded = True
        self._find_exit(process)
        self._unwatch(process)
        self.note(
            frames.LIFECYCLE,
            what="exit",
            pid=process.pid,
            exit_code=process.exit.exit_code,
            signal=process.exit.signal,
            out_of_memory=self._out_of_memory(process.exit),
        )

    def _find_exit(self, process: Process) -> None:
        until_s = time.monotonic() + EXIT_STATUS_GRACE_S
        while not process.exit.known and not process.learn_exit().known and time.monotonic() < until_s:
            time.sleep(0.002)
        if not process.exit.known and process.closing:
            process.exit = Exit(process.exit_hint or 0, None)

    def _out_of_memory(self, exit: Exit) -> bool:
        if exit.signal != 9 or self._oom_kills_before is None:
            return False
        now = self.oom_kills()
        return now is not None and now > self._oom_kills_before

    # -- the disk

    def _sync(self) -> None:
        """Bring the run's files to the disk itself: ours and those of the processes, which must not wait for
        a disk.
        """
        try:
            names = os.listdir(self.journal.folder)
        except FileNotFoundError:
            return  # the run was deleted while it went on
        for name in names:
            path = os.path.join(self.journal.folder, name)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue  # sealed and renamed since the listing
            try:
                os.fsync(fd)
            except OSError as error:
                self.note(frames.EVENT, name="sync_failed", level="warning", text=f"{path}: {error.strerror}")
            finally:
                os.close(fd)

    def _seal_a_little(self) -> None:
        if self._sealer is None and not self.journal.rotated:
            return
        from runvitals.journal.seal import Sealer  # most runs never fill a file

        try:
            sealer = self._sealer = self._sealer or Sealer(self.journal.rotated.pop(0))
            if not sealer.step():
                self._sealer = None
        except (OSError, ValueError) as error:
            if self._sealer is not None:
                self._sealer.abandon()
                self._sealer = None
            self.note(frames.EVENT, name="not_sealed", level="warning", text=str(error))

    # -- the end

    def _end(self) -> None:
        self.sample(time.monotonic())
        state, decisive = verdict([process.exit for process in self.processes], self._stop_asked)
        self.note(
            frames.LIFECYCLE,
            what="end",
            state=state,
            exit_code=decisive.exit_code,
            signal=decisive.signal,
            out_of_memory=self._out_of_memory(decisive),
        )
        self.sampler.close()
        if self._sealer is not None:
            self._sealer.abandon()
        # Out of the way before the last word: whoever comes now must start a monitor of their own.
        self.door.close()
        for client in self._clients.values():
            # Also to those that have not asked yet: a wrapper may be about to, and finds the answer waiting.
            client.send({"op": "done", "state": state})
            client.close()
        self._sync()
        self.journal.close()


def _is_number(value: object) -> bool:
    # An int can be beyond what a float64 holds.
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)
