"""The monitor avoids the processors that the training runs on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from runvitals.monitoring.monitor.cpu_affinity import EVERY_S, MAX_INTERVAL_S, CpuAffinity
from runvitals.monitoring.monitor.watched_processes import WatchedProcess

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="only one processor is available",
)
BUSY = "import sys\nprint(flush=True)\nwhile True: pass"


@pytest.fixture
def processors() -> Iterator[list[int]]:
    """The available processors; restored afterwards."""
    before = os.sched_getaffinity(0)
    yield sorted(before)
    os.sched_setaffinity(0, before)


@pytest.fixture
def training() -> Iterator[WatchedProcess]:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = WatchedProcess(child.pid, {"role": "train"})
        yield process
        process.release()
        child.kill()


def pin(process: WatchedProcess, processor: int) -> None:
    os.sched_setaffinity(process.pid, {processor})
    while process.processor() != processor:
        pass


def test_it_avoids_the_processor_of_the_training(processors: list[int], training: WatchedProcess) -> None:
    affinity = CpuAffinity(set(processors))
    for number, processor in enumerate(processors[:2]):
        pin(training, processor)
        affinity.update(100.0 * number, [training])
        assert os.sched_getaffinity(0) == set(processors) - {processor}
        assert affinity.update_at_s == 100.0 * number + EVERY_S


def test_updates_become_rare_while_the_training_stays_where_it_is(
    processors: list[int], training: WatchedProcess
) -> None:
    pin(training, processors[0])
    affinity = CpuAffinity(set(processors))
    waits_s = []
    for _ in range(5):
        affinity.update(100.0, [training])
        waits_s.append(affinity.update_at_s - 100.0)
    assert waits_s == [EVERY_S, 2 * EVERY_S, 4 * EVERY_S, MAX_INTERVAL_S, MAX_INTERVAL_S]
    pin(training, processors[1])
    affinity.update(100.0, [training])
    assert affinity.update_at_s == 100.0 + EVERY_S


def test_all_processors_are_used_if_the_training_uses_all(
    processors: list[int], training: WatchedProcess
) -> None:
    affinity = CpuAffinity({processors[0]})
    pin(training, processors[0])
    affinity.update(0.0, [training])
    assert os.sched_getaffinity(0) == set(processors)


def test_an_ended_process_uses_no_processor(processors: list[int]) -> None:
    child = subprocess.Popen(["true"])
    process = WatchedProcess(child.pid, {"role": "train"})
    child.wait()
    assert process.processor() is None
    CpuAffinity(set(processors)).update(0.0, [process])
    assert os.sched_getaffinity(0) == set(processors)
    process.release()


def test_a_sandbox_that_hides_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(pid: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_getaffinity", forbidden)
    assert CpuAffinity.of_this_process() is None
