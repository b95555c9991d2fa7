"""A training may close our file descriptors and reuse their numbers: nothing is written to its files."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runvitals.journal import file_descriptor, frames
from runvitals.journal.reader import read_run
from runvitals.journal.writer import JournalWriter
from tests.patience import PATIENCE_S
from tests.sdk.runs import Journals, Start, finished, succeeded


def rows(folder: Path) -> list[int]:
    return [r.value["n"] for r in read_run(str(folder)) if r.type == frames.HISTORY]


def journal_of(path: Path, **more: int) -> JournalWriter:
    return JournalWriter(str(path), "train.n1.1.1", {"run": "abc", "role": "train"}, guarded=True, **more)


def number_of(journal: JournalWriter) -> int:
    """The journal's file descriptor."""
    return next(
        int(name)
        for name in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{name}") and os.path.samefile(f"/proc/self/fd/{name}", journal.path)
    )


def test_journal_uses_a_high_descriptor_number(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    assert number_of(journal) > 512
    journal.close()


@pytest.mark.parametrize("segment_bytes", [1, 4 * 1024 * 1024])
def test_nothing_is_written_to_a_file_that_reuses_the_descriptor(tmp_path: Path, segment_bytes: int) -> None:
    journal = journal_of(tmp_path / "run", segment_bytes=segment_bytes)
    journal.json(frames.HISTORY, {"t": 1, "n": 1})
    fd = number_of(journal)
    os.close(fd)
    theirs = os.open(tmp_path / "checkpoint", os.O_RDWR | os.O_CREAT)
    os.dup2(theirs, fd)
    os.write(fd, b"weights")
    assert journal.json(frames.HISTORY, {"t": 2, "n": 2})
    journal.close()
    assert (tmp_path / "checkpoint").read_bytes() == b"weights"
    assert os.path.samestat(os.fstat(fd), os.fstat(theirs)), "it is still open"
    assert rows(tmp_path / "run") == [1, 2]
    os.close(fd)
    os.close(theirs)


def test_nothing_is_written_to_a_socket_that_reuses_the_descriptor(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    fd = number_of(journal)
    ours, theirs = socket.socketpair()
    os.dup2(ours.fileno(), fd)
    assert journal.json(frames.HISTORY, {"t": 1, "n": 1})
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(100)
    journal.close()
    assert rows(tmp_path) == [1]
    for descriptor in (ours, theirs):
        descriptor.close()
    os.close(fd)


def test_deleted_journal_file_is_replaced(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    journal.json(frames.HISTORY, {"t": 1, "n": 1})
    os.close(number_of(journal))
    os.unlink(journal.path)
    assert journal.json(frames.HISTORY, {"t": 2, "n": 2})
    journal.close()
    assert rows(tmp_path) == [2]


def test_closed_descriptor_is_reopened(tmp_path: Path) -> None:
    journal = journal_of(tmp_path)
    for n in range(5):
        os.close(number_of(journal))
        assert journal.json(frames.HISTORY, {"t": 1, "n": n})
    os.close(number_of(journal))
    journal.close()
    assert rows(tmp_path) == [0, 1, 2, 3, 4]


def test_reused_descriptor_is_recognised(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "a", os.O_CREAT | os.O_RDWR)
    identity = file_descriptor.identity(fd)
    assert file_descriptor.is_still(fd, identity)
    other = os.open(tmp_path / "b", os.O_CREAT | os.O_RDWR)
    assert not file_descriptor.is_still(other, identity)
    os.close(fd)
    os.close(other)
    assert not file_descriptor.is_still(fd, identity)


@pytest.mark.parametrize("closed", ["os.closerange(3, 65536)", "os.closerange(0, 65536)"])
def test_training_that_closes_all_descriptors(train: Start, journals: Journals, closed: str) -> None:
    process = train(f"""
        import os, socket, runvitals
        run = runvitals.init(id="run1", settings={{"sampling_interval": 0.1}})
        run.log({{"n": 0}})
        {closed}
        theirs = [os.open(os.environ["RUNVITALS_DIR"] + "/checkpoint", os.O_RDWR | os.O_CREAT)]
        while theirs[-1] < 1000:      # every number that was ours
            theirs.append(os.dup(theirs[0]))
        for n in (1, 2, 3):
            run.log({{"n": n}})
        os.write(theirs[0], b"weights")
        run.finish()
        for fd in theirs:
            os.fstat(fd)
        with open(os.environ["RUNVITALS_DIR"] + "/open", "w") as file:
            file.write("all are")
    """)
    process.communicate(timeout=PATIENCE_S)
    assert (journals.directory / "checkpoint").read_bytes() == b"weights"
    assert (journals.directory / "open").read_text() == "all are"
    assert [r["data"]["n"] for r in journals.history("run1")] == [0, 1, 2, 3]
    assert journals.end("run1")["state"] == "finished"


def test_training_without_free_descriptors_keeps_its_journal_file(train: Start, journals: Journals) -> None:
    _, err = succeeded(
        train("""
            import os, resource, runvitals
            run = runvitals.init(id="run1")
            resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))
            leaked = []
            try:
                while True:
                    leaked.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                pass
            for n in range(50):
                run.log({"n": n, "text": "x" * 200_000})
            for fd in leaked:
                os.close(fd)
            for n in range(50, 60):
                run.log({"n": n})
            run.finish()
        """)
    )
    assert "cannot be written" not in err
    assert [r["data"]["n"] for r in journals.history("run1")] == list(range(60))
    assert len(list(journals.folders()[0].glob("train.*"))) == 2


def test_forked_child_does_not_write_to_other_files(train: Start, journals: Journals) -> None:
    code, out, err = finished(
        train("""
            import os, runvitals
            run = runvitals.init(id="run1")
            os.closerange(3, 65536)
            theirs = [os.open("/dev/null", os.O_RDWR)]
            while theirs[-1] < 1000:
                theirs.append(os.dup(theirs[0]))
            if os.fork() == 0:
                for fd in theirs:
                    os.fstat(fd)
                run.log({"n": 1})
                print("all are open", flush=True)
                os._exit(0)
            os.wait()
            run.finish()
        """)
    )
    assert (code, out.strip()) == (0, "all are open"), err
    assert [r["data"]["n"] for r in journals.history("run1")] == [1]
