"""Traffic and TCP retransmissions in our network namespace.

From /proc/net/dev and /proc/net/snmp.

The same byte may appear on several interfaces: on a bond and its members; on a container's veth, its bridge
and the card. The sums count it once: that of the cards, or of the bonds that combine them; in a container
with only a veth, that of the veth.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent, Every, PseudoFile, open_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from runvitals.monitoring.collectors.base import Scope, Tick

# /proc/net/snmp adds up every counter of IP, ICMP, TCP and UDP over all CPUs: 15 µs for 2 CPUs, ten times
# that for 200.
SNMP_EVERY_S = 5.0
# A new interface is noticed immediately, as a new line. One that replaces another is noticed at the next
# check.
RECHECK_EVERY_S = 60.0
# Names of interfaces that are left out of the sums without better information: no sysfs, or no card at all.
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
    """Make the collector; raise Absent if the machine lacks the source."""
    try:
        return Network(scope)
    except OSError as error:
        raise Absent(f"{error.filename} cannot be read: {error.strerror}") from error


class Network:
    """The traffic of the network interfaces.

    `network.sent`, `network.recv` (bytes), of each interface `.sent`, `.recv`, `.errors`, `.drops`, and
    `network.tcpRetransmits`.
    """

    name = "network"

    def __init__(self, scope: Scope) -> None:
        self._sysfs = scope.path("/sys/class/net")
        net = net_folder(scope)
        self._file = PseudoFile(net + "/dev")
        self._snmp = open_if_there(net + "/snmp")
        self._snmp_every = Every(SNMP_EVERY_S)
        self._has_retransmits = (
            self._snmp is not None and retransmitted_segments(self._snmp.read()) is not None
        )
        self._net = net
        self.absent: dict[str, str] = {}
        self._gone: Set[str] = frozenset()
        self._nics: list[NetworkInterface] = []  # reported, each with its line in the file
        self._counted: list[NetworkInterface] = []  # and summed
        self._lines = 0
        self._recheck = Every(RECHECK_EVERY_S)
        # Corrections that keep the sums steady when interfaces with earlier traffic are added or removed.
        self._sent_shift = self._recv_shift = 0
        self._select_interfaces(self._file.read().split(b"\n"), first=True)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        counters = tick.counters
        lines = self._file.read().split(b"\n")
        if len(lines) != self._lines or self._recheck.due(tick.mono_s) or not self._read(counters, lines):
            self._select_interfaces(lines)
            self._read(counters, lines)
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

    def _read(self, counters: dict[str, float], lines: list[bytes]) -> bool:
        """Read the reported interfaces; False if a line has moved."""
        for nic in self._nics:
            line = lines[nic.line]
            if not line.startswith(nic.label):
                return False
            nic.sample(counters, line)
        return True

    def _select_interfaces(self, lines: list[bytes], first: bool = False) -> None:
        """Select the interfaces to report and to sum up."""
        # A name may contain colons: "eth0:1", an alias.
        labels = [line[: line.rfind(b":") + 1] for line in lines]
        names = [label[:-1].strip().decode("utf-8", "replace") for label in labels]
        counted, listed = choose_interfaces(self._sysfs, [name for name in names if name])
        nics_by_name = {nic.name: nic for nic in self._nics}
        before = {nic.name: nic for nic in self._counted}
        self._lines = len(lines)
        self._nics = []
        self._counted = []
        for position, name in enumerate(names):
            if name not in listed:
                continue
            nic = nics_by_name.get(name) or NetworkInterface(name)
            nic.line, nic.label = position, labels[position]
            self._nics.append(nic)
            if name not in counted:
                continue
            self._counted.append(nic)
            if not first and before.pop(name, None) is None:
                nic.sample({}, lines[position])
                self._recv_shift -= nic.recv
                self._sent_shift -= nic.sent
        for nic in before.values():
            self._sent_shift += nic.sent
            self._recv_shift += nic.recv
        self._explain(nics_by_name.keys() | self._gone)

    def _explain(self, names: Set[str]) -> None:
        """Update `absent`: interfaces that are gone, and what the kernel does not count."""
        self._gone = names - {nic.name for nic in self._nics}
        absent = {f"network.{name}": "the interface is gone" for name in sorted(self._gone)}
        if not self._nics and not self._gone:
            absent["network"] = f"{self._file.path} lists no interface"
        if not self._has_retransmits:
            absent["network.tcpRetransmits"] = f"{self._net}/snmp cannot be read, or has no TCP segments"
        if absent != self.absent:
            self.absent = absent


class NetworkInterface:
    """One interface: keys, its line in the file, latest totals in bytes."""

    __slots__ = ("_keys", "label", "line", "name", "recv", "sent")

    def __init__(self, name: str) -> None:
        self.name = name
        self._keys = tuple(f"network.{name}.{counter}" for counter in ("sent", "recv", "errors", "drops"))
        self.label = b""
        self.line = 0
        self.sent = self.recv = 0

    def sample(self, counters: dict[str, float], line: bytes) -> None:
        """Write the current values into the tick."""
        # bytes packets errs drop fifo frame compressed multicast, first received, then sent
        fields = line[len(self.label) :].split(None, 12)
        self.recv, self.sent = int(fields[0]), int(fields[8])
        sent, recv, errors, drops = self._keys
        counters[sent] = float(self.sent)
        counters[recv] = float(self.recv)
        counters[errors] = float(int(fields[2]) + int(fields[10]))
        counters[drops] = float(int(fields[3]) + int(fields[11]))


def net_folder(scope: Scope) -> str:
    """Find the folder with the network files.

    /proc/net is always that of the reader's namespace; for another root it is that of its first process.
    """
    first = scope.path("/proc/1/net")
    return first if scope.host_root and os.path.exists(first + "/dev") else scope.path("/proc/net")


def choose_interfaces(sysfs: str, names: Iterable[str]) -> tuple[set[str], set[str]]:
    """(interfaces whose sum is this machine's traffic, interfaces to report).

    A card in a bond, team or bridge is reported, but left out of the sum, which includes the bond instead.
    """
    outward = [name for name in names if name != "lo" and not name.startswith("lo:")]
    cards = [name for name in outward if os.path.exists(f"{sysfs}/{name}/device")]
    if cards:
        counted = {_uppermost(sysfs, name) for name in cards}.intersection(outward)
        return counted, counted.union(cards)
    free = {name for name in outward if not os.path.exists(f"{sysfs}/{name}/master")}
    ways_out = {
        name
        for name in free
        if not name.startswith(_INWARD)
        and not os.path.isdir(f"{sysfs}/{name}/bridge")
        and name.partition(":")[0] not in free - {name}  # an alias of an interface that is counted
    }
    counted = ways_out or free
    return counted, counted


def _uppermost(sysfs: str, name: str) -> str:
    for _ in range(8):  # bonds in bridges nest two deep; limited in case of a cycle
        try:
            name = os.path.basename(os.readlink(f"{sysfs}/{name}/master"))
        except OSError:
            return name
    return name


def retransmitted_segments(snmp: bytes) -> int | None:
    """RetransSegs in /proc/net/snmp, which has a line "Tcp:" with names and one with numbers."""
    start = snmp.find(b"\nTcp: ")
    lines = snmp[start + 1 :].split(b"\n", 2)
    if start < 0 or len(lines) < 2:
        return None
    names, numbers = lines[0].split(), lines[1].split()
    if b"RetransSegs" not in names or len(numbers) != len(names):
        return None
    return int(numbers[names.index(b"RetransSegs")])
