"""Network limits of a cloud machine.

How often AWS's ENA cards queued or dropped packets above the instance's allowance.

These counters have no file. They are read with the ioctl behind `ethtool -S`, which needs no privilege.
"""

from __future__ import annotations

import _socket
import errno
import os
from struct import Struct, pack

from runvitals.monitoring.collectors.base import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from runvitals.monitoring.collectors.base import Scope, Tick

    # (fd, request, struct ifreq): the driver fills the buffer that the request points to
    Ioctl = Callable[[int, int, bytes], object]

SIOCETHTOOL = 0x8946
ETHTOOL_GDRVINFO = 0x03
ETHTOOL_GSTRINGS = 0x1B
ETHTOOL_GSTATS = 0x1D
ETH_SS_STATS = 1
NAME_SIZE = 32
# struct ethtool_drvinfo: cmd, driver, version, firmware, bus, option ROM, 12 reserved bytes, then five
# counts.
DRVINFO = Struct("=I32s32s32s32s32s12s5I")
KEYS = {
    "bw_in_allowance_exceeded": "bwInExceeded",
    "bw_out_allowance_exceeded": "bwOutExceeded",
    "pps_allowance_exceeded": "ppsExceeded",
    "conntrack_allowance_exceeded": "conntrackExceeded",
    "linklocal_allowance_exceeded": "linklocalExceeded",
}


def probe(scope: Scope) -> Ena:
    """Make the collector; raise Absent if the machine lacks the source."""
    folder = scope.path("/sys/class/net")
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
    nics = [name for name in names if _driver(f"{folder}/{name}") == "ena"]
    if not nics:
        raise Absent("no network interface uses the driver ena")
    return Ena(nics)


class Ena:
    """`network.ena.{nic}.bwInExceeded` etc.: packets since the driver was loaded (counters), read every 10 s.

    Args:
        ioctl: used instead of fcntl.ioctl; tests pass a fake card.
    """

    name = "ena"
    every_s = 10.0  # the driver has to query the card, which is slow

    def __init__(self, nics: list[str], ioctl: Ioctl | None = None) -> None:
        if ioctl is None:
            import fcntl

            ioctl = fcntl.ioctl
        self._socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM).detach()
        self.absent: dict[str, str] = {}
        self.nics: list[EnaStatistics] = []
        for nic in nics:
            try:
                statistics = EnaStatistics(nic, self._socket, ioctl)
            except OSError as error:
                self.absent[f"network.ena.{nic}"] = (
                    f"the driver's statistics could not be read: {error.strerror}"
                )
                continue
            if statistics.keys:
                self.nics.append(statistics)
            else:
                self.absent[f"network.ena.{nic}"] = (
                    "the driver is too old to count packets above the allowance"
                )

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        for nic in self.nics:
            try:
                values = nic.read()
            except OSError as error:
                if error.errno != errno.ENODEV:
                    raise
                continue  # the card was detached; it may come back
            for key, index in nic.keys:
                tick.counters[key] = float(values[index])


class EnaStatistics:
    """The statistics of one interface: names, which are read once, and values."""

    __slots__ = ("_buffer", "_count", "_fd", "_ioctl", "_nic", "keys")

    def __init__(self, nic: str, fd: int, ioctl: Ioctl) -> None:
        self._nic = nic
        self._fd = fd
        self._ioctl = ioctl
        info = self._call(pack("=I", ETHTOOL_GDRVINFO).ljust(DRVINFO.size, b"\0"))
        self._count = DRVINFO.unpack(info)[8]
        names = self._call(
            pack("=III", ETHTOOL_GSTRINGS, ETH_SS_STATS, self._count) + bytes(NAME_SIZE * self._count)
        )
        self.keys = [
            (f"network.ena.{nic}.{KEYS[name]}", index)
            for index, name in enumerate(_strings(names[12:]))
            if name in KEYS
        ]

    def read(self) -> tuple[int, ...]:
        """Return all statistics in the driver's order."""
        request = pack("=II", ETHTOOL_GSTATS, self._count) + bytes(8 * self._count)
        return Struct(f"={self._count}Q").unpack(self._call(request)[8:])

    def _call(self, request: bytes) -> bytes:
        """Pass the driver a buffer that begins with a request. Returns the buffer as filled by the driver.

        struct ifreq is a name of 16 bytes and a pointer, padded to 40 bytes.
        """
        # Imported only if there is such a card: `array` loads abstract base classes, which take 400 kB.
        from array import array

        buffer = array("B", request)
        address, _ = buffer.buffer_info()
        self._ioctl(self._fd, SIOCETHTOOL, pack("16sP16x", self._nic.encode(), address))
        return buffer.tobytes()


def _strings(names: bytes) -> list[str]:
    count = len(names) // NAME_SIZE
    rows = [names[NAME_SIZE * i : NAME_SIZE * (i + 1)] for i in range(count)]
    return [row.partition(b"\0")[0].decode("ascii", "replace") for row in rows]


def _driver(interface: str) -> str:
    try:
        return os.path.basename(os.readlink(f"{interface}/device/driver"))
    except OSError:  # a virtual interface
        return ""
