"""The cards of the amdgpu driver in /sys/class/drm, and their readings.

This needs no root, no ROCm and no other process. A reading costs 5 to 20 µs. Readings whose files do not
exist are missing. Each file that fails is retried independently, with increasing pauses.
"""

from __future__ import annotations

import os

from runvitals.base.backoff import Backoff
from runvitals.monitoring.collectors.amd.driver import card_names
from runvitals.monitoring.collectors.amd.gpu_metrics import GpuMetrics
from runvitals.monitoring.collectors.amd.readings import AmdGpuReport
from runvitals.monitoring.collectors.base import PseudoFile, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PAUSE_S = 300.0
# Read less often: limits, error counts, and gpu_metrics, which holds the energy.
SELDOM_S = 10.0
METRICS_S = 5.0


class AmdCard:
    """A GPU's folder in /sys/class/drm: its identity and its files.

    Args:
        drm: the folder of all cards.
        name: ``card1``.
    """

    def __init__(self, drm: str, name: str) -> None:
        self.name = name
        self.folder = f"{drm}/{name}/device"
        self.pci = pci_of(self.folder)
        self.unique_id = (read_text(f"{self.folder}/unique_id") or "").lower()
        self.title = (read_text(f"{self.folder}/product_name") or "").strip()
        self.partition_mode = (read_text(f"{self.folder}/current_compute_partition") or "").strip()
        self.memory_mode = (read_text(f"{self.folder}/current_memory_partition") or "").strip()
        self.render_minor = _render_minor(self.folder)
        self.lost = False
        self.asleep = False
        self.is_apu = _is_apu(self.folder)
        self.memory_bytes = _memory_bytes(self.folder)
        self._resting = f"{self.folder}/power/runtime_status"
        self._files = list(_files(self.folder))
        table = f"{self.folder}/gpu_metrics"
        self._metrics = GpuMetrics(table) if os.path.exists(table) else None
        self._metrics_at_s = float("-inf")
        # The APU's clocks from gpu_metrics, which is read only every few seconds.
        self._clocks: dict[str, float] = {}

    def read(self, mono_s: float) -> dict[str, float]:
        """Return the current readings; {} for a card that is asleep, which reading would wake up.

        Sets `lost` if none of its files could be read: the card is gone, or is being reset.
        """
        status = read_text(self._resting)
        self.asleep = status in ("suspended", "suspending")
        if self.asleep:
            self.lost = False
            return {}
        device = AmdGpuReport(0)
        answered = False
        for file in self._files:
            value = file.value(mono_s)
            answered = answered or file.works
            if value is not None:
                device.readings.setdefault(file.reading, value)
        self.lost = bool(self._files) and not answered
        self._read_metrics(mono_s, device.readings)
        device.clean()
        return device.readings

    def partitions(self) -> list[float]:
        """Utilization of each partition in %, from the last gpu_metrics; empty if it has none."""
        return [] if self._metrics is None else self._metrics.partitions

    def close(self) -> None:
        """Release what is open."""
        for file in self._files:
            file.close()
        if self._metrics is not None:
            self._metrics.close()

    def _read_metrics(self, mono_s: float, readings: dict[str, float]) -> None:
        if self._metrics is None:
            return
        partitioned = self.partition_mode not in ("", "SPX")
        if "gpu" in readings and not partitioned and mono_s < self._metrics_at_s:
            self._write_clocks(readings)
            return
        self._metrics_at_s = mono_s + METRICS_S
        table = self._metrics.read()
        for name in ("gpu", "memory"):
            if name in table:
                readings.setdefault(name, table[name])
        self._clocks = {name: table[name] for name in ("graphicsClock", "memoryClock") if name in table}
        self._write_clocks(readings)
        if "energyJoules" in table:
            readings["energyJoules"] = table["energyJoules"]

    def _write_clocks(self, readings: dict[str, float]) -> None:
        for name, clock in self._clocks.items():
            readings.setdefault(name, clock)


class CardFile:
    """One file and the reading in it.

    A file that fails is retried after 1, 2, 4 … 300 s: drivers return EBUSY, EOPNOTSUPP or ENODATA for a
    while, and a card may come back.

    Args:
        parse: text -> value, or None if there is none.
        every_s: a gauge that rarely changes is read this often; in between, its last value is written again.
    """

    __slots__ = (
        "_backoff", "_every_s", "_file", "_next_s", "_parse", "_path", "_value", "reading", "works"
    )  # fmt: skip

    def __init__(
        self, reading: str, path: str, parse: Callable[[bytes], float | None], every_s: float = 0.0
    ) -> None:
        self.reading = reading
        self.works = True
        self._path = path
        self._parse = parse
        self._every_s = every_s
        self._file: PseudoFile | None = None
        self._next_s = float("-inf")
        self._backoff = Backoff(1.0, MAX_PAUSE_S)
        self._value: float | None = None

    def value(self, mono_s: float) -> float | None:
        """Read the file if it is due; otherwise return what was read before."""
        if mono_s < self._next_s:
            return self._value
        try:
            if self._file is None:
                self._file = PseudoFile(self._path)
            self._value = self._parse(self._file.read())
        except OSError:
            self.close()
            self._value = None
            self.works = False
            self._backoff.note_failure(mono_s)
            self._next_s = self._backoff.until_s
            return None
        if not self.works:
            self.works = True
            self._backoff.note_success()
        self._next_s = mono_s + self._every_s * 0.995
        return self._value

    def close(self) -> None:
        """Release what is open."""
        if self._file is not None:
            self._file.close()
            self._file = None


def find_cards(root: str) -> list[AmdCard]:
    """Return the cards that amdgpu drives, in the order of their PCI addresses, as rocm-smi lists them.

    Example:
        >>> [card.pci for card in find_cards("")]
        ['0000:03:00.0', '0000:83:00.0']
    """
    cards = [AmdCard(f"{root}/sys/class/drm", name) for name in card_names(root)]
    return sorted(cards, key=lambda card: pci_order(card.pci))


def pci_of(folder: str) -> str:
    """``0000:03:00.0``, or "" if the device is not on the PCI bus."""
    for line in (read_text(f"{folder}/uevent") or "").split("\n"):
        if line.startswith("PCI_SLOT_NAME="):
            return line[14:].strip().lower()
    name = os.path.basename(os.path.realpath(folder)).lower()
    return name if name.count(":") == 2 else ""


def pci_order(pci: str) -> tuple[int, ...]:
    """Sort key for PCI addresses; invalid ones come last.

    >>> pci_order("0000:0c:00.1") < pci_order("0000:83:00.0") < pci_order("")
    True
    """
    try:
        return tuple(int(part, 16) for part in pci.replace(".", ":").split(":"))
    except ValueError:
        return (1 << 32,)


def _files(folder: str) -> list[CardFile]:
    device = folder + "/"
    files = [
        CardFile("gpu", device + "gpu_busy_percent", _number),
        CardFile("memory", device + "mem_busy_percent", _number),
        CardFile("memoryAllocatedBytes", device + "mem_info_vram_used", _number),
        CardFile("memoryTotalBytes", device + "mem_info_vram_total", _number, SELDOM_S),
        CardFile("gttAllocatedBytes", device + "mem_info_gtt_used", _number),
        CardFile("gttTotalBytes", device + "mem_info_gtt_total", _number, SELDOM_S),
        CardFile("memoryOverDrive", device + "pp_mclk_od", _number, SELDOM_S),
        CardFile("pcieReplays", device + "pcie_replay_count", _number, SELDOM_S),
        CardFile("correctedMemoryErrors", device + "ras/umc_err_count", _count_corrected, SELDOM_S),
        CardFile("unCorrectedMemoryErrors", device + "ras/umc_err_count", _count_uncorrected, SELDOM_S),
    ]
    for monitor in _monitors(folder):
        files += _sensors(monitor + "/")
    files += [
        CardFile("graphicsClock", device + "pp_dpm_sclk", _active_clock),
        CardFile("memoryClock", device + "pp_dpm_mclk", _active_clock),
    ]
    return [file for file in files if os.path.exists(file._path)]


def _sensors(monitor: str) -> list[CardFile]:
    files = [
        CardFile("powerWatts", monitor + "power1_average", _millionths),
        CardFile("powerWatts", monitor + "power1_input", _millionths),
        CardFile("enforcedPowerLimitWatts", monitor + "power1_cap", _millionths, SELDOM_S),
        CardFile("fanSpeed", monitor + "pwm1", _share_of_255),
        CardFile("fanRpm", monitor + "fan1_input", _number, SELDOM_S),
        CardFile("graphicsClock", monitor + "freq1_input", _millionths),
        CardFile("memoryClock", monitor + "freq2_input", _millionths),
    ]
    labels = {"edge": "edgeTemp", "junction": "junctionTemp", "mem": "memoryTemp", "": "edgeTemp"}
    for number in range(1, 5):
        label = (read_text(f"{monitor}temp{number}_label") or "").strip().lower()
        # Cards with one sensor do not label it. It is the edge sensor.
        if label in labels and (label or number == 1):
            files.append(CardFile(labels[label], f"{monitor}temp{number}_input", _thousandths))
    return files


def _monitors(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder + "/hwmon"))
    except OSError:
        return []
    return [f"{folder}/hwmon/{name}" for name in names]


def _is_apu(folder: str) -> bool:
    """Return whether it is an APU, which shares the host's memory and memory controller."""
    shares = os.path.exists(f"{folder}/mem_info_gtt_total")
    return shares and not os.path.exists(f"{folder}/mem_busy_percent")


def _memory_bytes(folder: str) -> int | None:
    text = read_text(f"{folder}/mem_info_vram_total") or ""
    return int(text) if text.isdigit() else None


def _render_minor(folder: str) -> int | None:
    try:
        names = os.listdir(folder + "/drm")
    except OSError:
        return None
    minors = [int(name[7:]) for name in names if name[:7] == "renderD" and name[7:].isdigit()]
    return minors[0] if minors else None


def _number(text: bytes) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _millionths(text: bytes) -> float | None:
    value = _number(text)
    return None if value is None else value / 1e6


def _thousandths(text: bytes) -> float | None:
    value = _number(text)
    return None if value is None else value / 1000.0


def _share_of_255(text: bytes) -> float | None:
    value = _number(text)
    return None if value is None else value * 100.0 / 255.0


def _active_clock(text: bytes) -> float | None:
    r"""Return the active clock in MHz, the line with ``*`` in ``0: 500Mhz\n1: 800Mhz *\n``.

    Idle chips may mark none.
    """
    for line in text.split(b"\n"):
        if line.rstrip().endswith(b"*"):
            digits = line.partition(b":")[2].strip(b" *").lower()
            return _number(digits.removesuffix(b"mhz"))
    return None


def _count_corrected(text: bytes) -> float | None:
    return _error_count(text, b"ce")


def _count_uncorrected(text: bytes) -> float | None:
    return _error_count(text, b"ue")


def _error_count(text: bytes, kind: bytes) -> float | None:
    for line in text.split(b"\n"):
        name, _, count = line.partition(b":")
        if name.strip().lower() == kind:
            return _number(count)
    return None
