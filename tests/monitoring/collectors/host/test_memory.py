"""Memory of the host and of our cgroup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.memory import probe
from tests.monitoring.collectors import trees
from tests.monitoring.collectors.trees import BARE_VM, meminfo, plant, put, sample


def test_a_machine_without_limits_or_swap(tmp_path: Path) -> None:
    assert sample(probe(plant(tmp_path, BARE_VM)), 1.0) == {
        "memory_percent": 25.0,
        "host.memory_percent": 25.0,
        "proc.memory.availableMB": 12.0 * 1024,
        "memory.usedMB": 4.0 * 1024,
        "memory.cachedMB": 1022.0 + 2.0 + 64.0,  # page cache, buffers, reclaimable slab
    }


@pytest.mark.skipif(not os.path.exists("/proc/self/oom_score"), reason="only Linux has /proc")
def test_a_cgroup_that_was_removed_does_not_take_the_hosts_numbers_away(tmp_path: Path) -> None:
    # The files of a removed cgroup return an error for ever, as those of an ended process do.
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    current = "sys/fs/cgroup/memory.current"
    memory = probe(plant(tmp_path, trees.CONTAINER | {current: f"-> /proc/{child.pid}/oom_score"}))
    assert "cgroup.memory.workingSetMB" in sample(memory, 1.0)
    child.communicate(b"\n")
    readings = sample(memory, 2.0)
    assert readings.keys() == {"host.memory_percent", "memory.usedMB", "memory.cachedMB"}
    assert memory.absent["memory_percent"].startswith("the use of the cgroup cannot be read: ")


POD = "/kubepods.slice/pod1.slice"
NESTED = BARE_VM | {
    "proc/meminfo": meminfo(total=64 << 20, available=32 << 20),
    "proc/self/cgroup": f"0::{POD}/cri.scope\n",
    **trees.cgroup_v2("/kubepods.slice", memory_max="max", memory_current=str(9 << 30)),
    **trees.cgroup_v2(
        POD,
        memory_max=str(8 << 30),
        memory_current=str(5 << 30),
        memory_stat="anon 4294967296\nfile 1073741824\ninactive_file 536870912",
    ),
    **trees.cgroup_v2(f"{POD}/cri.scope", memory_max="max", memory_current=str(4 << 30)),
}


@pytest.mark.parametrize(
    ("changes", "limit", "percent", "set_by"),
    [
        pytest.param({}, 8 << 30, 4.5 / 8 * 100, POD, id="of the pod"),
        pytest.param({"cri.scope/memory.max": str(2 << 30)}, 2 << 30, 200.0, f"{POD}/cri.scope", id="leaf"),
        pytest.param({"cri.scope/memory.max": "0"}, 0, None, f"{POD}/cri.scope", id="zero"),
        pytest.param({"memory.max": str(128 << 30)}, None, 50.0, None, id="above the host's memory"),
    ],
)
def test_the_cgroup_that_sets_the_limit_is_named(
    tmp_path: Path, changes: trees.Tree, limit: int | None, percent: float | None, set_by: str | None
) -> None:
    tree = {f"sys/fs/cgroup{POD}/{path}": text + "\n" for path, text in changes.items()}
    memory = probe(plant(tmp_path, NESTED | tree))
    readings = sample(memory, 1.0)
    assert readings.get("cgroup.memory.limitMB") == (None if limit is None else limit / 2**20)
    assert readings.get("memory_percent") == percent
    folder = f"{tmp_path}/sys/fs/cgroup{set_by}"
    facts = None if set_by is None else {"cgroup_memory_limit": {"bytes": limit, "set_by": folder}}
    assert memory.facts == facts
    assert memory.absent.get("memory_percent") == (
        f"the limit is 0 bytes (set by {folder})" if percent is None else None
    )
    assert readings.get("proc.memory.availableMB") == (
        0.0 if limit in (0, 2 << 30) else readings.get("proc.memory.availableMB")
    )


def test_memory_above_which_the_kernel_slows_down(tmp_path: Path) -> None:
    high = {f"sys/fs/cgroup{POD}/memory.high": f"{6 << 30}\n", f"sys/fs/cgroup{POD}/memory.max": "max\n"}
    memory = probe(plant(tmp_path, NESTED | high))
    readings = sample(memory, 1.0)
    assert (readings["cgroup.memory.highMB"], "cgroup.memory.limitMB" in readings) == (6144.0, False)
    folder = f"{tmp_path}/sys/fs/cgroup{POD}"
    assert memory.facts == {"cgroup_memory_high": {"bytes": 6 << 30, "set_by": folder}}
    assert "cgroup.memory.limitMB" in memory.absent


def test_the_share_of_a_limit_whose_use_cannot_be_read_is_absent(tmp_path: Path) -> None:
    """That of the host's memory would look like it."""
    tree = trees.without(NESTED, [f"sys/fs/cgroup{POD}/memory.current"])
    memory = probe(plant(tmp_path, tree))
    readings = sample(memory, 1.0)
    assert readings["cgroup.memory.limitMB"] == 8192.0
    assert not {"memory_percent", "proc.memory.availableMB", "cgroup.memory.workingSetMB"} & readings.keys()
    assert "no memory.current" in memory.absent["memory_percent"]


def test_swap(tmp_path: Path) -> None:
    swapping = {"proc/meminfo": meminfo(16 << 20, 12 << 20, swap_total=4096, swap_free=1024)}
    readings = sample(probe(plant(tmp_path, BARE_VM | swapping)), 1.0)
    assert (readings["swap.used"], readings["swap.used_percent"]) == (3072.0 * 1024, 75.0)


def test_a_terabyte(tmp_path: Path) -> None:
    # Above 99,999,999 kB the number is wider than its column.
    large = {"proc/meminfo": meminfo(total=1 << 30, available=1 << 29)}
    readings = sample(probe(plant(tmp_path, BARE_VM | large)), 1.0)
    assert (readings["memory_percent"], readings["memory.usedMB"]) == (50.0, 524288.0)


@pytest.mark.parametrize(
    ("tree", "working_set_mb", "limit_mb", "percent", "available_mb"),
    [
        # usage 3 GiB of which 1 GiB can be dropped, in the slice that is limited to 4 GiB
        pytest.param(trees.LIMITED_SLICE, 2048, 4096, 50.0, 2048, id="v2, limit on the slice above"),
        # usage 3 GiB of which 1 GiB can be dropped, limit 8 GiB
        pytest.param(trees.V1, 2048, 8192, 25.0, 6144, id="v1"),
        pytest.param(trees.HYBRID, 2048, 8192, 25.0, 6144, id="v1 beside v2"),
        # the whole job uses 2 GiB, 1 GiB of it can be dropped, limit 2 GiB
        pytest.param(trees.SLURM, 1024, 2048, 50.0, 1024, id="the limit is the job's, and so is the usage"),
        # usage 900 MiB of which 400 MiB can be dropped, limit 1 GiB
        pytest.param(trees.CONTAINER, 500, 1024, 500 / 10.24, 524, id="container"),
    ],
)
def test_the_working_set_is_used_with_a_limit(
    tmp_path: Path,
    tree: trees.Tree,
    working_set_mb: float,
    limit_mb: float,
    percent: float,
    available_mb: float,
) -> None:
    readings = sample(probe(plant(tmp_path, tree)), 1.0)
    assert readings["cgroup.memory.workingSetMB"] == working_set_mb
    assert readings["cgroup.memory.limitMB"] == limit_mb
    assert readings["memory_percent"] == pytest.approx(percent)
    assert readings["proc.memory.availableMB"] == available_mb
    assert readings["host.memory_percent"] == 25.0


def test_the_host_may_have_less_available_than_the_container(tmp_path: Path) -> None:
    full = {"proc/meminfo": meminfo(16 << 20, 512 << 10)}
    readings = sample(probe(plant(tmp_path, trees.LIMITED_SLICE | full)), 1.0)
    assert readings["proc.memory.availableMB"] == 512.0


def test_anonymous_memory_is_never_droppable(tmp_path: Path) -> None:
    # The counts are not read at the same time: the droppable cache may be larger than the rest of the
    # usage.
    stat = {"memory_stat": "anon 2900000000\ninactive_file 1073741824"}
    tree = trees.LIMITED_SLICE | trees.cgroup_v2("/training.slice", **stat)
    readings = sample(probe(plant(tmp_path, tree)), 1.0)
    assert readings["cgroup.memory.workingSetMB"] == 2_900_000_000 / 2**20


def test_the_working_set_of_a_cgroup_without_a_limit(tmp_path: Path) -> None:
    unlimited = trees.cgroup_v2("/training.slice", memory_max="max")
    readings = sample(probe(plant(tmp_path, trees.LIMITED_SLICE | unlimited)), 1.0)
    assert readings["memory_percent"] == 25.0
    assert readings["cgroup.memory.workingSetMB"] == 1024.0
    assert "cgroup.memory.limitMB" not in readings


def test_a_changed_limit_is_noticed_within_a_minute(tmp_path: Path) -> None:
    unlimited = trees.cgroup_v2("/training.slice", memory_max="max")
    memory = probe(plant(tmp_path, trees.LIMITED_SLICE | unlimited))
    assert sample(memory, 0.0)["memory_percent"] == 25.0
    put(tmp_path, "sys/fs/cgroup/training.slice/memory.max", f"{4 << 30}\n")
    assert sample(memory, 60.0)["memory_percent"] == 50.0
    folder = f"{tmp_path}/sys/fs/cgroup/training.slice"
    assert memory.facts == {"cgroup_memory_limit": {"bytes": 4 << 30, "set_by": folder}}
    put(tmp_path, "sys/fs/cgroup/training.slice/memory.max", "max\n")
    assert sample(memory, 120.0)["memory_percent"] == 25.0
    assert memory.facts == {"cgroup_memory_limit": None}


def test_the_usage_is_current_and_its_details_at_most_a_second_old(tmp_path: Path) -> None:
    memory = probe(plant(tmp_path, trees.LIMITED_SLICE))
    sample(memory, 0.0)
    folder = "sys/fs/cgroup/training.slice"
    put(tmp_path, f"{folder}/memory.current", f"{3584 << 20}\n")
    put(tmp_path, f"{folder}/memory.stat", "anon 0\ninactive_file 0\n")
    assert sample(memory, 0.5)["cgroup.memory.workingSetMB"] == 2560.0
    assert sample(memory, 1.0)["cgroup.memory.workingSetMB"] == 3584.0


def test_absent(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="meminfo cannot be read"):
        probe(plant(tmp_path / "empty", {}))
    with pytest.raises(Absent, match="lacks MemTotal, or both MemAvailable and MemFree"):
        probe(plant(tmp_path / "strange", {"proc/meminfo": "MemTotal:       16777216 kB\n"}))


def test_a_kernel_without_memavailable(tmp_path: Path) -> None:
    meminfo = (
        "MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 50 kB\nCached: 200 kB\nShmem: 100 kB\nSlab: 40 kB\n"
    )
    readings = sample(probe(plant(tmp_path, {"proc/meminfo": meminfo})), 1.0)
    assert readings["memory_percent"] == pytest.approx(100.0 - 45.0)


def test_this_machine() -> None:
    readings = sample(probe(Scope()), 1.0)
    assert 0.0 < readings["memory_percent"] < 100.0
    assert 0.0 < readings["host.memory_percent"] < 100.0
    assert readings["memory.usedMB"] > 10.0
    assert readings["proc.memory.availableMB"] > 10.0
