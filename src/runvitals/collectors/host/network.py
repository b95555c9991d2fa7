"""Traffic of the network interfaces (/proc/net/dev) and TCP's retransmissions (/proc/net/snmp), of the
network namespace we are in.

The same byte shows up on several interfaces: on a bond and its members, on a container's veth, its bridge and
the card below. The sums count it once: the cards, or what binds them together; in a container that has only a
veth, that one.
"""

from __future__ import annotations

import os

from runvitals.collectors.base import Absent, Every, PseudoFile, open_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runvitals.collectors.base import Scope, Tick

# /proc/net/snmp adds up every counter of IP, ICMP, TCP and UDP over all CPUs: 15 µs on 2 of them, ten times
# that on 200.
SNMP_EVERY_S = 5.0
# What is no way out of this machine where nothing better is known: no sysfs, or no card behind any interface.
_INWARD = (
    "docker",
    "br-",
    "veth",
    "virbr",
    "ifb",
    "dummy",
    "tunl",
    "sit",
    "cni",
    "flannel",
    "cali",
    "cilium",
    "lxc",
)


def probe(scope: Scope) -> Network:
    try:
        return Network(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Network:
    """`network.sent`, `network.recv` (bytes), of each interface `.sent`, `.recv`, `.errors`, `.drops`, and
    `network.tcpRetransmits`.
    """

    name = "network"

    def __init__(self, scope: Scope) -> None:
        self._sysfs = scope.path("/sys/class/net")
        net = net_folder(scope)
        self._file = PseudoFile(net + "/dev")
        self._snmp = open_if_there(net + "/snmp")
        self._snmp_every = Every(SNMP_EVERY_S)
        self._nics: dict[bytes, Nic | None] = {}  # None: an interface that is not reported
        self._counted: list[Nic] = []
        # Corrections that keep the sums steady when interfaces come (with a past) and go (with theirs).
        self._sent_shift = self._recv_shift = 0
        self._choose(self._read(), first=True)

    def sample(self, tick: Tick) -> None:
        rows = self._read()
        if len(rows) != len(self._nics) or any(name not in self._nics for name, _ in rows):
            self._choose(rows)
        counters = tick.counters
        nics = self._nics
        for name, row in rows:
            nic = nics[name]
            if nic is not None:
                nic.sample(counters, row)
        sent, recv = self._sent_shift, self._recv_shift
        for nic in self._counted:
            sent += nic.sent
            recv += nic.recv
        counters["network.sent"] = float(sent)
        counters["network.recv"] = float(recv)
        if self._snmp is not None and self._snmp_every.due(tick.mono_s):
            retransmits = retransmitted_segments(self._snmp.read())
            if retransmits is not None:
                counters["network.tcpRetransmits"] = float(retransmits)

    def _read(self) -> list[tuple[bytes, bytes]]:
        """(name, rest of the line) of each interface."""
        rows = []
        for line in self._file.read().split(b"\n")[2:]:
            name, colon, rest = line.partition(b":")
            if colon:
                rows.append((name.strip(), rest))
        return rows

    def _choose(self, rows: list[tuple[bytes, bytes]], first: bool = False) -> None:
        """Decide anew which interfaces are reported and which are summed, because one has come or gone."""
        before = {nic.name: nic for nic in self._counted}
        known = {nic.name: nic for nic in self._nics.values() if nic is not None}
        counted, shown = choose_interfaces(self._sysfs, [name.decode() for name, _ in rows])
        self._nics = {}
        self._counted = []
        for raw, row in rows:
            name = raw.decode()
            nic = (known.get(name) or Nic(name)) if name in shown else None
            self._nics[raw] = nic
            if nic is None or name not in counted:
                continue
            self._counted.append(nic)
            if not first and before.pop(name, None) is None:
                fields = row.split(None, 9)
                self._recv_shift -= int(fields[0])
                self._sent_shift -= int(fields[8])
        for nic in before.values():
            self._sent_shift += nic.sent
            self._recv_shift += nic.recv


class Nic:
    """One interface's keys and its latest totals in bytes."""

    __slots__ = ("_keys", "name", "recv", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self._keys = tuple(f"network.{name}.{what}" for what in ("sent", "recv", "errors", "drops"))
        self.sent = self.recv = 0

    def sample(self, counters: dict[str, float], row: bytes) -> None:
        # bytes packets errs drop fifo frame compressed multicast, received and then sent
        fields = row.split(None, 12)
        self.recv, self.sent = int(fields[0]), int(fields[8])
        sent, recv, errors, drops = self._keys
        counters[sent] = float(self.sent)
        counters[recv] = float(self.recv)
        counters[errors] = float(int(fields[2]) + int(fields[10]))
        counters[drops] = float(int(fields[3]) + int(fields[11]))


def net_folder(scope: Scope) -> str:
    """Where the network files lie. /proc/net is always the reader's own namespace; another root's is that of
    its first process.
    """
    first = scope.path("/proc/1/net")
    return first if scope.host_root and os.path.exists(first + "/dev") else scope.path("/proc/net")


def choose_interfaces(sysfs: str, names: Iterable[str]) -> tuple[set[str], set[str]]:
    """(interfaces whose sum is this machine's traffic, interfaces worth reporting by themselves).

    A card that is part of a bond, team or bridge is left out of the sum and what it is part of counts
    instead; it is still reported.
    """
    outward = [name for name in names if name != "lo"]
    cards = [name for name in outward if os.path.exists(f"{sysfs}/{name}/device")]
    if cards:
        counted = {_uppermost(sysfs, name) for name in cards}.intersection(outward)
        return counted, counted.union(cards)
    free = {name for name in outward if not os.path.exists(f"{sysfs}/{name}/master")}
    ways_out = {
        name for name in free if not name.startswith(_INWARD) and not os.path.isdir(f"{sysfs}/{name}/bridge")
    }
    counted = ways_out or free
    return counted, counted


def _uppermost(sysfs: str, name: str) -> str:
    for _ in range(8):  # bonds in bridges nest two deep; a ring cannot be, but must not hang us either
        try:
            name = os.path.basename(os.readlink(f"{sysfs}/{name}/master"))
        except OSError:
            return name
    return name


def retransmitted_segments(snmp: bytes) -> int | None:
    """RetransSegs of /proc/net/snmp: a line "Tcp:" of names, then one of numbers."""
    start = snmp.find(b"\nTcp: ")
    lines = snmp[start + 1 :].split(b"\n", 2)
    if start < 0 or len(lines) < 2:
        return None
    names, numbers = lines[0].split(), lines[1].split()
    if b"RetransSegs" not in names or len(numbers) != len(names):
        return None
    return int(numbers[names.index(b"RetransSegs")])
