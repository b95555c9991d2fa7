"""The cgroup of a process, and the limit that applies to it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Scope
from runvitals.monitoring.collectors.plumbing.cgroup import (
    Cgroup,
    OomKills,
    available_cpu_count,
    available_cpus,
    locate,
    parse_cpu_list,
    total_memory,
)
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import plant, put

GIB = 1 << 30


def limits(cgroup: Cgroup) -> tuple[float | None, float | None]:
    memory, cpu = cgroup.memory_limit(), cgroup.cpu_limit()
    return memory.value if memory else None, cpu.value if cpu else None


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(trees.BARE_VM, (None, None), id="bare machine"),
        pytest.param(trees.LIMITED_SLICE, (4.0 * GIB, 1.5), id="v2, limits on the slice above"),
        pytest.param(trees.V1, (8.0 * GIB, 3.0), id="v1"),
        pytest.param(trees.HYBRID, (8.0 * GIB, 3.0), id="v1 beside an empty v2 tree"),
        pytest.param(trees.SLURM, (2.0 * GIB, 0.5), id="v2, each limit on another level of a Slurm job"),
        pytest.param(trees.CONTAINER, (1.0 * GIB, 4.0), id="v2 in a namespace of its own"),
    ],
)
def test_the_smallest_limit_in_the_hierarchy_applies(
    tmp_path: Path, tree: trees.Tree, expected: object
) -> None:
    assert limits(locate(plant(tmp_path, tree))) == expected


def test_a_limit_has_its_folder(tmp_path: Path) -> None:
    limit = locate(plant(tmp_path, trees.SLURM)).memory_limit()
    assert limit is not None
    assert limit.folder == f"{tmp_path}/sys/fs/cgroup/system.slice/slurmstepd.scope/job_42"


def test_a_limit_above_the_machines_memory_is_ignored(tmp_path: Path) -> None:
    folder = trees.cgroup_v2("/training.slice", memory_max=str(17 * GIB), cpu_max="max 100000")
    scope = plant(tmp_path, trees.LIMITED_SLICE | folder)
    assert limits(locate(scope)) == (None, None)


def test_a_changed_limit_is_read_at_the_next_call(tmp_path: Path) -> None:
    cgroup = locate(plant(tmp_path, trees.LIMITED_SLICE))
    put(tmp_path, "sys/fs/cgroup/training.slice/memory.max", f"{2 * GIB}\n")
    assert limits(cgroup)[0] == 2.0 * GIB


def test_controllers_mounted_together_share_a_folder(tmp_path: Path) -> None:
    tree = trees.BARE_VM | {
        "proc/self/cgroup": "4:cpu,cpuacct:/job\n",
        "proc/self/mountinfo": trees.mount("/sys/fs/cgroup/cpu,cpuacct", "cgroup", options="rw,cpu,cpuacct"),
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
        "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    }
    assert limits(locate(plant(tmp_path, tree))) == (None, 0.5)


def test_a_container_without_a_cgroup_namespace(tmp_path: Path) -> None:
    # Docker with cgroup v1: the mount shows the container's folder as if it were the root, with the host's
    # path.
    tree = trees.BARE_VM | {
        "proc/self/cgroup": "4:memory:/docker/3f2a\n",
        "proc/self/mountinfo": trees.mount(
            "/sys/fs/cgroup/memory", "cgroup", root="/docker/3f2a", options="rw,memory"
        ),
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
    }
    assert limits(locate(plant(tmp_path, tree))) == (1.0 * GIB, None)


def test_a_process_outside_the_namespaces_root_uses_the_mount_point(tmp_path: Path) -> None:
    tree = trees.CONTAINER | {"proc/self/cgroup": "0::/../../other.slice\n"}
    assert limits(locate(plant(tmp_path, tree))) == (1.0 * GIB, 4.0)


def test_mounts_of_our_namespace_are_not_under_the_host_root(tmp_path: Path) -> None:
    # A container with the host mounted at DIR: our folder is in /sys/fs/cgroup, not in DIR/sys/fs/cgroup.
    own = tmp_path / "own"
    tree = trees.BARE_VM | {
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": trees.mount(f"{tmp_path}/host", "ext4") + trees.mount(str(own), "cgroup2"),
    }
    put(tmp_path, "own/cgroup.controllers", "cpu memory\n")
    put(tmp_path, "own/memory.max", f"{GIB}\n")
    assert limits(locate(plant(tmp_path / "host", tree))) == (1.0 * GIB, None)


def test_without_any_cgroup_files_there_are_no_limits(tmp_path: Path) -> None:
    cgroup = locate(plant(tmp_path, {"proc/loadavg": "0 0 0 1/1 1\n"}))
    assert limits(cgroup) == (None, None)
    assert cgroup.allowed_cpus() is None
    assert cgroup.total_memory == float("inf")


@pytest.mark.parametrize(
    ("tree", "cpus", "count"),
    [
        (trees.SLURM, frozenset({1}), 0.5),
        (trees.HYBRID, frozenset({0, 1}), 2.0),
        (trees.LIMITED_SLICE, None, None),
    ],
    ids=["cpuset and quota", "cpuset smaller than the quota", "no cpuset"],
)
def test_available_cpus_are_the_minimum_of_cpuset_and_quota(
    tmp_path: Path, tree: trees.Tree, cpus: frozenset[int] | None, count: float | None
) -> None:
    scope = plant(tmp_path, tree)
    cgroup = locate(scope)
    assert available_cpus(scope, cgroup) == cpus
    if count is not None:
        assert available_cpu_count(scope, cgroup) == count


def test_available_cpus_of_this_machine_by_affinity() -> None:
    scope = Scope(pids=[os.getpid()])
    assert available_cpus(scope, locate(scope)) == frozenset(os.sched_getaffinity(0))
    assert 0 < available_cpu_count(scope, locate(scope)) <= len(os.sched_getaffinity(0))


def test_available_cpus_after_a_process_has_ended() -> None:
    scope = Scope(pids=[2**22 + 1])  # above the kernel's highest PID
    assert available_cpus(scope, Cgroup()) == frozenset(os.sched_getaffinity(0))


def test_parse_cpu_list() -> None:
    assert parse_cpu_list("0-2,8\n") == {0, 1, 2, 8}
    assert parse_cpu_list("") == frozenset()
    assert parse_cpu_list("garbage,3-x,5") == {5}


def test_total_memory_is_the_machines(tmp_path: Path) -> None:
    assert total_memory(plant(tmp_path, trees.BARE_VM)) == 16.0 * GIB


@pytest.mark.parametrize(
    ("tree", "kills", "host_wide"),
    [
        pytest.param(trees.LIMITED_SLICE, 1, False, id="v2: of the folder that holds the limit"),
        pytest.param(trees.SLURM, 5, False, id="v2: of the whole job"),
        pytest.param(trees.HYBRID, 2, False, id="v1: of our own folder"),
        pytest.param(trees.BARE_VM, 3, True, id="no count in the cgroup: the host's"),
    ],
)
def test_out_of_memory_kills(tmp_path: Path, tree: trees.Tree, kills: int, host_wide: bool) -> None:
    counter = OomKills(plant(tmp_path, tree))
    assert (counter.read(), counter.host_wide) == (kills, host_wide)


def test_a_new_kill_is_counted_immediately(tmp_path: Path) -> None:
    counter = OomKills(plant(tmp_path, trees.LIMITED_SLICE))
    put(tmp_path, "sys/fs/cgroup/training.slice/memory.events", "low 0\noom 3\noom_kill 2\n")
    assert counter.read() == 2


def test_kills_are_unknown_without_a_counter(tmp_path: Path) -> None:
    assert OomKills(plant(tmp_path, trees.without(trees.BARE_VM, ["proc/vmstat"]))).read() is None


def test_kills_of_this_machine() -> None:
    kills = OomKills(Scope(pids=[os.getpid()])).read()
    assert kills is None or kills >= 0
