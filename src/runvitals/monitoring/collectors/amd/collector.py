"""All AMD GPUs of the host: readings from sysfs, what it lacks from AMD's programs, and use by the run."""

from __future__ import annotations

import os

from runvitals.monitoring.collectors.amd import kfd
from runvitals.monitoring.collectors.amd.gpu import AmdGpu, arrange
from runvitals.monitoring.collectors.amd.processes import ProcessUse
from runvitals.monitoring.collectors.amd.readings import derive
from runvitals.monitoring.collectors.amd.sysfs import find_cards
from runvitals.monitoring.collectors.amd.tools import (
    FILL_EVERY_S,
    LIBRARY_EVERY_S,
    PROGRAM_EVERY_S,
    AmdPrograms,
    programs,
)
from runvitals.monitoring.collectors.base import Every
from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.plumbing.background import BackgroundReader
from runvitals.monitoring.collectors.plumbing.missing_readings import explain
from runvitals.monitoring.collectors.plumbing.run_processes import UNKNOWN_SUM, RunProcesses
from runvitals.monitoring.collectors.vendors.probes import first_index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.monitoring.collectors.amd.readings import AmdGpuReport
    from runvitals.monitoring.collectors.amd.sysfs import AmdCard
    from runvitals.monitoring.collectors.base import Scope, Tick

COUNTERS = frozenset(("energyJoules", "correctedMemoryErrors", "unCorrectedMemoryErrors", "pcieReplays"))
# The main readings. If sysfs lacks one of them, AMD's programs are used.
WANTED = ("gpu", "memoryAllocatedBytes", "powerWatts")
TEMPERATURES = ("memoryTemp", "junctionTemp", "edgeTemp")
# All that a GPU may have.
READINGS = (
    *WANTED, "temp", *TEMPERATURES, "powerPercent", "busySuspect", "enforcedPowerLimitWatts",
    "ubbPowerWatts", "energyJoules", "memory", "memoryAllocated", "gttAllocatedBytes", "gttAllocated",
    "graphicsClock", "memoryClock", "memoryOverDrive", "fanSpeed", "fanRpm", "pcieReplays",
    "correctedMemoryErrors", "unCorrectedMemoryErrors",
)  # fmt: skip
# Kept until a program reports them again.
LASTING = ("enforcedPowerLimitWatts", "memoryTotalBytes")
PROCESSES_EVERY_S = 5.0
# A lost card may come back with other files, and cards may be added.
RESCAN_EVERY_S = 30.0
# How long a tick waits for its readings: 64 cards take 10 ms; a driver that resets a card blocks for seconds.
PATIENCE_S = 0.1
ASLEEP = "it is asleep, and reading it would wake it up"
# Derived readings, and what they need.
NEEDS = {
    "powerPercent": "the power and its limit",
    "busySuspect": "`gpu` and `powerPercent`",
    "memoryAllocated": "the used memory and its size",
    "gttAllocated": "the used memory and its size",
}
UNCOUNTED = "the driver counts no engine time, such as that of ROCm's own queues"


def open_gpus(scope: Scope) -> AmdGpus:
    """Return the collector, with the programs installed on this machine."""
    cards = find_cards(scope.host_root)
    tools = programs(FILL_EVERY_S, FILL_EVERY_S) if cards else programs(PROGRAM_EVERY_S, LIBRARY_EVERY_S)
    return AmdGpus(scope, cards, AmdPrograms(tools) if tools else None, os.environ)


class AmdGpus:
    """`gpu.{i}.*` of AMD GPUs, and `gpu.process.{i}.*` of those that the run's processes use.

    Indices are those of rocm-smi and amd-smi: PCI order, each GPU followed by its partitions. On a host that
    also has NVIDIA GPUs, the indices follow theirs.

    Args:
        cards: the cards in sysfs; if empty, the GPUs are those that AMD's programs list.
        tools: AMD's programs, None if there are none.
        environ: the environment of the run, for the variables that select devices.
        proc: the procfs of our PID namespace.
    """

    name = "amd"

    def __init__(
        self,
        scope: Scope,
        cards: Sequence[AmdCard],
        tools: AmdPrograms | None,
        environ: Mapping[str, str],
        proc: str = "/proc",
    ) -> None:
        self.absent: dict[str, str] = {}
        self.facts: dict[str, object] = {}
        self._root = scope.host_root
        self._tools = tools
        self._run = RunProcesses(scope, proc)
        self._use = ProcessUse(scope.host_root, proc)
        self._in_use: dict[str, dict[str, float]] = {}
        self._in_use_before = self._in_use.keys()
        self._processes = Every(PROCESSES_EVERY_S)
        self._rescan = Every(RESCAN_EVERY_S)
        self._first_index = first_index(scope, self.name)
        self._nodes = kfd.find_nodes(scope.host_root)
        self._visible_nodes = kfd.visible(self._nodes, environ)
        self._gpus = arrange(cards, self._nodes)
        self._sysfs = bool(cards)
        self._reader = BackgroundReader(self._read, patience_s=PATIENCE_S)
        self.pending = True
        self._update_facts()

    def sample(self, tick: Tick) -> None:
        """Write the current values into the tick."""
        self._reader.sample(tick)

    def close(self) -> None:
        """Release what is open."""
        self._reader.close()
        if self._tools is not None:
            self._tools.close()

    # -- in the thread

    def _read(self, tick: Tick) -> None:
        mono_s = tick.mono_s
        if self._sysfs and self._rescan.due(mono_s):
            self._rescan_cards()
        readings = [_read_card(gpu, tick) for gpu in self._gpus]
        self._read_partitions(readings)
        if self._tools is not None and self._needs_tools(readings):
            self._fill(self._tools, readings, mono_s)
        users_due = self._processes.due(mono_s)
        if users_due:
            nodes = {gpu.identity: gpu.node for gpu in self._gpus if gpu.node is not None}
            self._in_use_before = self._in_use.keys()
            self._in_use = self._use.read(self._run.pids(mono_s), nodes, mono_s)
        for number, (gpu, of_gpu) in enumerate(zip(self._gpus, readings, strict=True)):
            if of_gpu:
                self._write(tick, self._first_index + number, gpu, of_gpu)
                use = self._in_use.get(gpu.identity)
                if users_due and use is not None:
                    _write_use(tick, self._first_index + number, use, of_gpu)
        self._explain(mono_s)
        self._update_facts()

    def _read_partitions(self, readings: Sequence[dict[str, float]]) -> None:
        """Read partitions other than the first, which have no files.

        Their utilization is in the first one's gpu_metrics, their memory in KFD.
        """
        for gpu, of_gpu in zip(self._gpus, readings, strict=True):
            busy = gpu.card.partitions() if gpu.card is not None else []
            if gpu.partition == 0 and len(busy) > 1:
                for part, of_part in zip(self._gpus, readings, strict=True):
                    if part.pci == gpu.pci and part.partition < len(busy):
                        of_part["gpu"] = busy[part.partition]
            node = gpu.node
            if gpu.partition and node is not None and node.memory_bytes:
                used = kfd.all_memory(self._root, node)
                if used is not None and "memoryAllocatedBytes" not in of_gpu:
                    of_gpu["memoryAllocatedBytes"] = used
                    of_gpu["memoryTotalBytes"] = float(node.memory_bytes)

    def _needs_tools(self, readings: Sequence[Mapping[str, float]]) -> bool:
        if not self._sysfs:
            return True
        for gpu, of_gpu in zip(self._gpus, readings, strict=True):
            # Do not run a program for a card that is asleep or lost: it would wake the card, or hang.
            asleep = gpu.partition == 0 and not of_gpu
            if not asleep and not (
                all(name in of_gpu for name in WANTED) and any(name in of_gpu for name in TEMPERATURES)
            ):
                return True
        return False

    def _fill(self, tools: AmdPrograms, readings: list[dict[str, float]], mono_s: float) -> None:
        """Add the readings that sysfs lacks. Those from sysfs are kept."""
        devices = tools.devices(mono_s)
        if devices is None:
            return
        if not self._sysfs:
            self._adopt(devices, readings)
        news = False
        for number, device in _pairs(self._gpus, devices):
            gpu, of_gpu = self._gpus[number], readings[number]
            gpu.title = gpu.title or device.title
            gpu.lasting = {name: device.readings[name] for name in LASTING if name in device.readings}
            if gpu.card is not None and gpu.partition == 0 and not of_gpu:
                continue
            theirs = device.readings
            if "memoryAllocatedBytes" in of_gpu:  # used and total must come from the same source
                theirs = {
                    name: theirs[name]
                    for name in theirs
                    if name not in ("memoryTotalBytes", "memoryAllocated")
                }
            missing = {name: value for name, value in theirs.items() if name not in of_gpu}
            of_gpu.update(missing)
            if any(name in missing for name in (*WANTED, *TEMPERATURES)):
                news = True
                gpu.add_source(tools.name)
        if self._sysfs and not news:
            tools.pause(mono_s)

    def _adopt(self, devices: Sequence[AmdGpuReport], readings: list[dict[str, float]]) -> None:
        """Without sysfs, use the GPUs and indices that the program reports."""
        for device in devices:
            while len(self._gpus) <= device.index:
                self._gpus.append(AmdGpu(None, None))
                readings.append({})
            gpu = self._gpus[device.index]
            gpu.pci = pci.normal(device.pci) or gpu.pci
            gpu.unique_id, gpu.partition = device.unique_id or gpu.unique_id, device.partition
            gpu.node = next((node for node in self._nodes if gpu.pci and node.pci == gpu.pci), None)

    def _write(self, tick: Tick, index: int, gpu: AmdGpu, readings: dict[str, float]) -> None:
        if "enforcedPowerLimitWatts" in gpu.lasting:
            readings.setdefault("enforcedPowerLimitWatts", gpu.lasting["enforcedPowerLimitWatts"])
        for name, value in derive(readings).items():
            gpu.seen_s[name] = tick.mono_s
            (tick.counters if name in COUNTERS else tick.gauges)[f"gpu.{index}.{name}"] = value

    def _rescan_cards(self) -> None:
        """Find cards that were added or have come back."""
        gpus_by_card = {gpu.card.name: gpu for gpu in self._gpus if gpu.card is not None}
        lost = {gpu.pci: gpu for gpu in self._gpus if gpu.card is not None and gpu.card.lost}
        for card in find_cards(self._root):
            gpu = lost.get(card.pci) if card.pci else None
            gpu = gpu or gpus_by_card.get(card.name)
            if gpu is None:
                self._gpus += arrange([card], self._nodes)
            elif gpu.card is not None and gpu.card.lost:
                gpu.card.close()
                card.lost = True  # until it can be read
                gpu.card = card

    # -- facts and reasons

    def _explain(self, mono_s: float) -> None:
        """Update `absent`: why main readings are missing."""
        tools = self._tools
        if tools is not None and not tools.name and not tools.failure and self._lacks_readings():
            return  # the first call has not finished
        missing: dict[int, dict[str, str]] = {}
        absent: dict[str, str] = {}
        for index, gpu in enumerate(self._gpus, self._first_index):
            names = gpu.missing(mono_s, READINGS, 3.0 * FILL_EVERY_S)
            if names and gpu.card is not None and (gpu.card.asleep or gpu.card.lost):
                absent[f"gpu.{index}"] = ASLEEP if gpu.card.asleep else "none of its files can be read"
            else:
                missing[index] = {name: self._reason(gpu, name) for name in names}
        absent.update(explain(missing))
        # A share needs two readings.
        if any("gpu" not in self._in_use[gpu] for gpu in self._in_use_before & self._in_use.keys()):
            absent["process.gpu"] = UNCOUNTED
        if any("memoryAllocatedBytes" not in use for use in self._in_use.values()):
            absent.update((f"process.memoryAllocated{end}", UNKNOWN_SUM) for end in ("", "Bytes"))
        if not self._gpus and tools is not None and tools.failure:
            absent["programs"] = tools.failure
        self.pending = False
        if absent != self.absent:
            self.absent = absent

    def _lacks_readings(self) -> bool:
        return not self._gpus or any(not gpu.has_all(WANTED) for gpu in self._gpus)

    def _reason(self, gpu: AmdGpu, name: str) -> str:
        """Why a reading of a GPU that can be read is missing."""
        if gpu.partition:
            return f"partition {gpu.partition} of {gpu.pci}: only partition 0 has sensors"
        if name == "powerWatts" and any(each is not gpu and each.shares_board(gpu) for each in self._gpus):
            return "the power of the whole package is reported by its first die"
        if name in NEEDS:
            return f"needs {NEEDS[name]}"
        source, tools = gpu.source or "sysfs", self._tools
        if tools is None:
            return f"not in {source}; amd-smi or rocm-smi may report it, but neither is installed"
        return f"not in {source}" + (f"; {tools.failure}" if tools.failure else "")

    def _update_facts(self) -> None:
        """Update `facts`; replace the object only if they have changed."""
        listed = [self._fact(number, gpu) for number, gpu in enumerate(self._gpus)]
        if listed and self.facts.get("gpu_amd") != listed:
            self.facts = {"gpu_amd": listed}

    def _fact(self, number: int, gpu: AmdGpu) -> dict[str, object]:
        hip_index = self._visible_nodes.index(gpu.node) if gpu.node in self._visible_nodes else None
        visible = None if gpu.node is None else hip_index is not None
        if visible and gpu.card is not None and not self._root:
            # A container sees all cards in /sys, but can open only those passed to it.
            visible = os.access(f"/dev/dri/renderD{gpu.card.render_minor}", os.R_OK | os.W_OK)
        return {
            "index": self._first_index + number,
            **gpu.fact(),
            "visible": visible,
            "hip_index": hip_index,
            "used": gpu.identity in self._in_use,
        }


def _read_card(gpu: AmdGpu, tick: Tick) -> dict[str, float]:
    card = gpu.card
    if card is None:
        return {}
    was_lost = card.lost
    readings = card.read(tick.mono_s)
    if card.lost != was_lost:
        name, level = ("device_lost", "error") if card.lost else ("device_back", "info")
        change = "can no longer be read" if card.lost else "can be read again"
        text = f"AMD GPU {gpu.pci or card.name} {change}"
        tick.events.append({"name": name, "level": level, "text": text, "pci": gpu.pci})
    return readings


def _write_use(tick: Tick, index: int, use: Mapping[str, float], uses: Mapping[str, float]) -> None:
    for name, value in use.items():
        tick.gauges[f"gpu.process.{index}.{name}"] = value
    total = uses.get("memoryTotalBytes", 0.0)
    if total > 0.0 and "memoryAllocatedBytes" in use:
        tick.gauges[f"gpu.process.{index}.memoryAllocated"] = use["memoryAllocatedBytes"] * 100.0 / total


def _pairs(gpus: Sequence[AmdGpu], devices: Sequence[AmdGpuReport]) -> list[tuple[int, AmdGpuReport]]:
    """(index of our GPU, reported device): matched by PCI address if these are unique, else by index."""
    by_address = {gpu.pci: position for position, gpu in enumerate(gpus) if gpu.pci}
    theirs = [pci.normal(device.pci) for device in devices]
    if all(theirs) and len(set(theirs)) == len(theirs) and len(by_address) == len(gpus):
        pairs = zip(theirs, devices, strict=True)
        return [(by_address[address], device) for address, device in pairs if address in by_address]
    return [(device.index, device) for device in devices if device.index < len(gpus)]
