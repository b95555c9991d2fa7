"""The exception that ended a program, as found in its output."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runvitals.model.tracebacks import fatal_line, find_exception


def printed(script: str) -> list[str]:
    """What Python prints to stderr for a script that fails."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    return [line for line in done.stderr.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        ("raise ValueError('bad shape (3, 4)')", "ValueError", "bad shape (3, 4)"),
        ("raise KeyError", "KeyError", ""),
        ("import subprocess\nraise subprocess.TimeoutExpired('cmd', 3)", "subprocess.TimeoutExpired",
         "Command 'cmd' timed out after 3 seconds"),
        ("try:\n 1/0\nexcept ZeroDivisionError:\n raise OSError('second')", "OSError", "second"),
        ("try:\n 1/0\nexcept ZeroDivisionError as e:\n raise OSError('caused') from e", "OSError", "caused"),
        ("def f(n): return f(n + 1)\nf(0)", "RecursionError", "maximum recursion depth exceeded"),
        ("compile('x = (', 'a.py', 'exec')", "SyntaxError", "'(' was never closed"),
        ("raise RuntimeError('first line\\nsecond line')", "RuntimeError", "first line"),
        ("import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start(); t.join()\n"
         "raise OSError('main')", "OSError", "main"),
        ("import traceback\ntry:\n 1/0\nexcept ZeroDivisionError:\n traceback.print_exc()\n"
         "raise TypeError('own')", "TypeError", "own"),
    ],
)  # fmt: skip
def test_exceptions_of_python(script: str, kind: str, message: str) -> None:
    found = find_exception(printed(script))
    assert found is not None
    assert found.kind == kind
    assert found.message.startswith(message)


def test_a_progress_bar_whose_line_did_not_end() -> None:
    found = find_exception(printed("import sys\nsys.stderr.write('40%|###   |')\nraise ValueError('no')"))
    assert found is not None
    assert (found.kind, found.column) == ("ValueError", len("40%|###   |"))


def ranks(*failed: int) -> list[str]:
    lines = []
    for part in (
        "Traceback (most recent call last):",
        '  File "t.py", line 3, in <module>',
        "ValueError: no",
    ):
        lines += [f"[rank{rank}]: {part if rank == failed[0] or 'no' not in part else 'OSError: late'}"
                  for rank in failed]  # fmt: skip
    return lines


def test_the_first_rank_of_a_job_whose_lines_are_mixed() -> None:
    launcher = [
        "Traceback (most recent call last):",
        '  File "/bin/torchrun", line 8, in <module>',
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    ]
    found = find_exception([*ranks(3, 0), *launcher])
    assert found is not None
    assert (found.kind, found.message, found.rank) == ("ValueError", "no", 3)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["step 1", "Fatal Python error: Aborted", "Thread 0x1:"], "Fatal Python error: Aborted"),
        (["terminate called after throwing an instance of 'c10::Error'", "  what():  NCCL timeout"],
         "what():  NCCL timeout"),
        (["slurmstepd: error: Detected 1 oom_kill event in StepId=7.0."],
         "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0."),
        (["loss.c:12: step: Assertion `n > 0' failed."], "loss.c:12: step: Assertion `n > 0' failed."),
    ],
)  # fmt: skip
def test_reports_of_libraries(lines: list[str], said: str) -> None:
    found = fatal_line(lines)
    assert found is not None
    assert found[1] == said


def test_ordinary_output_reports_nothing() -> None:
    lines = ["epoch 3: loss 0.5", "no error", "Traceback is off", "ValueError: mentioned"]
    assert find_exception(lines) is None
    assert fatal_line(lines) is None


_PARTS = st.sampled_from([
    "Traceback (most recent call last):", "[rank1]: Traceback (most recent call last):", '  File "a"', "a: b",
    "During handling of the above exception, another exception occurred:",
    "  + Exception Group Traceback (most recent call last):",
])  # fmt: skip


@given(st.lists(_PARTS | st.text(max_size=20), max_size=40))
def test_any_output_is_read(lines: list[str]) -> None:
    found = find_exception(lines)
    fatal_line(lines)
    assert found is None or 0 <= found.first < found.last < len(lines)
