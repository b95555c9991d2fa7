"""FuriosaAI: `furiosa-smi status` (load, memory) and `furiosa-smi info` (temperature, power)."""

from __future__ import annotations

from runvitals.collectors import loosejson
from runvitals.collectors.vendors.adapter import POWER, TOTAL, USED, Reading, Smi, Vendor, locate
from runvitals.collectors.vendors.doors import first_index
from runvitals.collectors.vendors.formats import objects
from runvitals.collectors.vendors.parts import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.collectors.base import Scope
    from runvitals.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """A row for each device; `index` is the number in its name, "npu3"."""
    found = objects(loosejson.find(output))
    for row in found:
        name = str(row.get("dev_name") or row.get("device") or row.get("npu") or "")
        number = name.removeprefix("npu")
        if number.isdigit():
            row["index"] = number
        row["load"] = _mean_load(row.get("pe_utilizations"))
    return found


def _mean_load(elements: object) -> float | None:
    """Load of a device: the mean over its processing elements, in per cent."""
    loads = []
    for each in elements if isinstance(elements, list) else ():
        load = each.get("pe_utilization", each.get("pe_usage_percentage")) if isinstance(each, dict) else each
        if isinstance(load, (int, float)):
            loads.append(float(load))
    return sum(loads) / len(loads) if loads else None


_IDENTITY = {
    "index": ("index",),
    "name": ("arch",),
    "uuid": ("device_uuid",),
    "pci": ("pci_bdf",),
    "serial": ("device_sn",),
}
INFO = Vendor(
    name="furiosa",
    title="FuriosaAI NPU",
    programs=("furiosa-smi",),
    # RNGD's tool says --format, Warboy's --output.
    commands=(("info", "--format", "json"), ("info", "--output", "json")),
    rows=rows,
    readings=(Reading("temp", "°C", "temperature"), Reading(POWER, "W", "power")),
    identity=_IDENTITY,
)
STATUS = Vendor(
    name="furiosa status",
    title="FuriosaAI NPU",
    programs=("furiosa-smi",),
    commands=(("status", "--format", "json"), ("status", "--output", "json")),
    rows=rows,
    readings=(
        Reading("gpu", "%", "load"),
        Reading(USED, "bytes", "memory.DRAM.used_size", "dram.used_size"),
        Reading(TOTAL, "bytes", "memory.DRAM.total_size", "dram.total_size"),
    ),
    identity=_IDENTITY,
)


def probe(scope: Scope) -> Parts:
    path, offset = locate(INFO), first_index(scope, INFO.name)
    return Parts(INFO.name, [Smi(INFO, path, offset), Smi(STATUS, path, offset)])
