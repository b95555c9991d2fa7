"""Rebellions: `rbln-stat --json` (rbln-smi in newer SDKs), or its table.

For a card with several devices, the table lists only the first one, with the card's power.
"""

from __future__ import annotations

from runvitals.monitoring.collectors.plumbing import lenient_json
from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import healthy, objects, text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    drawn = grid(text_of(output), ("npu",))
    if drawn:
        return drawn
    report = lenient_json.find(output)
    entries = objects(report.get("devices", []) if isinstance(report, dict) else report)
    for row in entries:
        row["healthy"] = healthy(row.get("status", ""))
    return entries


REBELLIONS = Vendor(
    name="rebellions",
    title="Rebellions NPU",
    programs=("rbln-smi", "rbln-stat"),
    commands=(("--json",), ("-j",), ()),
    rows=rows,
    readings=(
        Reading("gpu", "%", "util", "utilization"),
        Reading(USED, "bytes", "memory.used"),
        Reading(TOTAL, "bytes", "memory.total"),
        Reading("temp", "°C", "temperature", "temp"),
        Reading(POWER, "W", "card_power", "power"),
        Reading("healthy", "1", "healthy"),
    ),
    identity={
        "index": ("npu", "index"),
        "name": ("name",),
        "uuid": ("uuid",),
        "pci": ("pci.bus_id", "pci"),
        "serial": ("sid",),
    },
    missing={"powerPercent": "the tool reports no power limit"},
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, REBELLIONS)
