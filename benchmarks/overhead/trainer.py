"""The training process: starts a tool, reads commands from stdin, and responds with a line of JSON to each.

Started by `session.py` as `python -c "…; main()" TOOL INTERVAL_S DIRECTORY CHILDREN CPU`. CPU is the core to
bind the process to before the tool starts, or -1. Commands: `samples`; `log COUNT`; `loop python|numpy
SECONDS FILE`; `rows` (log rows until killed, printing the number of each accepted row); `end`.
"""

from __future__ import annotations

import os
import sys
import time

from benchmarks.overhead.samplers import sampler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.overhead.samplers import Sampler

STEP_S = 0.0007
MATRIX = 192
ROW_EVERY_S = 0.001


def main() -> None:
    """Run the training process, from importing the tool to stopping it."""
    name, interval_s, directory, children, cpu = sys.argv[1:6]
    response_fd = os.dup(1)
    os.dup2(2, 1)  # output of the tool must not be mistaken for a response
    if int(cpu) >= 0:
        os.sched_setaffinity(0, {int(cpu)})
    idle = [os.posix_spawn("/bin/sleep", ["sleep", "100000"], os.environ) for _ in range(int(children))]
    peer = sampler(name)
    began_s = time.perf_counter()
    peer.load()
    loaded_s = time.perf_counter()
    peer.start(float(interval_s), directory)
    started_s = time.perf_counter()

    import json

    def answer(**facts: object) -> None:
        os.write(response_fd, json.dumps(facts).encode() + b"\n")

    answer(
        import_ms=(loaded_s - began_s) * 1e3,
        init_ms=(started_s - loaded_s) * 1e3,
        children=idle,
        about=peer.about(),
    )
    for line in sys.stdin:
        command, *words = line.split()
        if command == "samples":
            answer(samples=peer.samples())
        elif command == "log":
            answer(us=time_log(peer, int(words[0])))
        elif command == "loop":
            train(words[0], float(words[1]), words[2])
            answer(samples=peer.samples())
        elif command == "rows":
            log_until_killed(peer, response_fd)
        elif command == "end":
            break
    began_s = time.perf_counter()
    peer.stop()
    answer(finish_ms=(time.perf_counter() - began_s) * 1e3)


def time_log(peer: Sampler, count: int) -> list[float]:
    """The durations of `count` calls that log a row, in µs."""
    times = []
    for row in range(count):
        began_ns = time.perf_counter_ns()
        peer.log(row)
        times.append((time.perf_counter_ns() - began_ns) / 1e3)
    return times


def log_until_killed(peer: Sampler, response_fd: int) -> None:
    """Log rows, printing the number of each one after it was accepted."""
    row = 0
    while True:
        peer.log(row)
        os.write(response_fd, b"%d\n" % row)
        row += 1
        time.sleep(ROW_EVERY_S)


def train(kind: str, seconds: float, path: str) -> None:
    """Run a training loop of steps of about 0.7 ms; writes the end of each (ns UTC, 64 bits) to a file."""
    from array import array

    step = python_step() if kind == "python" else numpy_step()
    ends = array("q")
    clock = time.time_ns
    until_ns = clock() + int(seconds * 1e9)
    now_ns = clock()
    while now_ns < until_ns:
        step()
        now_ns = clock()
        ends.append(now_ns)
    with open(path, "wb") as file:
        ends.tofile(file)


def python_step() -> Callable[[], object]:
    """A step in pure Python, which holds the interpreter's lock throughout."""

    def work(count: int) -> int:
        total = 0
        for i in range(count):
            total += i * i
        return total

    trials = []
    for _ in range(20):
        began_s = time.perf_counter()
        work(2000)
        trials.append((time.perf_counter() - began_s) / 2000)
    count = int(STEP_S / min(trials))
    return lambda: work(count)


def numpy_step() -> Callable[[], object]:
    """A step of matrix products, which release the lock while computing."""
    import numpy

    left = numpy.random.default_rng(0).random((MATRIX, MATRIX))
    out = numpy.empty_like(left)
    trials = []
    for _ in range(20):
        began_s = time.perf_counter()
        numpy.matmul(left, left, out=out)
        trials.append(time.perf_counter() - began_s)
    count = max(1, round(STEP_S / min(trials)))

    def work() -> None:
        for _ in range(count):
            numpy.matmul(left, left, out=out)

    return work
