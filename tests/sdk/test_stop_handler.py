"""Stopping a training with SIGINT, which Ctrl-C and a monitor on behalf of a server send."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from subprocess import Popen

import pytest

from runvitals.monitoring.monitor.watched_processes import stop_signal
from runvitals.sdk.stop_handler import StopHandler
from tests.sdk.runs import Journals, Start, finished, line, succeeded

UNTIL_ASKED = """
    import runvitals, threading, time
    run = runvitals.init(settings={"sampling_interval": 0.1})
    stopping = threading.Event()
    def stop():
        run.log({"asked": 1.0})
        stopping.set()
    run.on_stop(stop)
    assert threading.active_count() == 1
    print("up", flush=True)
    while not stopping.is_set():
        time.sleep(0.01)
    print("checkpoint", flush=True)
    run.finish()
"""


def interrupt(process: Popen[str]) -> None:
    assert line(process) == "up"
    process.send_signal(signal.SIGINT)


def test_callback_lets_the_training_end_gracefully(train: Start, journals: Journals) -> None:
    process = train(UNTIL_ASKED)
    interrupt(process)
    code, out, err = finished(process)
    assert (code, out) == (0, "checkpoint\n"), err
    end = journals.end()
    assert (end["state"], end["exit_code"]) == ("stopped", 0)
    assert [row["data"] for row in journals.history()] == [{"asked": 1.0}]


@pytest.mark.parametrize(
    "script",
    [
        "run = runvitals.init()\n{wait}",
        "with runvitals.init():\n {wait}",
        "with runvitals.init() as run:\n run.on_stop(lambda: None)\n {wait}",
    ],
    ids=["bare", "in the context", "asked twice"],
)
def test_keyboard_interrupt_without_a_callback(train: Start, journals: Journals, script: str) -> None:
    wait = "print('up', flush=True); time.sleep(0.2); print('up', flush=True); time.sleep(30)"
    process = train("import runvitals, time\n" + script.format(wait=wait))
    interrupt(process)
    if "on_stop" in script:
        interrupt(process)
    code, _, err = finished(process)
    assert code == -signal.SIGINT, err
    assert "KeyboardInterrupt" in err
    assert journals.end()["state"] == "stopped"


def test_forked_child_does_not_call_the_callback(train: Start, journals: Journals) -> None:
    """Ctrl-C in a terminal also reaches data loader workers."""
    process = train("""
        import os, runvitals, signal, time
        run = runvitals.init()
        run.on_stop(lambda: print("asked", os.getpid() == run.opened_by, flush=True))
        ready, up = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(10)
            os.write(up, b"!")
            time.sleep(30)
        os.read(ready, 1)
        os.kill(child, signal.SIGINT)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        run.finish()
    """)
    code, out, err = finished(process)
    assert (code, out.split("\n")[-3:]) == (0, ["-2", "asked True", ""]), err
    assert "KeyboardInterrupt" in err


def test_invalid_calls_raise(train: Start) -> None:
    succeeded(
        train("""
            import runvitals, threading
            run = runvitals.init(mode="disabled")
            errors = []
            def wrong(what):
                try:
                    run.on_stop(what)
                except (TypeError, ValueError, RuntimeError) as error:
                    errors.append(str(error))
            wrong("stop")
            thread = threading.Thread(target=wrong, args=[print]); thread.start(); thread.join()
            assert "expected a function" in errors[0], errors
            assert "main thread" in errors[1], errors
        """)
    )


@pytest.fixture
def before() -> Iterator[list[int]]:
    """Signals received by the previous handler."""
    seen: list[int] = []
    old = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    yield seen
    signal.signal(signal.SIGINT, old)


def test_previous_handler_gets_the_second_signal_and_is_restored(before: list[int]) -> None:
    signals: list[str] = []
    was = signal.getsignal(signal.SIGINT)
    handler = StopHandler(lambda: False)
    handler.add(lambda: signals.append("first"))
    handler.add(lambda: signals.append("second"))
    for _ in range(3):
        os.kill(os.getpid(), signal.SIGINT)
    assert (signals, before) == (["first", "second"], [signal.SIGINT] * 2)
    handler.restore()
    assert signal.getsignal(signal.SIGINT) is was


def test_handler_forwards_signals_after_finish_in_another_thread(before: list[int]) -> None:
    over = False
    handler = StopHandler(lambda: over)
    handler.add(lambda: pytest.fail("the run is over"))
    over = True
    thread = threading.Thread(target=handler.restore)
    thread.start()
    thread.join()
    os.kill(os.getpid(), signal.SIGINT)
    assert before == [signal.SIGINT]


def test_training_that_ignores_sigint_is_terminated(train: Start) -> None:
    """Shells start background jobs of scripts with SIGINT ignored."""
    ignoring = train("import signal; signal.signal(2, signal.SIG_IGN); print('up', flush=True); input()")
    plain = train("print('up', flush=True); input()")
    assert [line(process) for process in (ignoring, plain)] == ["up", "up"]
    assert stop_signal(ignoring.pid) == signal.SIGTERM
    assert stop_signal(plain.pid) == signal.SIGINT
