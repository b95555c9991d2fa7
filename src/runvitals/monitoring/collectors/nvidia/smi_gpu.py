"""One GPU in the output of `nvidia-smi -q -x`: its readings, and why others are missing."""

from __future__ import annotations

from runvitals.monitoring.collectors.nvidia.device import SHARED, SHARED_COUNTERS
from runvitals.monitoring.collectors.nvidia.gpm import METRICS as PROFILING
from runvitals.monitoring.collectors.nvidia.processes import HIDDEN, MAX_OTHERS, UNKNOWN_SIZE
from runvitals.monitoring.collectors.nvidia.recovery import ACTIONS, recovery_events
from runvitals.monitoring.collectors.nvidia.throttling import REASONS, ThrottledTime, key_of
from runvitals.monitoring.collectors.plumbing import pci
from runvitals.monitoring.collectors.plumbing.missing_readings import ExpectedReadings
from runvitals.monitoring.collectors.plumbing.quantity import amount, split, whole
from runvitals.monitoring.collectors.plumbing.run_processes import UNKNOWN_SUM, total_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runvitals.monitoring.collectors.base import Tick
    from runvitals.monitoring.collectors.nvidia.processes import RunGpuProcesses
    from runvitals.monitoring.collectors.nvidia.smi_xml import SmiGpuLog

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
    ("recoveryAction", "action", ("gpu_recovery_action",)),
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
# Fact, its field and unit.
_FACTS = (
    *(("default_power_limit_watts", f"{section}.default_power_limit", "W") for section in _POWER[::-1]),
    ("max_sm_clock_mhz", "max_clocks.sm_clock", "MHz"),
)
# What NVML and its profiling counters have, and the tool does not.
_NEVER = ("energyJoules", *(key for _, _, key in PROFILING if not key.startswith("pcie")))
_NEVER_OF_PROCESSES = ("gpu", "memory", "encoderUtilization", "decoderUtilization")
UNREPORTED = "not reported by nvidia-smi"
# Larger values mean "no value".
# Part of the names of a reason's elements, its bit and counter in NVML, its name in a key.
_REASONS = (
    ("sw_power_cap", 0x4, 74, "swPowerCap"),
    ("hw_slowdown", 0x8, 0, "hwSlowdown"),
    ("sync_boost", 0x10, 76, "syncBoost"),
    ("sw_therm", 0x20, 269, "swThermal"),
    ("hw_therm", 0x40, 270, "hwThermal"),
    ("hw_power_brak", 0x80, 271, "hwPowerBrake"),
)
_WORDS = {
    "yes": {"yes": 1.0, "no": 0.0},
    "action": {name.lower(): float(number) for number, name in enumerate(ACTIONS)},
}
_NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}


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
        self.missing: dict[str, str] = {}
        self._expected = ExpectedReadings(())
        self._recovery = 0
        self._own: dict[str, float] = {}
        self._throttled = ThrottledTime()

    def is_at(self, address: str) -> bool:
        """Return whether the GPU has this PCI address."""
        return self.about.get("pci") == address

    def read(self, gpu: SmiGpuLog, moment_s: float, members: RunGpuProcesses) -> None:
        """Update from one output of the tool, which was called at `moment_s`."""
        fields = gpu.fields
        self.about = _about(gpu, self.who)
        self.slice_uuids = [part["uuid"] for part in gpu.slices if part.get("uuid", "").startswith("MIG-")]
        self.gauges, self.counters, self.missing = {}, {}, {}
        for table, by_key in ((_GAUGES, self.gauges), (_COUNTERS, self.counters)):
            for key, unit, names in table:
                values = (_value(fields.get(name), unit) for name in names)
                value = next((each for each in values if each is not None), None)
                if value is not None:
                    by_key[key] = value
                else:
                    self.missing[key] = _why_missing(fields, names)
        if not 0.0 < self.gauges.get("memoryTemp", 1.0) < 200.0:
            del self.gauges["memoryTemp"]  # boards without a memory sensor report 0
            self.missing["memoryTemp"] = "it has no sensor"
        draw, limit = self.gauges.get("powerWatts"), self.gauges.get("enforcedPowerLimitWatts", 0.0)
        if draw is not None and limit > 0.0:
            self.gauges["powerPercent"] = draw * 100.0 / limit
        else:
            self.missing["powerPercent"] = "needs the power and its limit"
        for part in gpu.slices:
            numbers = [whole(part.get(f"{kind}_instance_id"), 99) for kind in ("gpu", "compute")]
            if None not in numbers:
                prefix = f"mig.{numbers[0]}.{numbers[1]}."
                used = _memory(part)
                self.gauges.update({prefix + key: value for key, value in used.items()})
                why = _why_missing(part, ("fb_memory_usage.used",))
                lacking = {"memoryAllocated", "memoryAllocatedBytes"} - used.keys()
                self.missing.update((prefix + key, why) for key in sorted(lacking))
        self._note_throttling(fields, moment_s)
        self._note_memory(gpu, members)
        self.missing.update(dict.fromkeys(_NEVER, UNREPORTED))
        self.missing.update((f"process.{key}", UNREPORTED) for key in _NEVER_OF_PROCESSES)
        self._forgive(moment_s)

    def _forgive(self, moment_s: float) -> None:
        """Leave out of `missing` what had a value shortly before."""
        keys = {*self.gauges, *self.counters, *(f"process.{key}" for key in self._own)}
        self._expected.note(self.index, keys, moment_s)
        self.missing = {
            key: why
            for key, why in self.missing.items()
            if key in keys or self._expected.lacks(self.index, key)
        }

    def write(self, tick: Tick) -> None:
        """Write its readings into a tick."""
        prefix = f"gpu.{self.index}."
        for key, value in self.gauges.items():
            tick.gauges[prefix + key] = value
        for key, value in self.counters.items():
            tick.counters[prefix + key] = value
        action = int(self.gauges.get("recoveryAction", self._recovery))
        tick.events += recovery_events(self.index, self._recovery, action)
        self._recovery = action
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
        self._throttled.note_counters(counted)
        if is_looked_at:
            self._throttled.note(bits, moment_s)
        self.missing.update(self._throttled.explain(None))
        self.missing.update((key_of(name), UNREPORTED) for name in REASONS if name not in reasons)
        seconds = self._throttled.seconds()
        self.counters.update((key, seconds[key]) for name in reasons if (key := key_of(name)) in seconds)
        if sampled := [name for name in self._throttled.sampled_reasons() if name in reasons]:
            self.about["throttle_sampled"] = sampled

    def _note_memory(self, gpu: SmiGpuLog, members: RunGpuProcesses) -> None:
        """Used memory: of the GPU, of the run's processes, and of all others.

        If the GPU shares the host's memory, only its processes tell how much of it is used.

        A process on several slices is listed once for each.
        """
        listed = [
            (pid, amount(each.get("used_memory"), "bytes", "MiB"))
            for each in gpu.processes
            if (pid := whole(each.get("pid"), 1 << 31)) is not None
        ]
        ours = [used for pid, used in listed if members.has(pid)]
        self.in_use = bool(ours)
        total = _value(gpu.fields.get("fb_memory_usage.total"), "bytes")
        if gpu.lists_processes and _is_unified(gpu.fields, total):
            total = float(members.host_memory_bytes)
            self.about |= {"unified": True, **({"memory_bytes": int(total)} if total else {})}
            self._note_used("", [used for _, used in listed], total, self.gauges)
        else:
            used = _value(gpu.fields.get("fb_memory_usage.used"), "bytes") if total != 0.0 else None
            why = _why_missing(gpu.fields, ("fb_memory_usage.used",))
            self._note_used("", [used], total, self.gauges, why)
        self._own = {}
        if ours:
            self._note_used("process.", ours, total, self._own)
        self._note_others(gpu, [(pid, used) for pid, used in listed if not members.has(pid)], members)

    def _note_others(
        self, gpu: SmiGpuLog, others: Sequence[tuple[int, float | None]], members: RunGpuProcesses
    ) -> None:
        memory = total_of(used for _, used in others)
        if not gpu.lists_processes:
            self.missing["otherMemoryBytes"] = UNREPORTED
        elif not members.knows_others:
            self.missing["otherMemoryBytes"] = HIDDEN
        elif memory is None:
            self.missing["otherMemoryBytes"] = UNKNOWN_SUM
        else:
            self.gauges["otherMemoryBytes"] = memory
        if others and members.knows_others:
            self.about["other_processes"] = sorted({pid for pid, _ in others})[:MAX_OTHERS]

    def _note_used(
        self,
        prefix: str,
        sizes: Sequence[float | None],
        total: float | None,
        gauges: dict[str, float],
        why: str = UNKNOWN_SUM,
    ) -> None:
        """Bytes used and their share of the total, into `gauges`; if one is unknown, why into `missing`."""
        used = total_of(sizes)
        if used is None:
            self.missing.update((f"{prefix}memoryAllocated{end}", why) for end in ("", "Bytes"))
            return
        gauges["memoryAllocatedBytes"] = used
        if total:
            gauges["memoryAllocated"] = used * 100.0 / total
        else:
            self.missing[f"{prefix}memoryAllocated"] = UNKNOWN_SIZE


def _value(text: str | None, unit: str) -> float | None:
    """Return a field's number.

    None if it has none, "N/A", "[Unknown Error]", "GPU is lost" …, or is below 0.
    """
    if text is None:
        return None
    if unit in _WORDS:
        return _WORDS[unit].get(text.lower())
    if unit == "lanes":
        text, unit = text.rstrip("xX"), "1"
    value = amount(text, unit, "MiB" if unit == "bytes" else None)
    return None if value is not None and value < 0.0 and unit != "°C" else value


def _why_missing(fields: Mapping[str, str], names: Sequence[str]) -> str:
    texts = [fields[name] for name in names if name in fields]
    if not texts or any(letter.isdigit() for letter in texts[0]):
        return UNREPORTED if not texts else "nvidia-smi prints an invalid value"
    return f'nvidia-smi prints "{texts[0]}"'


def _is_unified(fields: Mapping[str, str], total: float | None) -> bool:
    text = fields.get("fb_memory_usage.total", "").strip("[]").lower()
    return total == 0.0 or text in ("n/a", "not supported")


def _memory(fields: Mapping[str, str]) -> dict[str, float]:
    """Used bytes and percent; nothing for a GPU without its own memory, which reports 0 of 0."""
    used = _value(fields.get("fb_memory_usage.used"), "bytes")
    total = _value(fields.get("fb_memory_usage.total"), "bytes")
    if used is None or total == 0.0:
        return {}
    sizes = {"memoryAllocatedBytes": used}
    if total is not None:
        sizes["memoryAllocated"] = used * 100.0 / total
    return sizes


def identity(gpu: SmiGpuLog) -> str:
    """Return its UUID, or its PCI address if it has none."""
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
    for fact, field, unit in _FACTS:
        value = amount(fields.get(field), unit)
        if value is not None:
            about[fact] = value
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
