"""FuriosaAI: `furiosa-smi status` (load, memory), `furiosa-smi info` (temperature, power), JSON or tables.

It depends on the release which of the two reports liveness and the power limit.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json
from runvitals.monitoring.collectors.plumbing.composite import CompositeSource
from runvitals.monitoring.collectors.plumbing.quantity import split
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, locate
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, objects, text_of
from runvitals.monitoring.collectors.vendors.probes import first_index
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """Return a row for each device; `index` is the number in its name, "npu3"."""
    drawn = grid(text_of(output), ("device", "npu"))
    for row in drawn:
        _add_derived(row, _mean_share(str(row.get("Core Utilization") or row.get("PE Utilization") or "")))
    if drawn:
        return drawn
    entries = objects(lenient_json.find(output))
    for row in entries:
        name = str(row.get("dev_name") or row.get("device") or row.get("npu") or "")
        number = name.removeprefix("npu")
        if number.isdigit():
            row["index"] = number
        _add_derived(row, _mean_load(row.get("pe_utilizations")))
    return entries


def _add_derived(row: Row, load: float | None) -> None:
    """Add derived values to a row: the load, and whether the device is alive."""
    if load is not None:
        row["load"] = load
    alive = next((row[name] for name in _LIVENESS if name in row), None)
    if alive is not None:
        row["alive"] = healthy(alive)


def _mean_share(text: str) -> float | None:
    """Return the mean over the cores in a cell: "Core 0: 12.00%, Core 1: 0.00%, Core 2: -".

    Unallocated cores have "-", which counts as 0.
    """
    words = text.replace(",", " ").split()
    parts = [split(word) for word in words]
    shares = [part[0] for part in parts if part is not None and part[1] == "%"]
    elements = max(len(shares), sum(word in ("Core", "PE") for word in words))
    return sum(shares) / elements if shares else None


def _mean_load(elements: object) -> float | None:
    """Load of a device: the mean over its processing elements, in percent."""
    loads = []
    for each in elements if isinstance(elements, list) else ():
        load = each.get("pe_utilization", each.get("pe_usage_percentage")) if isinstance(each, dict) else each
        if isinstance(load, (int, float)):
            loads.append(float(load))
    return sum(loads) / len(loads) if loads else None


_LIVENESS = ("liveness", "Liveness", "alive", "Alive", "is_alive", "status.liveness")
_ALIVE = Reading("healthy", "1", "alive")
_LIMIT = Reading(
    LIMIT,
    "W",
    "power_limit",
    "power_limit_watts",
    "Power Limit",
    "power_cap",
    "Power Cap",
    "power.limit",
    "limit",
)
_IDENTITY = {
    "index": ("index",),
    "name": ("arch", "Arch", "name"),
    "uuid": ("device_uuid", "UUID"),
    "pci": ("pci_bdf", "pci"),
    "serial": ("device_sn", "S/N"),
}
INFO = Vendor(
    name="furiosa",
    title="FuriosaAI NPU",
    programs=("furiosa-smi",),
    # RNGD's tool uses --format, Warboy's --output.
    commands=(("info", "--format", "json"), ("info", "--output", "json"), ("info",)),
    rows=rows,
    readings=(
        Reading("temp", "°C", "temperature", "temp"),
        Reading(POWER, "W", "power", "power.draw"),
        _LIMIT,
        _ALIVE,
    ),
    identity=_IDENTITY,
)
STATUS = Vendor(
    name="furiosa status",
    title="FuriosaAI NPU",
    programs=("furiosa-smi",),
    commands=(("status", "--format", "json"), ("status", "--output", "json"), ("status",)),
    rows=rows,
    readings=(
        Reading("gpu", "%", "load"),
        Reading(USED, "bytes", "memory.DRAM.used_size", "dram.used_size", "memory.used"),
        Reading(TOTAL, "bytes", "memory.DRAM.total_size", "dram.total_size", "memory.total"),
        _LIMIT,
        _ALIVE,
    ),
    identity=_IDENTITY,
)


def probe(scope: Scope) -> CompositeSource:
    """Watch the devices of this vendor."""
    path, offset = locate(INFO), first_index(scope, INFO.name)
    return CompositeSource(INFO.name, [Smi(INFO, path, offset), Smi(STATUS, path, offset)])
