"""What collectors are handed, and how they read the kernel's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runvitals.collectors.base import Every, PseudoFile, Scope, open_if_there, read_text

if TYPE_CHECKING:
    from pathlib import Path


def test_paths_of_the_host_lie_below_its_root() -> None:
    assert Scope().path("/proc/stat") == "/proc/stat"
    assert Scope(host_root="/host/").path("/proc/stat") == "/host/proc/stat"


def test_watched_processes_are_a_list_of_the_scopes_own() -> None:
    pids = [1, 2]
    scope = Scope(pids=pids)
    scope.pids.append(3)
    assert (scope.pids, pids) == ([1, 2, 3], [1, 2])


def test_it_is_time_at_once_and_then_every_so_often() -> None:
    every = Every(5.0)
    assert [every.due(second) for second in (100.0, 101.0, 104.9, 105.0, 109.0, 130.0)] == [
        *(True, False, False, True, False, True)
    ]


def test_a_clock_that_is_a_little_early_loses_no_turn() -> None:
    every = Every(1.0)
    assert all(every.due(second * 0.999) for second in range(100))


@pytest.mark.parametrize("size", [0, 10, 3499, 3500, 65536, 200_000])
def test_a_file_is_read_whole_again_and_again(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * size)
    file = PseudoFile(str(path))
    assert file.read() == b"a" * size
    path.write_bytes(b"bc")
    assert file.read() == b"bc"
    file.close()


def test_only_the_beginning_is_read_where_that_is_enough(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc" * 10_000)
    file = PseudoFile(str(tmp_path / "file"))
    assert file.read_start(6) == b"abcabc"
    file.close()


def test_a_long_file_of_the_kernels_own_is_read_to_its_end() -> None:
    file = PseudoFile("/proc/self/smaps")  # some hundred kilobytes, handed out a page at a time
    data = file.read()
    file.close()
    assert len(data) > 3 * 4096
    assert data.rstrip().rpartition(b"\n")[2].startswith(b"VmFlags:")


def test_files_that_are_missing_or_cannot_be_read_are_none(tmp_path: Path) -> None:
    assert open_if_there(str(tmp_path / "nothing")) is None
    assert open_if_there(str(tmp_path)) is None  # a folder opens, but does not read
    assert read_text(str(tmp_path / "nothing")) is None
    assert read_text(str(tmp_path)) is None


def test_text_comes_without_the_newline_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"eth0\xff\n")
    assert read_text(str(tmp_path / "name")) == "eth0\ufffd"
