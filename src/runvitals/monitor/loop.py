"""The monitor: one poll loop over the clock, the clients and the processes of a run on this host."""

from __future__ import annotations

import os
import select
import time
from struct import error as StructError

from runvitals.journal import frames
from runvitals.journal.clock import JUMP_MS
from runvitals.journal.writer import NO_ROOM
from runvitals.model.ending import ProcessExit
from runvitals.model.state import host_ending
from runvitals.monitor.clients import Client, Door
from runvitals.monitor.journal_files import Disk
from runvitals.monitor.oom_kills import MemoryKills
from runvitals.monitor.poller import Descriptors
from runvitals.monitor.processes import CLOSING, GONE, NEVER, Process, stop_signal
from runvitals.monitor.sampler import Schedule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from runvitals.collectors.base import Scope
    from runvitals.journal.writer import JournalWriter
    from runvitals.monitor.cpu_affinity import Placement
    from runvitals.monitor.poller import Poller
    from runvitals.monitor.relay_connection import RelayLine
    from runvitals.monitor.sampler import Sampler

_HIGHEST_PID = (1 << 31) - 1
# How often, 2 ms apart, the exit status of a vanished process is looked for: it shows up when the parent has
# reaped it.
_EXIT_STATUS_LOOKS = 50
# How often it is looked whether somebody has set the system's clock.
LOOK_AT_CLOCK_S = 10.0
# How long nobody is let in after that has failed.
DOOR_WAITS_S = 10.0
# How long, and how often, the ending is tried again after the disk had no room for it.
ENDING_RETRY_S = 60.0
_ENDING_RETRY_EVERY_S = 1.0
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
        memory_kills: tells which processes the kernel killed for want of memory.
        clock: monotonic seconds.
        poller: `select.poll()`, or a test's.

    Attributes:
        relay: the line to the process that delivers the run; None where it goes nowhere.
        placement: keeps the monitor off the training's processors; None where there is no choice.
    """

    def __init__(
        self,
        journal: JournalWriter,
        door: Door,
        sampler: Sampler,
        scope: Scope,
        interval_s: float,
        memory_kills: MemoryKills,
        clock: Callable[[], float] = time.monotonic,
        poller: Poller | None = None,
    ) -> None:
        self.journal = journal
        self.door = door
        self.sampler = sampler
        self.scope = scope
        self.clock = clock
        self.relay: RelayLine | None = None
        self.placement: Placement | None = None
        self.processes: list[Process] = []
        self._live: list[Process] = []  # those that are not over
        self.started_s = clock()
        self.schedule = Schedule(self.started_s, interval_s)
        self._memory_kills = memory_kills
        self._descriptors = Descriptors(poller or select.poll())
        self._clients: dict[int, Client] = {}
        self._disk = Disk(journal, self.warn, self.started_s)
        self._refused: set[str] = set()
        self._look_at_clock_s = 0.0
        self._system_ahead_ms = 0  # of the run's clock, as was told last
        self._stop_requested = False
        self._interrupted: set[int] = set()
        self._door_waits_until_s = NEVER
        self._descriptors.watch(door.fd, self._open_door)

    # -- the loop

    def run(self) -> None:
        """Until every process is over. Then the last sample and the verdict."""
        while not self._over():
            self.turn()
        self._end()

    def turn(self) -> None:
        """Wait for the next thing to do, and do it.

        Everybody is heard in every turn, also where a sample takes as long as the interval and the next one
        is due already.
        """
        wake_s = self.schedule.next_s
        for process in self._live:
            wake_s = min(wake_s, process.look_at_s)
        if not self.processes:
            wake_s = min(wake_s, self.started_s + FIRST_ATTACH_S)
        self._descriptors.hear(wake_s - self.clock())
        now_s = self.clock()
        for process in self._live:
            if now_s >= process.look_at_s:
                self._look(process, now_s)
        if now_s >= self.schedule.next_s and not self._over():
            self._tick(now_s)

    def _over(self) -> bool:
        if self._live:
            return False
        return bool(self.processes) or self.clock() - self.started_s >= FIRST_ATTACH_S

    def _settle(self) -> None:
        """Some of the processes may be over now."""
        self._live = [process for process in self._live if not process.over]

    def _tick(self, now_s: float) -> None:
        self.sampler.missed_ticks += self.schedule.advance(now_s)
        self.sample(now_s)
        # Calls that would do nothing are not made: the processor is cold, and each costs 3 µs.
        if self.placement is not None and now_s >= self.placement.look_at_s:
            self.placement.look(now_s, self._live)
        if now_s >= self._memory_kills.look_at_s:
            self._memory_kills.look(now_s, self._live)
        if self.relay is not None:
            self.mind_relay(now_s)
        if now_s >= self._door_waits_until_s:
            self._door_waits_until_s = NEVER
            self._descriptors.watch(self.door.fd, self._open_door)
        if now_s >= self._disk.tend_at_s:
            self._disk.tend(now_s)

    def sample(self, now_s: float) -> None:
        """Take one sample and write it."""
        values = self.sampler.sample(now_s)
        time_ms = self.journal.clock.now_ms()
        try:
            self.journal.sample(time_ms, values)
        except (StructError, OverflowError):
            self.journal.sample(time_ms, self._numbers_of(values))
        fresh = self.sampler.baselines.fresh
        if fresh:
            # The next monitor of this run, should this one die, counts on from the same zero.
            self.note(frames.INFO, baselines=fresh)
            self.sampler.baselines.fresh = {}
        if self.sampler.tell or self.sampler.events:
            self._write_news()
        if now_s >= self._look_at_clock_s:
            self._look_at_clock_s = now_s + LOOK_AT_CLOCK_S
            self._look_at_clock()

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
            self.journal.json(type, {**value, "t": self.journal.clock.now_ms()})
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
        self.journal.json(type, {"t": self.journal.clock.now_ms(), **value})

    def warn(self, name: str, text: str) -> None:
        """Write down that something is not as it should be."""
        self.note(frames.EVENT, name=name, level="warning", text=text)

    def errand(self, fd: int, done: Callable[[], None]) -> None:
        """Call `done` when `fd` has something to read; `done` closes it."""

        def fetch() -> None:
            self._descriptors.forget(fd)
            done()

        self._descriptors.watch(fd, fetch)

    def _look_at_clock(self) -> None:
        """Say that somebody has set the system's clock. Ours goes on as before."""
        ahead_ms = self.journal.clock.ahead_ms()
        by_ms = ahead_ms - self._system_ahead_ms
        if abs(by_ms) < JUMP_MS:
            return
        self._system_ahead_ms = ahead_ms
        way = "forward" if by_ms > 0 else "back"
        text = f"the system's clock was set {way} by {abs(by_ms) / 1000:.0f} s; this run's does not follow"
        self.note(frames.EVENT, name="clock_set", level="warning", text=text, by_ms=by_ms, ahead_ms=ahead_ms)

    # -- the relay

    def mind_relay(self, now_s: float) -> None:
        """See that there is a relay, where the run has a destination."""
        relay = self.relay
        if relay is None:
            return
        fd = relay.fd
        if relay.mind(now_s):
            self._descriptors.watch(relay.fd, lambda: self._hear_relay(relay))
        elif relay.fd < 0:
            self._descriptors.forget(fd)

    def _hear_relay(self, relay: RelayLine) -> None:
        fd = relay.fd
        try:
            messages = relay.messages()
        except ValueError as error:
            self.warn("bad_message", f"the relay said {error}")
            relay.close()
            messages = []
        for message in messages:
            if message.get("op") == "stop":
                self._interrupt(str(message.get("text", "")))
            elif message.get("op") == "event":
                self.warn(str(message.get("name", "")), str(message.get("text", "")))
        if relay.fd < 0:
            self._descriptors.forget(fd)

    def _interrupt(self, text: str) -> None:
        """Somebody at a destination wants the run to end: as by Ctrl-C. Each process is interrupted once:
        a second time would break into what it does at its end, and a relay that was started anew asks again.
        """
        pids = {process.pid for process in self._live} - self._interrupted
        if self._stop_requested and not pids:
            return
        self._stop_requested = True
        self._interrupted |= pids
        self.note(frames.EVENT, name="stop_requested", level="warning", text=text)
        for pid in pids:
            try:
                os.kill(pid, stop_signal(pid))
            except (ProcessLookupError, PermissionError) as error:
                failed = f"process {pid} could not be interrupted: {error.strerror}"
                self.note(frames.EVENT, name="stop_failed", level="warning", text=failed)

    # -- clients

    def _open_door(self) -> None:
        try:
            while (client := self.door.accept()) is not None:
                self._welcome(client)
        except OSError as error:
            # No descriptor is free. Poll would say at once, again and again, that somebody waits.
            self._descriptors.forget(self.door.fd)
            self._door_waits_until_s = self.clock() + DOOR_WAITS_S
            self.warn("door_shut", f"nobody can be let in for {DOOR_WAITS_S:.0f} s: {error.strerror}")

    def _welcome(self, client: Client) -> None:
        self._clients[client.fd] = client
        self._descriptors.watch(client.fd, lambda: self._hear(client))

    def _hear(self, client: Client) -> None:
        try:
            messages = client.messages()
        except ValueError as error:
            self.warn("bad_message", f"process {client.pid} said {error}")
            messages = None
        if messages is None:
            self._dismiss(client)
            return
        for message in messages:
            try:
                self._obey(client, message)
            except ValueError as error:
                self.warn("bad_message", f"process {client.pid} said {error}")

    def _dismiss(self, client: Client) -> None:
        self._descriptors.forget(client.fd)
        del self._clients[client.fd]
        client.close()
        for process in self._of(client.pid):
            process.foresee_exit()

    def _obey(self, client: Client, message: dict[str, Any]) -> None:
        op = message.get("op")
        pid = _number(message, "pid", 1, _HIGHEST_PID) or client.pid
        if op == "attach":
            self.attach(pid, message)
        elif op == "finish":
            self._finish(pid, message)
            self._answer(client)
        elif op == "exited":
            how = ProcessExit(_number(message, "exit_code"), _number(message, "signal", 1, 127))
            for process in self._of(pid):
                process.exit = how
                self._gone(process)
        else:
            raise ValueError(f"op = {op!r:.80}, which is none of attach, finish and exited")

    def _of(self, pid: int, role: str | None = None) -> list[Process]:
        return [p for p in self._live if p.pid == pid and (role is None or p.role == role)]

    def attach(self, pid: int, about: dict[str, Any], pidfd: int = -1) -> None:
        """A process joins the run. Saying so twice, as the one that started us does, changes nothing."""
        if self._of(pid, str(about.get("role", "train"))):
            if pidfd >= 0:
                os.close(pidfd)
            return
        process = Process(pid, about, pidfd, self.clock())
        self.processes.append(process)
        said = {key: about.get(key) for key in ("role", "rank", "local_rank", "world_size", "writer")}
        self.note(frames.LIFECYCLE, what="attach", pid=pid, **said)
        if process.state == GONE:
            self._record_exit(process)
            return
        self._live.append(process)
        if pid not in self.scope.pids:
            self.scope.pids.append(pid)
        if process.pidfd >= 0:
            self._descriptors.watch(process.pidfd, lambda: self._gone(process))

    def _finish(self, pid: int, message: dict[str, Any]) -> None:
        code = _number(message, "exit_code")
        self._stop_requested = self._stop_requested or bool(message.get("stopped"))
        for process in self._of(pid, "train"):
            if message.get("closing"):
                process.close_down(code, self.clock())
            else:
                self._descriptors.forget(process.pidfd)
                process.leave(code)
            self.note(frames.LIFECYCLE, what="finish", pid=pid, exit_code=code)
        self._settle()

    def _answer(self, client: Client) -> None:
        """The last sample of a process that leaves while the run goes on; if it is the last one, `_end`
        answers.
        """
        if not self._over():
            self.sample(self.clock())
            client.send({"op": "done", "state": "running"})

    # -- processes

    def _look(self, process: Process, now_s: float) -> None:
        """Look at a process that no descriptor watches, or that has been closing for long."""
        pidfd, was_closing = process.pidfd, process.state == CLOSING
        if process.look(now_s):
            self._gone(process)
        elif was_closing and process.over:
            self._descriptors.forget(pidfd)
            self._settle()
            text = f"process {process.pid} said that it ends, and is still there: the run ends without it"
            self.warn("still_closing", text)

    def _gone(self, process: Process) -> None:
        """A process has ended: write it down at once, for we may be killed with it."""
        # What it said before it ended may not have been heard yet.
        for client in [client for client in self._clients.values() if client.pid == process.pid]:
            self._hear(client)
        if process.over:
            return
        for _ in range(_EXIT_STATUS_LOOKS):
            if process.exit.known or process.learn_exit().known:
                break
            time.sleep(0.002)
        self._descriptors.forget(process.pidfd)
        process.vanish()
        self._settle()
        self._record_exit(process)

    def _record_exit(self, process: Process) -> None:
        exit = process.exit
        exit.out_of_memory = exit.signal == 9 and self._memory_kills.hit(process)
        self.note(frames.LIFECYCLE, what="exit", pid=process.pid, **exit.as_dict())

    # -- the end

    def _end(self) -> None:
        self.sample(self.clock())
        self._look_at_clock()
        ending = host_ending((process.exit for process in self.processes), self._stop_requested)
        record = {"t": self.journal.clock.now_ms(), "what": "end", **ending.as_dict()}
        is_recorded = self.journal.json(frames.LIFECYCLE, record)
        is_recorded = is_recorded or self._disk.reserve.write(frames.LIFECYCLE, record)
        # Out of the way before the last word: whoever comes now must start a monitor of their own.
        self._descriptors.forget(self.door.fd)
        self.door.close()
        # Before anything that may take its time. Also to those that have not asked yet: a wrapper may be
        # about to, and finds the answer waiting.
        for client in self._clients.values():
            client.send({"op": "done", "state": ending.state})
            self._descriptors.forget(client.fd)
            client.close()
        self.sampler.close()
        if not is_recorded:
            self._retry_ending(record)
        self._disk.reserve.release()
        self._disk.abandon()
        self._disk.sync()
        self.journal.close()

    def _retry_ending(self, record: dict[str, object]) -> None:
        """Try again to write the `end` record, for a while: others may make room on the disk."""
        until_s = self.clock() + ENDING_RETRY_S
        while self.clock() < until_s and self.journal.error is not None:
            if self.journal.error.errno not in NO_ROOM:
                return
            self._descriptors.hear(_ENDING_RETRY_EVERY_S)
            self.journal.lost -= 1  # the record, which was counted when it failed
            if self.journal.json(frames.LIFECYCLE, record):
                return


def _number(message: dict[str, Any], name: str, least: int = -(1 << 63), most: int = 1 << 63) -> int | None:
    """A whole number that a process said.

    Raises:
        ValueError: it is something else.
    """
    value = message.get(name)
    if value is None or (isinstance(value, int) and least <= value <= most):
        return value
    raise ValueError(f"{name} = {value!r:.80}, which is no whole number from {least} to {most}")


def _is_number(value: object) -> bool:
    # An int can be beyond what a float64 holds.
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)
