"""Parses `amd-smi metric --json`, `static --json` and `list --json` of ROCm 5.7 to 7.

The output is a list of GPUs, since ROCm 7 inside ``{"gpu_data": […]}``. Each GPU has sections of values. A
value is a number, a text with a unit, ``{"value": 91, "unit": "%"}`` or "N/A"; a section may be "N/A" too.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.amd.readings import MAX_GPUS, AmdGpuReport
from runvitals.monitoring.collectors.plumbing.quantity import amount

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

METRIC = ("metric", "--json")
STATIC = ("static", "--json")

# reading -> (unit, unit of bare numbers, (section, fields…)…); the first field with a value is used. Field
# names are in lower case. Amounts of memory are MiB, also where another unit is printed.
METRICS: Mapping[str, tuple[str, str, tuple[tuple[str, ...], ...]]] = {
    "gpu": ("%", "%", (("usage", "gfx_activity", "average_gfx_activity", "apu_gfx_activity", "gfx_usage"),)),
    "memory": ("%", "%", (("usage", "umc_activity", "mem_activity", "umc_usage", "mem_usage"),)),
    "powerWatts": (
        "W", "W",
        (("power", "socket_power", "current_socket_power", "average_socket_power", "apu_socket_power",
          "current_power", "average_power"),),
    ),
    "enforcedPowerLimitWatts": ("W", "W", (("power", "power_limit", "socket_power_limit", "power_cap"),)),
    "edgeTemp": ("°C", "C", (("temperature", "edge", "edge_temperature", "temperature_edge", "gfx"),)),
    "junctionTemp": (
        "°C", "C",
        (("temperature", "hotspot", "junction", "hotspot_temperature", "temperature_hotspot"),),
    ),
    "memoryTemp": (
        "°C", "C",
        (("temperature", "mem", "vram", "hbm", "memory", "mem_temperature", "memory_temperature"),),
    ),
    "energyJoules": ("J", "J", (("energy", "total_energy_consumption", "energy_consumption"),)),
    "correctedMemoryErrors": (
        "1", "",
        (("ecc", "total_correctable_count", "total_correctable", "correctable_count"),),
    ),
    "unCorrectedMemoryErrors": (
        "1", "",
        (("ecc", "total_uncorrectable_count", "total_uncorrectable", "uncorrectable_count"),),
    ),
    "ubbPowerWatts": ("W", "W", (("power", "ubb_power", "baseboard_power"),)),
    "fanSpeed": ("%", "%", (("fan", "usage"),)),
    "fanRpm": ("rpm", "rpm", (("fan", "rpm", "fan_rpm"),)),
    "pcieReplays": ("1", "", (("pcie", "replay_count", "pcie_replay_count"),)),
    "memoryOverDrive": ("%", "%", (("mem_overdrive", ""),)),
    "gttAllocatedBytes": ("bytes", "MB", (("mem_usage", "used_gtt"),)),
    "gttTotalBytes": ("bytes", "MB", (("mem_usage", "total_gtt"),)),
}  # fmt: skip
# Pairs of (used, total) from the same source. On many cards the visible memory is a window of 256 MiB, so it
# is used only if nothing else is reported (partitions).
_MEMORY = (
    ("mem_usage", "used_vram", "total_vram"),
    ("vram", "used", "total"),
    ("vram", "vram_used", "vram_total"),
    ("fb_usage", "used", "total"),
    ("mem_usage", "used_visible_vram", "total_visible_vram"),
)
# Domains as `_domain` returns them. "sclk" and "gfxclk", "mclk" and "uclk" are synonyms.
_CLOCKS = {"graphicsClock": ("gfx", "s"), "memoryClock": ("mem", "m", "u")}
# The power cap in force, then the highest possible one.
_LIMITS = ("socket_power_limit", "socket_power", "current_power_limit", "max_power_limit", "max_power")


def parse_metric(output: Any) -> list[AmdGpuReport]:
    """Return the GPUs in the output of `amd-smi metric`.

    Raises:
        ValueError: it is not a list or object of GPUs.

    Example:
        >>> parse_metric([{"gpu": 1, "usage": {"gfx_activity": {"value": 42, "unit": "%"}}}])[0].readings
        {'gpu': 42.0}
    """
    devices = []
    for index, gpu in _gpus(output):
        device = AmdGpuReport(index)
        for reading, (unit, default, paths) in METRICS.items():
            for section, *fields in paths:
                value = _first(gpu.get(section), fields, unit, default)
                if value is not None:
                    device.readings[reading] = value
        _read_memory(gpu, device.readings)
        for section in ("clock", "clocks", "apu_clock", "apu_clocks"):
            _read_clocks(gpu.get(section), device.readings)
        if "gpu" not in device.readings:
            _read_partitions(gpu.get("usage"), device.readings)
        _identify(gpu, device)
        device.clean()
        devices.append(device)
    return devices


def parse_static(output: Any) -> list[AmdGpuReport]:
    """Identity, power limits and sizes, from `amd-smi static`; also parses what `list` has of these."""
    devices = []
    for index, gpu in _gpus(output):
        device = AmdGpuReport(index)
        _identify(gpu, device)
        limit = gpu.get("limit")
        if isinstance(limit, dict):
            # Since ROCm 7.2 the limits are in ppt0. ppt1 is the limit for short peaks.
            sections = [limit, limit.get("ppt0"), limit.get("ppt1")]
            limits = [_first_positive(section, _LIMITS) for section in sections]
            device.readings["enforcedPowerLimitWatts"] = next((watts for watts in limits if watts), 0.0)
        vram = gpu.get("vram")
        size = _first(vram, ("size", "vram_size", "total"), "bytes", "MB")
        if size is not None:
            device.readings["memoryTotalBytes"] = size
        device.clean()
        devices.append(device)
    return devices


def _gpus(output: Any) -> list[tuple[int, dict[str, Any]]]:
    """(index, sections) of each GPU, keys in lower case."""
    if isinstance(output, dict):
        inner = output.get("gpu_data", output.get("gpus"))
        if inner is None:
            # A single GPU, or an object of GPUs by name: {"gpu0": {…}}.
            gpu_entries = [
                value for key, value in output.items() if str(key).lower().startswith(("gpu_", "gpu"))
            ]
            inner = (
                gpu_entries
                if gpu_entries and all(isinstance(value, dict) for value in gpu_entries)
                else [output]
            )
        output = inner
    if isinstance(output, dict):
        output = list(output.values())
    if not isinstance(output, list):
        raise ValueError(f"invalid amd-smi output: expected a list of GPUs, got {output!r:.80}")
    gpus = []
    for position, gpu in enumerate(output):
        if isinstance(gpu, dict):
            sections = {str(key).lower(): value for key, value in gpu.items()}
            index = amount(sections.get("gpu", sections.get("gpu_id")), "1")
            if index is None or not 0 <= index < MAX_GPUS:
                index = position
            gpus.append((int(index), sections))
    return gpus


def _first(section: Any, fields: list[str] | tuple[str, ...], unit: str, default: str) -> float | None:
    if not isinstance(section, dict):
        return amount(section, unit, default) if "" in fields else None
    lower = {str(key).lower(): value for key, value in section.items()}
    if "value" in lower and "" in fields:
        return amount(section, unit, default)
    for field in fields:
        value = amount(lower.get(field), unit, default)
        if value is not None:
            return value
    return None


def _first_positive(section: Any, fields: tuple[str, ...]) -> float | None:
    if not isinstance(section, dict):
        return None
    lower = {str(key).lower(): value for key, value in section.items()}
    amounts = [amount(lower.get(field), "W", "W") for field in fields]
    return next((watts for watts in amounts if watts is not None and watts > 0.0), None)


def _read_memory(gpu: Mapping[str, Any], readings: dict[str, float]) -> None:
    for section, used_field, total_field in _MEMORY:
        used = _first(gpu.get(section), (used_field,), "bytes", "MB")
        total = _first(gpu.get(section), (total_field,), "bytes", "MB")
        if used is not None and total:
            readings["memoryAllocatedBytes"] = used
            readings["memoryTotalBytes"] = total
            return


def _read_clocks(section: Any, readings: dict[str, float]) -> None:
    """The fastest of the clocks, which are listed for each die or engine."""
    if not isinstance(section, dict):
        return
    for reading, names in _CLOCKS.items():
        clocks = []
        for name, clock in section.items():
            if _domain(str(name).lower()) in names:
                fields = ("clk", "cur_clk", "current_clock", "value")
                value = clock
                if isinstance(clock, dict) and "value" not in clock:
                    lower = {str(key).lower(): each for key, each in clock.items()}
                    value = next((lower[field] for field in fields if field in lower), None)
                clocks.append(amount(value, "MHz", "MHz"))
        read_clocks = [clock for clock in clocks if clock is not None]
        if read_clocks:
            readings[reading] = max(read_clocks)


def _domain(name: str) -> str:
    """The domain of a clock: "gfx_0" is "gfx"; also "apu_gfxclk" and "average_gfxclk_frequency" of APUs."""
    for beginning in ("apu_", "average_", "avg_", "current_", "cur_"):
        name = name.removeprefix(beginning)
    name = name.rstrip("0123456789_").removesuffix("_frequency").removesuffix("_freq")
    return name.removesuffix("clk").rstrip("_") or name


def _read_partitions(usage: Any, readings: dict[str, float]) -> None:
    """The mean over the dies, if there is no value for the whole GPU."""
    instances = usage.get("gfx_busy_inst") if isinstance(usage, dict) else None
    if not isinstance(instances, dict):
        return
    lists = [dies for dies in instances.values() if isinstance(dies, list)]
    busy = [amount(die, "%", "%") for dies in lists for die in dies]
    percentages = [percent for percent in busy if percent is not None]
    if percentages:
        readings["gpu"] = sum(percentages) / len(percentages)


def _identify(gpu: Mapping[str, Any], device: AmdGpuReport) -> None:
    asic, bus = gpu.get("asic"), gpu.get("bus")
    asic = asic if isinstance(asic, dict) else {}
    bus = bus if isinstance(bus, dict) else {}
    device.pci = _text(bus.get("bdf", gpu.get("bdf"))).lower()
    device.title = _text(asic.get("market_name"))
    device.unique_id = _text(gpu.get("uuid", asic.get("asic_serial"))).lower()
    hip = amount(gpu.get("hip_id"), "1")
    device.hip_index = None if hip is None else int(hip)
    part = amount(gpu.get("partition_id"), "1")
    device.partition = 0 if part is None else int(part)


def _text(value: Any) -> str:
    text = "" if value is None or isinstance(value, (dict, list)) else str(value).strip()
    return "" if text.lower() in ("n/a", "unknown", "none") else text
