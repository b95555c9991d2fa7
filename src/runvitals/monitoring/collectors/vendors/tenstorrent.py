"""Tenstorrent: the driver's sensors in sysfs, else `tt-smi -s`.

tt-smi starts a Python interpreter and locks each chip, so it is called only four times a minute.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import read_text
from runvitals.monitoring.collectors.plumbing import lenient_json, pci, sysfs
from runvitals.monitoring.collectors.vendors.adapter import Reading, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import (
    LIMIT,
    POWER,
    POWER_SHARE,
    DeviceGaps,
    VendorDevice,
    complete,
    write,
)
from runvitals.monitoring.collectors.vendors.formats import objects
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Collector, Scope, Tick
    from runvitals.monitoring.collectors.vendors.formats import Row

# Early firmware of p150 cards reports invalid values; no card draws as much.
MAX_WATTS = 1500.0
MISSING = {
    "gpu": "Tenstorrent's firmware reports no load",
    "memoryAllocatedBytes": "Tenstorrent's tools do not report used memory",
}


def rows(output: bytes) -> list[Row]:
    """Return a row for each chip, in the tool's order, which is the index.

    A chip without PCI is connected to another.
    """
    report = lenient_json.find(output)
    chips = objects(report.get("device_info", []) if isinstance(report, dict) else report)
    for index, chip in enumerate(chips):
        chip["index"] = str(index)
        turns = str(chip.get("smbus_telem.FAN_RPM") or "")
        if turns.startswith("0x") and set(turns[2:].lower()) <= set("0123456789abcdef") and turns[2:]:
            chip["fan_rpm"] = int(turns, 16) & 0xFFFF
    return chips


TENSTORRENT = Vendor(
    name="tenstorrent",
    title="Tenstorrent card",
    programs=("tt-smi",),
    folders=("/opt/tenstorrent/bin",),
    commands=(("-s", "--snapshot_no_tty"), ("-s",)),
    every_s=15.0,
    timeout_s=30.0,
    rows=rows,
    readings=(
        Reading("temp", "°C", "telemetry.asic_temperature"),
        Reading(POWER, "W", "telemetry.power", most=MAX_WATTS),
        Reading(LIMIT, "W", "limits.tdp_limit"),
        Reading("graphicsClock", "MHz", "telemetry.aiclk"),
        Reading("boardPowerWatts", "W", "telemetry.board_power", most=MAX_WATTS),
        Reading("fanSpeed", "%", "telemetry.fan_speed", most=100.0),
        Reading("fanRpm", "rpm", "telemetry.fan_rpm", "fan_rpm"),
        Reading("voltage", "V", "telemetry.voltage"),
    ),
    identity={
        "index": ("index",),
        "name": ("board_info.board_type",),
        "pci": ("board_info.bus_id",),
        "serial": ("board_info.board_id",),
    },
    missing=MISSING,
)


def probe(scope: Scope) -> Collector:
    """Return the sensors of the driver if it has them, else tt-smi."""
    start = first_index(scope, TENSTORRENT.name)
    folder = scope.path("/sys/class/tenstorrent")
    chips = [TenstorrentChip(start, f"{folder}/{name}", name) for name in sysfs.names(folder)]
    sensible = [chip for chip in chips if chip.has_sensors]
    return TenstorrentSysfs(sensible) if sensible else watch(scope, TENSTORRENT)


SENSORS = ("temp", POWER, LIMIT, "graphicsClock", "voltage", "fanRpm")


class TenstorrentChip:
    """The files of a chip.

    Args:
        start: index of the first Tenstorrent chip.
        folder: ``/sys/class/tenstorrent/tenstorrent!0``.
        name: its last part, which ends in the chip's number.
    """

    def __init__(self, start: int, folder: str, name: str) -> None:
        number = name.rpartition("!")[2]
        self.index = start + (int(number) if number.isdigit() else 0)
        sensors = sysfs.hwmon(f"{folder}/device") or folder
        self._levels = {
            "temp": sysfs.first(sensors, ("temp1_input",), 1e-3),
            POWER: sysfs.first(sensors, ("power1_input",), 1e-6),
            LIMIT: sysfs.first(sensors, ("power1_max",), 1e-6),
            "graphicsClock": sysfs.first(folder, ("tt_aiclk",)),
            "voltage": sysfs.first(sensors, ("in0_input",), 1e-3),
            "fanRpm": sysfs.first(sensors, ("fan1_input",)),
        }
        self.identity: dict[str, object] = {"name": read_text(f"{folder}/tt_card_type") or "Tenstorrent chip"}
        address = pci.normal(sysfs.link_name(f"{folder}/device"))
        serial = read_text(f"{folder}/tt_serial")
        self.identity |= {"pci": address} if address else {}
        self.identity |= {"serial": serial} if serial else {}

    @property
    def has_sensors(self) -> bool:
        """Whether the driver has a temperature or power of the chip."""
        return self._levels["temp"] is not None or self._levels[POWER] is not None

    def read(self) -> VendorDevice:
        """Return the chip's current readings."""
        device = VendorDevice(self.index, self.identity)
        for key, level in self._levels.items():
            value = None if level is None else level.read()
            if value is not None and not (key == POWER and value > MAX_WATTS):
                device.gauges[key] = value
        complete(device)
        return device


class TenstorrentSysfs:
    """Temperature, power and its limit, clock, from the driver: 20 µs a chip."""

    name = "tenstorrent"

    def __init__(self, chips: list[TenstorrentChip]) -> None:
        self._chips = chips
        self._gaps = DeviceGaps((*SENSORS, POWER_SHARE), "no such sensor of the driver")
        self.absent = dict(MISSING)
        self.facts = {"accelerator_tenstorrent": [{"index": chip.index, **chip.identity} for chip in chips]}

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        devices = [chip.read() for chip in self._chips]
        write(tick, devices, 0)
        absent = {**MISSING, **self._gaps.explain(devices, 0, tick.mono_s)}
        if absent != self.absent:
            self.absent = absent
