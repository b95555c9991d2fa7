"""The measurements of the overhead benchmark, checked with known values."""

from __future__ import annotations

import struct
import subprocess
import sys
import time

import pytest
from benchmarks.overhead import processes
from benchmarks.overhead.alignment import stall
from benchmarks.overhead.peers import leveldb_records

STEP_NS = 700_000
MS = 1_000_000


def steps(count: int, slow: dict[int, int]) -> list[int]:
    """The ends of `count` steps of 0.7 ms, in ns; `slow` maps steps to their delay in ns."""
    ends, now = [], 0
    for i in range(count):
        now += STEP_NS + slow.get(i, 0)
        ends.append(now)
    return ends


def test_cpu_clock_of_a_child_includes_all_its_threads() -> None:
    # A child that prints how much CPU time it has used, and then waits.
    script = """
import threading, time
def work():
    while time.thread_time() < 0.05:
        pass
threads = [threading.Thread(target=work) for _ in range(2)]
[t.start() for t in threads]
[t.join() for t in threads]
print(time.process_time_ns(), flush=True)
input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        own_ns = int(child.stdout.readline())
        seen_ns = processes.cpu_ns(child.pid)
        child.communicate("\n")
    assert own_ns >= 100 * MS
    assert own_ns <= seen_ns <= own_ns + 20 * MS


def test_ended_process_has_no_clock() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    with pytest.raises(ProcessLookupError):
        processes.cpu_ns(child.pid)


def test_marked_process_is_found_after_its_parent_ended() -> None:
    # The shell starts `cat` in the background and ends, so that `cat` is nobody's child.
    shell = subprocess.Popen(
        ["sh", "-c", "exec 3<&0; cat <&3 >/dev/null & echo $!"],
        env={"PATH": "/bin:/usr/bin", processes.MARKER: "the-one"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    with shell.stdin, shell.stdout:
        pid = int(shell.stdout.readline())
        shell.wait()
        while processes.command(pid) != ["cat"]:  # forked, and about to become `cat`
            time.sleep(0.001)
        assert processes.marked("the-one") == [pid]
        assert processes.memory([pid]).pss > 0


def test_stall_is_detected() -> None:
    # Every 200th step takes 3 ms longer, and a sample is under way in it.
    slow = dict.fromkeys(range(200, 2000, 200), 3 * MS)
    ends = steps(2000, slow)
    events = [(ends[i] - 2 * MS, ends[i] - MS) for i in slow]

    stalls = stall(ends, events)

    assert stalls.events == len(slow)
    assert stalls.median == pytest.approx(3.0)
    assert stalls.worst_step == pytest.approx(3.0)


def test_stall_outside_samples_is_not_attributed_to_the_sampler() -> None:
    ends = steps(2000, dict.fromkeys(range(250, 2000, 200), 3 * MS))
    events = [(ends[i], ends[i] + 2 * MS) for i in range(200, 2000, 200)]

    assert stall(ends, events).median == 0.0


def test_slower_machine_is_no_stall() -> None:
    ends = steps(2000, dict.fromkeys(range(1000, 2000), STEP_NS))
    events = [(ends[i], ends[i] + 2 * MS) for i in range(200, 2000, 200)]

    assert stall(ends, events).median == 0.0


def test_samples_without_steps_to_compare_are_omitted() -> None:
    ends = steps(100, {})
    events = [(10 * MS, 30 * MS), (31 * MS, 50 * MS), (60 * MS, 61 * MS), (80 * MS, 90 * MS)]

    # The first has too few steps before it, the second has the first there, the last is past the end.
    with pytest.raises(ValueError, match="1 of 4 samples"):
        stall(ends, events)


def test_leveldb_records_are_joined_from_fragments() -> None:
    # A record that fills the first block but for 3 bytes, which no head fits into, then one in two parts.
    def fragment(kind: int, data: bytes) -> bytes:
        return struct.pack("<IHB", 0, len(data), kind) + data

    long = b"a" * (32768 - 7 - 7 - 3)
    log = b":W&B..." + fragment(1, long) + b"\0\0\0" + fragment(2, b"b") + fragment(4, b"c") + b"\0" * 20

    assert list(leveldb_records(log)) == [long, b"bc"]
