"""Moore Threads: `mthreads-gmi -q` as JSON or as sections, or the table, which has no power."""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import objects, text_of, tree
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    drawn = grid(text, ("id",))
    if drawn:
        return drawn
    sections = tree(text, "GPU")
    for row in sections:
        number, _, address = str(row[""]).strip(" :").partition(" ")
        row.update({"index": number, "pci": address})
    if sections:
        return sections
    report = lenient_json.find(output)
    return objects(report.get("GPU", []) if isinstance(report, dict) else report)


MOORE_THREADS = Vendor(
    name="moorethreads",
    title="Moore Threads GPU",
    programs=("mthreads-gmi",),
    commands=(("-q", "--json"), ("-q",), ()),
    rows=rows,
    readings=(
        Reading("gpu", "%", "Utilization.Gpu", "utilization"),
        Reading("memory", "%", "Utilization.Memory"),
        Reading(USED, "bytes", "FB Memory Usage.Used", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "FB Memory Usage.Total", "memory.total", bare="MiB"),
        Reading("temp", "°C", "Temperature.GPU Current Temp", "temp"),
        Reading(POWER, "W", "Power Readings.Power Draw", "power"),
        # "Max Power Limit" is the highest possible limit, not the current one.
        Reading(LIMIT, "W", "Power Readings.Current Power Limit", "limit"),
    ),
    identity={
        "index": ("Index", "index"),
        "name": ("Product Name", "name"),
        "uuid": ("GPU UUID",),
        "pci": ("PCI.Bus ID", "pci"),
        "serial": ("Serial Number",),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, MOORE_THREADS)
