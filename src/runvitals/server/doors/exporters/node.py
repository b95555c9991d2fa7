"""node_exporter, the Prometheus exporter of a host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from runvitals.server.doors.exporters.translation import (
    Derived,
    Input,
    ScrapedMoment,
    Translation,
    Values,
    growth,
    mean_of,
    seconds_between,
    total_of,
)

_MIB, _GIB = 2.0**20, 2.0**30
_PLAIN = {
    "node_load1": "system.load1",
    "node_load5": "system.load5",
    "node_load15": "system.load15",
    "node_netstat_Tcp_RetransSegs": "network.tcpRetransmits",
    "node_pressure_cpu_waiting_seconds_total": "cpu.pressureSeconds",
    "node_pressure_memory_waiting_seconds_total": "memory.pressureSeconds",
    "node_pressure_io_waiting_seconds_total": "io.pressureSeconds",
}
# Of disks: our key, factor, and the key of the total over all disks.
_DISKS = {
    "node_disk_read_bytes_total": ("disk.{}.in", 1 / _MIB, "disk.in"),
    "node_disk_written_bytes_total": ("disk.{}.out", 1 / _MIB, "disk.out"),
    "node_disk_reads_completed_total": ("disk.{}.readOps", 1.0, None),
    "node_disk_writes_completed_total": ("disk.{}.writeOps", 1.0, None),
}
_INTERFACES = {
    "node_network_transmit_bytes_total": ("network.{}.sent", "network.sent"),
    "node_network_receive_bytes_total": ("network.{}.recv", "network.recv"),
}
# Both directions together.
_PROBLEMS = {
    "node_network_transmit_errs_total": "network.{}.errors",
    "node_network_receive_errs_total": "network.{}.errors",
    "node_network_transmit_drop_total": "network.{}.drops",
    "node_network_receive_drop_total": "network.{}.drops",
}
_PORTS = {
    "node_infiniband_port_data_transmitted_bytes_total": "xmitBytes",
    "node_infiniband_port_data_received_bytes_total": "recvBytes",
    "node_infiniband_port_transmit_wait_total": "xmitWait",
}
_VIRTUAL_DISKS = re.compile(r"(dm-|md|loop|ram|zram|sr|nbd)\d+")
_VIRTUAL_INTERFACES = re.compile(
    r"lo|bonding_masters|(veth|docker|br-|virbr|cali|flannel|cni|tun|tap|bond|team|dummy|kube|vxlan|lxc|wg).*"
)
_NOT_DISKS = frozenset(
    ("tmpfs", "ramfs", "overlay", "squashfs", "devtmpfs", "iso9660", "nsfs", "proc", "sysfs")
)
_TEMPERATURES = ("coretemp", "k10temp", "zenpower")


def translate(name: str, labels: Mapping[str, str], device: int | None) -> Translation | None:
    """Return how a series of node_exporter becomes ours."""
    if name in _PLAIN:
        return Translation(_PLAIN[name])
    if name.startswith("node_memory_"):
        return _of_memory(name.removeprefix("node_memory_").removesuffix("_bytes"))
    if name.startswith("node_filesystem_"):
        return _of_file_system(name.removeprefix("node_filesystem_"), labels)
    if name.startswith(("node_disk_", "node_network_", "node_infiniband_")):
        return _of_device(name, labels)
    return _of_processor(name, labels)


def _of_memory(field: str) -> Translation | None:
    inputs = [Input(derived, field) for derived in (_MEMORY, _CACHES, _SWAP) if field in derived.required]
    return Translation(inputs=tuple(inputs)) if inputs else None


def _of_file_system(field: str, labels: Mapping[str, str]) -> Translation | None:
    path = labels.get("mountpoint")
    if not path or labels.get("fstype") in _NOT_DISKS:
        return None
    if field in ("size_bytes", "free_bytes", "avail_bytes"):
        return Translation(inputs=(Input(_space(path), field),))
    if field in ("files", "files_free"):
        return Translation(inputs=(Input(_inodes(path), field),))
    return None


def _of_device(name: str, labels: Mapping[str, str]) -> Translation | None:
    device = labels.get("device")
    if not device:
        return None
    if name in _DISKS:
        template, factor, total = _DISKS[name]
        of_all = total is not None and _VIRTUAL_DISKS.fullmatch(device) is None
        inputs = (Input(_total(total, factor), device),) if total is not None and of_all else ()
        return Translation(template.format(device), factor, inputs=inputs)
    if name == "node_disk_io_time_seconds_total":
        return Translation(inputs=(Input(_busy(f"disk.{device}.utilization"), "busy"),))
    if name in _INTERFACES:
        template, total = _INTERFACES[name]
        of_all = _VIRTUAL_INTERFACES.fullmatch(device) is None
        inputs = (Input(_total(total, 1.0), device),) if of_all else ()
        return Translation(template.format(device), inputs=inputs)
    if name in _PROBLEMS:
        return Translation(inputs=(Input(_total(_PROBLEMS[name].format(device), 1.0), name),))
    if name in _PORTS and labels.get("port", "").isdigit():
        return Translation(f"network.ib.{device}.{labels['port']}.{_PORTS[name]}")
    return None


def _of_processor(name: str, labels: Mapping[str, str]) -> Translation | None:
    cpu = labels.get("cpu", "")
    if name == "node_cpu_seconds_total" and cpu.isdigit() and labels.get("mode"):
        return Translation(inputs=(Input(_CPU, f"{cpu}/{labels['mode']}"),))
    if name == "node_cpu_scaling_frequency_hertz":
        return Translation(inputs=(Input(_FREQUENCY, cpu),))
    if name == "node_hwmon_temp_celsius" and labels.get("sensor") == "temp1":
        chip = labels.get("chip", "")
        return Translation(inputs=(Input(_TEMPERATURE, chip),)) if _is_processor(chip) else None
    if name in ("node_time_seconds", "node_boot_time_seconds"):
        return Translation(inputs=(Input(_UPTIME, name),))
    if name.startswith("node_rapl_") and name.endswith("_joules_total"):
        domain = name.removeprefix("node_rapl_").removesuffix("_joules_total")
        return Translation(f"energy.{domain}-{labels.get('index', '0')}")
    return None


def _is_processor(chip: str) -> bool:
    return any(driver in chip for driver in _TEMPERATURES)


def _memory(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
    total, available = values["MemTotal"], values["MemAvailable"]
    values_by_key = {"memory.usedMB": (total - available) / _MIB, "proc.memory.availableMB": available / _MIB}
    if total:
        used = (1 - available / total) * 100.0
        values_by_key |= {"memory_percent": used, "host.memory_percent": used}
    return values_by_key


def _caches(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
    return {"memory.cachedMB": sum(values.values()) / _MIB}


def _swap(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
    total, free = values["SwapTotal"], values["SwapFree"]
    values_by_key = {"swap.used": total - free}
    if total:
        values_by_key["swap.used_percent"] = (total - free) / total * 100.0
    return values_by_key


_MEMORY = Derived("memory", _memory, frozenset(("MemTotal", "MemAvailable")))
_CACHES = Derived("caches", _caches, frozenset(("Cached", "SReclaimable", "Buffers")))
_SWAP = Derived("swap", _swap, frozenset(("SwapTotal", "SwapFree")))


def _cpu(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
    """Return shares of the processors' time since the moment before."""
    if before is None:
        return {}
    of_cpu: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        if name in before.values:
            cpu, _, mode = name.partition("/")
            of_cpu.setdefault(cpu, {})[mode] = growth(before.values[name], value)
    values_by_key: dict[str, float] = {}
    modes: dict[str, float] = {}
    for cpu, spent in of_cpu.items():
        total = sum(spent.values())
        if total > 0:
            idle = spent.get("idle", 0.0) + spent.get("iowait", 0.0)
            values_by_key[f"cpu.{cpu}.cpu_percent"] = (1 - idle / total) * 100.0
        for mode, seconds in spent.items():
            modes[mode] = modes.get(mode, 0.0) + seconds
    total = sum(modes.values())
    if total > 0:
        share = {mode: seconds / total * 100.0 for mode, seconds in modes.items()}
        values_by_key["cpu.mean"] = 100.0 - share.get("idle", 0.0) - share.get("iowait", 0.0)
        values_by_key["cpu.user"] = share.get("user", 0.0) + share.get("nice", 0.0)
        values_by_key["cpu.system"] = sum(share.get(mode, 0.0) for mode in ("system", "irq", "softirq"))
        values_by_key |= {f"cpu.{mode}": share[mode] for mode in ("iowait", "steal") if mode in share}
    return values_by_key


def _uptime(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
    return {"system.uptime": values["node_time_seconds"] - values["node_boot_time_seconds"]}


_CPU = Derived("cpu", _cpu)
_FREQUENCY = mean_of("cpu.freqMHz", 1e-6)
_TEMPERATURE = mean_of("cpu.avg_temp")
_UPTIME = Derived("uptime", _uptime, frozenset(("node_time_seconds", "node_boot_time_seconds")))


@lru_cache(4096)
def _total(key: str, factor: float) -> Derived:
    return total_of(key, factor)


@lru_cache(4096)
def _busy(key: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        if before is None:
            return {}
        spent_s = growth(before.values["busy"], values["busy"])
        return {key: min(spent_s / seconds_between(before, t), 1.0) * 100.0}

    return Derived(key, compute, frozenset(("busy",)))


@lru_cache(4096)
def _space(path: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        used, available = values["size_bytes"] - values["free_bytes"], values["avail_bytes"]
        values_by_key = {f"disk.{path}.usageGB": used / _GIB, f"disk.{path}.availableGB": available / _GIB}
        if used + available > 0:
            values_by_key[f"disk.{path}.usagePercent"] = used / (used + available) * 100.0
        return values_by_key

    return Derived(f"space of {path}", compute, frozenset(("size_bytes", "free_bytes", "avail_bytes")))


@lru_cache(4096)
def _inodes(path: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        total = values["files"]
        return {f"disk.{path}.inodesPercent": (total - values["files_free"]) / total * 100.0} if total else {}

    return Derived(f"inodes of {path}", compute, frozenset(("files", "files_free")))
