"""Cambricon MLU: cnmon's table, or the sections of `cnmon info`."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, text_of, tree
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_ADDRESS = ("PCI.Domain ID", "PCI.Bus num", "PCI.Device", "PCI.Function")


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    if drawn := grid(text, ("card", "mlu")):
        return drawn
    cards = tree(text, "Card ")
    for row in cards:
        row["index"] = str(row[""]).split()[0].rstrip(":") if row[""] else ""
        row["healthy"] = healthy(row.get("Health State.Device", ""))
        if all(part in row for part in _ADDRESS):
            domain, bus, device, function = (str(row[part]) for part in _ADDRESS)
            row["pci"] = f"{domain}:{bus}:{device}.{function}"
    return cards


CAMBRICON = Vendor(
    name="cambricon",
    title="Cambricon MLU",
    programs=("cnmon",),
    folders=("/usr/local/neuware/bin",),
    commands=((), ("info", "-m", "-u", "-e", "-p")),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization", "Utilization.MLU Average"),
        Reading(USED, "bytes", "memory.used", "Physical Memory Usage.Used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", "Physical Memory Usage.Total", bare="MiB"),
        Reading("temp", "°C", "temp", "Temperature.Chip", "Temperature.Board"),
        Reading(POWER, "W", "power", "Power.Usage"),
        Reading(LIMIT, "W", "limit", "Power.Cap"),
        Reading("memoryTemp", "°C", "Temperature.Memory"),
        Reading("fanSpeed", "%", "fan", "Fan.Speed", "Fan Speed", "Fan"),
        Reading("healthy", "1", "healthy"),
    ),
    identity={
        "index": ("index",),
        "name": ("name", "Product Name"),
        "uuid": ("UUID",),
        "pci": ("pci",),
        "serial": ("SN", "Serial Number"),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, CAMBRICON)
