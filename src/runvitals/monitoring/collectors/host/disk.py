"""Traffic of the disks, from /sys/block/{dev}/stat, or without /sys/block from /proc/diskstats.

Only whole disks are counted: traffic of a partition, a device-mapper or md volume, or a loop device also
appears on the disk below it. In a container these are the host's disks; `proc.io.*` is the traffic of the
run.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import MIB, Absent, Every, PseudoFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from runvitals.monitoring.collectors.base import Scope, Tick

SECTOR = 512  # the kernel's unit in these files, not the disk's own sector size
STACKED = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "drbd", "bcache")
# Disks are added and removed (such as cloud volumes). Listing /sys/block takes 10 µs.
LOOK_EVERY_S = 30.0


def probe(scope: Scope) -> DiskTraffic | Diskstats:
    """Make the collector; raise Absent if the machine lacks the source."""
    folder = scope.path("/sys/block")
    try:
        names = os.listdir(folder)
    except OSError as error:
        try:
            return Diskstats(scope)
        except OSError:
            raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
    disk = DiskTraffic(scope)
    if not disk.devices:
        raise Absent(f"none of the devices in {folder} is a disk" if names else f"{folder} lists no device")
    return disk


class DiskTraffic:
    """The traffic of the disks.

    `disk.in`, `disk.out` (MiB, all disks) and of each disk `.in`, `.out`, `.readOps`, `.writeOps`,
    `.utilization`.
    """

    name = "disk"

    def __init__(self, scope: Scope) -> None:
        self._folder = scope.path("/sys/block")
        self.absent: dict[str, str] = {}
        self.devices: dict[str, DiskStatFile] = {}
        self._look = Every(LOOK_EVERY_S)
        self._find_devices()
        self._sum = DiskSum(self.devices)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._look.due(tick.mono_s):
            self._find_devices()
            self._sum.change(self.devices)
        absent: dict[str, str] = {}
        for name, device in self.devices.items():
            try:
                device.write(tick, device.read())
            except OSError as error:  # ENODEV: it was removed
                absent[f"disk.{name}"] = f"{self._folder}/{name}/stat: {error.strerror}"
        if absent != self.absent:
            self.absent = absent
        tick.counters["disk.in"], tick.counters["disk.out"] = self._sum.mib()

    def _find_devices(self) -> None:
        names = set(os.listdir(self._folder))
        for name in sorted(names - self.devices.keys()):
            if not _is_disk(self._folder, name):
                continue
            try:
                device = DiskStatFile(self._folder, name)
            except OSError:  # removed since the listing
                continue
            self.devices[name] = device
        for name in self.devices.keys() - names:
            self.devices.pop(name).close()


class Diskstats:
    """The same from /proc/diskstats, for a root with /proc but without /sys.

    Disks are recognized by their names.
    """

    name = "disk"

    def __init__(self, scope: Scope) -> None:
        self._file = PseudoFile(scope.path("/proc/diskstats"))
        self._totals: dict[str, DiskTotals] = {}
        for name, fields in self._read():
            self._add(name, fields)
        if not self._totals:
            raise Absent(f"{self._file.path} lists no disk")
        self._sum = DiskSum(self._totals)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        rows = self._read()
        added = [(name, fields) for name, fields in rows if name not in self._totals]
        for name, fields in added:
            self._add(name, fields)
        if added:
            self._sum.change(self._totals)
        for name, fields in rows:
            self._totals[name].write(tick, fields)
        tick.counters["disk.in"], tick.counters["disk.out"] = self._sum.mib()

    def _add(self, name: str, fields: list[bytes]) -> None:
        totals = self._totals[name] = DiskTotals(name)
        totals.add_up(fields)

    def _read(self) -> list[tuple[str, list[bytes]]]:
        rows = [line.split(None, 13) for line in self._file.read().split(b"\n")]
        disks = {row[2].decode(): row[3:] for row in rows if len(row) == 14}
        return [(name, fields) for name, fields in disks.items() if _is_whole(name, disks)]


class DiskTotals:
    """One disk's traffic since it was added, and its utilization between two readings."""

    __slots__ = ("_busy_ms", "_keys", "_mono_s", "_utilization", "read_mib", "written_mib")

    def __init__(self, name: str) -> None:
        self._keys = tuple(f"disk.{name}.{counter}" for counter in ("in", "out", "readOps", "writeOps"))
        self._utilization = f"disk.{name}.utilization"
        self._busy_ms = 0
        self._mono_s: float | None = None
        self.read_mib = self.written_mib = 0.0

    def add_up(self, fields: list[bytes]) -> None:
        """Take the traffic from the fields of a line.

        They are: reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, ms busy, ms weighted …
        """
        self.read_mib = int(fields[2]) * SECTOR / MIB
        self.written_mib = int(fields[6]) * SECTOR / MIB

    def write(self, tick: Tick, fields: list[bytes]) -> None:
        """Add the traffic up and write it into the tick."""
        self.add_up(fields)
        counters = tick.counters
        key_in, key_out, key_reads, key_writes = self._keys
        counters[key_in] = self.read_mib
        counters[key_out] = self.written_mib
        counters[key_reads] = float(int(fields[0]))
        counters[key_writes] = float(int(fields[4]))
        busy_ms, before = int(fields[9]), self._mono_s
        if before is not None and tick.mono_s > before and busy_ms >= self._busy_ms:
            share = (busy_ms - self._busy_ms) / (10.0 * (tick.mono_s - before))
            tick.gauges[self._utilization] = min(100.0, share)
        self._busy_ms = busy_ms
        self._mono_s = tick.mono_s


class DiskStatFile(DiskTotals):
    """One disk's `stat` file. A read takes 3 µs."""

    __slots__ = ("_file",)

    def __init__(self, folder: str, name: str) -> None:
        super().__init__(name)
        self._file = PseudoFile(f"{folder}/{name}/stat")
        self.add_up(self.read())

    def read(self) -> list[bytes]:
        """Return the numbers of the file."""
        return os.pread(self._file.fd, 4096, 0).split(None, 10)

    def close(self) -> None:
        """Release what is open."""
        self._file.close()


class DiskSum:
    """MiB read and written by all disks.

    Disks with earlier traffic that are added or removed do not change it.

    A disk with several paths (`nvme0n1`) passes its traffic to them (`nvme0c0n1`, `nvme0c1n1`). Older kernels
    count it only at the paths, newer ones at the disk as well: the larger number counts.
    """

    __slots__ = ("_alone", "_shift_in", "_shift_out", "_with_paths")

    def __init__(self, disks: Mapping[str, DiskTotals]) -> None:
        self._shift_in = self._shift_out = 0.0
        self._group(disks)

    def change(self, disks: Mapping[str, DiskTotals]) -> None:
        """Sum up these disks from now on."""
        before_in, before_out = self.mib()
        self._group(disks)
        after_in, after_out = self.mib()
        self._shift_in += before_in - after_in
        self._shift_out += before_out - after_out

    def mib(self) -> tuple[float, float]:
        """MiB read and written."""
        read, written = self._shift_in, self._shift_out
        for disk in self._alone:
            read += disk.read_mib
            written += disk.written_mib
        for disk, paths in self._with_paths:
            read += max(disk.read_mib, sum(path.read_mib for path in paths))
            written += max(disk.written_mib, sum(path.written_mib for path in paths))
        return read, written

    def _group(self, disks: Mapping[str, DiskTotals]) -> None:
        paths: dict[str, list[DiskTotals]] = {name: [] for name in disks if _disk_of_path(name) not in disks}
        for name, disk in disks.items():
            if name not in paths:
                paths[_disk_of_path(name)].append(disk)
        self._alone = [disks[name] for name, disk_paths in paths.items() if not disk_paths]
        self._with_paths = [(disks[name], disk_paths) for name, disk_paths in paths.items() if disk_paths]


def _disk_of_path(name: str) -> str:
    """Return the disk to which a path of NVMe multipathing leads; "" for other names.

    >>> _disk_of_path("nvme3c1n2"), _disk_of_path("nvme3n2")
    ('nvme3n2', '')
    """
    controller, _, namespace = name.rpartition("n")
    subsystem, path, number = controller.rpartition("c")
    is_path = path and number.isdigit() and namespace.isdigit() and subsystem.startswith("nvme")
    return f"{subsystem}n{namespace}" if is_path else ""


def _is_whole(name: str, names: Container[str]) -> bool:
    """Return whether a name in /proc/diskstats is a whole disk, not a part of another one there.

    >>> [name for name in ("sda", "sda1", "nvme0n1", "nvme0n1p2") if _is_whole(name, {"sda", "nvme0n1"})]
    ['sda', 'nvme0n1']
    """
    disk = name.rstrip("0123456789")
    return not (
        name.startswith(STACKED) or (disk != name and (disk in names or disk.removesuffix("p") in names))
    )


def _is_disk(folder: str, name: str) -> bool:
    # A volume made of others lists them under `slaves`; a disk has hardware, or a hypervisor's driver, under
    # `device`.
    if name.startswith(STACKED):
        return False
    return os.path.exists(f"{folder}/{name}/device")
