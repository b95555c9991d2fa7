from __future__ import annotations

import threading

import pytest

from runvitals.sdk.serial_executor import Turns


def test_what_comes_in_the_middle_is_done_right_after() -> None:
    turns, done = Turns(), []

    def interrupted() -> None:
        done.append("begin")
        turns.do(lambda: done.append("handler"))
        done.append("end")

    turns.do(interrupted)
    assert done == ["begin", "end", "handler"]


def test_threads_wait_for_each_other() -> None:
    turns, inside, most = Turns(), [], []

    def action() -> None:
        inside.append(1)
        most.append(len(inside))
        inside.pop()

    threads = [threading.Thread(target=lambda: [turns.do(action) for _ in range(500)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (2000, 1)


def test_an_error_ends_its_own_turn_only() -> None:
    turns, done = Turns(), []

    def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        turns.do(broken)
    turns.do(lambda: done.append("next"))
    assert done == ["next"]


def test_what_came_in_the_middle_of_an_action_that_then_fails_is_done() -> None:
    turns, done = Turns(), []

    def interrupted() -> None:
        turns.do(lambda: done.append("finish"))
        raise SystemExit

    with pytest.raises(SystemExit):
        turns.do(interrupted)
    assert done == ["finish"]
    turns.do(lambda: done.append("next"))
    assert done == ["finish", "next"]
