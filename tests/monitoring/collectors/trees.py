"""Trees of files as in /proc and /sys, and functions to write them into a folder.

A tree is a dictionary: relative path -> text. A text "-> target" is a symbolic link, a path that ends in "/"
an empty folder. Trees are put together with ``|``::

    scope = plant(tmp_path, BARE_VM | {"proc/loadavg": "9.00 8.00 7.00 1/88 6245\\n"})

Numbers are made up; the layout of every file is the kernel's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from runvitals.monitoring.collectors.base import Scope, Tick

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.monitoring.collectors.base import Collector

Tree = dict[str, str]


def plant(root: Path, tree: Tree, pids: Iterable[int] = (), disk_paths: tuple[str, ...] = ("/",)) -> Scope:
    """Write a tree into a folder. Returns a scope with the folder as the host's root."""
    for path, text in tree.items():
        put(root, path, text)
    return Scope(host_root=str(root), pids=pids, disk_paths=disk_paths)


def put(root: Path, path: str, text: str) -> None:
    """Replace one file of a tree. A collector that has it open sees the new text, as with the kernel's
    files.
    """
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.endswith("/"):
        target.mkdir(exist_ok=True)
    elif text.startswith("-> "):
        target.symlink_to(text[3:])
    else:
        target.write_text(text)


def sample(collector: Collector, mono_s: float) -> dict[str, float]:
    """One sample of one collector, with gauges and counters in one dictionary."""
    tick = Tick(mono_s)
    collector.sample(tick)
    assert not tick.gauges.keys() & tick.counters.keys()
    return tick.gauges | tick.counters


def meminfo(total: int, available: int, swap_total: int = 0, swap_free: int = 0) -> str:
    """/proc/meminfo up to the fields that are read, in kB."""
    return (
        f"MemTotal:       {total:8} kB\n"
        f"MemFree:        {available // 2:8} kB\n"
        f"MemAvailable:   {available:8} kB\n"
        "Buffers:            2048 kB\nCached:          1046528 kB\nSwapCached:            0 kB\n"
        "Active:           918204 kB\nInactive:         512004 kB\nMlocked:               0 kB\n"
        f"SwapTotal:      {swap_total:8} kB\nSwapFree:       {swap_free:8} kB\n"
        "Dirty:               120 kB\nShmem:              1024 kB\nKReclaimable:      65536 kB\n"
        "Slab:              98304 kB\nSReclaimable:      65536 kB\nSUnreclaim:        32768 kB\n"
    )


def cpu_line(
    name: str, user: int = 0, system: int = 0, idle: int = 0, iowait: int = 0, steal: int = 0
) -> str:
    """A line of /proc/stat: user nice system idle iowait irq softirq steal guest guest_nice, in ticks."""
    return f"{name} {user} 0 {system} {idle} {iowait} 0 0 {steal} 0 0\n"


def stat(cores: Iterable[dict[str, int]]) -> str:
    """/proc/stat of these cores; the first line is their sum."""
    cores = list(cores)
    names = ("user", "system", "idle", "iowait", "steal")
    total = {name: sum(core.get(name, 0) for core in cores) for name in names}
    lines = [cpu_line("cpu ", **total), *(cpu_line(f"cpu{i}", **core) for i, core in enumerate(cores))]
    return (
        "".join(lines)
        + "intr 220538 0 0 9 0\nctxt 382304\nbtime 1795252095\nprocesses 6246\nprocs_running 3\n"
    )


def psi(some: float, full: float, total_us: int) -> str:
    return (
        f"some avg10={some:.2f} avg60=0.37 avg300=0.19 total={total_us}\n"
        f"full avg10={full:.2f} avg60=0.00 avg300=0.00 total=0\n"
    )


def net_dev(**nics: tuple[int, int]) -> str:
    """/proc/net/dev: name=(received, sent) bytes. In names, "_" replaces "-"."""
    head = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast"
        "|bytes    packets errs drop fifo colls carrier compressed\n"
    )
    return head + "".join(
        f"{name.replace('_', '-'):>6}: {recv:7} 90 1 2 0 0 0 0 {sent:8} 80 3 4 0 0 0 0\n"
        for name, (recv, sent) in nics.items()
    )


def block_stat(sectors_read: int = 0, sectors_written: int = 0, busy_ms: int = 0) -> str:
    """/sys/block/{dev}/stat."""
    return f"   34118   8813 {sectors_read} 14493  20274  23368 {sectors_written} 16864  2 {busy_ms} 33265\n"


def mount(point: str, kind: str, root: str = "/", options: str = "rw") -> str:
    """A line of mountinfo."""
    return f"36 27 0:31 {root} {point} rw,relatime shared:9 - {kind} {kind} {options}\n"


SNMP = (
    "Ip: Forwarding DefaultTTL InReceives\nIp: 1 64 5019\n"
    "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InSegs OutSegs RetransSegs InErrs\n"
    "Tcp: 1 200 120000 -1 88 4711 4000 17 0\n"
    "Udp: InDatagrams NoPorts\nUdp: 5 0\n"
)

# A virtual machine with two CPUs and one disk, without cgroup limits.
BARE_VM: Tree = {
    "proc/stat": stat([{"user": 1000, "idle": 9000}, {"user": 1000, "idle": 9000}]),
    "proc/loadavg": "0.52 0.25 0.10 2/88 6245\n",
    "proc/uptime": "5000.25 9000.50\n",
    "proc/meminfo": meminfo(total=16 << 20, available=12 << 20),
    "proc/vmstat": "nr_free_pages 6110605\noom_kill 3\nnr_unstable 0\n",
    "proc/pressure/cpu": psi(1.25, 0.0, 5_000_000),
    "proc/pressure/memory": psi(0.5, 0.25, 2_000_000),
    "proc/pressure/io": psi(2.0, 1.5, 7_500_000),
    "proc/cpuinfo": "processor\t: 0\ncpu MHz\t\t: 2450.000\n\nprocessor\t: 1\ncpu MHz\t\t: 2550.000\n\n",
    "proc/self/cgroup": "0::/init.scope\n",
    "proc/self/mountinfo": mount("/", "ext4") + mount("/sys/fs/cgroup", "cgroup2"),
    "proc/net/dev": net_dev(lo=(500, 500), eth0=(1000, 300)),
    "proc/net/snmp": SNMP,
    "sys/class/net/lo/": "",
    "sys/class/net/eth0/device/": "",
    "sys/block/vda/stat": block_stat(2048, 4096, 100),
    "sys/block/vda/device/": "",
    "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n",
    "sys/fs/cgroup/init.scope/": "",
}

PSI_FILES = ["proc/pressure/cpu", "proc/pressure/memory", "proc/pressure/io"]


def without(tree: Tree, paths: Iterable[str]) -> Tree:
    """A tree without some files."""
    return {path: text for path, text in tree.items() if path not in set(paths)}


def cgroup_v2(folder: str, **files: str) -> Tree:
    """One folder of the unified tree: cpu_max="200000 100000" is its file cpu.max."""
    return {f"sys/fs/cgroup{folder}/{name.replace('_', '.', 1)}": text + "\n" for name, text in files.items()}


def cgroup_v1(controller: str, folder: str, **files: str) -> Tree:
    """One folder of a v1 tree: limit_in_bytes="…" of controller memory is its file memory.limit_in_bytes."""
    return {
        f"sys/fs/cgroup/{controller}{folder}/{controller}.{name}": text + "\n" for name, text in files.items()
    }


MEMORY_STAT_V2 = "anon 2147483648\nfile 3221225472\nkernel 1048576\ninactive_file 1073741824\nactive_file 5"
MEMORY_STAT_V1 = (
    "cache 9\nrss 8\ninactive_file 1\ntotal_cache 9\ntotal_rss 2147483648\ntotal_inactive_file 1073741824"
)

# A service whose slice, not the service itself, is limited: 4 GiB and 1.5 CPUs.
LIMITED_SLICE: Tree = BARE_VM | {
    "proc/self/cgroup": "0::/training.slice/run.service\n",
    **cgroup_v2(
        "/training.slice",
        memory_max=str(4 << 30),
        memory_current=str(3 << 30),
        memory_stat=MEMORY_STAT_V2,
        memory_events="low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0",
        cpu_max="150000 100000",
        cpu_stat="usage_usec 9000000\nuser_usec 8000000\nsystem_usec 1000000\n"
        "nr_periods 100\nnr_throttled 10\nthrottled_usec 2500000",
    ),
    **cgroup_v2(
        "/training.slice/run.service",
        memory_max="max",
        memory_current=str(1 << 30),
        memory_stat=MEMORY_STAT_V2,
        memory_events="low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0",
        cpu_max="max 100000",
        cpu_pressure=psi(11.0, 0.0, 1_000_000),
        memory_pressure=psi(12.0, 6.0, 2_000_000),
        io_pressure=psi(13.0, 7.0, 3_000_000),
    ),
}

# cgroup v1: each controller is mounted separately; "no limit" is a number near 2^63.
V1_MOUNTS = "".join(
    mount(f"/sys/fs/cgroup/{name}", "cgroup", options=f"rw,{name}") for name in ("cpu", "cpuset", "memory")
)
V1: Tree = BARE_VM | {
    "proc/self/cgroup": "9:name=systemd:/\n4:memory:/jobs/7\n3:cpuset:/jobs/7\n1:cpu:/jobs/7\n",
    "proc/self/mountinfo": mount("/", "ext4") + V1_MOUNTS,
    **cgroup_v1("memory", "", limit_in_bytes="9223372036854771712", usage_in_bytes=str(6 << 30)),
    **cgroup_v1("memory", "/jobs", limit_in_bytes="9223372036854771712", usage_in_bytes=str(5 << 30)),
    **cgroup_v1(
        "memory",
        "/jobs/7",
        limit_in_bytes=str(8 << 30),
        usage_in_bytes=str(3 << 30),
        stat=MEMORY_STAT_V1,
        oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 2",
    ),
    **cgroup_v1("cpu", "/jobs", cfs_quota_us="-1", cfs_period_us="100000"),
    **cgroup_v1(
        "cpu",
        "/jobs/7",
        cfs_quota_us="300000",
        cfs_period_us="100000",
        stat="nr_periods 200\nnr_throttled 50\nthrottled_time 4000000000",
    ),
    "sys/fs/cgroup/cpu/jobs/7/cpuacct.usage": "90000000000\n",
    **cgroup_v1("cpuset", "/jobs/7", effective_cpus="0-1", cpus="0-1"),
}

# The same, with the unified tree mounted beside it, as systemd does: it has a line in /proc/self/cgroup but
# no controller.
HYBRID: Tree = V1 | {
    "proc/self/cgroup": V1["proc/self/cgroup"] + "0::/\n",
    "proc/self/mountinfo": V1["proc/self/mountinfo"] + mount("/sys/fs/cgroup/unified", "cgroup2"),
    "sys/fs/cgroup/unified/cgroup.controllers": "\n",
}

# A Slurm task: memory is limited for the job, CPUs for the step; the task itself is not limited.
_JOB = "/system.slice/slurmstepd.scope/job_42"
SLURM: Tree = BARE_VM | {
    "proc/self/cgroup": f"0::{_JOB}/step_0/user/task_3\n",
    **cgroup_v2("/system.slice/slurmstepd.scope", memory_max="max", cpu_max="max 100000"),
    **cgroup_v2(
        _JOB,
        memory_max=str(2 << 30),
        memory_current=str(2 << 30),
        memory_stat=MEMORY_STAT_V2.replace("anon 2147483648", "anon 536870912"),
        memory_events="low 0\noom 1\noom_kill 5",
    ),
    f"sys/fs/cgroup{_JOB}/cpuset.cpus.effective": "0-3\n",
    **cgroup_v2(f"{_JOB}/step_0", memory_max="max", cpu_max="max 100000"),
    **cgroup_v2(
        f"{_JOB}/step_0/user", memory_max=str(3 << 30), cpu_max="50000 100000", cpu_stat="usage_usec 1"
    ),
    **cgroup_v2(
        f"{_JOB}/step_0/user/task_3", memory_max="max", memory_current="5", memory_events="oom_kill 0"
    ),
    f"sys/fs/cgroup{_JOB}/step_0/user/task_3/cpuset.cpus.effective": "1\n",
}

# A container with its own cgroup namespace: its folder is the root, including the limits.
CONTAINER: Tree = BARE_VM | {
    "proc/self/cgroup": "0::/\n",
    "proc/self/mountinfo": mount("/", "overlay")
    + mount("/sys/fs/cgroup", "cgroup2", root="/", options="rw,nsdelegate"),
    **cgroup_v2(
        "",
        memory_max=str(1 << 30),
        memory_current=str(900 << 20),
        memory_stat="anon 104857600\nfile 838860800\ninactive_file 419430400",
        memory_events="low 0\noom 0\noom_kill 0",
        cpu_max="400000 100000",
        cpu_stat="usage_usec 100\nnr_periods 5\nnr_throttled 0\nthrottled_usec 0",
    ),
    # Its only interface is one end of a veth pair, without a card.
    "sys/class/net/eth0/": "",
}
del CONTAINER["sys/class/net/eth0/device/"]

# Two cards in a bond, another card, and Docker's interfaces.
BOND: Tree = BARE_VM | {
    "proc/net/dev": net_dev(
        lo=(9, 9),
        eth0=(1000, 100),
        eth1=(2000, 200),
        eth2=(40, 4),
        bond0=(3000, 300),
        docker0=(70, 7),
        veth1=(70, 7),
    ),
    "sys/class/net/eth0/master": "-> ../bond0",
    "sys/class/net/eth1/device/": "",
    "sys/class/net/eth1/master": "-> ../bond0",
    "sys/class/net/eth2/device/": "",
    "sys/class/net/bond0/": "",
    "sys/class/net/docker0/bridge/": "",
    "sys/class/net/veth1/master": "-> ../docker0",
}
DOCKER: Tree = BARE_VM | {
    "proc/net/dev": net_dev(lo=(9, 9), eth0=(1000, 100), docker0=(70, 7), veth1=(70, 7)),
    "sys/class/net/docker0/bridge/": "",
    "sys/class/net/veth1/master": "-> ../docker0",
}

# Two NVMe disks; a mirror over partitions of both, a volume on the mirror, an image mounted from a file.
NVME: Tree = without(BARE_VM, ["sys/block/vda/stat", "sys/block/vda/device/"]) | {
    "sys/block/nvme0n1/stat": block_stat(2048, 4096, 100),
    "sys/block/nvme0n1/device/": "",
    "sys/block/nvme0n1/nvme0n1p1/stat": block_stat(2048, 4096, 100),
    "sys/block/nvme1n1/stat": block_stat(6144, 8192, 300),
    "sys/block/nvme1n1/device/": "",
    "sys/block/md0/stat": block_stat(8192, 8192, 0),
    "sys/block/md0/slaves/nvme0n1p1/": "",
    "sys/block/dm-0/stat": block_stat(8192, 8192, 0),
    "sys/block/dm-0/slaves/md0/": "",
    "sys/block/loop0/stat": block_stat(100, 0, 0),
    "sys/block/zram0/stat": block_stat(100, 100, 0),
}

# Two packages with their parts, the whole platform, and the first package once more through memory-mapped
# registers.
RAPL: Tree = BARE_VM | {
    "sys/class/powercap/intel-rapl/enabled": "1\n",
    **{
        f"sys/class/powercap/{zone}/{file}": f"{text}\n"
        for zone, name, energy_uj in (
            ("intel-rapl:0", "package-0", 5_000_000),
            ("intel-rapl:0:0", "core", 3_000_000),
            ("intel-rapl:0:1", "dram", 1_000_000),
            ("intel-rapl:1", "package-1", 7_000_000),
            ("intel-rapl:1:0", "dram", 2_000_000),
            ("intel-rapl:2", "psys", 90_000_000),
            ("intel-rapl-mmio:0", "package-0", 5_000_123),
        )
        for file, text in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", 262_143_328_850))
    },
}


def ports(device: str, port: int, **folders: dict[str, str]) -> Tree:
    """The counter folders of an InfiniBand device's port."""
    return {
        f"sys/class/infiniband/{device}/ports/{port}/{folder}/{name}": text + "\n"
        for folder, files in folders.items()
        for name, text in files.items()
    }


_NO_ERRORS = dict.fromkeys(
    ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors", "port_xmit_discards"), "0"
)
_NO_PMA = {"port_xmit_data": "N/A (no PMA)", "port_rcv_data": "N/A (no PMA)", "symbol_error": "N/A (no PMA)"}
INFINIBAND: Tree = (
    BARE_VM
    | ports(
        "mlx5_0",
        1,
        counters={
            "port_xmit_data": "2880761508848",
            "port_rcv_data": "18126345378",
            "port_xmit_wait": "4846",
            **_NO_ERRORS,
            "symbol_error": "3",
            "link_downed": "2",
        },
    )
    # An old adapter: saturated 32-bit counters, besides 64-bit ones.
    | ports(
        "mlx4_0",
        1,
        counters={"port_xmit_data": "4294967295", "port_rcv_data": "4631917", "port_xmit_wait": "4294967295"},
        counters_ext={"port_xmit_data_64": "5000000000", "port_rcv_data_64": "4631917"},
    )
    # An even older one, with 32-bit counters only.
    | ports("mthca0", 1, counters={"port_xmit_data": "4294967295", "port_rcv_data": "1000"})
    | ports("i40iw0", 1, counters=_NO_PMA)
    | ports(
        "rdmap16s27",
        1,
        hw_counters={
            "tx_bytes": "1000",
            "rx_bytes": "2000",
            "rdma_read_bytes": "3000",
            "rdma_write_bytes": "4000",
            "retrans_bytes": "50",
            "rx_drops": "6",
        },
    )
)

# An Intel server's sensors and clocks.
SENSORS: Tree = BARE_VM | {
    "sys/class/hwmon/hwmon0/name": "acpitz\n",
    "sys/class/hwmon/hwmon0/temp1_input": "27800\n",
    "sys/class/hwmon/hwmon1/name": "coretemp\n",
    "sys/class/hwmon/hwmon1/temp1_label": "Package id 0\n",
    "sys/class/hwmon/hwmon1/temp1_input": "55000\n",
    "sys/class/hwmon/hwmon1/temp2_label": "Core 0\n",
    "sys/class/hwmon/hwmon1/temp2_input": "71000\n",
    "sys/class/hwmon/hwmon2/name": "coretemp\n",
    "sys/class/hwmon/hwmon2/temp1_label": "Package id 1\n",
    "sys/class/hwmon/hwmon2/temp1_input": "65000\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "1200000\n",
    "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3000000\n",
}


def process(
    pid: int,
    ppid: int,
    *,
    name: str = "python",
    state: str = "S",
    utime: int = 0,
    cutime: int = 0,
    threads: int = 1,
    start: int = 100,
    pages: int = 256,
    read: int = 0,
    written: int = 0,
    group: int | None = None,
) -> Tree:
    """The files of one process; times in ticks, memory in pages, traffic in bytes. ``group``: it is a thread
    of that one.
    """
    up_to_utime = f"{state} {ppid} {pid} {pid} 0 -1 0 0 0 0 0 {utime} 0"
    after_utime = f"{cutime} 0 20 0 {threads} 0 {start} 9999 {pages} 18446744073709551615 0 0"
    return {
        f"proc/{pid}/stat": f"{pid} ({name}) {up_to_utime} {after_utime}\n",
        f"proc/{pid}/statm": f"9999 {pages} 50 1 0 100 0\n",
        f"proc/{pid}/status": f"Name:\t{name}\nTgid:\t{group or pid}\nPid:\t{pid}\nPPid:\t{ppid}\n",
        f"proc/{pid}/io": "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\n"
        f"read_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: 0\n",
    }


def last_pid(pid: int) -> Tree:
    """/proc/loadavg of a host whose newest process (or thread) has this PID."""
    return {"proc/loadavg": f"0.52 0.25 0.10 2/88 {pid}\n"}
