"""NVIDIA GPUs read with `nvidia-smi -q -x`, for machines on which the driver's library cannot be loaded.

This is the case where a wrapper passes the tool into a container, on hosts that keep the library private, and
in some installations of the Windows Subsystem for Linux. The keys are those of the NVML source. Energy,
NVLink traffic and profiling counters are not in the tool's output.
"""

from __future__ import annotations

from runvitals.collectors.base import Every
from runvitals.collectors.nvidia import smi_xml
from runvitals.collectors.nvidia.device import SHARED, SHARED_COUNTERS
from runvitals.collectors.nvidia.processes import HIDDEN, RunGpuProcesses
from runvitals.collectors.nvidia.throttling import ThrottledTime
from runvitals.collectors.nvidia.visible_devices import VisibleGpu, visible_to
from runvitals.collectors.plumbing import pci
from runvitals.collectors.plumbing.quantity import amount, split, whole
from runvitals.collectors.plumbing.tool import Tool, ToolFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from runvitals.collectors.base import Scope, Tick
    from runvitals.collectors.nvidia.smi_xml import SmiGpuLog, SmiLog

# A call takes 20 ms of CPU for one GPU, and a second if the driver has to wake the GPU first.
EVERY_S, TIMEOUT_S = 2.0, 20.0
# If there is no other sign of a GPU and the tool lists none, it is rarely called again.
SELDOM_S = 300.0
# After a pause due to failures, readings older than this are dropped: they do not belong to this tick.
STALE_S = 10.0
MOST_BYTES, MOST_GPUS = 4 << 20, 256

_POWER = ("gpu_power_readings", "power_readings")
_LINK = "pci.pci_gpu_link_info"
# Key, its unit, and its fields in order of preference.
_GAUGES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("gpu", "%", ("utilization.gpu_util",)),
    ("memory", "%", ("utilization.memory_util",)),
    ("encoderUtilization", "%", ("utilization.encoder_util",)),
    ("decoderUtilization", "%", ("utilization.decoder_util",)),
    ("temp", "°C", ("temperature.gpu_temp", "temperature.gpu_current_temp")),
    ("memoryTemp", "°C", ("temperature.memory_temp", "temperature.memory_current_temp")),
    ("powerWatts", "W", tuple(
        f"{section}.{name}"
        for section in _POWER
        for name in ("power_draw", "average_power_draw", "instant_power_draw")
    )),
    ("enforcedPowerLimitWatts", "W", tuple(
        f"{section}.{name}"
        for section in _POWER
        for name in ("enforced_power_limit", "current_power_limit", "power_limit")
    )),
    ("smClock", "MHz", ("clocks.sm_clock",)),
    ("memoryClock", "MHz", ("clocks.mem_clock",)),
    ("graphicsClock", "MHz", ("clocks.graphics_clock",)),
    ("fanSpeed", "%", ("fan_speed",)),
    ("pcieTxBytes", "bytes/s", ("pci.tx_util",)),
    ("pcieRxBytes", "bytes/s", ("pci.rx_util",)),
    ("pcieLinkGen", "1", (f"{_LINK}.pcie_gen.current_link_gen",)),
    ("maxPcieLinkGen", "1", (f"{_LINK}.pcie_gen.max_link_gen",)),
    ("pcieLinkWidth", "lanes", (f"{_LINK}.link_widths.current_link_width",)),
    ("maxPcieLinkWidth", "lanes", (f"{_LINK}.link_widths.max_link_width",)),
    ("remappedRowsCorrectable", "1", ("remapped_rows.remapped_row_corr",)),
    ("remappedRowsUncorrectable", "1", ("remapped_rows.remapped_row_unc",)),
    ("remapPending", "yes", ("remapped_rows.remapped_row_pending",)),
    ("remapFailed", "yes", ("remapped_rows.remapped_row_failure",)),
)  # fmt: skip
_COUNTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("pcieReplays", "1", ("pci.replay_counter",)),
    ("correctedMemoryErrors", "1", (
        "ecc_errors.volatile.dram_correctable", "ecc_errors.volatile.single_bit.device_memory",
    )),
    ("unCorrectedMemoryErrors", "1", (
        "ecc_errors.volatile.dram_uncorrectable", "ecc_errors.volatile.double_bit.device_memory",
    )),
)  # fmt: skip
# Larger values mean "no value".
_SHARES = ("gpu", "memory", "encoderUtilization", "decoderUtilization")
# Part of the names of a reason's elements, its bit and counter in NVML, its name in a key.
_REASONS = (
    ("sw_power_cap", 0x4, 74, "swPowerCap"),
    ("hw_slowdown", 0x8, 0, "hwSlowdown"),
    ("sync_boost", 0x10, 76, "syncBoost"),
    ("sw_therm", 0x20, 269, "swThermal"),
    ("hw_therm", 0x40, 270, "hwThermal"),
    ("hw_power_brak", 0x80, 271, "hwPowerBrake"),
)
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


class NvidiaSmi:
    """`gpu.{i}.…`, `gpu.{i}.mig.…` and `gpu.process.{i}.…` of all GPUs that nvidia-smi lists.

    Args:
        path: path of nvidia-smi.
        why: why the library is not used.
        certain: whether there is another sign of a GPU. Without one, a tool that lists no GPU is not a
            failure.

    Raises:
        ToolFailed: by `sample`: the tool failed or its output is invalid. Raised at each call until it works.
    """

    name = "nvidia"

    def __init__(self, scope: Scope, path: str, why: str, certain: bool, proc: str = "/proc") -> None:
        self.facts: dict[str, object] | None = None
        self.absent: dict[str, str] = {"NVML": why}
        self._scope = scope
        self._proc = proc
        self._why = why
        self._certain = certain
        self._tool = Tool([path, "-q", "-x"], EVERY_S, TIMEOUT_S, MOST_BYTES)
        self._members = RunGpuProcesses(scope, proc, scope.path("/proc") if scope.host_root else proc)
        self._failed = ""
        self._seldom = Every(SELDOM_S)
        self._cards: dict[str, SmiGpu] = {}

    @property
    def pending(self) -> bool:
        """Whether the first call is in progress."""
        return not self._cards and self._tool.running

    def sample(self, tick: Tick) -> None:
        """Write the newest readings, if there are any."""
        if not self._certain and self._failed and not (self._tool.running or self._seldom.due(tick.mono_s)):
            return
        try:
            log = self._read_output(tick.mono_s)
        except (ToolFailed, ValueError) as error:
            self._failed = str(error)
            if self._certain:
                raise ToolFailed(self._failed) from None
            self._seldom.due(tick.mono_s)
            self.absent = {"NVML": self._why, "nvidia-smi": self._failed}
            return
        if log is not None:
            self._write(tick, log)
        elif self._failed and self._certain:
            raise ToolFailed(self._failed)  # still failing, with no newer output

    def close(self) -> None:
        """Stop the running call."""
        self._tool.close()

    def _read_output(self, mono_s: float) -> SmiLog | None:
        try:
            output = self._tool.output(mono_s)
            log = None if output is None else smi_xml.read(output)
        except ToolFailed as failed:
            # If a GPU is lost, it reports the others and exits with an error.
            log = _read_or_none(failed.output) if failed.has_ended else None
            if log is None:
                raise
        except ValueError as error:
            raise ValueError(f"{' '.join(self._tool.argv)}: {error}") from None
        if log is None:
            return None
        if not log.gpus:
            raise ToolFailed(f"{self._tool.argv[0]} works, but lists no GPU")
        if len(log.gpus) > MOST_GPUS:
            raise ToolFailed(
                f"{self._tool.argv[0]} lists {len(log.gpus)} GPUs; at most {MOST_GPUS} are supported"
            )
        self._certain = True
        was_failing, self._failed = bool(self._failed), ""
        return None if was_failing and mono_s - self._tool.moment_s > STALE_S else log

    def _write(self, tick: Tick, log: SmiLog) -> None:
        self._members.refresh(tick.mono_s)
        here = self._match(log, tick)
        for card, gpu in here:
            card.read(gpu, self._tool.moment_s, self._members)
            card.write(tick)
        self._update_facts(log, [card for card, _ in here])

    def _match(self, log: SmiLog, tick: Tick) -> list[tuple[SmiGpu, SmiGpuLog]]:
        """The GPUs of the output, each with its state. Records events for GPUs that are lost or back.

        A GPU keeps its index when one before it falls off the bus.
        """
        here: list[tuple[SmiGpu, SmiGpuLog]] = []
        for place, gpu in enumerate(log.gpus):
            who = _identity(gpu) or str(place)
            card = self._cards.get(who)
            if card is None and any(known.is_at(who) for known in self._cards.values()):
                continue  # only its address: a known GPU that is lost, not a new one
            if card is None:
                taken = {known.index for known in self._cards.values()}
                card = self._cards[who] = SmiGpu(place if place not in taken else max(taken) + 1, who)
            elif card.is_lost:
                tick.events.append(_event("device_back", "info", card, "is back"))
            card.is_lost = False
            here.append((card, gpu))
        shown = {card.who for card, _ in here}
        for who, card in self._cards.items():
            if who not in shown and not card.is_lost:
                card.is_lost = True
                tick.events.append(
                    _event("device_lost", "error", card, "is no longer reported by nvidia-smi")
                )
        return here

    def _update_facts(self, log: SmiLog, cards: list[SmiGpu]) -> None:
        """Update `facts` and `absent`."""
        is_hidden = not any(card.in_use for card in cards) and self._members.may_be_hidden()
        absent = {"NVML": self._why}
        silent = [
            key
            for key, *_ in (*_GAUGES, *_COUNTERS)
            if not any(key in card.gauges or key in card.counters for card in cards)
        ]
        if silent:
            absent[", ".join(silent)] = "not reported by nvidia-smi"
        for card in self._cards.values():
            if card.is_lost:
                absent[f"GPU {card.index}"] = f"lost ({card.who})"
        if is_hidden:
            absent["gpu.process"] = HIDDEN
        if absent != self.absent:
            self.absent = absent
        facts = self._facts(log, is_hidden)
        if facts != self.facts:
            self.facts = facts

    def _facts(self, log: SmiLog, is_hidden: bool) -> dict[str, object]:
        cards = sorted(self._cards.values(), key=lambda card: card.index)
        candidates = [
            VisibleGpu(card.index, card.who, str(card.about.get("name", "")), card.slice_uuids)
            for card in cards
            if not card.is_lost
        ]
        # Most releases do not print the UUIDs of slices, by which CUDA_VISIBLE_DEVICES selects them.
        is_known = all("slices" not in card.about or card.slice_uuids for card in cards)
        shown = visible_to(self._scope.pids, self._proc, candidates) if is_known else None
        gpus: list[dict[str, object]] = []
        for card in cards:
            about = {"index": card.index, **card.about}
            about["visible"] = None if shown is None else card.index in shown
            about["used"] = None if card.is_lost or is_hidden else card.in_use
            if card.is_lost:
                about["lost"] = True
            gpus.append(about)
        names = {"nvidia_driver": "driver_version", "cuda_driver": "cuda_version"}
        driver = {fact: log.fields[field] for fact, field in names.items() if field in log.fields}
        return {**driver, "gpu_nvidia": gpus}


class SmiGpu:
    """The state of one GPU between calls.

    Args:
        index: the number in its keys.
        who: its UUID, or its PCI address if it has none.
    """

    def __init__(self, index: int, who: str) -> None:
        self.index = index
        self.who = who
        self.is_lost = False
        self.in_use = False
        self.about: dict[str, object] = {}
        self.slice_uuids: list[str] = []
        self.gauges: dict[str, float] = {}
        self.counters: dict[str, float] = {}
        self._own: dict[str, float] = {}
        self._throttled = ThrottledTime()

    def is_at(self, address: str) -> bool:
        return self.about.get("pci") == address

    def read(self, gpu: SmiGpuLog, moment_s: float, members: RunGpuProcesses) -> None:
        """Update from one output of the tool, which was called at `moment_s`."""
        fields = gpu.fields
        self.about = _about(gpu, self.who)
        self.slice_uuids = [part["uuid"] for part in gpu.slices if part.get("uuid", "").startswith("MIG-")]
        self.gauges, self.counters = {}, {}
        for table, found in ((_GAUGES, self.gauges), (_COUNTERS, self.counters)):
            for key, unit, names in table:
                values = (_value(fields.get(name), unit) for name in names)
                value = next((each for each in values if each is not None), None)
                if value is not None and not (key in _SHARES and value > 100.0):
                    found[key] = value
        if not 0.0 < self.gauges.get("memoryTemp", 1.0) < 200.0:
            del self.gauges["memoryTemp"]  # boards without a memory sensor report 0
        self.gauges.update(_memory(fields))
        draw, limit = self.gauges.get("powerWatts"), self.gauges.get("enforcedPowerLimitWatts", 0.0)
        if draw is not None and limit > 0.0:
            self.gauges["powerPercent"] = draw * 100.0 / limit
        for part in gpu.slices:
            numbers = [whole(part.get(f"{kind}_instance_id"), 99) for kind in ("gpu", "compute")]
            if None not in numbers:
                prefix = f"mig.{numbers[0]}.{numbers[1]}."
                self.gauges.update({prefix + key: value for key, value in _memory(part).items()})
        self._note_throttling(fields, moment_s)
        self._note_processes(gpu, members)

    def write(self, tick: Tick) -> None:
        """Write its readings into a tick."""
        prefix = f"gpu.{self.index}."
        for key, value in self.gauges.items():
            tick.gauges[prefix + key] = value
        for key, value in self.counters.items():
            tick.counters[prefix + key] = value
        if not self.in_use:
            return
        prefix = f"gpu.process.{self.index}."
        for key in SHARED:
            if key in self.gauges:
                tick.gauges[prefix + key] = self.gauges[key]
        for key in SHARED_COUNTERS:
            if key in self.counters:
                tick.counters[prefix + key] = self.counters[key]
        for key, value in self._own.items():
            tick.gauges[prefix + key] = value

    def _note_throttling(self, fields: Mapping[str, str], moment_s: float) -> None:
        bits, is_looked_at = 0, False
        reasons: set[str] = set()
        counted: dict[int, float] = {}
        for name, text in fields.items():
            section, _, element = name.partition(".")
            if not section.startswith(("clocks_throttle_reasons", "clocks_event_reasons")):
                continue
            for part, bit, counter, reason in _REASONS:
                if f"_{part}" not in element:
                    continue
                parts = split(text)
                if text in ("Active", "Not Active"):
                    is_looked_at = True
                    reasons.add(reason)
                    bits |= bit if text == "Active" else 0
                elif counter and parts is not None and parts[1] in _NANOSECONDS:
                    reasons.add(reason)
                    counted[counter] = parts[0] * _NANOSECONDS[parts[1]]
        if is_looked_at:
            self._throttled.note(bits, moment_s)
        self._throttled.note_counters(counted)
        seconds = self._throttled.seconds()
        for reason in reasons:
            key = f"throttle.{reason}Seconds"
            if key in seconds:
                self.counters[key] = seconds[key]

    def _note_processes(self, gpu: SmiGpuLog, members: RunGpuProcesses) -> None:
        """Memory of the run's processes. A process on several slices is listed once for each."""
        ours = [
            each
            for each in gpu.processes
            if (pid := whole(each.get("pid"), 1 << 31)) is not None and members.has(pid)
        ]
        self.in_use = bool(ours)
        known = [
            used for each in ours if (used := amount(each.get("used_memory"), "bytes", "MiB")) is not None
        ]
        self._own = {}
        if known:
            self._own["memoryAllocatedBytes"] = sum(known)
            total = amount(gpu.fields.get("fb_memory_usage.total"), "bytes", "MiB") or 0.0
            if total > 0.0:
                self._own["memoryAllocated"] = sum(known) * 100.0 / total


def _read_or_none(output: bytes) -> SmiLog | None:
    try:
        log = smi_xml.read(output)
    except ValueError:  # the output is only the error message, which is reported
        return None
    return log if log.gpus else None


def _value(text: str | None, unit: str) -> float | None:
    """A field's number; None if it has none, "N/A", "[Unknown Error]", "GPU is lost" …, or is below 0."""
    if text is None:
        return None
    if unit == "yes":
        return {"yes": 1.0, "no": 0.0}.get(text.lower())
    if unit == "lanes":
        text, unit = text.rstrip("xX"), "1"
    value = amount(text, unit, "MiB" if unit == "bytes" else None)
    return None if value is not None and value < 0.0 and unit != "°C" else value


def _memory(fields: Mapping[str, str]) -> dict[str, float]:
    """Used bytes and percent; nothing for a GPU without its own memory, which reports 0 of 0."""
    used = _value(fields.get("fb_memory_usage.used"), "bytes")
    total = _value(fields.get("fb_memory_usage.total"), "bytes")
    if used is None or total == 0.0:
        return {}
    found = {"memoryAllocatedBytes": used}
    if total is not None:
        found["memoryAllocated"] = used * 100.0 / total
    return found


def _identity(gpu: SmiGpuLog) -> str:
    uuid = gpu.fields.get("uuid", "")
    return uuid if uuid.startswith("GPU-") else _address(gpu)


def _address(gpu: SmiGpuLog) -> str:
    return pci.normal(gpu.fields.get("pci.pci_bus_id", "")) or pci.normal(gpu.fields.get("id", ""))


def _about(gpu: SmiGpuLog, who: str) -> dict[str, object]:
    """Identity and properties of a GPU, for the facts about the machine."""
    fields = gpu.fields
    about: dict[str, object] = {
        "name": fields.get("product_name", "NVIDIA GPU"),
        "uuid": who,
        "pci": _address(gpu),
    }
    total = amount(fields.get("fb_memory_usage.total"), "bytes", "MiB")
    if total:
        about["memory_bytes"] = int(total)
    minor = whole(fields.get("minor_number"), 9999)
    if minor is not None:
        about["minor"] = minor
    if fields.get("product_architecture", "N/A") != "N/A":
        about["architecture"] = fields["product_architecture"].split()[0]
    if gpu.slices:
        about["slices"] = [_about_slice(part) for part in gpu.slices]
    return about


def _about_slice(part: Mapping[str, str]) -> dict[str, object]:
    about: dict[str, object] = {}
    for fact, field in (
        ("gpu_instance", "gpu_instance_id"),
        ("compute_instance", "compute_instance_id"),
        ("multiprocessors", "device_attributes.shared.multiprocessor_count"),
    ):
        number = whole(part.get(field), 9999)
        if number is not None:
            about[fact] = number
    total = amount(part.get("fb_memory_usage.total"), "bytes", "MiB")
    if total:
        about["memory_bytes"] = int(total)
    return about


def _event(name: str, level: str, card: SmiGpu, what: str) -> dict[str, object]:
    text = f"GPU {card.index} {what}"
    return {"name": name, "level": level, "text": text, "gpu": card.index, "uuid": card.who}
