from __future__ import annotations

import threading

import pytest

from runvitals.sdk.serial_executor import SerialExecutor


def test_nested_actions_run_right_after() -> None:
    serial, done = SerialExecutor(), []

    def interrupted() -> None:
        done.append("begin")
        serial.run(lambda: done.append("handler"))
        done.append("end")

    serial.run(interrupted)
    assert done == ["begin", "end", "handler"]


def test_other_threads_wait() -> None:
    serial, inside, most = SerialExecutor(), [], []

    def action() -> None:
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    threads = [threading.Thread(target=lambda: [serial.run(action) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (2000, 1)


def test_exception_affects_only_its_action() -> None:
    serial, done = SerialExecutor(), []

    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        serial.run(broken)
    serial.run(lambda: done.append("next"))
    assert done == ["next"]


def test_nested_actions_run_after_a_failing_action() -> None:
    serial, done = SerialExecutor(), []

    def interrupted() -> None:
        serial.run(lambda: done.append("finish"))
        raise SystemExit

    with pytest.raises(SystemExit):
        serial.run(interrupted)
    assert done == ["finish"]
    serial.run(lambda: done.append("next"))
    assert done == ["finish", "next"]
