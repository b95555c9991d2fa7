"""AMD's Device Metrics Exporter (`gpu_*`), its older SMI exporter (`amd_gpu_*`), and Omnistat (`rocm_*`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from runvitals.server.doors.exporters.translation import Derived, Input, ScrapedMoment, Translation, Values

_MIB = 2.0**20
_USED, _TOTAL, _POWER, _LIMIT = "used", "total", "power", "limit"

# Name, end of our key, factor to our unit.
_GAUGES = {
    "gpu_gfx_activity": ("gpu", 1.0),
    "gpu_umc_activity": ("memory", 1.0),
    "gpu_edge_temperature": ("edgeTemp", 1.0),
    "gpu_junction_temperature": ("junctionTemp", 1.0),
    "gpu_memory_temperature": ("memoryTemp", 1.0),
    "gpu_package_power": ("powerWatts", 1.0),
    "gpu_average_package_power": ("powerWatts", 1.0),
    "gpu_power_usage": ("powerWatts", 1.0),
    "gpu_energy_consumed": ("energyJoules", 1e-6),
    "gpu_ecc_correct_total": ("correctedMemoryErrors", 1.0),
    "gpu_ecc_uncorrect_total": ("unCorrectedMemoryErrors", 1.0),
    "pcie_replay_count": ("pcieReplays", 1.0),
    "amd_gpu_use_percent": ("gpu", 1.0),
    "amd_gpu_memory_use_percent": ("memoryAllocated", 1.0),
    "amd_gpu_power": ("powerWatts", 1e-6),
    "amd_gpu_SCLK": ("graphicsClock", 1.0),
    "amd_gpu_MCLK": ("memoryClock", 1.0),
    "rocm_utilization_percentage": ("gpu", 1.0),
    "rocm_vram_used_percentage": ("memoryAllocated", 1.0),
    "rocm_average_socket_power_watts": ("powerWatts", 1.0),
    "rocm_sclk_clock_mhz": ("graphicsClock", 1.0),
    "rocm_mclk_clock_mhz": ("memoryClock", 1.0),
}
_CLOCKS = {"GPU_CLOCK_TYPE_SYSTEM": "graphicsClock", "GPU_CLOCK_TYPE_MEMORY": "memoryClock"}
_MEMORY = {"gpu_used_vram": _USED, "gpu_total_vram": _TOTAL}
# The older exporter has the index in a label of the metric's own name.
_INDEX_LABELS = ("gpu_id", "card", "gpu", "gpu_use_percent", "gpu_memory_use_percent", "gpu_power",
                 "gpu_SCLK", "gpu_MCLK", "gpu_temperature")  # fmt: skip


def translate(name: str, labels: Mapping[str, str], device: int | None) -> Translation | None:
    """Return how a series of one of the exporters becomes ours."""
    index = _index(labels)
    if index is None:
        return None
    prefix = f"gpu.{index}."
    if name in _GAUGES:
        end, factor = _GAUGES[name]
        return Translation(prefix + end, factor)
    if name in _MEMORY:
        return Translation(inputs=(Input(_memory(prefix), _MEMORY[name]),))
    clock = _CLOCKS.get(labels.get("clock_type", "")) if name == "gpu_clock" else None
    if clock is not None and labels.get("clock_index", "0") == "0":
        return Translation(prefix + clock)
    if name == "rocm_temperature_celsius":
        return Translation(
            prefix + ("memoryTemp" if labels.get("location") in ("memory", "hbm_0") else "temp")
        )
    if name == "amd_gpu_temperature" or name == "amd_gpu_temperature_celsius":
        return Translation(prefix + "temp")
    return None


def _index(labels: Mapping[str, str]) -> int | None:
    for name in _INDEX_LABELS:
        text = labels.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 5:
            return int(text)
    return None


@lru_cache(4096)
def _memory(prefix: str) -> Derived:
    def compute(before: ScrapedMoment | None, t: int, values: Values) -> dict[str, float]:
        values_by_key = {prefix + "memoryAllocatedBytes": values[_USED] * _MIB}
        if values[_TOTAL]:
            values_by_key[prefix + "memoryAllocated"] = values[_USED] * 100.0 / values[_TOTAL]
        return values_by_key

    return Derived(prefix + "memory", compute, frozenset((_USED, _TOTAL)))
