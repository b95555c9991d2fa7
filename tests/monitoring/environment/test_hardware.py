"""Processors, memory, disks, networks and accelerators from trees of /proc and /sys."""

from __future__ import annotations

from pathlib import Path

from runvitals.monitoring.environment import hardware
from tests.monitoring.collectors.trees import Tree, meminfo, plant

# Two sockets of two cores with two threads each.
CPUS: Tree = {
    "sys/devices/system/cpu/online": "0-7\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 9654   96-Core Processor\n\n"
    "processor\t: 1\nmodel name\t: another\n",
    **{
        f"sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id": f"{cpu // 2 % 2}\n"
        for cpu in range(8)
    },
    **{f"sys/devices/system/cpu/cpu{cpu}/topology/core_id": f"{cpu % 2}\n" for cpu in range(8)},
}


def test_processors_by_socket_core_and_thread(tmp_path: Path) -> None:
    processors = hardware.processors(plant(tmp_path, CPUS))
    assert processors["model"] == "AMD EPYC 9654 96-Core Processor"
    assert (processors["sockets"], processors["cores"], processors["logical_cores"]) == (2, 4, 8)
    assert "limit" not in processors


def test_a_quota_limits_the_available_cpus(tmp_path: Path) -> None:
    cgroup = {
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/cgroup.controllers": "cpuset cpu memory\n",
        "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/job/cpuset.cpus.effective": "0-3\n",
        "sys/fs/cgroup/job/memory.max": "1073741824\n",
        "proc/meminfo": meminfo(8_000_000, 4_000_000, 1000, 1000),
    }
    scope = plant(tmp_path, CPUS | cgroup)
    processors = hardware.processors(scope)
    assert (processors["available"], processors["limit"]) == (1.5, 1.5)
    assert hardware.memory(scope) == {
        "total_bytes": 8_192_000_000,
        "swap_bytes": 1_024_000,
        "limit_bytes": 2**30,
    }


def test_names_of_arm_cores(tmp_path: Path) -> None:
    cpuinfo = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n"
    assert hardware.processors(plant(tmp_path, {"proc/cpuinfo": cpuinfo}))["model"] == "ARM Neoverse V2"


def test_no_facts_without_readable_files(tmp_path: Path) -> None:
    scope = plant(tmp_path, {})
    assert hardware.processors(scope).keys() == {"available"}
    assert hardware.memory(scope) == {}
    for section in ("disks", "file_systems", "interfaces", "infiniband", "accelerators", "numa_nodes"):
        assert getattr(hardware, section)(scope) == []


def test_whole_disks_only(tmp_path: Path) -> None:
    tree = {
        "sys/block/nvme0n1/size": "7501476528\n",
        "sys/block/nvme0n1/device/model": "SAMSUNG MZQL23T8HCLS-00A07              \n",
        "sys/block/nvme0n1/queue/rotational": "0\n",
        "sys/block/sda/size": "1000\n",
        "sys/block/sda/queue/rotational": "1\n",
        "sys/block/sdb/size": "0\n",
        **{f"sys/block/{name}/size": "1000\n" for name in ("loop0", "dm-0", "md127", "zram0", "sr0")},
    }
    assert hardware.disks(plant(tmp_path, tree)) == [
        {
            "name": "nvme0n1",
            "bytes": 3_840_755_982_336,
            "model": "SAMSUNG MZQL23T8HCLS-00A07",
            "rotational": False,
        },
        {"name": "sda", "bytes": 512_000, "rotational": True},
    ]


def test_file_systems_of_the_watched_paths(tmp_path: Path) -> None:
    mounts = (
        "27 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "40 27 0:45 / /data rw - lustre 10.0.0.1@tcp:/scratch rw\n"
        "41 27 0:46 / /database rw - tmpfs tmpfs rw\n"
    )
    scope = plant(tmp_path, {"proc/self/mountinfo": mounts}, disk_paths=("/", "/data/runs"))
    assert hardware.file_systems(scope) == [
        {"path": "/", "mount": "/", "type": "ext4"},
        {"path": "/data/runs", "mount": "/data", "type": "lustre"},
    ]


def test_physical_network_interfaces(tmp_path: Path) -> None:
    tree = {
        "sys/class/net/lo/speed": "",
        "sys/class/net/docker0/speed": "-1\n",
        "sys/class/net/eth0/speed": "100000\n",
        "sys/class/net/eth0/device/driver": "-> ../../../bus/pci/drivers/mlx5_core",
        "sys/class/net/eth1/speed": "-1\n",
        "sys/class/net/eth1/device/": "",
    }
    assert hardware.interfaces(plant(tmp_path, tree)) == [
        {"name": "eth0", "driver": "mlx5_core", "megabits_per_second": 100_000},
        {"name": "eth1"},
    ]


def test_network_interfaces_of_a_container(tmp_path: Path) -> None:
    tree = {"sys/class/net/lo/speed": "", "sys/class/net/eth0/speed": "10000\n"}
    assert hardware.interfaces(plant(tmp_path, tree)) == [{"name": "eth0", "megabits_per_second": 10_000}]


def test_infiniband_ports(tmp_path: Path) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1"
    tree = {f"{port}/rate": "200 Gb/sec (4X HDR)\n", f"{port}/link_layer": "InfiniBand\n"}
    assert hardware.infiniband(plant(tmp_path, tree)) == [
        {"device": "mlx5_0", "port": "1", "rate": "200 Gb/sec (4X HDR)", "link_layer": "InfiniBand"}
    ]


def pci(address: str, code: str, vendor: str, device: str, **more: str) -> Tree:
    fields = {"class": code, "vendor": vendor, "device": device} | more
    return {f"sys/bus/pci/devices/{address}/{name}": text for name, text in fields.items()}


def test_accelerators_by_vendor_and_class(tmp_path: Path) -> None:
    tree = (
        pci(
            "0000:17:00.0",
            "0x030200\n",
            "0x10de\n",
            "0x2330\n",
            numa_node="1\n",
            driver="-> ../../drivers/nvidia",
        )
        | pci("0000:17:00.1", "0x040300\n", "0x10de\n", "0x22ba\n")  # its audio function
        | pci("0000:05:00.0", "0x030000\n", "0x1a03\n", "0x2000\n")  # onboard graphics
        | pci("0000:85:00.0", "0x038000\n", "0x1002\n", "0x74a1\n", numa_node="-1\n")
        | pci("0000:00:04.0", "0xff0000\n", "0x1ae0\n", "0x0063\n")  # a TPU
        | pci("0000:00:05.0", "0x020000\n", "0x1ae0\n", "0x0042\n")  # Google's network card
        | pci("0000:00:1e.0", "0x088000\n", "0x1d0f\n", "0x7164\n")  # Trainium
        | pci("0000:00:1f.0", "0x010802\n", "0x1d0f\n", "0x8061\n")  # Amazon's disk
        | pci("0000:20:00.0", "0x120000\n", "0xabcd\n", "0x0001\n")  # an unknown vendor
    )
    accelerators = hardware.accelerators(plant(tmp_path, tree))
    assert [(device["address"], device.get("vendor")) for device in accelerators] == [
        ("0000:00:04.0", "Google"),
        ("0000:00:1e.0", "Amazon"),
        ("0000:17:00.0", "NVIDIA"),
        ("0000:20:00.0", None),
        ("0000:85:00.0", "AMD"),
    ]
    assert accelerators[2] == {
        "address": "0000:17:00.0",
        "class": "0x030200",
        "vendor_id": "0x10de",
        "device_id": "0x2330",
        "vendor": "NVIDIA",
        "driver": "nvidia",
        "numa_node": 1,
    }
    assert "numa_node" not in accelerators[4]


def test_numa_nodes(tmp_path: Path) -> None:
    tree = {
        "sys/devices/system/node/online": "0-1\n",
        "sys/devices/system/node/node0/cpulist": "0-47,96-143\n",
        "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal:       1000 kB\nNode 0 MemFree: 1 kB\n",
        "sys/devices/system/node/node1/cpulist": "48-95\n",
    }
    assert hardware.numa_nodes(plant(tmp_path, tree)) == [
        {"node": 0, "cpus": "0-47,96-143", "bytes": 1_024_000},
        {"node": 1, "cpus": "48-95"},
    ]
