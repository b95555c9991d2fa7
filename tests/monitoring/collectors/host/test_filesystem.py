"""Space of file systems, and servers that do not respond."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.filesystem import Filesystem, is_remote, probe
from runvitals.monitoring.collectors.plumbing.mounts import read_mounts
from tests.monitoring.collectors.trees import BARE_VM, mount, plant, sample
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runvitals.monitoring.collectors.host.filesystem import Statvfs

# 1000 blocks of 4 KiB, 400 free, 100 of those reserved for root; 200 inodes, 50 free.
HALF_FULL = {
    "f_frsize": 4096,
    "f_blocks": 1000,
    "f_bfree": 400,
    "f_bavail": 300,
    "f_files": 200,
    "f_ffree": 50,
}


def returning(**changes: int) -> Statvfs:
    result = SimpleNamespace(**(HALF_FULL | changes))
    return lambda path: result


def watching(scope: Scope, statvfs: Statvfs) -> Filesystem:
    return Filesystem(scope, statvfs, read_mounts(scope))


def test_usage_is_computed_as_by_df(tmp_path: Path) -> None:
    filesystem = watching(plant(tmp_path, BARE_VM), returning())
    assert sample(filesystem, 1.0) == {
        "disk./.usagePercent": pytest.approx(600 / 900 * 100),
        "disk./.usageGB": 600 * 4096 / 2**30,
        "disk./.availableGB": 300 * 4096 / 2**30,
        "disk./.inodesPercent": 75.0,
    }


def test_a_file_system_without_inodes(tmp_path: Path) -> None:
    filesystem = watching(plant(tmp_path, BARE_VM), returning(f_files=0, f_ffree=0))
    assert "disk./.inodesPercent" not in sample(filesystem, 1.0)
    assert filesystem.absent == {"disk./.inodesPercent": "the file system does not count inodes"}


def test_a_file_system_without_space(tmp_path: Path) -> None:
    nothing = returning(f_blocks=0, f_bfree=0, f_bavail=0, f_files=0)
    filesystem = watching(plant(tmp_path, BARE_VM), nothing)
    assert sample(filesystem, 1.0) == {}
    assert filesystem.absent["disk./.usagePercent"] == "the file system reports no size"


def test_paths_are_resolved_under_the_host_root_and_named_as_in_the_settings(tmp_path: Path) -> None:
    calls: list[str] = []

    def statvfs(path: str) -> os.statvfs_result:
        calls.append(path)
        return os.statvfs(path)

    scope = plant(tmp_path, BARE_VM | {"data/set/": ""}, disk_paths=("/", "/data/set"))
    readings = sample(watching(scope, statvfs), 1.0)
    assert {"disk./.usageGB", "disk./data/set.usageGB"} < readings.keys()
    assert set(calls) == {str(tmp_path), f"{tmp_path}/data/set"}


def test_a_missing_path_is_absent_with_a_reason(tmp_path: Path) -> None:
    filesystem = probe(plant(tmp_path, BARE_VM, disk_paths=("/", "/nowhere")))
    assert filesystem.absent == {"disk./nowhere": f"{tmp_path}/nowhere: No such file or directory"}
    assert not [key for key in sample(filesystem, 1.0) if "nowhere" in key]


def test_absent_without_a_path(tmp_path: Path) -> None:
    with pytest.raises(Absent, match=r"/nowhere: .* No such file"):
        probe(plant(tmp_path, BARE_VM, disk_paths=("/nowhere",)))


def test_a_deleted_folder_has_no_readings_until_it_is_back(tmp_path: Path) -> None:
    filesystem = probe(plant(tmp_path, BARE_VM | {"data/": ""}, disk_paths=("/data",)))
    assert sample(filesystem, 1.0)
    (tmp_path / "data").rmdir()
    assert sample(filesystem, 11.0) == {}
    assert filesystem.absent == {"disk./data": f"{tmp_path}/data: No such file or directory"}
    (tmp_path / "data").mkdir()
    assert sample(filesystem, 21.0)
    assert filesystem.absent == {}


class HungServer:
    """A statvfs that blocks for paths on the NFS mount until it is released."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.hangs = threading.Event()
        self.calls = 0

    def __call__(self, path: str) -> os.statvfs_result:
        if path.endswith("/shared"):
            self.calls += 1
            self.hangs.set()
            assert self.answers.wait(PATIENCE_S)
        return os.statvfs("/")


def eventually(reading: Callable[[], dict[str, float]]) -> dict[str, float]:
    deadline = time.monotonic() + PATIENCE_S
    while not (value := reading()) and time.monotonic() < deadline:
        time.sleep(0.001)
    return value


@pytest.mark.parametrize(
    ("link", "target"),
    [("data", "shared/set"), ("data", "../{root}/shared"), ("a", "./b"), ("loop", "loop")],
)
def test_a_link_to_a_server_is_not_followed_by_the_sampler(tmp_path: Path, link: str, target: str) -> None:
    table = {"proc/self/mountinfo": mount("/", "ext4") + mount("/shared", "nfs4")}
    scope = plant(tmp_path, BARE_VM | table | {"b": "-> shared/x"}, disk_paths=(f"/{link}/deep",))
    (tmp_path / link).symlink_to(target.format(root=tmp_path.name))
    paths: list[str] = []

    def statvfs(path: str) -> os.statvfs_result:
        paths.append(path)
        raise FileNotFoundError(2, "No such file or directory", path)

    filesystem = watching(scope, statvfs)
    if link == "loop":
        assert filesystem.absent
    else:
        assert not paths
        assert (filesystem.absent, len(filesystem.watched)) == ({}, 1)


def test_a_hanging_server_does_not_delay_the_others(tmp_path: Path) -> None:
    table = {"proc/self/mountinfo": mount("/", "ext4") + mount("/shared", "nfs4")}
    server = HungServer()
    filesystem = watching(plant(tmp_path, BARE_VM | table, disk_paths=("/", "/shared")), server)
    assert filesystem.absent == {}

    # While it hangs: the local path is on time, the remote one missing, and there is no second call.
    for second in range(0, 100, 10):
        readings = sample(filesystem, float(second))
        assert "disk./.usagePercent" in readings
        assert "disk./shared.usagePercent" not in readings
        assert server.hangs.wait(PATIENCE_S)
        late = "not answering: its server has not responded for more than 5 s"
        assert filesystem.absent == ({"disk./shared": f"{tmp_path}/shared: {late}"} if second else {})
    assert server.calls == 1

    # When it returns, the reading is there. The next call waits for its turn.
    server.answers.set()

    def shared() -> dict[str, float]:
        return {key: value for key, value in sample(filesystem, 100.0).items() if "shared" in key}

    assert "disk./shared.usagePercent" in eventually(shared)
    assert filesystem.absent == {}


def test_the_reason_of_a_hanging_server_is_one_object_as_long_as_it_hangs(tmp_path: Path) -> None:
    """The monitor records a reason when the object is another one."""
    table = {"proc/self/mountinfo": mount("/", "ext4") + mount("/shared", "nfs4")}
    server = HungServer()
    filesystem = watching(plant(tmp_path, BARE_VM | table, disk_paths=("/shared",)), server)
    for second in (0.0, 6.0):
        sample(filesystem, second)
    reasons = filesystem.absent
    sample(filesystem, 600.0)
    assert filesystem.absent is reasons
    server.answers.set()


def test_the_first_answer_of_a_server_is_awaited_for_5_s(tmp_path: Path) -> None:
    table = {"proc/self/mountinfo": mount("/", "ext4") + mount("/shared", "nfs4")}
    server = HungServer()
    filesystem = watching(plant(tmp_path, BARE_VM | table, disk_paths=("/", "/shared")), server)
    seen = []
    for second in (0.0, 1.0, 4.0, 5.0, 15.0):
        sample(filesystem, second)
        seen.append((filesystem.pending, filesystem.every_s))
    assert seen == [(True, 1.0), (True, 1.0), (True, 1.0), (False, 10.0), (False, 10.0)]
    server.answers.set()


def test_a_failing_remote_path_is_retried(tmp_path: Path) -> None:
    table = {"proc/self/mountinfo": mount("/", "ext4") + mount("/shared", "fuse.sshfs")}
    failures = [OSError(116, "Stale file handle")]

    def statvfs(path: str) -> os.statvfs_result:
        if failures:
            raise failures.pop()
        return os.statvfs("/")

    filesystem = watching(plant(tmp_path, BARE_VM | table, disk_paths=("/shared",)), statvfs)
    sample(filesystem, 0.0)
    stale = {"disk./shared": f"{tmp_path}/shared: Stale file handle"}
    eventually(lambda: sample(filesystem, 1.0) or ({"told": 1.0} if filesystem.absent == stale else {}))
    assert filesystem.absent == stale
    clock = iter(range(11, 1_000_000, 10))
    assert "disk./shared.usagePercent" in eventually(lambda: sample(filesystem, float(next(clock))))
    assert filesystem.absent == {}


def test_remote_types() -> None:
    assert all(
        map(is_remote, ("nfs4", "cifs", "lustre", "gpfs", "beegfs", "ceph", "fuse.sshfs", "9p", "afs"))
    )
    assert not any(map(is_remote, ("ext4", "xfs", "btrfs", "overlay", "tmpfs", "zfs")))


def test_this_machine() -> None:
    readings = sample(probe(Scope(disk_paths=("/",))), 1.0)
    assert 0.0 < readings["disk./.usagePercent"] <= 100.0
    assert readings["disk./.usageGB"] > 0.0
