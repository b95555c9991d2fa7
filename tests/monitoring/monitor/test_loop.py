"""The monitor's loop, with an injected clock and poller."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from runvitals.journal import clock, frames
from runvitals.journal.reader import Tail, read_run
from runvitals.journal.writer import JournalWriter
from runvitals.monitoring.collectors.base import Scope, Tick
from runvitals.monitoring.monitor.clients import Listener
from runvitals.monitoring.monitor.loop import ENDING_RETRY_S, FIRST_ATTACH_S, Monitor
from runvitals.monitoring.monitor.oom_kills import OomKillDetector
from runvitals.monitoring.monitor.relay_connection import RelayConnection
from runvitals.monitoring.monitor.sampler import Sampler
from runvitals.monitoring.monitor.watched_processes import CLOSING_GRACE_S

T0_S = 1_760_000_000.0
YEAR_S = 365.0 * 86_400


class Clock:
    """Monotonic seconds that advance only during waits and samples."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


class Poller:
    """A poll that does not wait but advances the clock by the timeout. It reports descriptors that are really
    readable.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._real = select.poll()
        self.waits_s: list[float] = []
        self.later: list[
            tuple[float, Callable[[], object]]
        ] = []  # functions to call at a time, during a wait

    def register(self, fd: int, eventmask: int, /) -> None:
        self._real.register(fd, eventmask)

    def unregister(self, fd: int, /) -> None:
        self._real.unregister(fd)

    def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]:
        self.waits_s.append(timeout_ms / 1000.0)
        ready = self._real.poll(0)
        if not ready:
            self._clock.now_s += timeout_ms / 1000.0
        while self.later and self.later[0][0] <= self._clock.now_s:
            self.later.pop(0)[1]()
        return ready


class Work:
    """A collector whose samples take a while."""

    name = "work"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.takes_s = 0.0

    def sample(self, tick: Tick) -> None:
        self._clock.now_s += self.takes_s
        tick.gauges["work"] = tick.mono_s


class KillCount:
    """The kernel's count of out-of-memory kills."""

    host_wide = False

    def __init__(self) -> None:
        self.count = 7

    def read(self) -> int:
        return self.count


class Bench:
    """A monitor under test, its environment, and what it has written."""

    def __init__(self, folder: Path, interval_s: float = 1.0, segment_bytes: int = 1 << 22) -> None:
        self.folder = folder
        self.clock = Clock()
        self.poller = Poller(self.clock)
        self.work = Work(self.clock)
        self.kill_count = KillCount()
        self._address = f"\0runvitals-test-{os.getpid()}-{id(self)}"
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        door.bind(self._address)
        door.listen(16)
        self.set_by_s = 0.0  # how far the system clock was set forward
        self.suspended_s = 0.0  # how long the machine has been suspended
        run_clock = clock.RunClock(
            wall_ns=lambda: int((T0_S + self.clock.now_s + self.suspended_s + self.set_by_s) * 1e9),
            steady_ns=lambda: int((self.clock.now_s + self.suspended_s) * 1e9),
        )
        journal = JournalWriter(str(folder), "monitor.n1.1", {"run": "abc"}, segment_bytes, clock=run_clock)
        self.monitor = Monitor(
            journal,
            Listener(door.detach()),
            Sampler([self.work], interval_s, lambda source, error: None),
            Scope(),
            interval_s,
            OomKillDetector(self.kill_count),
            self.clock,
            self.poller,
        )
        self._clients: list[socket.socket] = []
        self._children: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        for child in self._children:
            child.kill()
            child.communicate()
        for sock in self._clients:
            sock.close()
        for client in self.monitor._clients.values():
            client.close()
        self.monitor.listener.close()
        self.monitor.journal.close()
        for process in self.monitor.processes:
            process.release()

    def process(self) -> subprocess.Popen[bytes]:
        """An attached process that does nothing."""
        child = subprocess.Popen(["sleep", "600"])
        self._children.append(child)
        self.monitor.attach(child.pid, {"role": "train"})
        return child

    def script(self, ending: str) -> subprocess.Popen[bytes]:
        """An attached and connected process that runs `ending` when `let_end` is called."""
        code = f"""
            import os, socket
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect({self._address!r})
            print(flush=True)
            input()
            {ending}
        """
        pipe = subprocess.PIPE
        command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(code)]
        child = subprocess.Popen(command, stdin=pipe, stdout=pipe)
        self._children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        self.monitor.attach(child.pid, {"role": "train"})
        return child

    def let_end(self, child: subprocess.Popen[bytes]) -> None:
        """Let a script end, and wait until it is a zombie."""
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    def client(self) -> socket.socket:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        client.settimeout(0)
        client.connect(self._address)
        self._clients.append(client)
        return client

    def send(self, client: socket.socket, message: Mapping[str, object] | list[object]) -> None:
        client.send(json.dumps(message).encode() + b"\n")

    def finish(self, pid: int, **more: object) -> socket.socket:
        client = self.client()
        self.send(client, {"op": "finish", "pid": pid, **more})
        return client

    def kill(self, child: subprocess.Popen[bytes]) -> None:
        """Kill a process, and wait until it is a zombie."""
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    def turn(self, times: int = 1) -> None:
        for _ in range(times):
            self.monitor.turn()

    def records(self, type: int, **fields: object) -> list[dict[str, Any]]:
        values = [r.value for r in read_run(str(self.folder)) if r.type == type]
        return [value for value in values if fields.items() <= value.items()]

    def end(self) -> dict[str, Any]:
        (end,) = self.records(frames.LIFECYCLE, what="end")
        return {"exit_code": None, "signal": None, **end}  # readers drop null fields

    def samples(self) -> int:
        return sum(r.type == frames.SAMPLE for r in read_run(str(self.folder)))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "run")
    yield bench
    bench.close()


def answer(client: socket.socket) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(client.recv(4096).partition(b"\n")[0])
    return value


def test_a_sample_is_taken_at_every_tick_and_the_loop_sleeps_in_between(bench: Bench) -> None:
    bench.process()
    bench.turn(5)
    assert bench.clock.now_s == pytest.approx(1004.0)
    assert bench.samples() == 5
    assert bench.poller.waits_s == pytest.approx([0.0, 1.0, 1.0, 1.0, 1.0])


def test_a_finish_is_handled_while_samples_take_longer_than_the_interval(
    bench: Bench,
) -> None:
    child = bench.process()
    bench.work.takes_s = 1.5
    bench.turn(3)
    assert bench.poller.waits_s == [0.0, 0.0, 0.0], "the next sample is always due"
    client = bench.finish(child.pid)
    bench.monitor.run()
    assert answer(client) == {"op": "done", "state": "finished"}
    assert bench.end()["state"] == "finished"


def test_an_exit_is_detected_while_samples_take_longer_than_the_interval(bench: Bench) -> None:
    child = bench.process()
    bench.work.takes_s = 1.5
    bench.turn(3)
    bench.kill(child)
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["signal"]) == ("crashed", 9)


def test_a_late_rank_attaches_while_samples_take_longer_than_the_interval(bench: Bench) -> None:
    bench.process()
    bench.work.takes_s = 1.5
    bench.turn()
    client = bench.client()
    bench.send(client, {"op": "attach", "pid": os.getpid(), "role": "train", "rank": 1})
    bench.turn(2)
    assert [attach.get("rank") for attach in bench.records(frames.LIFECYCLE, what="attach")] == [None, 1]


def test_an_exit_is_detected_immediately_with_a_long_interval(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", interval_s=86_400.0 * 30)
    child = bench.process()
    bench.turn()
    bench.kill(child)
    bench.monitor.run()
    assert bench.clock.now_s < 1001.0
    assert bench.end()["signal"] == 9
    bench.close()


def test_an_interval_longer_than_the_maximum_timeout_of_poll(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", interval_s=86_400.0 * 30)
    bench.process()
    bench.turn(3)
    assert max(bench.poller.waits_s) <= 3600.0
    assert bench.samples() == 1
    bench.close()


def test_a_monitor_ends_if_no_process_attaches(bench: Bench) -> None:
    bench.monitor.run()
    assert bench.clock.now_s == pytest.approx(1000.0 + FIRST_ATTACH_S)
    assert bench.end()["state"] == "finished"


@pytest.mark.parametrize(("announced", "state"), [(1, "failed"), (None, "finished"), (0, "finished")])
def test_the_announced_exit_code_counts_if_the_process_never_ends(
    bench: Bench, announced: int | None, state: str
) -> None:
    child = bench.process()
    bench.turn()
    client = bench.finish(child.pid, closing=True, exit_code=announced)
    bench.monitor.run()
    assert answer(client) == {"op": "done", "state": "running"}
    assert bench.clock.now_s == pytest.approx(1000.0 + CLOSING_GRACE_S)
    assert (bench.end()["state"], bench.end()["exit_code"]) == (state, announced)
    (event,) = bench.records(frames.EVENT, name="still_closing")
    assert str(child.pid) in event["text"]


def test_a_process_that_closes_for_too_long_does_not_end_the_run_of_others(bench: Bench) -> None:
    closing, working = bench.process(), bench.process()
    bench.turn()
    bench.finish(closing.pid, closing=True, exit_code=3)
    while bench.clock.now_s < 1000.0 + 3 * CLOSING_GRACE_S:
        bench.turn()
    assert not bench.records(frames.LIFECYCLE, what="end")
    bench.kill(closing)
    bench.turn(3)
    assert not bench.records(frames.LIFECYCLE, what="exit"), "it has left, so its exit is ignored"
    bench.finish(working.pid)
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["exit_code"]) == ("failed", 3)


def test_the_real_exit_takes_precedence_over_the_announced_one(bench: Bench) -> None:
    child = bench.process()
    bench.turn()
    bench.finish(child.pid, closing=True, exit_code=0)
    bench.turn(3)
    bench.kill(child)
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["signal"]) == ("crashed", 9)


def test_without_a_pidfd_an_exit_is_detected_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    bench = Bench(tmp_path / "run", interval_s=300.0)
    child = bench.process()
    bench.turn(10)
    bench.kill(child)
    killed_s = bench.clock.now_s
    bench.monitor.run()
    assert bench.clock.now_s - killed_s <= 1.0
    assert bench.end()["signal"] == 9
    bench.close()


@pytest.mark.parametrize(
    ("ending", "state", "exit_code", "by_signal"),
    [
        ("os._exit(0)", "finished", 0, None),
        ("os._exit(3)", "failed", 3, None),
        ("os.kill(os.getpid(), 9)", "crashed", None, 9),
    ],
)
def test_without_a_pidfd_the_exit_status_is_read_when_the_connection_closes(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, ending: str, state: str, exit_code: int, by_signal: int
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = bench.script(ending)
    bench.turn()
    bench.let_end(child)
    bench.turn()
    child.wait()  # reaped
    bench.monitor.run()
    end = bench.end()
    assert (end["state"], end["exit_code"], end["signal"]) == (state, exit_code, by_signal)


def test_an_unannounced_exit_of_unknown_status_is_a_crash(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = bench.process()
    bench.turn()
    child.kill()
    child.wait()
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["exit_code"], bench.end()["signal"]) == ("crashed", None, None)


def test_an_unknown_exit_code_is_not_zero(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    child = bench.process()
    bench.turn()
    bench.finish(child.pid, closing=True, exit_code=None)
    bench.turn(2)
    child.kill()
    child.wait()
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["exit_code"]) == ("finished", None)


def test_messages_sent_before_the_exit_are_read_after_it_was_detected(bench: Bench) -> None:
    child = bench.script("""sock.send(b'{"op": "finish", "exit_code": 3}\\n'); os._exit(0)""")
    bench.turn()
    bench.let_end(child)
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["exit_code"]) == ("failed", 3)


def test_an_earlier_oom_kill_of_a_worker_does_not_explain_later_kills(bench: Bench) -> None:
    first, second = bench.process(), bench.process()
    bench.turn(2)
    bench.kill_count.count += 1  # for example a worker of a data loader
    bench.turn(2)
    bench.kill(first)
    bench.turn(2)
    bench.kill_count.count += 1
    bench.kill(second)
    bench.monitor.run()
    exits = bench.records(frames.LIFECYCLE, what="exit")
    assert [exit["out_of_memory"] for exit in exits] == [False, True]


def test_an_oom_kill_of_a_process_that_takes_longer_than_a_tick_to_end(
    bench: Bench,
) -> None:
    child, bystander = bench.process(), bench.process()
    bench.turn(2)
    bench.kill_count.count += 1
    bench.kill(child)
    # The tick comes before the pidfd becomes readable.
    bench.monitor._tick(bench.clock.now_s + 1.0)
    bench.turn(1)
    bench.kill(bystander)
    bench.monitor.run()
    exits = {exit["pid"]: exit["out_of_memory"] for exit in bench.records(frames.LIFECYCLE, what="exit")}
    assert exits == {child.pid: True, bystander.pid: False}
    assert bench.end()["out_of_memory"] is True


def test_an_unreadable_oom_count_attributes_no_kill(bench: Bench) -> None:
    child = bench.process()
    bench.turn()

    def removed() -> int:
        raise OSError(19, "No such device")

    bench.kill_count.read = removed  # type: ignore[method-assign]
    bench.turn(2)
    bench.kill(child)
    bench.monitor.run()
    assert bench.end()["out_of_memory"] is False


def test_an_invalid_message_is_recorded_and_ends_nothing(bench: Bench) -> None:
    child = bench.process()
    invalid: list[dict[str, object]] = [
        {"op": "attach", "pid": "me"},
        {"op": "attach", "pid": 1 << 70},
        {"op": "attach", "pid": -1},
        {"op": "exited", "pid": child.pid, "signal": [9]},
        {"op": "finish", "pid": child.pid, "exit_code": "bad"},
        {"op": "unknown"},
    ]
    client = bench.client()
    for message in invalid:
        bench.send(client, message)
    bench.turn(3)
    texts = [event["text"] for event in bench.records(frames.EVENT, name="bad_message")]
    assert len(texts) == len(invalid)
    assert "'unknown'" in texts[-1]
    bench.send(client, {"op": "finish", "pid": child.pid, "exit_code": -1})
    bench.monitor.run()
    assert answer(client)["state"] == "failed"


def test_a_client_that_does_not_send_json_is_disconnected(bench: Bench) -> None:
    child = bench.process()
    bench.client().send(b"GET / HTTP/1.1\r\n\r\n")
    bench.turn(3)
    assert len(bench.records(frames.EVENT, name="bad_message")) == 1
    bench.kill(child)
    bench.monitor.run()


class TestDeletedFolder:
    """A run whose folder is deleted while it is running."""

    @pytest.fixture
    def sealing(self, tmp_path: Path) -> Iterator[Bench]:
        """A monitor in the middle of sealing a file of 200 kB."""
        bench = Bench(tmp_path / "run", segment_bytes=200_000)
        bench.process()
        while not list(bench.folder.glob("*.part")):
            bench.monitor.recorder.note(frames.INFO, machine={"filler": os.urandom(4000).hex()})
            if bench.monitor.journal.rotated:
                bench.turn()
        yield bench
        bench.close()

    def test_the_monitor_continues(self, sealing: Bench) -> None:
        shutil.rmtree(sealing.folder)
        sealing.turn(30)
        assert sealing.clock.now_s > 1025.0

    def test_clients_are_answered_at_the_end(self, sealing: Bench) -> None:
        shutil.rmtree(sealing.folder)
        client = sealing.finish(sealing.monitor.processes[0].pid)
        sealing.monitor.run()
        assert answer(client) == {"op": "done", "state": "finished"}

    def test_a_folder_replaced_by_a_file(self, sealing: Bench) -> None:
        shutil.rmtree(sealing.folder)
        sealing.folder.write_text("")
        sealing.turn(30)
        client = sealing.finish(sealing.monitor.processes[0].pid)
        sealing.monitor.run()
        assert answer(client) == {"op": "done", "state": "finished"}


def test_a_pipe_in_the_folder_does_not_block_the_monitor(bench: Bench) -> None:
    bench.process()
    os.mkfifo(bench.folder / "train.n1.00000.rvj")
    bench.turn(15)
    os.unlink(bench.folder / "train.n1.00000.rvj")
    assert bench.samples() == 15


def test_an_event_is_not_delivered_to_a_new_descriptor_of_the_same_number(bench: Bench) -> None:
    """Two descriptors are readable in one poll; the first callback closes the second descriptor."""
    called: list[str] = []
    left, two = socket.socketpair()
    three, four = socket.socketpair()
    left.send(b"x")
    three.send(b"x")
    descriptors = bench.monitor._descriptors

    def first() -> None:
        called.append("first")
        descriptors.unwatch(four.fileno())
        descriptors.watch(four.fileno(), lambda: called.append("another"))
        descriptors.unwatch(two.fileno())

    descriptors.watch(two.fileno(), first)
    descriptors.watch(four.fileno(), lambda: called.append("second"))
    descriptors.dispatch(0)
    assert called == ["first"]
    for end in (left, two, three):
        end.close()
    four.close()
    descriptors.dispatch(0)
    descriptors.dispatch(0)
    assert called == ["first"], "closed without `unwatch`: poll would return immediately for ever"


@pytest.mark.parametrize("years", [11.2, -55.0])
def test_sample_times_do_not_follow_a_change_of_the_system_clock(bench: Bench, years: float) -> None:
    child = bench.process()
    bench.turn(15)
    bench.set_by_s = years * YEAR_S
    bench.turn(15)
    bench.set_by_s = 0.0
    bench.turn(15)
    bench.kill(child)
    bench.monitor.run()
    times_ms = [r.time_ms for r in read_run(str(bench.folder)) if r.type == frames.SAMPLE]
    assert times_ms == [int((T0_S + 1000 + tick) * 1000) for tick in (*range(45), 44)]
    assert bench.end()["t"] == times_ms[-1]
    events = bench.records(frames.EVENT, name="clock_set")
    assert [event["by_ms"] for event in events] == [int(by * YEAR_S * 1000) for by in (years, -years)]
    assert [event["ahead_ms"] for event in events] == [int(years * YEAR_S * 1000), 0]
    assert ("forward" if years > 0 else "back") in events[0]["text"]


def test_a_clock_change_shortly_before_the_end_is_reported(bench: Bench) -> None:
    child = bench.process()
    bench.turn(2)
    bench.set_by_s = YEAR_S
    bench.kill(child)
    bench.monitor.run()
    assert len(bench.records(frames.EVENT, name="clock_set")) == 1


def test_a_small_clock_difference_is_not_reported(bench: Bench) -> None:
    bench.process()
    for _ in range(19):
        bench.set_by_s += 0.1
        bench.turn(10)
    assert not bench.records(frames.EVENT, name="clock_set")


def test_sampling_continues_after_suspend(bench: Bench) -> None:
    """The monotonic clock stops during suspend; the system clock does not."""
    bench.process()
    bench.turn(15)
    bench.suspended_s = 8 * 3600.0
    bench.turn(15)
    times_ms = [r.time_ms for r in read_run(str(bench.folder)) if r.type == frames.SAMPLE]
    ticks_s = [*range(15), *(8 * 3600 + tick for tick in range(15, 30))]
    assert times_ms == [int((T0_S + 1000 + tick) * 1000) for tick in ticks_s]
    assert bench.monitor.sampler.missed_ticks == 0
    assert not bench.records(frames.EVENT, name="clock_set")


def test_a_process_killed_during_suspend(bench: Bench) -> None:
    child = bench.process()
    bench.turn(3)
    bench.suspended_s = 8 * 3600.0
    bench.kill(child)
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["signal"]) == ("crashed", 9)
    assert bench.end()["t"] >= (T0_S + 1000 + 8 * 3600) * 1000


def test_a_blocked_collector_costs_only_the_samples_of_that_time(bench: Bench) -> None:
    """For example a driver that does not respond for an hour, while one rank attaches and another ends."""
    child = bench.process()
    bench.turn(3)
    bench.work.takes_s = 3600.25
    bench.turn()
    bench.work.takes_s = 0.0
    client = bench.client()
    bench.send(client, {"op": "attach", "pid": os.getpid(), "role": "train", "rank": 1})
    bench.kill(child)
    bench.turn(3)
    assert bench.monitor.sampler.missed_ticks == 3599
    times_s = [r.time_ms / 1000 - T0_S for r in read_run(str(bench.folder)) if r.type == frames.SAMPLE]
    assert times_s == [1000.0, 1001.0, 1002.0, 4603.25, 4603.25, 4604.0], "on the grid again"
    assert [attach.get("rank") for attach in bench.records(frames.LIFECYCLE, what="attach")] == [None, 1]
    exits = bench.records(frames.LIFECYCLE, what="exit")
    assert [(exit["pid"], exit["signal"]) for exit in exits] == [(child.pid, 9)]
    bench.send(client, {"op": "finish", "pid": os.getpid()})
    bench.monitor.run()
    assert bench.end()["state"] == "finished", "this process has started the other one, and ended well"


def test_a_process_that_has_ended_before_it_attaches(bench: Bench) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    bench.monitor.attach(child.pid, {"role": "train"})
    bench.monitor.run()
    assert len(bench.records(frames.LIFECYCLE, what="attach")) == 1
    assert len(bench.records(frames.LIFECYCLE, what="exit")) == 1
    assert bench.end()["exit_code"] is None


def test_an_exit_reported_by_the_parent(bench: Bench) -> None:
    child = bench.process()
    bench.turn()
    bench.send(bench.client(), {"op": "exited", "pid": child.pid, "exit_code": 7})
    bench.monitor.run()
    assert (bench.end()["state"], bench.end()["exit_code"]) == ("failed", 7)


def test_attaching_twice_has_no_effect(bench: Bench) -> None:
    child = bench.process()
    bench.monitor.attach(child.pid, {"role": "train"}, os.pidfd_open(child.pid))
    assert len(bench.records(frames.LIFECYCLE, what="attach")) == 1
    bench.kill(child)
    bench.monitor.run()
    assert len(bench.records(frames.LIFECYCLE, what="exit")) == 1


def test_a_monitor_without_a_free_descriptor_accepts_connections_later(bench: Bench) -> None:
    child = bench.process()
    bench.turn(2)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    client = bench.client()
    bench.send(client, {"op": "attach", "pid": os.getpid(), "role": "train", "rank": 1})
    descriptors: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 8, hard))
    try:
        with contextlib.suppress(OSError):  # until there are no more
            while True:
                descriptors.append(os.dup(0))
        turns = len(bench.poller.waits_s)
        while bench.clock.now_s < 1008.0:
            bench.turn()
        assert len(bench.poller.waits_s) - turns < 20, "the loop does not spin"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for fd in descriptors:
            os.close(fd)
    (event,) = bench.records(frames.EVENT, name="accept_failed")
    assert "Too many open files" in event["text"]
    bench.turn(10)
    assert [attach.get("rank") for attach in bench.records(frames.LIFECYCLE, what="attach")] == [None, 1]
    assert child.poll() is None


def test_the_monitor_reconnects_after_an_invalid_message_from_the_relay(bench: Bench) -> None:
    relay_ends: list[socket.socket] = []

    def connect(directory: str) -> socket.socket:
        ours, end = socket.socketpair()
        relay_ends.append(end)
        return ours

    bench.process()
    bench.monitor.relay = RelayConnection("/data", "abc", ["http://127.0.0.1:8900"], "/", connect=connect)
    bench.turn(2)
    relay_ends[0].send(b"[1, 2]\n")
    bench.turn(4)
    assert [event["text"] for event in bench.records(frames.EVENT, name="bad_message")] == [
        "invalid message from the relay: not a JSON object"
    ]
    assert len(relay_ends) == 2
    relay_ends[1].send(b'{"op": "event", "name": "hello", "text": "again"}\n')
    bench.turn(2)
    assert bench.records(frames.EVENT, name="hello")
    bench.monitor.relay.close()
    for end in relay_ends:
        end.close()


class TestFullDisk:
    """A disk that is full when the run ends, simulated by a limit on file sizes."""

    @pytest.fixture
    def limit(self) -> Iterator[Callable[[int], None]]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    def test_the_ending_is_written_to_the_reserved_space(
        self, bench: Bench, limit: Callable[[int], None]
    ) -> None:
        child = bench.process()
        while bench.monitor.journal.size < 5000:
            bench.turn()
        assert list(bench.folder.glob("*.reserve"))
        limit(bench.monitor.journal.size)
        bench.turn(3)
        bench.kill(child)
        bench.monitor.run()
        assert (bench.end()["state"], bench.end()["signal"]) == ("crashed", 9)
        [lost] = bench.records(frames.EVENT, name="records_lost")
        assert lost["count"] == 5, "three samples, the last sample and the exit, but not the ending"
        tail = Tail(str(bench.folder))
        seqs = [record.seq for record in tail.poll()]
        assert seqs == list(range(len(seqs)))
        assert tail.problems == []
        assert not list(bench.folder.glob("*.reserve"))

    def test_writing_the_ending_is_retried(self, bench: Bench, limit: Callable[[int], None]) -> None:
        child = bench.process()
        limit(bench.monitor.journal.size)  # too little for the reserve
        bench.turn(3)
        client = bench.finish(child.pid)
        bench.poller.later.append((bench.clock.now_s + 20.0, lambda: limit(1 << 30)))
        bench.monitor.run()
        assert answer(client) == {"op": "done", "state": "finished"}
        assert 1020.0 < bench.clock.now_s < 1030.0
        assert bench.end()["state"] == "finished"
        assert bench.end()["t"] < (T0_S + 1010.0) * 1000
        assert len(bench.records(frames.EVENT, name="records_lost")) == 1

    def test_a_monitor_does_not_wait_forever_for_space(
        self, bench: Bench, limit: Callable[[int], None]
    ) -> None:
        child = bench.process()
        limit(bench.monitor.journal.size)
        bench.turn(3)
        ended_s = bench.clock.now_s
        bench.kill(child)
        bench.monitor.run()
        assert bench.clock.now_s - ended_s == pytest.approx(ENDING_RETRY_S, abs=2.0)
        assert not bench.records(frames.LIFECYCLE, what="end")

    def test_unused_reserved_space_is_freed(self, bench: Bench) -> None:
        child = bench.process()
        bench.turn(3)
        assert list(bench.folder.glob("*.reserve"))
        bench.kill(child)
        bench.monitor.run()
        assert not list(bench.folder.glob("*.reserve"))
