"""Traffic of the disks: /sys/block/{dev}/stat.

Only whole disks count: what goes through a partition, a device-mapper or md volume or a loop device reaches
the disk below it, and would count twice. In a container these are the host's disks; `proc.io.*` tells what
the run itself moved.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import MIB, Absent, Every, PseudoFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope, Tick

SECTOR = 512  # the kernel's unit in these files, whatever the disk's own sector size
STACKED = ("loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "drbd", "bcache")
# Disks come and go (a cloud volume is attached): one listing of /sys/block, 10 µs.
LOOK_EVERY_S = 30.0


def probe(scope: Scope) -> Disk:
    folder = scope.path("/sys/block")
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
    disk = Disk(scope)
    if not disk.devices:
        raise Absent(f"none of the devices in {folder} is a disk" if names else f"{folder} lists no device")
    return disk


class Disk:
    """`disk.in`, `disk.out` (MiB, all disks) and of each disk `.in`, `.out`, `.readOps`, `.writeOps`,
    `.utilization`.
    """

    name = "disk"

    def __init__(self, scope: Scope) -> None:
        self._folder = scope.path("/sys/block")
        self.devices: dict[str, Device] = {}
        # Corrections that keep the sums steady when disks come (with a past) and go (with theirs).
        self._shift_in = self._shift_out = 0.0
        self._look = Every(LOOK_EVERY_S)
        self._find_devices()

    def sample(self, tick: Tick) -> None:
        if self._look.due(tick.mono_s):
            self._find_devices(later=True)
        total_in, total_out = self._shift_in, self._shift_out
        for device in self.devices.values():
            try:
                device.sample(tick)
            except OSError:  # ENODEV: it was taken out, and the next listing will lack it
                pass
            total_in += device.read_mib
            total_out += device.written_mib
        tick.counters["disk.in"] = total_in
        tick.counters["disk.out"] = total_out

    def _find_devices(self, later: bool = False) -> None:
        names = set(os.listdir(self._folder))
        for name in sorted(names - self.devices.keys()):
            if not _is_disk(self._folder, name):
                continue
            try:
                device = Device(self._folder, name)
            except OSError:  # taken out between the listing and the opening
                continue
            self.devices[name] = device
            if later:
                self._shift_in -= device.read_mib
                self._shift_out -= device.written_mib
        for name in self.devices.keys() - names:
            device = self.devices.pop(name)
            device.close()
            self._shift_in += device.read_mib
            self._shift_out += device.written_mib


class Device:
    """One disk's `stat` file: 3 µs a read."""

    __slots__ = ("_busy_ms", "_file", "_keys", "_mono_s", "_utilization", "read_mib", "written_mib")

    def __init__(self, folder: str, name: str) -> None:
        self._file = PseudoFile(f"{folder}/{name}/stat")
        self._keys = tuple(f"disk.{name}.{what}" for what in ("in", "out", "readOps", "writeOps"))
        self._utilization = f"disk.{name}.utilization"
        self._busy_ms = 0
        self._mono_s: float | None = None
        self.read_mib = self.written_mib = 0.0
        self._read()

    def sample(self, tick: Tick) -> None:
        fields = self._read()
        counters = tick.counters
        key_in, key_out, key_reads, key_writes = self._keys
        counters[key_in] = self.read_mib
        counters[key_out] = self.written_mib
        counters[key_reads] = float(fields[0])
        counters[key_writes] = float(fields[4])
        busy_ms, before = int(fields[9]), self._mono_s
        if before is not None and tick.mono_s > before and busy_ms >= self._busy_ms:
            share = (busy_ms - self._busy_ms) / (10.0 * (tick.mono_s - before))
            tick.gauges[self._utilization] = min(100.0, share)
        self._busy_ms = busy_ms
        self._mono_s = tick.mono_s

    def close(self) -> None:
        self._file.close()

    def _read(self) -> list[bytes]:
        # reads, merged, sectors, ms; writes, merged, sectors, ms; in flight, ms busy, ms weighted …
        fields = self._file.read().split(None, 10)
        self.read_mib = int(fields[2]) * SECTOR / MIB
        self.written_mib = int(fields[6]) * SECTOR / MIB
        return fields


def _is_disk(folder: str, name: str) -> bool:
    # A volume made of others lists them under `slaves`; a disk has hardware, or a driver of the hypervisor,
    # behind `device`.
    if name.startswith(STACKED):
        return False
    return os.path.exists(f"{folder}/{name}/device")
