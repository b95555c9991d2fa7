"""T-Head PPU (Alibaba): ppu-smi queries, or its table if a release supports none of the queries."""

from __future__ import annotations

from runvitals.monitoring.collectors.vendors.adapter import Reading, Smi, Vendor, watch
from runvitals.monitoring.collectors.vendors.devices import LIMIT, POWER, TOTAL, USED
from runvitals.monitoring.collectors.vendors.formats import csv, text_of
from runvitals.monitoring.collectors.vendors.text_tables import grid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runvitals.monitoring.collectors.base import Scope
    from runvitals.monitoring.collectors.vendors.formats import Row

_COMMON = (
    "index,name,uuid,utilization.ppu,utilization.memory,memory.used,memory.total,temperature.ppu,power.draw"
)


def rows(output: bytes) -> list[Row]:
    """Parse the output: a row for each device."""
    text = text_of(output)
    return grid(text, ("ppu",)) or csv(text, key="index")


THEAD = Vendor(
    name="thead",
    title="T-Head PPU",
    programs=("ppu-smi",),
    folders=("/usr/local/PPU_SDK/bin", "/usr/local/PPU_SDK/ppu-smi/bin"),
    # A release rejects a query with an unknown name. The table has more than the memory query.
    commands=(
        (f"--query-ppu={_COMMON},gpu_bus_id,power.limit", "--format=csv"),
        (f"--query-ppu={_COMMON}", "--format=csv"),
        (),
        ("--query-ppu=index,name,uuid,memory.used,memory.total", "--format=csv"),
    ),
    rows=rows,
    readings=(
        Reading("gpu", "%", "utilization.ppu", "utilization"),
        Reading("memory", "%", "utilization.memory"),
        Reading(USED, "bytes", "memory.used", bare="MiB"),
        Reading(TOTAL, "bytes", "memory.total", bare="MiB"),
        Reading("temp", "°C", "temperature.ppu", "temp"),
        Reading(POWER, "W", "power.draw", "power"),
        Reading(LIMIT, "W", "power.limit", "limit"),
    ),
    identity={"index": ("index",), "name": ("name",), "uuid": ("uuid",), "pci": ("gpu_bus_id", "pci")},
)


def probe(scope: Scope) -> Smi:
    """Watch the devices of this vendor."""
    return watch(scope, THEAD)
