"""The scope of collectors, intervals, and reading of the kernel's files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Every, PseudoFile, Scope, open_if_there, read_text


def test_paths_of_the_host_are_under_its_root() -> None:
    assert Scope().path("/proc/stat") == "/proc/stat"
    assert Scope(host_root="/host/").path("/proc/stat") == "/host/proc/stat"


def test_a_scope_copies_the_list_of_processes() -> None:
    pids = [1, 2]
    scope = Scope(pids=pids)
    scope.pids.append(3)
    assert (scope.pids, pids) == ([1, 2, 3], [1, 2])


def test_every_is_due_immediately_and_then_at_its_interval() -> None:
    every = Every(5.0)
    assert [every.due(second) for second in (100.0, 101.0, 104.9, 105.0, 109.0, 130.0)] == [
        *(True, False, False, True, False, True)
    ]


def test_a_slightly_early_tick_counts() -> None:
    every = Every(1.0)
    assert all(every.due(second * 0.999) for second in range(100))


@pytest.mark.parametrize("size", [0, 10, 3499, 3500, 65536, 200_000])
def test_a_file_is_read_completely_each_time(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    file = PseudoFile(str(path))
    assert file.read() == b"a" * size
    path.write_bytes(b"bc")
    assert file.read() == b"bc"
    file.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="only Linux has /proc")
def test_a_text_that_the_kernel_returns_page_by_page_is_read_completely() -> None:
    text = read_text("/proc/self/smaps", most=1 << 24)
    assert text is not None
    assert text.count("VmFlags:") == text.count("\nSize:") > 5
    assert len(text) > 8192


def test_a_long_text_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a" * 200_000)
    assert len(read_text(str(tmp_path / "file")) or "") == 65536
    assert len(read_text(str(tmp_path / "file"), most=150_000) or "") == 150_000


def test_only_the_beginning_is_read_if_limited(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc" * 10_000)
    file = PseudoFile(str(tmp_path / "file"))
    assert file.read_start(6) == b"abcabc"
    file.close()


def test_a_file_that_is_dropped_or_closed_twice_is_closed_once(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("1")
    fd = PseudoFile(str(path)).fd  # the object is gone at once
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    file = PseudoFile(str(path))
    file.close()
    with open(path) as other:
        file.close()
        assert other.fileno() == fd
        assert other.read() == "1"


def test_a_long_kernel_file_is_read_to_its_end() -> None:
    file = PseudoFile("/proc/self/smaps")  # several hundred kilobytes, returned one page at a time
    data = file.read()
    file.close()
    assert len(data) > 3 * 4096
    assert data.rstrip().rpartition(b"\n")[2].startswith(b"VmFlags:")


def test_files_that_are_missing_or_cannot_be_read_are_none(tmp_path: Path) -> None:
    assert open_if_there(str(tmp_path / "nothing")) is None
    assert open_if_there(str(tmp_path)) is None  # a folder can be opened, but not read
    assert read_text(str(tmp_path / "nothing")) is None
    assert read_text(str(tmp_path)) is None


def test_text_has_no_trailing_newline(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"eth0\xff\n")
    assert read_text(str(tmp_path / "name")) == "eth0\ufffd"
