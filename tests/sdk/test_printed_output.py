"""What trainings print, and why they failed, with real processes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runvitals.journal import frames
from runvitals.model.failure import Failure
from runvitals.readers.journals.run_handle import OpenRun, open_run
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, Start, eventually, finished, line, say

BEGIN = """
    import faulthandler, os, signal, subprocess, sys, threading, time
    import runvitals
    run = runvitals.init(id="run1", settings={"sampling_interval": 0.1})
"""


def script(body: str) -> str:
    return textwrap.dedent(BEGIN) + textwrap.dedent(body)


def opened(journals: Journals) -> OpenRun:
    journals.end("run1")
    return open_run("run1", str(journals.directory))


def output(run: OpenRun, stream: str) -> str:
    return "".join(piece.text for piece in run.console() if piece.stream == stream)


def failure(run: OpenRun) -> Failure:
    found = run.failure()
    assert found is not None
    return found


def test_an_exception(train: Start, journals: Journals) -> None:
    code, out, err = finished(train(script("print('hello')\nraise ValueError('bad shape')")))
    assert code == 1
    assert out == "hello\n"
    assert err.endswith("ValueError: bad shape\n")
    run = opened(journals)
    assert output(run, "stdout") == "hello\n"
    found = failure(run)
    assert (found.title, found.exit_code, found.hint) == ("ValueError: bad shape", 1, None)
    assert found.lines[-1].text == "ValueError: bad shape"
    (event,) = [event for event in run.events if event.name == "exception"]
    assert event.data["type"] == "ValueError"
    assert "raise ValueError" in event.data["traceback"] or "<string>" in event.data["traceback"]


def test_the_exception_of_a_with_statement(train: Start, journals: Journals) -> None:
    finished(train(script("with run:\n    raise ValueError('bad shape')")))
    assert failure(opened(journals)).title == "ValueError: bad shape"


def test_an_exception_whose_text_raises(train: Start, journals: Journals) -> None:
    body = """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        raise Odd
    """
    code, _, _ = finished(train(script(body)))
    assert code == 1
    assert failure(opened(journals)).exception == "Odd"


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("sys.exit('no data')", "Exit code 1"),
        ("sys.exit(7)", "Exit code 7"),
        ("os._exit(9)", "Exit code 9"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL: killed, by a user, a scheduler or the system"),
    ],
)
def test_other_ends(body: str, title: str, train: Start, journals: Journals) -> None:
    finished(train(script(f"time.sleep(0.5)\nprint('last words', file=sys.stderr)\n{body}")))
    found = failure(opened(journals))
    assert found.title == title
    assert "last words" in [printed.text for printed in found.lines]
    assert (found.lines[-1].text == "no data") == ("no data" in body)


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyboardInterrupt",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(9)",
        "os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
        "sys.exit(0)",
    ],
)
def test_what_is_no_failure(body: str, train: Start, journals: Journals) -> None:
    finished(train(script(body)))
    assert opened(journals).failure() is None


def test_a_segmentation_fault_says_where(train: Start, journals: Journals) -> None:
    body = "import ctypes\ntime.sleep(0.5)\ndef inner():\n    ctypes.string_at(0)\ninner()"
    _, _, err = finished(train(script(body)))
    assert "Fatal" not in err, "what the user sees is as without us"
    found = failure(opened(journals))
    assert found.title == "Fatal Python error: Segmentation fault (SIGSEGV)"
    assert any("in inner" in printed.text for printed in found.lines)


def test_a_fault_handler_of_the_script_is_kept(train: Start, journals: Journals) -> None:
    body = "faulthandler.enable()\nrun.finish()\nassert faulthandler.is_enabled()\nos.kill(os.getpid(), 6)"
    _, _, err = finished(train(script(body)))
    assert "Fatal Python error: Aborted" in err


def test_threads_children_and_excepthooks(train: Start, journals: Journals) -> None:
    body = """
        sys.excepthook = lambda *error: print("own hook:", error[1], file=sys.stderr)
        def work(name):
            for number in range(200):
                print(f"{name} {number}")
        threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        failing = threading.Thread(target=lambda: 1 / 0)
        failing.start(); failing.join()
        sys.stdout.flush()
        if os.fork() == 0:
            print("from a child", flush=True)
            os._exit(0)
        os.wait()
        raise ValueError("bad shape")
    """
    code, out, err = finished(train(script(body)))
    assert code == 1
    assert "own hook: bad shape" in err
    run = opened(journals)
    assert sorted(output(run, "stdout").split("\n")) == sorted(out.split("\n"))
    assert "ZeroDivisionError" in output(run, "stderr")
    assert failure(run).title == "ValueError: bad shape", "the thread's exception did not end it"


def test_all_output_to_a_file(journals: Journals, tmp_path: Path) -> None:
    body = """
        os.system("echo from a shell")
        os.write(2, b"from C\\n")
        print("from Python")
        raise ValueError("bad shape")
    """
    path = tmp_path / "log.txt"
    path.write_text("of an earlier run\n")
    environ = {**os.environ, "RUNVITALS_DIR": str(journals.directory)}
    with path.open("a") as file:
        subprocess.run(
            [sys.executable, "-c", script(body)], stdout=file, stderr=file, env=environ, timeout=PATIENCE_S,
            check=False,
        )  # fmt: skip
    run = opened(journals)
    printed = output(run, "stdout")
    assert {"from a shell", "from C", "from Python", "ValueError: bad shape"} <= set(printed.split("\n"))
    assert "earlier" not in printed
    assert failure(run).title == "ValueError: bad shape"


def test_a_terminal_stays_one(journals: Journals) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "RUNVITALS_DIR": str(journals.directory)}
    body = "print('terminal', sys.stdout.isatty(), os.isatty(1))"
    with subprocess.Popen([sys.executable, "-c", script(body)], stdout=theirs, stderr=theirs, env=environ):
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 4096)
            except OSError:
                break
            if not data:
                break
            shown += data
    os.close(ours)
    assert b"terminal True True" in shown
    assert output(opened(journals), "stdout") == "terminal True True\n"


@pytest.mark.parametrize(
    "how", ["console=False", "settings={'console': False}", "settings={'console': 'off'}"]
)
def test_it_is_turned_off(how: str, train: Start, journals: Journals) -> None:
    body = f"""
        import sys, runvitals
        run = runvitals.init(id="run1", {how})
        assert "write" not in vars(sys.stdout)
        print("not recorded")
        raise ValueError("bad shape")
    """
    finished(train(body))
    run = opened(journals)
    assert list(run.console()) == []
    found = failure(run)
    assert found.title == "ValueError: bad shape"
    assert found.lines[-1].text == "ValueError: bad shape", "the exception itself is recorded"


def test_secrets_are_not_recorded(train: Start, journals: Journals) -> None:
    finished(train(script("print('HF_TOKEN=abcdef', flush=True)\nraise ValueError('password=hunter22')")))
    run = opened(journals)
    written = b"".join(path.read_bytes() for path in Path(journals.directory).rglob("*.rvj"))
    assert b"abcdef" not in written
    assert b"hunter22" not in written
    assert failure(run).title == "ValueError: password=***"


def test_a_new_monitor_repeats_nothing(train: Start, journals: Journals) -> None:
    body = """
        print("before", flush=True)
        for line in sys.stdin:
            run.log({"loss": 1.0})
            print(line.strip(), flush=True)
    """
    process = train(script(body))
    assert line(process) == "before"
    eventually(lambda: any(record.type == frames.CONSOLE for record in journals.records("run1")))
    (monitor,) = eventually(journals.monitors)
    os.kill(monitor, signal.SIGKILL)

    def new_monitor() -> list[int]:
        say(process, "after")
        assert line(process) == "after"
        return [pid for pid in journals.monitors() if pid != monitor]

    eventually(new_monitor)
    finished(process)
    printed = output(opened(journals), "stdout").split()
    assert printed[0] == "before"
    assert set(printed[1:]) == {"after"}


def test_the_second_run_of_a_process(train: Start, journals: Journals) -> None:
    body = """
        import ctypes, time, runvitals
        first = runvitals.init(id="one")
        print("of the first", flush=True)
        first.finish()
        second = runvitals.init(id="run1")
        print("of the second", flush=True)
        time.sleep(0.5)
        ctypes.string_at(0)
    """
    finished(train(body))
    run = opened(journals)
    assert output(run, "stdout") == "of the second\n"
    assert failure(run).title == "Fatal Python error: Segmentation fault (SIGSEGV)"
