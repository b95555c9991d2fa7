"""Traffic of the disks."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runvitals.monitoring.collectors.base import Absent, Scope
from runvitals.monitoring.collectors.host.disk import probe
from tests.monitoring.collectors.trees import BARE_VM, NVME, block_stat, plant, put, sample, without


def test_one_disk(tmp_path: Path) -> None:
    disk = probe(plant(tmp_path, BARE_VM))
    first = {
        "disk.in": 1.0,
        "disk.out": 2.0,
        "disk.vda.in": 1.0,
        "disk.vda.out": 2.0,
        "disk.vda.readOps": 34118.0,
        "disk.vda.writeOps": 20274.0,
    }
    assert sample(disk, 10.0) == first
    put(tmp_path, "sys/block/vda/stat", block_stat(2048 + 4096, 4096, busy_ms=100 + 500))
    assert sample(disk, 12.0) == first | {"disk.in": 3.0, "disk.vda.in": 3.0, "disk.vda.utilization": 25.0}


def test_partitions_mirrors_volumes_and_images_are_not_counted_twice(tmp_path: Path) -> None:
    readings = sample(probe(plant(tmp_path, NVME)), 1.0)
    assert {key for key in readings if key.endswith(".in")} == {
        "disk.in",
        "disk.nvme0n1.in",
        "disk.nvme1n1.in",
    }
    assert (readings["disk.in"], readings["disk.out"]) == (1.0 + 3.0, 2.0 + 4.0)


@pytest.mark.parametrize("counted_by_disk", [True, False], ids=["newer kernels", "older kernels"])
@pytest.mark.parametrize("sysfs", [True, False])
def test_traffic_of_a_disk_with_several_paths_is_counted_once(
    tmp_path: Path, counted_by_disk: bool, sysfs: bool
) -> None:
    names = ("nvme0n1", "nvme0c0n1", "nvme0c1n1", "nvme1n1")

    def tree(gib: int) -> dict[str, str]:
        sectors = [gib * 3 << 21 if counted_by_disk else 0, gib << 21, gib << 22, gib << 21]
        stats = {name: block_stat(count) for name, count in zip(names, sectors, strict=True)}
        if sysfs:
            return {f"sys/block/{name}/stat": text for name, text in stats.items()}
        return {"proc/diskstats": "".join(f" 259 0 {name} {text.strip()}\n" for name, text in stats.items())}

    devices = {f"sys/block/{name}/device/": "" for name in names} if sysfs else {}
    disk = probe(plant(tmp_path, tree(1) | devices))
    assert sample(disk, 1.0)["disk.in"] == 4 * 1024.0
    plant(tmp_path, tree(2))
    readings = sample(disk, 2.0)
    assert (readings["disk.in"], readings["disk.nvme0c1n1.in"]) == (8 * 1024.0, 4 * 1024.0)
    if sysfs:
        shutil.rmtree(tmp_path / "sys/block/nvme0c1n1")
        assert sample(disk, 60.0)["disk.in"] == 8 * 1024.0, "a lost path takes nothing away"


def test_utilization_is_at_most_100(tmp_path: Path) -> None:
    # The kernel counts a request's time when it ends, so an interval may get more than its length.
    disk = probe(plant(tmp_path, BARE_VM))
    sample(disk, 10.0)
    put(tmp_path, "sys/block/vda/stat", block_stat(busy_ms=1700))
    assert sample(disk, 11.0)["disk.vda.utilization"] == 100.0


def test_an_attached_disk_is_found(tmp_path: Path) -> None:
    disk = probe(plant(tmp_path, BARE_VM))
    sample(disk, 0.0)
    put(tmp_path, "sys/block/sdb/device/", "")
    put(tmp_path, "sys/block/sdb/stat", block_stat(2048))
    assert sample(disk, 60.0)["disk.sdb.in"] == 1.0


def test_sums_do_not_jump_when_a_disk_with_earlier_traffic_is_attached(tmp_path: Path) -> None:
    disk = probe(plant(tmp_path, BARE_VM))
    assert sample(disk, 0.0)["disk.in"] == 1.0
    put(tmp_path, "sys/block/sdb/device/", "")
    put(tmp_path, "sys/block/sdb/stat", block_stat(2048 * 50))
    assert sample(disk, 60.0)["disk.in"] == 1.0
    put(tmp_path, "sys/block/sdb/stat", block_stat(2048 * 52))
    assert sample(disk, 61.0)["disk.in"] == 3.0


def test_sums_do_not_fall_when_a_disk_is_removed(tmp_path: Path) -> None:
    disk = probe(plant(tmp_path, NVME))
    assert sample(disk, 0.0)["disk.in"] == 4.0
    shutil.rmtree(tmp_path / "sys/block/nvme1n1")
    readings = sample(disk, 60.0)
    assert readings["disk.in"] == 4.0
    assert "disk.nvme1n1.in" not in readings


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ({}, "cannot be listed: No such file"),
        ({"sys/block/": ""}, "lists no device"),
        ({"sys/block/loop0/stat": block_stat()}, "none of the devices in .* is a disk"),
    ],
)
def test_absent(tmp_path: Path, tree: dict[str, str], why: str) -> None:
    with pytest.raises(Absent, match=why):
        probe(plant(tmp_path, tree))


def test_a_disk_without_a_device_link_is_left_out(tmp_path: Path) -> None:
    with pytest.raises(Absent):
        probe(plant(tmp_path, without(BARE_VM, ["sys/block/vda/device/"])))


def test_this_machine() -> None:
    try:
        disk = probe(Scope())
    except Absent as absent:
        pytest.skip(f"this machine: {absent}")
    sample(disk, 1.0)
    readings = sample(disk, 2.0)
    assert readings["disk.in"] >= 0.0
    assert all(0.0 <= value <= 100.0 for key, value in readings.items() if key.endswith("utilization"))


def test_diskstats_is_used_without_sysfs(tmp_path: Path) -> None:
    rows = [
        "   8       0 sda 10 0 2048 5 20 0 4096 7 0 100 12 0 0 0 0",
        "   8       1 sda1 9 0 2000 5 19 0 4000 7 0 90 12",
        " 259       0 nvme0n1 1 0 4096 5 2 0 2048 7 0 50 12 0 0 0 0 3 4",
        " 259       1 nvme0n1p1 1 0 4096 5 2 0 2048 7 0 50 12",
        " 252       0 vda 0 0 0 0 0 0 0 0 0 0 0",
        " 253       0 dm-0 10 0 2048 5 20 0 4096 7 0 100 12",
        "   7       0 loop0 10 0 2048 5 20 0 4096 7 0 100 12",
    ]
    disk = probe(plant(tmp_path, {"proc/diskstats": "\n".join(rows) + "\n"}))
    first = sample(disk, 1.0)
    assert {key for key in first if key.endswith(".in")} == {
        "disk.in",
        "disk.sda.in",
        "disk.nvme0n1.in",
        "disk.vda.in",
    }
    assert (first["disk.in"], first["disk.out"], first["disk.sda.readOps"]) == (3.0, 3.0, 10.0)
    put(tmp_path, "proc/diskstats", rows[0].replace(" 100 12", " 600 12") + "\n")
    assert sample(disk, 2.0)["disk.sda.utilization"] == 50.0
    assert sample(disk, 3.0)["disk.in"] == 3.0, "what a disk has moved stays when it is taken out"
    late = "   8      16 sdb 10 0 204800 5 20 0 4096 7 0 100 12"
    put(tmp_path, "proc/diskstats", f"{rows[0]}\n{late}\n")
    readings = sample(disk, 4.0)
    assert (readings["disk.in"], readings["disk.sdb.in"]) == (3.0, 100.0), "what came later brings no past"
