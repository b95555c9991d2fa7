"""Traffic of InfiniBand, RoCE and AWS EFA devices, from /sys/class/infiniband.

It is not included in /proc/net/dev.

Reading one counter queries the device's firmware, which takes 10 to 100 µs. So traffic is read at most once a
second, and errors every 10 s.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent, Every, PseudoFile, open_if_there, read_text
from runvitals.monitoring.collectors.plumbing import sysfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick

TRAFFIC_EVERY_S = 1.0
ERRORS_EVERY_S = 10.0
# Data counters are in units of 4 bytes on every device.
WORD = 4
# Old adapters have 32-bit counters that stop at their maximum.
SATURATED = 0xFFFF_FFFF
ERRORS = ("symbol_error", "link_downed", "link_error_recovery", "port_rcv_errors", "port_xmit_discards")
EFA_BYTES = {
    "sent": "tx_bytes",
    "recv": "rx_bytes",
    "rdmaRead": "rdma_read_bytes",
    "rdmaWrite": "rdma_write_bytes",
    "retransBytes": "retrans_bytes",
}


def probe(scope: Scope) -> Infiniband:
    """Make the collector; raise Absent if the machine lacks the source."""
    infiniband = Infiniband(scope)
    if not infiniband.ports:
        why = "; ".join(f"{device}: {reason}" for device, reason in infiniband.absent.items())
        raise Absent(why or f"{scope.path('/sys/class/infiniband')} lists no device")
    return infiniband


class Infiniband:
    """The traffic and errors of InfiniBand and EFA ports.

    `network.ib.{dev}.{port}.xmitBytes`, `.recvBytes`, `.xmitWait`, `.errors`; `network.efa.{dev}.{port}.sent`
    … (counters).
    """

    name = "infiniband"

    def __init__(self, scope: Scope) -> None:
        self.absent: dict[str, str] = {}
        self.ports: list[InfinibandPort] = []
        folder = scope.path("/sys/class/infiniband")
        try:
            devices = sorted(os.listdir(folder))
        except OSError as error:
            raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
        ours = usable_devices(scope)
        for device in devices:
            if ours is not None and device not in ours:
                self.absent[f"network.ib.{device}"] = (
                    "belongs to the host: this container has no access to its device file"
                )
                continue
            try:
                ports = [name for name in os.listdir(f"{folder}/{device}/ports") if name.isdigit()]
            except OSError as error:  # it was removed since the listing, or is being reset
                self.absent[f"network.ib.{device}"] = f"its ports cannot be listed: {error.strerror}"
                continue
            for port in sorted(ports, key=int):
                counters = _port(f"{folder}/{device}", device, port)
                if counters.traffic or counters.slow:
                    self.ports.append(counters)
                else:
                    self.absent[f"network.ib.{device}.{port}"] = "no counters"
        self._traffic = Every(TRAFFIC_EVERY_S)
        self._errors = Every(ERRORS_EVERY_S)

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        if self._traffic.due(tick.mono_s):
            for port in self.ports:
                for counter in port.traffic:
                    counter.sample(tick)
        if self._errors.due(tick.mono_s):
            for port in self.ports:
                for counter in port.slow:
                    counter.sample(tick)


class InfinibandPort:
    """A port of a device: counters that are read often, and counters that are read rarely."""

    __slots__ = ("slow", "traffic")

    def __init__(self, traffic: list[PortCounter], slow: list[PortCounter]) -> None:
        self.traffic = traffic
        self.slow = slow


class PortCounter:
    """One key: the sum of some files, times a factor. If a file has no number, the key is missing.

    Args:
        limit: the value at which a counter stops and becomes meaningless; 0 = none.
    """

    __slots__ = ("_factor", "_files", "_key", "_limit")

    def __init__(self, key: str, files: list[PseudoFile], factor: int = 1, limit: int = 0) -> None:
        self._key = key
        self._files = files
        self._factor = factor
        self._limit = limit

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        total = 0
        for file in self._files:
            value = _number(file)
            if value is None or (self._limit and value >= self._limit):
                return
            total += value
        tick.counters[self._key] = float(total * self._factor)


def usable_devices(scope: Scope) -> set[str] | None:
    """Return the devices whose device file we can use (/dev/infiniband/uverbs…), or None if unknown.

    Containers see all ports of the host in /sys.
    """
    verbs, files = scope.path("/sys/class/infiniband_verbs"), scope.path("/dev/infiniband")
    if not os.path.isdir(verbs) or not os.path.isdir(scope.path("/dev")):
        return None
    visible = set(sysfs.names(files))
    devices = [read_text(f"{verbs}/{name}/ibdev") for name in sysfs.names(verbs) if name in visible]
    return {device.strip() for device in devices if device is not None}


def _port(folder: str, device: str, port: str) -> InfinibandPort:
    port_folder = f"{folder}/ports/{port}"
    if _is_efa(folder, device):
        return _efa_port(port_folder, f"network.efa.{device}.{port}")
    return _ib_port(port_folder, f"network.ib.{device}.{port}")


def _is_efa(folder: str, device: str) -> bool:
    driver = os.path.realpath(f"{folder}/device/driver")
    return os.path.basename(driver) == "efa" or device.startswith(("efa_", "rdmap"))


def _ib_port(folder: str, prefix: str) -> InfinibandPort:
    traffic, slow = [], []
    for key, name in (("xmitBytes", "port_xmit_data"), ("recvBytes", "port_rcv_data")):
        wide = _open_number(f"{folder}/counters_ext/{name}_64")
        file = wide or _open_number(f"{folder}/counters/{name}")
        if file is not None:
            traffic.append(PortCounter(f"{prefix}.{key}", [file], WORD, 0 if wide else _stops_at(file)))
    wait = _open_number(f"{folder}/counters/port_xmit_wait")
    if wait is not None:
        slow.append(PortCounter(f"{prefix}.xmitWait", [wait], 1, _stops_at(wait)))
    errors = [file for name in ERRORS if (file := _open_number(f"{folder}/counters/{name}")) is not None]
    if errors:
        slow.append(PortCounter(f"{prefix}.errors", errors))
    return InfinibandPort(traffic, slow)


def _efa_port(folder: str, prefix: str) -> InfinibandPort:
    files = {key: _open_number(f"{folder}/hw_counters/{name}") for key, name in EFA_BYTES.items()}
    traffic = [PortCounter(f"{prefix}.{key}", [file]) for key, file in files.items() if file is not None]
    drops = _open_number(f"{folder}/hw_counters/rx_drops")
    return InfinibandPort(traffic, [PortCounter(f"{prefix}.drops", [drops])] if drops is not None else [])


def _stops_at(file: PseudoFile) -> int:
    """Read the maximum of a 32-bit counter, at which it may stop; 0 if it is above, and so has 64 bits."""
    value = _number(file)
    return 0 if value is not None and value > SATURATED else SATURATED


def _open_number(path: str) -> PseudoFile | None:
    file = open_if_there(path)
    if file is not None and _number(file) is None:  # "N/A (no PMA)": the device has no such counter
        file.close()
        return None
    return file


def _number(file: PseudoFile) -> int | None:
    try:
        if file.fd < 0:
            file.open()
        text = file.read().strip()
    except OSError:  # the port is being reset, or its device was removed; retried at the next turn
        file.close()
        return None
    return int(text) if text.isdigit() else None
