"""Biren: `brsmi gpu --query-gpu=…`, or the table of a release that does not support one of the columns."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import csv, text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_COMMON = "index,name,uuid,pci.bus_id,utilization.gpu,memory.used,memory.total,temperature.gpu"


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    return grid(text, ("gpu", "id", "card", "index")) or csv(text, key="index")


BIREN = Vendor(
    name="biren",
    title="Biren GPU",
    programs=("brsmi",),
    folders=("/usr/local/birensupa/bin", "/usr/local/birensupa/driver/bin"),
    commands=(
        ("gpu", f"--query-gpu={_COMMON},power.draw,power.limit", "--format=csv"),
        ("gpu", f"--query-gpu={_COMMON}", "--format=csv"),
        (),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.gpu", "utilization"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.gpu", "temp"),
        Reading(POWER, "W", "power.draw", "power"),
        Reading(LIMIT, "W", "power.limit", "limit"),
        Reading("fanSpeed", "%", "fan"),
    ),
    identity={
        "index": ("index",),
        "name": ("name",),
        "uuid": ("uuid",),
        "pci": ("pci.bus_id", "pci"),
    },
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, BIREN)
