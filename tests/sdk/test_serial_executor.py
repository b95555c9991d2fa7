from __future__ import annotations

import threading

import pytest

from runvitals.sdk.serial_executor import SerialExecutor


def test_what_comes_in_the_middle_is_done_right_after() -> None:
    serial, done = SerialExecutor(), []

    def interrupted() -> None:
        done.append("begin")
        serial.run(lambda: done.append("handler"))
        done.append("end")

    serial.run(interrupted)
    assert done == ["begin", "end", "handler"]


def test_threads_wait_for_each_other() -> None:
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


def test_an_error_ends_its_own_turn_only() -> None:
    serial, done = SerialExecutor(), []

    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        serial.run(broken)
    serial.run(lambda: done.append("next"))
    assert done == ["next"]


def test_what_came_in_the_middle_of_an_action_that_then_fails_is_done() -> None:
    serial, done = SerialExecutor(), []

    def interrupted() -> None:
        serial.run(lambda: done.append("finish"))
        raise SystemExit

    with pytest.raises(SystemExit):
        serial.run(interrupted)
    assert done == ["finish"]
    serial.run(lambda: done.append("next"))
    assert done == ["finish", "next"]
