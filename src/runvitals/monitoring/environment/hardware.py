"""Facts about the hardware: processors, memory, disks, network interfaces, accelerators.

Everything comes from /proc and /sys, without vendors' tools or libraries: a broken driver cannot block this,
and a card without a driver is still listed.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing.cgroup import available_cpu_count, locate, parse_cpu_list
from runvitals.monitoring.collectors.plumbing.mounts import mount_of, read_mounts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope

# PCI vendors of accelerators, as written in /sys/bus/pci/devices/*/vendor.
_VENDORS = {
    "0x1002": "AMD",
    "0x10de": "NVIDIA",
    "0x17cb": "Qualcomm",
    "0x19e5": "Huawei",
    "0x1ae0": "Google",
    "0x1d0f": "Amazon",
    "0x1d94": "Hygon",
    "0x1d95": "Graphcore",
    "0x1da3": "Habana",
    "0x1ded": "T-Head",
    "0x1e36": "Enflame",
    "0x1e3e": "Iluvatar",
    "0x1e52": "Tenstorrent",
    "0x1ed2": "FuriosaAI",
    "0x1ed5": "Moore Threads",
    "0x1ee0": "Biren",
    "0x1eff": "Rebellions",
    "0x2057": "Kunlunxin",
    "0x8086": "Intel",
    "0x9999": "MetaX",
    "0xcabc": "Cambricon",
}
# PCI base classes: display controllers and processing accelerators. Google's and Amazon's accelerators are
# system peripherals or unclassified, like network cards and disks of the same vendors.
_DISPLAY, _ACCELERATOR = "03", "12"
_UNCLASSIFIED = ("00", "08", "ff")
_UNCLASSIFIED_VENDORS = ("0x1ae0", "0x1d0f")

# ARM processors report no name, only numbers of designer and part.
_ARM_CORES = {
    ("0x41", "0xd0c"): "ARM Neoverse N1",
    ("0x41", "0xd40"): "ARM Neoverse V1",
    ("0x41", "0xd49"): "ARM Neoverse N2",
    ("0x41", "0xd4f"): "ARM Neoverse V2",
    ("0x41", "0xd83"): "ARM Neoverse V3AE",
    ("0x41", "0xd84"): "ARM Neoverse V3",
    ("0xc0", "0xac3"): "Ampere-1",
}

_NOT_DISKS = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "zd")
_SECTOR = 512


def processors(scope: Scope) -> dict[str, object]:
    """model, sockets, cores, logical_cores; available: CPUs for the run, by affinity, cpuset and quota."""
    facts: dict[str, object] = {}
    cpuinfo = _cpuinfo(scope)
    arm = (cpuinfo.get("CPU implementer", ""), cpuinfo.get("CPU part", ""))
    model = cpuinfo.get("model name") or cpuinfo.get("cpu") or _ARM_CORES.get(arm)
    if model:
        facts["model"] = " ".join(model.split())
    folder = scope.path("/sys/devices/system/cpu")
    online = sorted(parse_cpu_list(read_text(f"{folder}/online") or ""))
    if online:
        facts["logical_cores"] = len(online)
    cores = set()
    for cpu in online:
        package = read_text(f"{folder}/cpu{cpu}/topology/physical_package_id")
        core = read_text(f"{folder}/cpu{cpu}/topology/core_id")
        if package is not None and core is not None:
            cores.add((package, core))
    if cores:
        facts["sockets"] = len({package for package, _ in cores})
        facts["cores"] = len(cores)
    cgroup = locate(scope)
    facts["available"] = available_cpu_count(scope, cgroup)
    limit = cgroup.cpu_limit()
    if limit is not None:
        facts["limit"] = limit.value
    return facts


def memory(scope: Scope) -> dict[str, int]:
    """total_bytes, swap_bytes; limit_bytes where a cgroup sets one."""
    sizes: dict[str, int] = {}
    for line in (read_text(scope.path("/proc/meminfo")) or "").split("\n"):
        name, _, value = line.partition(":")
        if name in ("MemTotal", "SwapTotal"):
            sizes["total_bytes" if name == "MemTotal" else "swap_bytes"] = int(value.split()[0]) * 1024
    limit = locate(scope).memory_limit()
    if limit is not None:
        sizes["limit_bytes"] = int(limit.value)
    return sizes


def disks(scope: Scope) -> list[dict[str, object]]:
    """Whole disks: name, bytes; model and rotational if known."""
    disk_facts = []
    for name in _names(scope.path("/sys/block")):
        folder = scope.path(f"/sys/block/{name}")
        sectors = read_text(f"{folder}/size") or ""
        if name.startswith(_NOT_DISKS) or not sectors.isdigit() or sectors == "0":
            continue
        disk: dict[str, object] = {"name": name, "bytes": int(sectors) * _SECTOR}
        model = (read_text(f"{folder}/device/model") or "").strip()
        if model:
            disk["model"] = model
        rotational = read_text(f"{folder}/queue/rotational")
        if rotational is not None:
            disk["rotational"] = rotational == "1"
        disk_facts.append(disk)
    return disk_facts


def file_systems(scope: Scope) -> list[dict[str, str]]:
    """Return the file system of each configured path: path, mount point, type."""
    mounts = read_mounts(scope)
    mounted = []
    for path in scope.disk_paths:
        mount = mount_of(mounts, scope.host_root + path if scope.host_root else path)
        if mount is not None:
            mounted.append(
                {"path": path, "mount": mount.point.removeprefix(scope.host_root) or "/", "type": mount.kind}
            )
    return mounted


def interfaces(scope: Scope) -> list[dict[str, object]]:
    """Network interfaces: name; driver, megabits_per_second where known.

    Hardware interfaces only; in a container, which has none, all except loopback.
    """
    names = [name for name in _names(scope.path("/sys/class/net")) if name != "lo"]
    hardware = [name for name in names if os.path.exists(scope.path(f"/sys/class/net/{name}/device"))]
    interface_facts = []
    for name in hardware or names:
        folder = scope.path(f"/sys/class/net/{name}")
        interface: dict[str, object] = {"name": name}
        driver = _link_name(f"{folder}/device/driver")
        if driver:
            interface["driver"] = driver
        speed = read_text(f"{folder}/speed") or ""  # -1 or an error while the link is down or has no speed
        if speed.isdigit() and speed != "0":
            interface["megabits_per_second"] = int(speed)
        interface_facts.append(interface)
    return interface_facts


def infiniband(scope: Scope) -> list[dict[str, str]]:
    """InfiniBand, RoCE and EFA ports: device, port; rate, link_layer and state in the kernel's words."""
    ports = []
    for device in _names(scope.path("/sys/class/infiniband")):
        for port in _names(scope.path(f"/sys/class/infiniband/{device}/ports")):
            folder = scope.path(f"/sys/class/infiniband/{device}/ports/{port}")
            row = {"device": device, "port": port}
            for name in ("rate", "link_layer", "state"):
                text = read_text(f"{folder}/{name}")
                if text:
                    row[name] = text
            ports.append(row)
    return ports


def accelerators(scope: Scope) -> list[dict[str, object]]:
    """Accelerators on PCI: address, class, vendor_id, device_id; vendor, driver, numa_node if known."""
    devices = []
    for address in _names(scope.path("/sys/bus/pci/devices")):
        folder = scope.path(f"/sys/bus/pci/devices/{address}")
        code, vendor = read_text(f"{folder}/class") or "", read_text(f"{folder}/vendor") or ""
        base = code.removeprefix("0x")[:2]
        is_vendor = vendor in _VENDORS
        if not (
            base == _ACCELERATOR
            or (base == _DISPLAY and is_vendor)
            or (base in _UNCLASSIFIED and vendor in _UNCLASSIFIED_VENDORS)
        ):
            continue
        device: dict[str, object] = {
            "address": address,
            "class": code,
            "vendor_id": vendor,
            "device_id": read_text(f"{folder}/device") or "",
        }
        if is_vendor:
            device["vendor"] = _VENDORS[vendor]
        driver = _link_name(f"{folder}/driver")
        if driver:
            device["driver"] = driver
        node = read_text(f"{folder}/numa_node") or ""
        if node.isdigit():  # -1: unknown to the firmware
            device["numa_node"] = int(node)
        devices.append(device)
    return devices


def numa_nodes(scope: Scope) -> list[dict[str, object]]:
    """Memory nodes: node, cpus as the kernel lists them, bytes."""
    nodes = []
    for node in sorted(parse_cpu_list(read_text(scope.path("/sys/devices/system/node/online")) or "")):
        folder = scope.path(f"/sys/devices/system/node/node{node}")
        row: dict[str, object] = {"node": node, "cpus": read_text(f"{folder}/cpulist") or ""}
        for line in (read_text(f"{folder}/meminfo") or "").split("\n"):
            words = line.split()  # "Node 0 MemTotal:  32882504 kB"
            if len(words) > 3 and words[2] == "MemTotal:":
                row["bytes"] = int(words[3]) * 1024
        nodes.append(row)
    return nodes


def _cpuinfo(scope: Scope) -> dict[str, str]:
    """Return the fields of the first processor."""
    fields: dict[str, str] = {}
    for line in (read_text(scope.path("/proc/cpuinfo")) or "").split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
        elif fields:
            break
    return fields


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:  # no such class of devices on this machine
        return []


def _link_name(path: str) -> str:
    """Return the last part of a link's target, "" if there is no link."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ""
