"""Programs as sources: slow, hanging, failing, exiting and recovering ones. A tick never waits."""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from runvitals.monitoring.collectors.plumbing.tool import StillFailing, StreamingTool, Tool, ToolFailed, find
from tests.isolated import printed
from tests.patience import PATIENCE_S

T = TypeVar("T")


def program(folder: Path, name: str, script: str) -> str:
    """Write an executable shell script; returns its path."""
    path = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def soon(ask: Callable[[], T], good: Callable[[T], bool] = bool) -> T:
    """Call until the result is good: child processes need some milliseconds."""
    until_s = time.monotonic() + PATIENCE_S
    while not good(value := ask()):
        assert time.monotonic() < until_s, "no answer"
        time.sleep(0.002)
    return value


def output(tool: Tool, mono_s: float) -> bytes:
    """The next output, at one time."""
    value = soon(lambda: tool.output(mono_s), lambda value: value is not None)
    assert value is not None
    return value


def failure(ask: Callable[[], object]) -> ToolFailed:
    """The new failure raised by the call."""

    def attempt() -> ToolFailed | None:
        try:
            ask()
        except StillFailing:
            return None
        except ToolFailed as failed:
            return failed
        return None

    failed = soon(attempt)
    assert failed is not None
    return failed


def processes_with(text: str) -> list[int]:
    """Processes, including zombies, whose command line or name contains a text."""
    pids = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    line = file.read().decode("utf-8", "replace")
            except OSError:
                continue
            if text in line:
                pids.append(int(name))
    return pids


def children() -> set[int]:
    """Our children, including zombies."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return {int(pid) for pid in file.read().split()}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No test leaves children or descriptors behind."""
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    yield
    soon(lambda: children() <= before)
    assert len(os.listdir("/proc/self/fd")) == descriptors


# -- finding a program


def test_a_program_is_found_on_path_or_in_the_vendors_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = program(tmp_path / "bin", "fake-smi", "")
    second = program(tmp_path / "opt", "fake-smi", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find("fake-smi", second) == first
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert find("fake-smi", str(tmp_path / "nothing"), second) == second
    assert find("fake-smi") is None


def test_files_that_are_not_executable_or_in_relative_folders_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "bin", "fake-smi", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}.")
    assert find("fake-smi") is None
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    os.chmod(tmp_path / "bin" / "fake-smi", stat.S_IRUSR)
    assert find("fake-smi") is None
    (tmp_path / "bin" / "folder-smi").mkdir()
    assert find("folder-smi") is None


# -- commands that exit


def test_output_arrives_in_a_later_tick_and_the_next_run_starts_when_due(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tool = Tool([program(tmp_path, "smi", f'echo run >> {log}; echo "$1 C"'), "41"], every_s=2.0)
    assert tool.output(100.0) is None
    assert tool.running
    assert output(tool, 101.0) == b"41 C\n"
    assert not tool.running
    assert tool.output(101.5) is None  # 2 s have not passed
    assert output(tool, 102.0) == b"41 C\n"
    assert log.read_text() == "run\nrun\n"


def test_no_tool_runs_more_often_than_once_a_second(tmp_path: Path) -> None:
    log = tmp_path / "log"
    tool = Tool([program(tmp_path, "smi", f"echo run >> {log}")], every_s=0.01)
    output(tool, 100.0)
    assert tool.output(100.5) is None
    assert not tool.running
    output(tool, 101.0)
    assert log.read_text() == "run\nrun\n"


def test_environment_and_input_of_a_tool(tmp_path: Path) -> None:
    script = 'echo "$LC_ALL $EXTRA $(cat | wc -c) $(ps -o pgid= $$) $$"'
    tool = Tool([program(tmp_path, "smi", script)], environ={"EXTRA": "yes"})
    locale, extra, stdin, group, pid = output(tool, 1.0).split()
    assert (locale, extra, stdin) == (b"C", b"yes", b"0")
    assert group == pid


def test_a_tool_does_not_inherit_another_tools_pipes(tmp_path: Path) -> None:
    lister = find("ls")
    assert lister is not None
    before = open_files()
    waiting = Tool([program(tmp_path, "smi", "exec sleep 60.5")])
    waiting.output(1.0)
    pipes = open_files() - before
    assert len(pipes) == 2
    listed = output(Tool([lister, "-l", "/proc/self/fd"]), 1.0).decode()
    assert not [pipe for pipe in pipes if pipe in listed]
    waiting.close()


def open_files() -> set[str]:
    folder = "/proc/self/fd"
    return {os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder) if os.path.lexists(f"{folder}/{fd}")}


def test_a_failure_includes_the_tools_output(tmp_path: Path) -> None:
    script = 'echo half an answer; echo >&2; echo "Failed to open device 3" >&2; echo more >&2; exit 1'
    tool = Tool([program(tmp_path, "smi", script)])
    failed = failure(lambda: tool.output(1.0))
    assert str(failed) == f"{tmp_path}/smi exited with 1: Failed to open device 3"
    assert failed.output == b"half an answer\n"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("printf 'Traceback …\\n  File 1\\nOSError: no\\n' >&2; exit 1", "exited with 1: OSError: no"),
        ("echo Driver not loaded; exit 2", "exited with 2: Driver not loaded"),
        ("exit 3", "exited with 3"),
        ("kill -SEGV $$", "was killed by signal 11"),
        ("printf 'bad \\377\\376 byte\\n' >&2; exit 1", "exited with 1: bad \ufffd\ufffd byte"),
    ],
)  # fmt: skip
def test_kinds_of_failures(tmp_path: Path, script: str, words: str) -> None:
    tool = Tool([program(tmp_path, "smi", script)])
    assert str(failure(lambda: tool.output(1.0))) == f"{tmp_path}/smi {words}"


def test_after_a_failed_run_the_next_starts_when_due(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", f"[ -e {tmp_path}/driver ] && echo fine")])
    failure(lambda: tool.output(1.0))
    (tmp_path / "driver").touch()
    assert output(tool, 2.0) == b"fine\n"


def test_a_missing_or_invalid_program(tmp_path: Path) -> None:
    missing = Tool([f"{tmp_path}/smi"])
    with pytest.raises(ToolFailed, match="smi could not be started: No such file or directory"):
        missing.output(1.0)
    (tmp_path / "text").write_text("")
    (tmp_path / "text").chmod(0o755)
    with pytest.raises(ToolFailed, match="could not be started: Exec format error"):
        Tool([f"{tmp_path}/text"]).output(1.0)


@pytest.mark.parametrize(
    "script",
    [
        "exec sleep 61.1",
        "trap '' TERM; sleep 61.2",
        "sleep 61.3 & echo started; wait",
        "echo part; exec 1>&- 2>&-; sleep 61.4",
    ],
    ids=["hangs", "ignores SIGTERM", "has a child", "closes its output"],
)
def test_a_hanging_tool_is_killed_with_all_its_children(tmp_path: Path, script: str) -> None:
    marker = script[script.index("61.") :][:4]
    tool = Tool([program(tmp_path, "smi", script)], timeout_s=2.0)
    assert tool.output(100.0) is None
    soon(lambda: processes_with(marker) or None)
    assert tool.output(101.0) is None
    with pytest.raises(ToolFailed, match=r"smi took longer than 2 s and was killed"):
        tool.output(102.0)
    soon(lambda: not processes_with(marker))
    soon(lambda: tool.output(103.0) is None and tool.running)  # the next run starts
    tool.close()
    soon(lambda: not processes_with(marker))


def test_a_tool_has_finished_even_if_a_grandchild_keeps_the_pipe_open(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", "sleep 62.5 & echo answer")])
    assert output(tool, 1.0) == b"answer\n"
    soon(lambda: not processes_with("62.5"))


def test_long_output_is_complete(tmp_path: Path) -> None:
    script = "i=0; line=$(printf '%01000d' 7); while [ $i -lt 2500 ]; do echo $line; i=$((i+1)); done"
    tool = Tool([program(tmp_path, "smi", script)])
    assert len(output(tool, 1.0)) == 2500 * 1001


def test_endless_stderr_does_not_block_a_tool(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", "yes warning | head -c 3000000 >&2; echo answer")])
    assert output(tool, 1.0) == b"answer\n"


def test_a_tool_that_prints_too_much_is_killed(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", "yes 63.5")], limit_bytes=300_000)
    assert str(failure(lambda: tool.output(1.0))) == (
        f"{tmp_path}/smi printed more than 300000 bytes and was killed"
    )
    soon(lambda: not processes_with("63.5"))
    tool.close()


def test_bytes_are_passed_on_unchanged(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", "printf '\\377\\000\\351'")])
    assert output(tool, 1.0) == b"\xff\x00\xe9"


def test_close_kills_the_process_and_leaves_no_zombie(tmp_path: Path) -> None:
    tool = Tool([program(tmp_path, "smi", "sleep 64.5")])
    tool.output(1.0)
    tool.close()
    tool.close()
    soon(lambda: not processes_with("64.5"))


# -- commands that print continuously


def lines(stream: StreamingTool, mono_s: float, count: int) -> list[bytes]:
    got: list[bytes] = []

    def enough() -> bool:
        try:
            got.extend(stream.lines(mono_s))
        except StillFailing:  # restarted, and nothing printed yet
            return False
        return len(got) >= count

    soon(enough)
    return got


def test_a_stream_returns_complete_lines(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = (
        f"printf 'one\\r\\ntwo\\nth'; until [ -e {gate} ]; do sleep 0.005; done; echo ree; exec sleep 65.5"
    )
    stream = StreamingTool([program(tmp_path, "monitor", script)])
    assert lines(stream, 1.0, 2) == [b"one", b"two"]
    assert stream.lines(2.0) == []
    gate.touch()
    assert lines(stream, 3.0, 1) == [b"three"]
    stream.close()
    stream.close()
    soon(lambda: not processes_with("65.5"))


def waiting_bytes(fd: int) -> int:
    """How much can be read from a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))
    return int(count)


def test_a_stream_of_very_long_lines_does_not_fall_behind(tmp_path: Path) -> None:
    script = "printf '%0450000d\\n' 1; exec sleep 66.5"
    stream = StreamingTool([program(tmp_path, "monitor", script)])
    stream.lines(1.0)
    child = stream._child
    assert child is not None
    soon(lambda: waiting_bytes(child._out) == 450_001)
    (line,) = stream.lines(2.0)
    assert len(line) == 450_000
    stream.close()


def test_a_stream_that_exits_is_restarted_with_backoff(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    script = f"echo start >> {starts}; echo line; echo half; echo 'lost the driver' >&2; exit 7"
    stream = StreamingTool([program(tmp_path, "monitor", script)])
    mono_s = 100.0
    for delay_s in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        assert lines(stream, mono_s, 2) == [b"line", b"half"]
        failed = failure(lambda now_s=mono_s: stream.lines(now_s))
        assert str(failed) == f"{tmp_path}/monitor exited with 7: lost the driver"
        with pytest.raises(StillFailing, match="exited with 7: lost the driver"):
            stream.lines(mono_s + delay_s - 0.01)  # not started yet
        mono_s += delay_s
    assert starts.read_text().count("start") == 8


def test_a_failing_stream_is_reported_at_each_tick(tmp_path: Path) -> None:
    stream = StreamingTool(
        [program(tmp_path, "monitor", f"[ -e {tmp_path}/ok ] || exit 7; echo line; sleep 69.5")]
    )
    failure(lambda: stream.lines(0.0))
    for tick in range(1, 240):
        with pytest.raises(ToolFailed, match="exited with 7"):
            stream.lines(float(tick))
    (tmp_path / "ok").touch()
    mono_s = iter(
        range(1000, 10_000_000, 60)
    )  # a start from before may still fail: each try is a minute later

    def restarted() -> list[bytes]:
        try:
            return stream.lines(float(next(mono_s)))
        except ToolFailed:
            return []

    assert soon(restarted) == [b"line"]
    assert stream.lines(float(next(mono_s))) == []
    stream.close()


def test_rejected_lines_are_a_failure_until_others_arrive(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"echo '| no | such |'; until [ -e {gate} ]; do sleep 0.005; done; echo good; exec sleep 69.6"
    stream = StreamingTool([program(tmp_path, "monitor", script)])
    rejected = stream.reject(lines(stream, 1.0, 1))
    assert str(rejected) == f"{tmp_path}/monitor: cannot parse the output: 'no | such'"
    with pytest.raises(StillFailing, match="cannot parse the output"):
        stream.lines(2.0)
    gate.touch()
    assert lines(stream, 3.0, 1) == [b"good"]
    assert stream.lines(4.0) == []
    stream.close()


def test_a_stream_that_ran_long_is_restarted_immediately(tmp_path: Path) -> None:
    stream = StreamingTool([program(tmp_path, "monitor", "exit 0")])
    for mono_s in (0.0, 1.0, 3.0):
        failure(lambda now_s=mono_s: stream.lines(now_s))
    with pytest.raises(StillFailing):
        stream.lines(7.0)  # starts the process
    failure(lambda: stream.lines(100.0))
    with pytest.raises(StillFailing):
        stream.lines(100.9)
    failure(lambda: stream.lines(101.1))


def test_a_missing_stream_program_is_searched_again(tmp_path: Path) -> None:
    stream = StreamingTool([f"{tmp_path}/monitor"])
    with pytest.raises(ToolFailed, match="monitor could not be started: No such file"):
        stream.lines(1.0)
    with pytest.raises(StillFailing):
        stream.lines(1.5)
    program(tmp_path, "monitor", "echo here; exec sleep 67.5")
    assert lines(stream, 2.0, 1) == [b"here"]
    stream.close()


def test_an_endless_line_ends_a_stream(tmp_path: Path) -> None:
    stream = StreamingTool([program(tmp_path, "monitor", "yes | tr -d '\\n'")], limit_bytes=100_000)
    assert "printed a line of more than 100000 bytes" in str(failure(lambda: stream.lines(1.0)))
    with pytest.raises(StillFailing):
        stream.lines(1.5)
    stream.close()


def test_a_stream_that_never_stops_does_not_hold_up_a_tick(tmp_path: Path) -> None:
    stream = StreamingTool([program(tmp_path, "monitor", "exec yes")], limit_bytes=200_000)
    lines(stream, 1.0, 1)
    read = soon(lambda: stream.lines(2.0))  # the program may have to wait for a processor
    assert sum(map(len, read)) < 2_000_000  # there is always more output
    stream.close()


# -- the monitor's process


def test_tools_work_if_the_kernel_reaps_children_and_with_small_modules_only(tmp_path: Path) -> None:
    script = """
import _signal, time
_signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)
before = set(sys.modules)
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, StreamingTool, Tool, ToolFailed, find
tool = Tool([sys.argv[1]])
tool.output(1.0)
while (answer := tool.output(1.0)) is None:
    time.sleep(0.005)
assert answer == b"answer\\n", answer
print(*set(sys.modules) - before)
"""
    loaded = printed(script, program(tmp_path, "smi", "echo answer")).split()
    heavy = {"collections", "contextlib", "functools", "json", "re", "subprocess", "threading", "typing"}
    assert not heavy.intersection(loaded)


def test_an_endless_child_ends_when_the_monitor_is_killed(tmp_path: Path) -> None:
    script = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
from runvitals.monitoring.collectors.plumbing.tool import StillFailing, StreamingTool, Tool, ToolFailed, find
stream = StreamingTool([sys.argv[2]])
while not stream.lines(1.0):
    time.sleep(0.005)
os.kill(os.getpid(), 9)
"""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "..", "src")
    noisy = program(tmp_path, "monitor", "trap - PIPE; while echo 68.5; do sleep 0.01; done")
    subprocess.run([sys.executable, "-ISE", "-c", script, source, noisy], check=False, timeout=PATIENCE_S)
    soon(lambda: not processes_with(noisy))
