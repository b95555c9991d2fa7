"""Intel GPUs: the drivers xe and i915 in sysfs, and `xpu-smi dump` for cards with their own memory.

The load from sysfs is the share of time in which the GPU was awake, an upper bound of the share in which it
was busy. The value of xpu-smi is used instead if there is one.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.base import Absent, read_text
from runvitals.monitoring.collectors.plumbing import pci, sysfs
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings, explain
from runvitals.monitoring.collectors.plumbing.tool import find
from runvitals.monitoring.collectors.vendors.devices import (
    LIMIT,
    POWER,
    SHARE,
    USED,
    VendorDevice,
    complete,
    write,
)
from runvitals.monitoring.collectors.vendors.intel_xpu_smi import EXPECTED, XpuSmi
from runvitals.monitoring.collectors.vendors.probes import first_index, intel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.monitoring.collectors.base import Collector, Scope, Tick

# The PCI address of integrated graphics; cards are on other buses.
INTEGRATED = "0000:00:02.0"
UNREPORTED = "not reported by the driver in sysfs"
NO_TOOL = "needs xpu-smi, which is not on PATH: install the package xpu-smi"
ONLY_TOOL = (USED, SHARE, "memoryBandwidth")
XPU_SMI = ("/usr/bin/xpu-smi", "/usr/local/bin/xpu-smi", "/opt/intel/xpu-smi/bin/xpu-smi")


def probe(scope: Scope) -> CompositeSource:
    """sysfs, and xpu-smi if a card needs it. Raises Absent without a driver."""
    cards = find_cards(scope)
    if not cards:
        on_bus = ", ".join(card.address for card in intel.cards(scope))
        raise Absent(f"the Intel GPU at {on_bus} uses neither the driver xe nor i915")
    numbers = [card.device.index for card in cards if card.address != INTEGRATED]
    tool = find("xpu-smi", *XPU_SMI) if numbers else None
    if tool is None:
        return CompositeSource("intel", [IntelSysfs(cards, cards)])
    integrated = [card for card in cards if card.address == INTEGRATED]
    parts: list[Collector] = [IntelSysfs(cards, integrated), XpuSmi(tool, numbers, len(integrated))]
    return CompositeSource("intel", parts)


def find_cards(scope: Scope) -> list[IntelGpu]:
    """Return the GPUs with the driver xe or i915, by PCI address."""
    drm = scope.path("/sys/class/drm")
    folders: dict[str, tuple[str, str]] = {}
    for name in sysfs.names(drm):
        driver = sysfs.link_name(f"{drm}/{name}/device/driver")
        if name.startswith("card") and name[4:].isdigit() and driver in ("xe", "i915"):
            folders[pci.normal(sysfs.link_name(f"{drm}/{name}/device"))] = (f"{drm}/{name}", driver)
    start = first_index(scope, "intel")
    return [
        IntelGpu(start + number, address, *folders[address]) for number, address in enumerate(sorted(folders))
    ]


class IntelGpu:
    """One GPU and its files.

    Args:
        index: in keys ``gpu.{i}.…``.
        address: on PCI.
        folder: ``/sys/class/drm/card0``.
        driver: ``xe`` or ``i915``.
    """

    def __init__(self, index: int, address: str, folder: str, driver: str) -> None:
        number = read_text(f"{folder}/device/device") or "?"
        self.address = address
        self.device = VendorDevice(index, {"name": f"Intel GPU {number}", "pci": address, "driver": driver})
        self._awake = [sysfs.SysfsRate(level) for level in _idle_files(folder)]
        self._levels = {
            "graphicsClock": sysfs.first(
                folder, ("gt/gt0/rps_act_freq_mhz", "gt_act_freq_mhz", "device/tile0/gt0/freq0/act_freq")
            )
        }
        self._energy: sysfs.SysfsRate | None = None
        sensors = sysfs.hwmon(f"{folder}/device")
        if sensors is not None:
            self._find_sensors(sensors)

    def _find_sensors(self, sensors: str) -> None:
        energy = sysfs.find_labelled(sensors, "energy", "card") or "energy1"
        heat = sysfs.find_labelled(sensors, "temp", "pkg") or "temp1"
        memory = sysfs.find_labelled(sensors, "temp", "vram")
        joules = sysfs.first(sensors, (f"{energy}_input", "energy2_input"), 1e-6)
        self._energy = None if joules is None else sysfs.SysfsRate(joules)
        self._levels["temp"] = sysfs.first(sensors, (f"{heat}_input",), 1e-3)
        self._levels["memoryTemp"] = sysfs.first(sensors, (f"{memory}_input",), 1e-3) if memory else None
        self._levels[LIMIT] = sysfs.first(sensors, ("power1_max", "power2_max"), 1e-6)

    def read(self, mono_s: float) -> VendorDevice:
        """Return the card's current readings."""
        device = self.device
        device.gauges.clear()
        device.counters.clear()
        for key, level in self._levels.items():
            value = None if level is None else level.read()
            if value is not None:
                device.gauges[key] = value
        if self._energy is not None:
            joules = self._energy.total.read()
            if joules is not None:
                device.counters["energyJoules"] = joules
            watts = self._energy.of(joules, mono_s)
            if watts is not None:
                device.gauges[POWER] = watts
        # If it has never slept, this counts nothing: power saving is off, for example in a virtual machine.
        idle = [rate.of(rate.total.read() or None, mono_s) for rate in self._awake]
        shares = [share for share in idle if share is not None]
        if shares:
            device.gauges["gpu"] = 100.0 - 100.0 * sum(shares) / len(shares)
        complete(device)
        return device


class IntelSysfs:
    """Load, clock, power, energy, temperatures and power limit, as available.

    Args:
        explained: the cards of which ``absent`` says what is missing; xpu-smi knows it of the others.
    """

    name = "sysfs"

    def __init__(self, cards: list[IntelGpu], explained: list[IntelGpu]) -> None:
        self._cards = cards
        self._explained = explained
        self._others = len(cards) - len(explained)
        self._expected = ExpectedReadings(EXPECTED)
        self._is_first = True
        # Memory is the same from the first sample on; a rate needs two.
        self.absent = self._explain({card.device.index: (USED, SHARE) for card in explained})
        self.facts = {
            "accelerator_intel": [{"index": card.device.index, **card.device.identity} for card in cards]
        }

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        write(tick, [card.read(tick.mono_s) for card in self._cards], 0)
        lacking: dict[int, Sequence[str]] = {}
        for card in self._explained:
            device = card.device
            self._expected.note(device.index, (*device.gauges, *device.counters), tick.mono_s)
            lacking[device.index] = self._expected.missing(device.index)
        absent = self._explain(lacking)
        if absent != self.absent and not self._is_first:
            self.absent = absent
        self._is_first = False

    def _explain(self, lacking: Mapping[int, Sequence[str]]) -> dict[str, str]:
        """Why readings are missing that are not in sysfs. Of cards, xpu-smi would report some."""
        of_tool = {card.device.index: ONLY_TOOL for card in self._cards if card.address != INTEGRATED}
        missing = {
            index: {key: NO_TOOL if key in of_tool.get(index, ()) else UNREPORTED for key in keys}
            for index, keys in lacking.items()
        }
        return explain(missing, others=self._others)


def _idle_files(folder: str) -> list[sysfs.SysfsLevel]:
    """Files with the seconds asleep since the driver was loaded.

    Of the first engine group of each tile, or of all.
    """
    levels = []
    for tile in sysfs.names(f"{folder}/device"):
        if tile.startswith("tile") and tile[4:].isdigit():
            groups = [name for name in sysfs.names(f"{folder}/device/{tile}") if name[:2] == "gt"]
            files = [f"{name}/gtidle/idle_residency_ms" for name in groups]
            level = sysfs.first(f"{folder}/device/{tile}", files, 1e-3)
            levels += [level] if level is not None else []
    if levels:
        return levels
    older = sysfs.first(folder, ("gt/gt0/rc6_residency_ms", "power/rc6_residency_ms"), 1e-3)
    return [older] if older is not None else []
