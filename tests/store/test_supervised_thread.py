"""Background threads continue after failures."""

from __future__ import annotations

import logging
import threading

import pytest

from runvitals.store.supervised_thread import SupervisedThread
from tests.patience import PATIENCE_S


def test_a_thread_continues_after_failures_and_logs_each_problem_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    turns: list[int] = []
    failed, recovered = threading.Event(), threading.Event()

    def turn() -> bool:
        turns.append(len(turns))
        if len(turns) <= 3:
            failed.set()
            raise [OSError("the disk is full"), OSError("the disk is full"), KeyError("run")][len(turns) - 1]
        recovered.set()
        return not thread.closing.wait(PATIENCE_S)

    thread = SupervisedThread("looking", turn, longest_pause_s=0.01)
    with caplog.at_level(logging.ERROR):
        thread.start()
        assert failed.wait(PATIENCE_S)
        assert recovered.wait(PATIENCE_S)
        thread.close()
    assert thread.failures == 3
    assert thread.problem is None
    assert [record.getMessage() for record in caplog.records] == [
        "thread looking failed and will retry: the disk is full",
        "thread looking failed and will retry: KeyError('run')",
    ]


def test_a_thread_that_always_fails_can_be_closed() -> None:
    def turn() -> bool:
        raise RuntimeError("never")

    thread = SupervisedThread("looking", turn)
    thread.start()
    thread.close()
    assert thread.problem == "RuntimeError('never')"


def test_a_thread_that_was_never_started_can_be_closed() -> None:
    SupervisedThread("looking", lambda: True).close()
