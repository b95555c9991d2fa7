"""The monitor: one poll loop over the clock, the clients and the processes of a run on this host."""

from __future__ import annotations

import os
import select
import time

from runvitals.journal import frames
from runvitals.journal.writer import TEMPORARY_ERRORS
from runvitals.model.ending import ProcessExit
from runvitals.model.state import host_ending
from runvitals.monitoring.monitor.journal_files import JournalFiles
from runvitals.monitoring.monitor.output_recorder import OutputRecorder
from runvitals.monitoring.monitor.poller import DescriptorWatcher
from runvitals.monitoring.monitor.recorder import MonitorRecorder
from runvitals.monitoring.monitor.sampler import Schedule
from runvitals.monitoring.monitor.watched_processes import CLOSING, GONE, NEVER, WatchedProcess, stop_signal
from runvitals.monitoring.monitor.workers import ending_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from runvitals.journal.writer import JournalWriter
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.monitor.clients import ClientConnection, Listener
    from runvitals.monitoring.monitor.cpu_affinity import CpuAffinity
    from runvitals.monitoring.monitor.oom_kills import OomKillDetector
    from runvitals.monitoring.monitor.poller import Poller
    from runvitals.monitoring.monitor.relay_connection import RelayConnection
    from runvitals.monitoring.monitor.sampler import Sampler
    from runvitals.monitoring.monitor.workers import EarlierProcess

_HIGHEST_PID = (1 << 31) - 1
# How many times, 2 ms apart, to read the exit status of a process that has ended. It becomes available when
# the parent has reaped the process.
_EXIT_STATUS_ATTEMPTS = 50
# How long to pause before accepting connections again after that has failed.
ACCEPT_PAUSE_S = 10.0
# How long, and how often, to retry writing the ending to a full disk.
ENDING_RETRY_S = 60.0
_ENDING_RETRY_EVERY_S = 1.0
# How long a monitor without any process waits for one to attach.
FIRST_ATTACH_S = 30.0


class Monitor:
    """Monitors a run on one host until all its processes have ended.

    Args:
        journal: receives all records.
        listener: the listening socket, inherited from the process that started the monitor.
        sampler: reads the collectors.
        scope: its `pids` follow the processes that attach.
        interval_s: sampling interval.
        oom_kills: detects which processes the kernel killed for lack of memory.
        clock: monotonic seconds.
        poller: `select.poll()`, or a test's.

    Attributes:
        relay: the connection to the process that delivers the run; None without a destination.
        affinity: keeps the monitor off the training's processors; None if that makes no difference.
        in_container: whether the kernel ends the monitor together with another process, the first one of its
            container.
        earlier: the processes that the previous monitor of this host watched.
    """

    def __init__(
        self,
        journal: JournalWriter,
        listener: Listener,
        sampler: Sampler,
        scope: Scope,
        interval_s: float,
        oom_kills: OomKillDetector,
        clock: Callable[[], float] = time.monotonic,
        poller: Poller | None = None,
    ) -> None:
        self.journal = journal
        self.listener = listener
        self.sampler = sampler
        self.recorder = MonitorRecorder(journal, sampler)
        self.scope = scope
        self.clock = clock
        self.relay: RelayConnection | None = None
        self.affinity: CpuAffinity | None = None
        self.in_container = False
        self.earlier: Sequence[EarlierProcess] = ()
        self.processes: list[WatchedProcess] = []
        self._live: list[WatchedProcess] = []  # those that are not over
        self.started_s = clock()
        self._check_at_s = self.started_s + FIRST_ATTACH_S  # when to check the processes
        self.schedule = Schedule(self.started_s, interval_s)
        self._oom_kills = oom_kills
        self._descriptors = DescriptorWatcher(poller or select.poll())
        self._clients: dict[int, ClientConnection] = {}
        self._files = JournalFiles(journal, self.recorder.warn, self.started_s)
        self._output = OutputRecorder(journal, self.recorder.warn)
        self._stop_requested = False
        self._interrupted: set[int] = set()
        self._accept_again_at_s = NEVER
        self._chores_at_s = 0.0
        self._descriptors.watch(listener.fd, self._accept_clients)

    # -- the loop

    def run(self) -> None:
        """Run until every process is over. Then take the last sample and record the ending."""
        while self._live or not self._is_over():
            self.turn()
        self._end()

    def turn(self) -> None:
        """Wait for the next thing to do, and do it.

        Descriptors are polled in every turn, even if samples take longer than the interval and the next one
        is already due.
        """
        wake_s = self.schedule.next_s
        if self._check_at_s < wake_s:
            wake_s = self._check_at_s
        self._descriptors.dispatch(wake_s - self.clock())
        now_s = self.clock()
        if now_s >= self._check_at_s:
            self._check_processes(now_s)
        if now_s >= self.schedule.next_s and (self._live or not self._is_over()):
            self._tick(now_s)

    def _is_over(self) -> bool:
        if self._live:
            return False
        return bool(self.processes) or self.clock() - self.started_s >= FIRST_ATTACH_S

    def _update_live(self) -> None:
        self._live = [process for process in self._live if not process.over]
        self._check_at_s = min((process.check_at_s for process in self._live), default=NEVER)

    def _tick(self, now_s: float) -> None:
        missed = self.schedule.advance(now_s)
        if missed:
            self.sampler.missed_ticks += missed
        self.recorder.sample(now_s)
        # The processor's caches are cold: each object that is only asked whether it is due costs 1 µs.
        if now_s >= self._chores_at_s:
            self._do_chores(now_s)

    def _do_chores(self, now_s: float) -> None:
        """Do what is due besides samples, and determine when the next of it is due."""
        due_s = [NEVER if self.relay is None else now_s]
        if self.affinity is not None:
            if now_s >= self.affinity.update_at_s:
                self.affinity.update(now_s, self._live)
            due_s.append(self.affinity.update_at_s)
        if now_s >= self._oom_kills.check_at_s:
            self._oom_kills.check(now_s, self._live)
        if self.relay is not None:
            self.supervise_relay(now_s)
        if now_s >= self._accept_again_at_s:
            self._accept_again_at_s = NEVER
            self._descriptors.watch(self.listener.fd, self._accept_clients)
        if now_s >= self._files.maintain_at_s:
            self._files.maintain(now_s)
        if now_s >= self._output.read_at_s:
            self._output.read(now_s)
        due_s += self._oom_kills.check_at_s, self._accept_again_at_s, self._files.maintain_at_s
        due_s.append(self._output.read_at_s)
        self._chores_at_s = min(due_s)

    def add_background_task(self, fd: int, done: Callable[[], None]) -> None:
        """Call `done` once when `fd` becomes readable; `done` closes it."""

        def finish() -> None:
            self._descriptors.unwatch(fd)
            done()

        self._descriptors.watch(fd, finish)

    # -- the relay

    def supervise_relay(self, now_s: float) -> None:
        """Keep a relay running if the run has a destination."""
        relay = self.relay
        if relay is None:
            return
        fd = relay.fd
        if relay.ensure(now_s):
            self._descriptors.watch(relay.fd, lambda: self._read_relay(relay))
        elif relay.fd < 0:
            self._descriptors.unwatch(fd)

    def _read_relay(self, relay: RelayConnection) -> None:
        fd = relay.fd
        try:
            messages = relay.messages()
        except ValueError as error:
            self.recorder.warn("bad_message", f"invalid message from the relay: {error}")
            relay.close()
            messages = []
        for message in messages:
            if message.get("op") == "stop":
                self._interrupt_processes(str(message.get("text", "")))
            elif message.get("op") == "event":
                self.recorder.warn(str(message.get("name", "")), str(message.get("text", "")))
        if relay.fd < 0:
            self._descriptors.unwatch(fd)

    def _interrupt_processes(self, text: str) -> None:
        """Stop the run as Ctrl-C does, because a user requested it at a destination.

        Each process is interrupted once: a second signal would break into its shutdown, and a restarted relay
        repeats the request.
        """
        pids = {process.pid for process in self._live} - self._interrupted
        if self._stop_requested and not pids:
            return
        self._stop_requested = True
        self._interrupted |= pids
        self.recorder.warn("stop_requested", text)
        for pid in pids:
            try:
                os.kill(pid, stop_signal(pid))
            except (ProcessLookupError, PermissionError) as error:
                self.recorder.warn("stop_failed", f"could not interrupt process {pid}: {error.strerror}")

    # -- clients

    def _accept_clients(self) -> None:
        try:
            while (client := self.listener.accept()) is not None:
                self.add_client(client)
        except OSError as error:
            # No descriptor is free. Poll would report the waiting connection again and again.
            self._descriptors.unwatch(self.listener.fd)
            self._accept_again_at_s = self.clock() + ACCEPT_PAUSE_S
            self._chores_at_s = min(self._chores_at_s, self._accept_again_at_s)
            text = f"could not accept a connection; retrying in {ACCEPT_PAUSE_S:.0f} s: {error.strerror}"
            self.recorder.warn("accept_failed", text)

    def add_client(self, client: ClientConnection) -> None:
        """Answer the messages of a connection until it is closed."""
        self._clients[client.fd] = client
        self._descriptors.watch(client.fd, lambda: self._read_client(client))

    def _read_client(self, client: ClientConnection) -> None:
        try:
            messages = client.messages()
        except ValueError as error:
            self._warn_of_message(client, error)
            messages = None
        if messages is None:
            self._remove_client(client)
            return
        for message in messages:
            try:
                self._handle_message(client, message)
            except ValueError as error:
                self._warn_of_message(client, error)

    def _warn_of_message(self, client: ClientConnection, error: ValueError) -> None:
        self.recorder.warn("bad_message", f"invalid message from process {client.pid}: {error}")

    def _remove_client(self, client: ClientConnection) -> None:
        self._descriptors.unwatch(client.fd)
        del self._clients[client.fd]
        client.close()
        for process in self._live_processes(client.pid):
            process.read_exit_early()

    def _handle_message(self, client: ClientConnection, message: dict[str, Any]) -> None:
        op = message.get("op")
        pid = _integer(message, "pid", 1, _HIGHEST_PID) or client.pid
        if op == "attach":
            self.attach(pid, message)
        elif op == "finish":
            self._finish(pid, message)
            self._confirm_finish(client)
        elif op == "exited":
            exit = ProcessExit(_integer(message, "exit_code"), _integer(message, "signal", 1, 127))
            for process in self._live_processes(pid):
                process.exit = exit
                self._record_ended(process)
        else:
            raise ValueError(f"unknown op {op!r:.80}; expected attach, finish or exited")

    def _live_processes(self, pid: int, role: str | None = None) -> list[WatchedProcess]:
        return [p for p in self._live if p.pid == pid and (role is None or p.role == role)]

    def attach(self, pid: int, about: dict[str, Any], pidfd: int = -1) -> None:
        """Add a process to the run.

        Has no effect if it has attached already: the process that started the monitor attaches twice.
        """
        if self._live_processes(pid, str(about.get("role", "train"))):
            if pidfd >= 0:
                os.close(pidfd)
            return
        process = WatchedProcess(pid, about, pidfd, self.clock())
        self.processes.append(process)
        fields = {key: about.get(key) for key in ("role", "rank", "local_rank", "world_size", "writer")}
        self.recorder.note(frames.LIFECYCLE, what="attach", pid=pid, **fields)
        if process.state == GONE:
            self._record_exit(process)
            return
        self._live.append(process)
        self._output.attach(process, self.clock())
        self._chores_at_s = min(self._chores_at_s, self._output.read_at_s)
        self._update_live()
        if pid not in self.scope.pids:
            self.scope.pids.append(pid)
        if process.pidfd >= 0:
            self._descriptors.watch(process.pidfd, lambda: self._record_ended(process))

    def _finish(self, pid: int, message: dict[str, Any]) -> None:
        code = _integer(message, "exit_code")
        self._stop_requested = self._stop_requested or bool(message.get("stopped"))
        for process in self._live_processes(pid, "train"):
            if message.get("closing"):
                process.begin_closing(code, self.clock())
            else:
                self._descriptors.unwatch(process.pidfd)
                process.leave(code)
                self._output.finish(process, self.clock())
            self.recorder.note(frames.LIFECYCLE, what="finish", pid=pid, exit_code=code)
            if process.state == CLOSING and self.in_container and len(self.processes) == 1:
                self._record_expected_end(process)
        self._output.read(self.clock())
        self._update_live()

    def _record_expected_end(self, process: WatchedProcess) -> None:
        """Record how the run ends if the kernel kills the monitor first.

        It does when the run's only process, or a shell that waits for it, is the first one of a container. If
        the monitor lives on, the record of the real end replaces this one.
        """
        ending = host_ending([process.announced_exit], self._stop_requested)
        self.recorder.note(frames.LIFECYCLE, what="end", expected=True, **ending.as_dict())

    def _confirm_finish(self, client: ClientConnection) -> None:
        """Take the last sample of a process that leaves while the run continues; if not, `_end` does so."""
        if not self._is_over():
            self.recorder.sample(self.clock())
            client.send({"op": "done", "state": "running"})

    # -- processes

    def _check_processes(self, now_s: float) -> None:
        for process in self._live:
            if now_s >= process.check_at_s:
                self._check_process(process, now_s)
        self._update_live()

    def _check_process(self, process: WatchedProcess, now_s: float) -> None:
        """Check a process without a pidfd, or one that has been closing for too long."""
        pidfd, was_closing = process.pidfd, process.state == CLOSING
        if process.check(now_s):
            self._record_ended(process)
        elif was_closing and process.over:
            self._descriptors.unwatch(pidfd)
            self._output.finish(process, now_s)
            text = f"process {process.pid} announced its exit but still exists; no longer waiting for it"
            self.recorder.warn("still_closing", text)

    def _record_ended(self, process: WatchedProcess) -> None:
        """Record immediately that a process has ended: what killed it may kill the monitor next."""
        # Read the messages that it sent before it ended.
        for client in [client for client in self._clients.values() if client.pid == process.pid]:
            self._read_client(client)
        if process.over:
            return
        for _ in range(_EXIT_STATUS_ATTEMPTS):
            if process.exit.known or process.read_exit().known:
                break
            time.sleep(0.002)
        self._descriptors.unwatch(process.pidfd)
        process.mark_gone()
        self._update_live()
        self._record_exit(process)

    def _record_exit(self, process: WatchedProcess) -> None:
        exit = process.exit
        exit.out_of_memory = exit.signal == 9 and self._oom_kills.was_oom_killed(process)
        self.recorder.note(frames.LIFECYCLE, what="exit", pid=process.pid, **exit.as_dict())
        self._output.finish(process, self.clock())

    # -- the end

    def _end(self) -> None:
        self.recorder.sample(self.clock())
        self.recorder.check_clock()
        ending = ending_of(self.processes, self.earlier, self._stop_requested)
        record = {"t": self.journal.clock.now_ms(), "what": "end", **ending.as_dict()}
        is_recorded = self.journal.json(frames.LIFECYCLE, record)
        is_recorded = is_recorded or self._files.reserve.write(frames.LIFECYCLE, record)
        # Stop listening before the responses are sent: a process that attaches from now on must start a new
        # monitor.
        self._descriptors.unwatch(self.listener.fd)
        self.listener.close()
        # Answer before anything that may take long. Clients that have not asked yet, such as a wrapper that
        # is about to, find the response in their socket.
        for client in self._clients.values():
            client.send({"op": "done", "state": ending.state})
            self._descriptors.unwatch(client.fd)
            client.close()
        self.sampler.close()
        if not is_recorded:
            self._retry_ending(record)
        self._files.reserve.release()
        self._files.abandon_sealing()
        self._files.sync()
        self.journal.close()

    def _retry_ending(self, record: dict[str, object]) -> None:
        """Retry writing the `end` record for a while, because space may become free on the disk."""
        until_s = self.clock() + ENDING_RETRY_S
        while self.clock() < until_s and self.journal.error is not None:
            if self.journal.error.errno not in TEMPORARY_ERRORS:
                return
            self._descriptors.dispatch(_ENDING_RETRY_EVERY_S)
            self.journal.lost -= 1  # the record, which was counted when it failed
            if self.journal.json(frames.LIFECYCLE, record):
                return


def _integer(message: dict[str, Any], name: str, least: int = -(1 << 63), most: int = 1 << 63) -> int | None:
    """Return an integer of a message; None if it is missing or null. Raise ValueError for anything else."""
    value = message.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        return value
    raise ValueError(f"{name} is {value!r:.80}; expected an integer from {least} to {most}")
