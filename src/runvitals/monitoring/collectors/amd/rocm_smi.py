"""Parses `rocm-smi -a --showmeminfo vram gtt --json` of ROCm 4.3 to 7.

One object per card. All values are texts, and units are in the keys: ``{"card0": {"GPU use (%)": "7", …},
"system": …}``. Names vary between versions, so they are compared in lower case and without the unit.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.amd.readings import MAX_GPUS, AmdGpuReport
from runvitals.monitoring.collectors.plumbing.quantity import amount, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ARGUMENTS = ("-a", "--showmeminfo", "vram", "gtt", "--json")

# reading -> (unit, spellings; the first one with a value is used).
#
# "GPU memory use" is the load of the memory controller, not the share of memory in use: it has been 0 on a
# card with 12 % of its memory in use.
NAMES = {
    "gpu": ("%", ("gpu use",)),
    "memory": ("%", ("gpu memory read/write activity", "gpu memory use")),
    "memoryAllocated": ("%", ("gpu memory allocated",)),
    "memoryAllocatedBytes": ("bytes", ("vram total used memory",)),
    "memoryTotalBytes": ("bytes", ("vram total memory",)),
    "gttAllocatedBytes": ("bytes", ("gtt total used memory",)),
    "gttTotalBytes": ("bytes", ("gtt total memory",)),
    "edgeTemp": ("°C", ("temperature (sensor edge)",)),
    "junctionTemp": ("°C", ("temperature (sensor junction)", "temperature (sensor hotspot)")),
    "memoryTemp": ("°C", ("temperature (sensor memory)", "temperature (sensor mem)")),
    "powerWatts": (
        "W",
        (
            "average graphics package power", "current socket graphics package power",
            "average/current socket graphics package power", "current graphics package power",
            "average socket graphics package power", "current/average socket graphics package power",
        ),
    ),
    "enforcedPowerLimitWatts": ("W", ("max graphics package power",)),
    "energyJoules": ("J", ("accumulated energy",)),
    "graphicsClock": ("MHz", ("sclk clock speed",)),
    "memoryClock": ("MHz", ("mclk clock speed",)),
    "fanSpeed": ("%", ("fan speed",)),
    "fanRpm": ("rpm", ("fan rpm",)),
    "memoryOverDrive": ("%", ("gpu memory overdrive value",)),
    "pcieReplays": ("1", ("pcie replay count",)),
}  # fmt: skip


def parse(output: Any) -> list[AmdGpuReport]:
    """Return the cards in the output; empty if there are none.

    Raises:
        ValueError: it is not an object.

    Example:
        >>> parse({"card1": {"GPU use (%)": "20.3", "PCI Bus": "0000:2F:00.0"}})[0].readings
        {'gpu': 20.3}
    """
    if isinstance(output, list):
        merged = {name: card for part in output for name, card in part.items()}
    elif isinstance(output, dict):
        merged = output
    else:
        raise ValueError(f"invalid rocm-smi output: expected an object of cards, got {output!r:.80}")
    devices = []
    for name, card in merged.items():
        index = whole(name[4:], MAX_GPUS) if name[:4].lower() == "card" else None
        if index is not None and isinstance(card, dict):
            devices.append(_card(index, card))
    return devices


def _card(index: int, card: dict[str, Any]) -> AmdGpuReport:
    values: dict[str, tuple[str | None, Any]] = {}
    for key, value in card.items():
        name, unit = _name_and_unit(str(key))
        # "Fan speed (level)" must not hide "Fan speed (%)": keep the one with a known unit.
        if name not in values or unit is not None:
            values[name] = (unit, value)
    device = AmdGpuReport(index)
    readings = device.readings
    for reading, (unit, names) in NAMES.items():
        for name in names:
            theirs, value = values.get(name, (None, None))
            converted = amount(value, unit, theirs)
            if converted is not None:
                readings[reading] = converted
                break
    if "memoryTemp" not in readings:
        hbm = [
            amount(values.get(f"temperature (sensor hbm {stack})", (None, None))[1], "°C")
            for stack in range(8)
        ]
        hottest = [temperature for temperature in hbm if temperature is not None]
        if hottest:
            readings["memoryTemp"] = max(hottest)
    device.pci = _text(values, "pci bus").lower()
    device.unique_id = _text(values, "unique id").lower().removeprefix("0x")
    device.title = _text(values, "card series") or _text(values, "device name") or _text(values, "card model")
    device.clean()
    return device


def _name_and_unit(key: str) -> tuple[str, str | None]:
    """Split "VRAM Total Memory (B)" into ("vram total memory", "b"); "mclk clock speed:" has no unit."""
    key = key.strip().rstrip(":").rstrip().lower()
    head, bracket, unit = key.rpartition("(")
    if not bracket or not unit.endswith(")"):
        return key, None
    unit = unit[:-1].strip()
    if unit == "vram%":
        unit = "%"
    return (head.strip(), unit) if unit in _UNITS else (key, None)


def _text(values: dict[str, tuple[str | None, Any]], name: str) -> str:
    text = str(values.get(name, (None, ""))[1]).strip()
    return "" if text.lower() in ("n/a", "unknown", "none", "0x1002", "0") else text


_UNITS = frozenset(("%", "w", "c", "b", "uj", "mhz", "mv"))
