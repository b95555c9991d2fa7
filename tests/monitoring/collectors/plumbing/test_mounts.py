"""The mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.plumbing.mounts import mount_of, read_mounts, within
from tests.monitoring.collectors.trees import mount, plant


def test_the_longest_mount_point_of_a_path_is_used(tmp_path: Path) -> None:
    table = mount("/", "ext4") + mount("/data", "xfs") + mount("/data/shared", "nfs4")
    scope = plant(tmp_path, {"proc/self/mountinfo": table})
    mounts = read_mounts(scope)
    kinds = {
        path: mount_of(mounts, scope.path(path))
        for path in ("/etc", "/data", "/data/sharedness", "/data/shared/x")
    }
    assert {path: kind and kind.kind for path, kind in kinds.items()} == {
        "/etc": "ext4",
        "/data": "xfs",
        "/data/sharedness": "xfs",
        "/data/shared/x": "nfs4",
    }


def test_the_later_of_two_mounts_at_one_point_is_used(tmp_path: Path) -> None:
    scope = plant(tmp_path, {"proc/self/mountinfo": mount("/", "ext4") + mount("/", "overlay")})
    longest = mount_of(read_mounts(scope), scope.path("/etc"))
    assert longest is not None
    assert longest.kind == "overlay"


def test_the_last_of_a_thousand_mounts_is_known(tmp_path: Path) -> None:
    layers = ":".join(f"/var/lib/containers/overlay/l/{number:026}" for number in range(30))
    table = "".join(mount(f"/run/{n}", "overlay", options=f"rw,lowerdir={layers}") for n in range(1000))
    scope = plant(tmp_path, {"proc/self/mountinfo": table + mount("/data", "nfs4")})
    longest = mount_of(read_mounts(scope), scope.path("/data/set"))
    assert longest is not None
    assert longest.kind == "nfs4"


def test_spaces_and_backslashes_in_a_mount_point_are_unescaped(tmp_path: Path) -> None:
    scope = plant(tmp_path, {"proc/self/mountinfo": mount("/my\\040data\\134x", "ext4")})
    assert [mount.point for mount in read_mounts(scope)] == [scope.path("/my data\\x")]


@pytest.mark.parametrize(
    ("written", "point"),
    [
        ("/mnt/TV\\040Series", "/mnt/TV Series"),
        ("/mnt/Björk\\0111", "/mnt/Björk\t1"),  # a tab, then 1
        ("/mnt/Bj\\303\\266rk", "/mnt/Björk"),
        ("/mnt/a\\043b\\012", "/mnt/a#b\n"),
        ("/mnt/\\134040", "/mnt/\\040"),  # a folder that is really named so
        ("/mnt/a\\9\\", "/mnt/a\\9\\"),
    ],
)
def test_octal_codes_in_a_mount_point_are_decoded(tmp_path: Path, written: str, point: str) -> None:
    scope = plant(tmp_path, {"proc/self/mountinfo": mount(written, "nfs4")})
    assert [mount.point for mount in read_mounts(scope)] == [scope.path(point)]


def test_invalid_lines_are_ignored(tmp_path: Path) -> None:
    scope = plant(
        tmp_path, {"proc/self/mountinfo": "nonsense\n\n36 27 0:31 / /x rw - \n" + mount("/", "ext4")}
    )
    assert [mount.kind for mount in read_mounts(scope)] == ["ext4"]


def test_no_mounts_without_a_table(tmp_path: Path) -> None:
    assert read_mounts(plant(tmp_path, {})) == []
    assert mount_of([], "/etc") is None


def test_this_machine_has_a_root() -> None:
    assert mount_of(read_mounts(Scope()), "/") is not None


def test_within_compares_whole_names() -> None:
    assert within("/home", "/home")
    assert within("/home/a", "/home")
    assert within("/home", "/")
    assert not within("/home2", "/home")
