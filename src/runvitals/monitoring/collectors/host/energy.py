"""Energy of the CPU and its memory: RAPL counters in /sys/class/powercap.

Since Linux 5.10 only root may read them, because power reveals secrets. Without permission this source is
absent.
"""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.base import Absent, PseudoFile, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope, Tick

# Over shorter intervals the power is noise: the hardware updates its counters every millisecond.
MIN_INTERVAL_S = 0.05
ONLY_ROOT = "only root may read"


def probe(scope: Scope) -> Energy:
    """Make the collector; raise Absent if the machine lacks the source."""
    energy = Energy(scope)
    if not energy.domains:
        why = "; ".join(f"{zone}: {reason}" for zone, reason in energy.absent.items())
        raise Absent(why or f"{scope.path('/sys/class/powercap')} has no RAPL zone")
    return energy


class Energy:
    """The energy of processors and memory.

    `energy.{domain}` (J, counters) of each package and its parts, and `cpu.powerWatts`, the sum of packages
    and memory.
    """

    name = "energy"

    def __init__(self, scope: Scope) -> None:
        self.absent: dict[str, str] = {}
        self.domains: list[EnergyDomain] = []
        self._powered: list[EnergyDomain] = []
        self._before: tuple[float, float] | None = None
        folder = scope.path("/sys/class/powercap")
        try:
            zones = sorted(os.listdir(folder))
        except OSError as error:
            raise Absent(f"{folder} cannot be listed: {error.strerror}") from error
        names = {zone: read_text(f"{folder}/{zone}/name") or "" for zone in zones if ":" in zone}
        for zone, domain in domain_names(names).items():
            try:
                self.domains.append(EnergyDomain(f"{folder}/{zone}", domain))
            except PermissionError:
                self.absent[f"energy.{domain}"] = f"{ONLY_ROOT} {folder}/{zone}/energy_uj"
            except (OSError, ValueError) as error:
                self.absent[f"energy.{domain}"] = f"{folder}/{zone}: {error}"
        # psys (the whole platform) includes the packages, and a package its cores.
        self._powered = [d for d in self.domains if d.name.startswith(("package", "dram"))]

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        unread = {domain.name for domain in self.domains if not domain.sample(tick)}
        # A domain that cannot be read now adds its energy to the interval in which it can be read again.
        if not self._powered or any(domain.name in unread for domain in self._powered):
            return
        joules = sum(domain.joules for domain in self._powered)
        if self._before is not None:
            then, before = self._before
            if tick.mono_s - then < MIN_INTERVAL_S:
                return
            if joules >= before:  # else a counter was reset
                tick.gauges["cpu.powerWatts"] = (joules - before) / (tick.mono_s - then)
        self._before = tick.mono_s, joules


class EnergyDomain:
    """One counter. It wraps around at the end of its range: every 15 minutes on a busy server."""

    __slots__ = ("_file", "_last_uj", "_range_uj", "_total_uj", "key", "name")

    def __init__(self, folder: str, name: str) -> None:
        self.name = name
        self.key = f"energy.{name}"
        text = read_text(folder + "/max_energy_range_uj") or ""
        self._range_uj = int(text) if text.isdigit() else 0
        self._file = PseudoFile(folder + "/energy_uj")
        self._last_uj = self._total_uj = int(self._file.read())

    @property
    def joules(self) -> float:
        """The energy used so far."""
        return self._total_uj / 1e6

    def sample(self, tick: Tick) -> bool:
        """Write the energy in J: the hardware's counter, corrected for wrap-arounds.

        False if it cannot be read now.
        """
        try:
            now = int(self._file.read())
        except (OSError, ValueError):  # EIO, ENODATA: the register does not respond; or access was withdrawn
            return False
        grown = now - self._last_uj
        # Half of the range lasts for minutes, even at full power: a counter that fell by less was reset. The
        # monitor sees that the total fell.
        if -grown > self._range_uj // 2 and self._range_uj > self._last_uj:
            grown += self._range_uj
        self._total_uj += grown
        self._last_uj = now
        tick.counters[self.key] = self.joules
        return True


def domain_names(names: dict[str, str]) -> dict[str, str]:
    """Names of the zones.

    Parts of a package carry its number: `core`, `dram` of package 1 are `core-1`, `dram-1`; those of die 1 of
    package 0, `package-0-die-1`, are `core-0-die-1`, `dram-0-die-1`.

    A package that is listed twice, through a register and through memory (intel-rapl-mmio), is included once.

    >>> domain_names({"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl-mmio:0":
    "package-0"}) {'intel-rapl:0': 'package-0', 'intel-rapl:0:0': 'core-0'}
    """
    names_by_folder: dict[str, str] = {}
    # "intel-rapl:0" sorts after "intel-rapl-mmio:0", but is kept, because it also has the parts.
    for zone in sorted(names, key=lambda zone: ("mmio" in zone, zone)):
        name = names[zone]
        parent = zone.rpartition(":")[0]
        if parent in names:
            _, dash, number = names[parent].partition("-")
            name = f"{name}-{number}" if dash else name
        if name and name not in names_by_folder.values():
            names_by_folder[zone] = name
    return names_by_folder
